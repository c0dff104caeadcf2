"""Every expected failure, as one tree.

    WinbootError                     exit 1
      UsageError                     exit 64   the command line is wrong
      InvalidInput                   exit 64   a profile, inventory or step file is wrong (carries places)
      ScriptError                    exit 1    a script could not be rendered or fails the strict check
      TransportError                 exit 69
        Unreachable                  exit 69   nothing answers; worth retrying
        ConnectionLost               exit 69   it answered and then did not; worth retrying
        Busy                         exit 69   the machine refuses for now (quota, 503, shutting down); worth retrying
        LoginRefused                 exit 77   the machine answered and refused the login
        AccessDenied                 exit 77   the login worked, but the right to run PowerShell is missing
        CertificateNotTrusted        exit 69   TLS: the certificate is not the expected one
        HostKeyNotTrusted            exit 69   SSH: the host key is not the expected one
        ProtocolError                exit 69   the machine's answer is not WinRM, PSRP or SSH
        RestrictedEndpoint           exit 69   JEA or Constrained Language: refused by name
      ClusterError                   exit 69
        ClusterUnreachable           exit 69   worth retrying
          ClusterBusy                exit 69   it answers, and cannot do it now (429, 500, 502-504); worth retrying
        ClusterConflict              exit 69   another client changed the object meanwhile
        ClusterRefused               exit 77   401 or 403, with the verb and resource
      CloudError                     exit 69
        CloudUnreachable             exit 69   the cloud's API does not answer or limits requests; worth retrying
        CloudRefused                 exit 77   credentials or a permission are missing
        NoSuchHost                   exit 69   the cloud has no such machine (any more)
      NodeFailed                     exit 1    a step failed on the node
        PreflightFailed              exit 1    the cluster or the machine is not ready for a join; nothing was changed
        ScriptFailed                 exit 1    the script ended by a PowerShell error outside any step
        BadEvent                     exit 1    the script sent an event with a field missing or of another type
        ExcessiveOutput              exit 1    the machine sent more than any winboot script does
        QuietNode                    exit 1    the script has sent nothing for too long
        IncompleteRun                exit 1    the script did not report the outcome of every step once
        WrongMachine                 exit 1    inventory, cluster and machine do not agree on its identity
        ClaimRefused                 exit 1    the machine reports an identity that the inventory does not explain
      NotDone                        exit 2    part of the work was left undone, though nothing failed
        NoNodeYet                    exit 2    repair: the cluster has no Node of this name
        RestartForbidden             exit 2    a restart of the machine is due, and --no-restart was given
        Declined                     exit 2    you answered no, or there was no terminal to ask at
        NoVersionBefore              exit 2    rollback: the machine has no record of a version to go back to
        VersionsHeld                 exit 2    a rollback holds other versions than the profile has
        OtherThanPlanned             exit 2    settings, script or look differ from the approved plan
      BudgetUsedUp                   exit 4    a failure budget or a deadline was used up before this node was started
      Superseded                     exit 75   another run has taken over
      ReportNotWritten               exit 74   the work is done, but its report could not be written
      Interrupted                    exit 130
      InternalError                  exit 1    a bug in winboot itself, kept to the node it happened to

A class defines the next step for the reader (`hint`), the exit code (`exit_code`), and whether a retry can help
(`worth_retrying`). Text is never parsed to decide.
"""

from __future__ import annotations

from typing import ClassVar

from winboot.base import exits
from winboot.base.clean import clean


class WinbootError(Exception):
    """An expected failure. `hint` is the reader's next step; `node` names the machine."""

    exit_code: ClassVar[int] = 1
    worth_retrying: ClassVar[bool] = False

    def __init__(self, problem: str, *, hint: str = "", node: str | None = None) -> None:
        # Much of it comes from a machine or a server.
        super().__init__(clean(problem))
        self.problem = clean(problem)
        self.hint = clean(hint)
        self.node = node


class UsageError(WinbootError):
    """The command line asks for something that does not exist or does not go together."""

    exit_code = 64


class ForeignFolder(UsageError):
    """Another user of this computer can change a folder that winboot relies on."""


class InvalidInput(WinbootError):
    """A file that you wrote is wrong. `problems` holds one error each, with its place."""

    exit_code = 64

    def __init__(self, problem: str, *, problems: tuple[object, ...] = (), hint: str = "") -> None:
        super().__init__(problem, hint=hint)
        self.problems = problems


class ScriptError(WinbootError):
    """A script could not be rendered, or does not pass the strict check."""


class TransportError(WinbootError):
    """The connection to the machine failed."""

    exit_code = 69


class Unreachable(TransportError):
    """Nothing answers at the address (refused, timed out, no such name)."""

    worth_retrying = True


class ConnectionLost(TransportError):
    """The machine answered, and then the connection ended in the middle of the work."""

    worth_retrying = True


class Busy(TransportError):
    """The machine refuses for now: a quota, HTTP 503, or it is shutting down."""

    worth_retrying = True


class LoginRefused(TransportError):
    """The machine answered and refused this user's login."""

    exit_code = 77


class AccessDenied(TransportError):
    """The login worked, but this user may not open a PowerShell session."""

    exit_code = 77


class CertificateNotTrusted(TransportError):
    """The machine's certificate is neither signed by the given CA nor the one of the given fingerprint."""


class HostKeyNotTrusted(TransportError):
    """The machine shows an SSH host key that is neither pinned in the inventory nor in known_hosts."""


class ProtocolError(TransportError):
    """The machine's answer is not WinRM, PSRP or SSH."""


class RestrictedEndpoint(TransportError):
    """The endpoint is JEA or runs in Constrained Language mode; winboot needs a full session."""


class ClusterError(WinbootError):
    """A call of the Kubernetes API failed."""

    exit_code = 69


class ClusterUnreachable(ClusterError):
    """The API server does not answer."""

    worth_retrying = True


class ClusterBusy(ClusterUnreachable):
    """The API server, or the proxy before it, answers that it cannot do this now.

    `retry_after` is how many seconds it asks to be left alone; None where it does not say.
    """

    def __init__(
        self, problem: str, *, hint: str = "", node: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(problem, hint=hint, node=node)
        self.retry_after = retry_after


class ClusterConflict(ClusterError):
    """Another client changed or made the object meanwhile (409); look again before trying again."""


class ClusterRefused(ClusterError):
    """The API server answered 401 or 403; the problem names the verb and the resource."""

    exit_code = 77


class CloudError(WinbootError):
    """A call of a cloud's API failed; the problem names provider and call."""

    exit_code = 69


class CloudUnreachable(CloudError):
    """The cloud's API does not answer, or limits winboot's requests."""

    worth_retrying = True


class CloudRefused(CloudError):
    """Credentials are missing, expired, or lack a right; the problem names the call."""

    exit_code = 77


class NoSuchHost(CloudError):
    """The cloud has no machine of this id (any more)."""


class NodeFailed(WinbootError):
    """A step failed on the node; the report of the node has the details."""


class BadEvent(NodeFailed):
    """The script sent an event with a field that is missing, null or of another type; the problem names both."""


class ExcessiveOutput(NodeFailed):
    """The machine sent more, or more often, than any winboot script does (winboot.base.limits)."""


class QuietNode(NodeFailed):
    """The script has produced no event for too long; the problem names the step that was due."""


class IncompleteRun(NodeFailed):
    """The script ended without reporting the outcome of every step of its plan exactly once."""


class PreflightFailed(NodeFailed):
    """Preflight found an error that you must fix first; nothing was changed."""


class WrongMachine(NodeFailed):
    """SMBIOS UUID, inventory and the Node's systemUUID do not agree; nothing was changed."""


class ClaimRefused(NodeFailed):
    """The machine reports an identity of another owner, one that the inventory does not explain, or two identities."""


class ScriptFailed(NodeFailed):
    """The script itself ended with a terminating error. `error_id`, `position` and `stack` are PowerShell's."""

    def __init__(
        self,
        problem: str,
        *,
        hint: str = "Fix the cause in the message and run the same command again; the run's journal has the earlier events.",
        node: str | None = None,
        error_id: str = "",
        position: str = "",
        stack: str = "",
    ) -> None:
        super().__init__(problem, hint=hint, node=node)
        self.error_id = error_id
        self.position = position
        self.stack = stack


class NotDone(WinbootError):
    """winboot left part of the work undone, though nothing failed. A report calls such a node skipped."""

    exit_code = exits.NOT_DONE


class NoNodeYet(NotDone):
    """The cluster has no Node of this name, and the command is about Nodes that exist."""


class NoVersionBefore(NotDone):
    """The machine has no record of earlier versions with which its Node was Ready."""


class VersionsHeld(NotDone):
    """A rollback holds other versions on the machine than the profile has."""


class Declined(NotDone):
    """You answered no, or there was no terminal to ask at; nothing was changed."""


class RestartForbidden(NotDone):
    """A change takes effect only after a restart of the machine, and `--no-restart` was given."""


class OtherThanPlanned(NotDone):
    """The node differs from the approved plan: its settings, its script, or the findings of a look."""


class BudgetUsedUp(WinbootError):
    """A failure budget or a deadline was used up before this node was started; a report calls such a node skipped."""

    exit_code = exits.STOPPED_ITSELF


class Superseded(WinbootError):
    """Another run has taken over this node."""

    exit_code = 75


class ReportNotWritten(WinbootError):
    """winboot could not write the report to the file of --report or to standard output (a full disk); the work is done."""

    exit_code = 74


class Interrupted(WinbootError):
    """Ctrl-C or SIGTERM."""

    exit_code = 130


class InternalError(WinbootError):
    """A bug in winboot itself: nothing that a class above expects."""

    @classmethod
    def about(cls, error: Exception) -> InternalError:
        """For an error of no class above, kept to the node that it happened to."""
        problem = f"a bug in winboot itself: {type(error).__name__}: {error}"
        return cls(problem, hint="Report the bug with the output of this command.")
