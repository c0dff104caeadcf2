"""One node while it is worked on: its session, its journal, and what has happened so far."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

import winboot
from winboot.base.clean import clean
from winboot.base.errors import (
    BudgetUsedUp,
    ClusterError,
    ClusterRefused,
    InternalError,
    Interrupted,
    NotDone,
    NoVersionBefore,
    OtherThanPlanned,
    VersionsHeld,
    WinbootError,
)
from winboot.config.node_spec import NodeSpec
from winboot.config.node_spec.digest import settings_digest
from winboot.config.node_spec.former import at_versions
from winboot.node.fleet.context import Options, RunContext
from winboot.node.fleet.ownership import OK, result_of
from winboot.node.run import Facts, Pass, RunRecord, ScriptRunner, superseded
from winboot.remote.cluster.base import Cluster, NodeFacts, Token, Tokens, token_id
from winboot.remote.cluster.rights import WITHOUT_KUBECONFIG
from winboot.remote.cluster.sessions import Held
from winboot.remote.transport.dialled import dialled_addresses
from winboot.report.events import Difference, ImageNote, Problem, StepDone, VersionNote, VersionSet
from winboot.report.journal import Journal
from winboot.report.notices import Waiting
from winboot.report.plan_file import changed_since, differing_digests, found_in
from winboot.report.results import Digests, Failure, Need, NodeReport, StepReport, collect
from winboot.script.plan import Plan, make_plan
from winboot.script.rendering import Helpers, render
from winboot.script.steps import STEPS
from winboot.script.steps.node_ready import NODE_READY

# How long the API server may take to delete a token when a run is left, in seconds.
FORGET_S: Final = 1.0
# Of a node that did not end when the run was stopped.
NOT_IN_TIME: Final = "the work did not end in time; the script on the machine may continue for a while"
_IMAGE: Final = re.compile(r"[A-Za-z0-9][\w.:/@-]*", re.ASCII)
# The controller's own step that shows what a rollback holds.
HELD_VERSIONS: Final = "held-versions"


class NodeRun:
    """The work on one node. Costs next to nothing until `reported` is called: the script is rendered and the journal
    opened only then, so that a thousand nodes may wait for their turn."""

    def __init__(
        self, spec: NodeSpec, plan: Plan, context: RunContext, options: Options, helpers: Helpers
    ) -> None:
        self.spec = spec
        self.plan = plan
        self.context = context
        self.options = options
        self.name = spec.node.name
        self.cluster: Cluster | None = None
        self.ready: bool | None = None
        # The bootstrap token that was made for this node, as long as it exists.
        self.token: Token | None = None
        self.notes: list[str] = []
        self.needs: list[Need] = []
        self.digests = Digests()
        self.live: bool | None = None
        # By the clock of time.monotonic; `_since` is None before the node's turn has come.
        self.began = self._let_in = time.monotonic()
        self._since: float | None = None
        # Whether spec, plan and script are those of other versions than the profile's, and the step that says so where a
        # rollback holds them.
        self.turned = False
        self.held: StepDone | None = None
        self._helpers = helpers
        # Whether nothing is left on it that a change could disturb.
        self._dead = False
        self._own_steps: list[StepDone] = []
        self._own_told: dict[str, float] = {}
        self._journal: Journal | None = None
        self._runner: ScriptRunner | None = None
        self._dialled: tuple[str, ...] | None = None
        self._held: Held | None = None
        # What the pods of a node that is adopted need, as it was before a drain.
        self._images: tuple[str, ...] | None = None

    def reported(self, work: Callable[[NodeRun], None], begin: Callable[[str], None]) -> NodeReport:
        """Do the work once `begin` lets this node in; an error becomes its outcome and no other's, be it expected or a
        bug."""
        clock = time.monotonic()
        failure = None
        try:
            begin(self.name)
            self._since = clock = self._let_in = time.monotonic()
            self._open()
            work(self)
        except (NotDone, BudgetUsedUp) as error:
            self._write("skipped", {"name": type(error).__name__, "problem": error.problem})
            failure = Failure.of(error)
        except WinbootError as error:
            self._write("failed", {"name": type(error).__name__, "problem": error.problem})
            failure = Failure.of(error)
        except Exception as error:  # noqa: BLE001 - a bug at one node must not cost the others their report
            failure = Failure.of(self._bug(error))
        finally:
            self._close()
        return structs.replace(self.report(failure), seconds=time.monotonic() - clock)

    def abandoned(self) -> NodeReport:
        """What is known of a node that did not end when the run was stopped; its thread is not waited for."""
        if self.token is not None and self.cluster is not None:
            self._forget(self.cluster, self.token)
        failure = Failure.of(interrupted(self.name, NOT_IN_TIME))
        return self._so_far(failure)

    def unfinished(self) -> NodeReport:
        """What is known while the work continues, for a report that may be the last: winboot may be killed at any
        time."""
        return self._so_far(Failure.of(interrupted(self.name, under_way(begun=self._runner is not None))))

    def _so_far(self, failure: Failure) -> NodeReport:
        """The report of a node that has not ended, with the time that it has taken until now."""
        seconds = 0.0 if self._since is None else time.monotonic() - self._since
        return structs.replace(self.report(failure), seconds=seconds)

    def interrupt(self) -> None:
        """End the script on the machine, from another thread: else a quiet one holds the node's lock for a while."""
        if self._runner is not None:
            self._runner.interrupt()

    @contextmanager
    def claimed(self, *, leave: bool = True) -> Iterator[bool]:
        """While this lasts no other run changes the node; gives whether one had to be waited for, so that a look is old. With
        `leave` the claim stays, and says how it ended.

        Raises NodeFailed where another run does not end in time, and Superseded where one has taken the node over.
        """
        claims = self.context.claims
        if claims is None:
            yield False
            return
        held, waited = claims.take(
            self.spec,
            by_force=self.options.take_over,
            patience=self.options.patience.held,
            poll=self.options.patience.poll,
            wait=self.context.stop.wait,
            say=self.wait,
        )
        if held is None:
            yield waited
            return
        self._held = held
        held.lost = self.runner.supersede
        result = "failed:InternalError"
        try:
            yield waited
            result = result_of(self.report())
            if result == OK:
                self._forget_former(held.claim.former_run)
        except WinbootError as error:
            result = f"failed:{type(error).__name__}"
            if held.taken_by is not None:
                raise superseded(self.name, held.taken_by) from error
            raise
        finally:
            # There is nothing left to end.
            held.lost = lambda holder: None
            claims.give_back(self.spec, held, result, leave=leave or result != OK)
        if held.taken_by is not None:
            raise superseded(self.name, held.taken_by)

    def pause(self, seconds: float) -> bool:
        """Wait; True where the work on this node is to end: the run was stopped, or another one has the node."""
        return self.context.stop.wait(seconds) or (self._held is not None and self._held.taken_by is not None)

    def _forget(self, cluster: Tokens, token: Token) -> None:
        """Delete the token of a change that was left, in a bounded time: the cluster may be as silent as the node."""

        def forget() -> None:
            with suppress(ClusterError):
                cluster.forget_token(token.id)

        thread = threading.Thread(target=forget, name=f"forget-{self.name}", daemon=True)
        thread.start()
        thread.join(FORGET_S)
        if thread.is_alive():
            self.notes.append(
                f"the bootstrap token {token.id} may still exist; it expires at {token.expires:%H:%M} UTC"
            )

    def _forget_former(self, run: str) -> None:
        """Delete the token of a run that was killed at this node, whose claim was taken over. Without that it expires."""
        if run and self.cluster is not None and self.spec.cluster.bootstrap_token == "mint":
            with suppress(ClusterError):
                self.cluster.forget_token(token_id(run, self.name))

    @property
    def runner(self) -> ScriptRunner:
        """Runs the node's script; there is one while the node is worked on."""
        assert self._runner is not None
        return self._runner

    @property
    def record(self) -> RunRecord:
        """What the script has said so far; an empty one before it was started."""
        return self._runner.record if self._runner is not None else RunRecord()

    def connect_cluster(self) -> NodeFacts | None:
        """Open the cluster and ask for the Node; without a kubeconfig only the machine's own side is done."""
        self.cluster = self.context.cluster(self.spec)
        if self.cluster is None:
            self.notes.append(WITHOUT_KUBECONFIG)
            return None
        node = self.cluster.node(self.name)
        self.ready = node is not None and node.ready
        self.live = self.is_live(node)
        return node

    def look(self, node: NodeFacts | None) -> Pass:
        """Run the script in mode Look. Where other versions are held on the machine, or are to come back, all
        continues with the script of those. A machine that has a Node was joined, and may have kept the library.
        Raises NoVersionBefore, VersionsHeld."""
        if node is not None:
            self.runner.expect_library()
        found = self.runner.look(self.facts(node))
        if found.started.image is not None:
            self.notes.append(_of_image(found.started.image, self.spec))
        target = None if self.options.undo else self._former_versions(found.started.versions)
        if target is None:
            return found
        self._turn_to(target)
        return self.runner.look(self.facts(node))

    def _former_versions(self, note: VersionNote) -> VersionSet | None:
        """The versions to go by instead of the profile's; None for the profile's own. Raises NoVersionBefore."""
        match self.options.versions:
            case "released":
                return None
            case "back":
                target = note.way_back
                if target is None:
                    raise NoVersionBefore(
                        f"{self.name}: the machine has no record of an earlier version with which the node was Ready",
                        hint="Set the versions in the profile, and run `winboot join --drain` for this node.",
                        node=self.name,
                    )
            case "kept":
                target = note.held
        return None if target is None or _are_wanted(target, self.spec) else target

    def _turn_to(self, target: VersionSet) -> None:
        """Go on with the script of these versions."""
        machine = self.context.machines.get(self.name)
        if machine is None:
            raise VersionsHeld(
                f"{self.name}: the node was rolled back to {_in_words(target)}",
                hint="`winboot upgrade` gives the node the profile's versions.",
                node=self.name,
            )
        wanted = self.spec
        # The way to the cluster is this run's: in a pod of a fleet it is not the profile's.
        self.spec = replace(at_versions(machine, target.versions, target.archives), cluster=wanted.cluster)
        self.plan = make_plan(self.spec, STEPS, only=self.options.only, skip=self.options.skip)
        self.turned = True
        script = render(self.plan.complete, self.spec)
        self._write("script", {"script": script.digest, "versions": dict(target.versions)})
        self.runner.exchange(script, [step.name for step in self.plan.node_side])
        if self.options.versions == "kept":
            self.held = _held_step(self.name, wanted, target)
            self.step(self.held)

    def is_live(self, node: NodeFacts | None) -> bool:
        """Whether pods may run there: a Node that has lost its startup taint, unless nothing runs on it any more."""
        return node is not None and not self._dead and not node.has_taint(self.spec.node.startup_taint.key)

    def look_for_life(self, node: NodeFacts | None, look: Pass) -> None:
        """Take a Node for dead that is not Ready, whose pod network is gone and none of whose pods runs a container: it needs
        no drain. Where the cluster does not say, it lives."""
        if self.cluster is None or node is None or node.ready or not self.is_live(node):
            return
        if not _network_gone(self.spec, look.steps):
            return
        with suppress(ClusterError):
            self._dead = not self.cluster.runs_containers(self.name)
        self.live = self.is_live(node)

    def facts(self, node: NodeFacts | None, *, drained: bool = False) -> Facts:
        """What the controller knows and the script does not."""
        return {
            # Without a cluster the script asks for the Node itself.
            "Alone": self.cluster is None,
            "NodeIsLive": self.is_live(node),
            "NodeIsReady": node is not None and node.ready,
            "Versions": "hold" if self.turned else "release" if self.options.versions == "released" else "",
            "Drained": drained,
            "Drains": self.options.drain,
            # The run that had it before may be paused, not dead: the fence refuses that run when it wakes up.
            "TakeOver": self.options.take_over or (self._held is not None and self._held.claim.taken_over),
            "Adopt": self.options.adopt,
            "Purge": self.options.purge,
            "PodImages": list(self._pod_images(node)),
            "Holder": self.context.holder,
            "Steps": self.plan.selection,
            "Addresses": list(self._addresses()),
            "NoRestart": not self.options.restart,
            "Plan": self.options.approved.sha256 if self.options.approved is not None else "",
        }

    def _pod_images(self, node: NodeFacts | None) -> tuple[str, ...]:
        """The images of the pods on a node that is adopted; asked for once. None where this user may not list pods."""
        if self._images is None and self.options.adopt and self.cluster is not None and node is not None:
            self._images = ()
            with suppress(ClusterRefused):
                # An image is an argument of a program on the node.
                self._images = tuple(filter(_IMAGE.fullmatch, self.cluster.images(self.name)))
        return self._images or ()

    def _addresses(self) -> tuple[str, ...]:
        """Where the machine is dialled; asked for once."""
        if self._dialled is None:
            self._dialled = dialled_addresses(self.spec.machine.connection)
        return self._dialled

    def say(self, text: str) -> None:
        """Tell the listener what the controller does for this node."""
        self.context.listener.say(self.name, text)

    def wait(self, why: str, most: float) -> None:
        """Tell the listener what is waited for, and for how many seconds at most."""
        self.say(why)
        self.context.listener.event(self.name, Waiting(why, most))

    def step(self, done: StepDone) -> None:
        """Record a step that the controller did."""
        self._own_steps.append(done)
        if done.state != "ok":
            self._own_told[done.step] = time.monotonic()
        self.context.listener.event(self.name, done)

    def refuse_other_script(self) -> None:
        """Before any contact: OtherThanPlanned where the approved plan is not about this script of this node."""
        if self.options.approved is None:
            return
        planned = self.options.approved.nodes.get(self.name)
        if planned is None:
            raise self._unplanned("the plan does not have this node")
        if planned.failure:
            raise self._unplanned(f"the plan has no facts of this node ({planned.failure})")
        if differing := differing_digests(planned, self.digests):
            raise self._unplanned(f"{' and '.join(differing)} changed after the plan")

    def refuse_other_look(self, steps: Iterable[StepReport]) -> None:
        """OtherThanPlanned where the look found something else than the approved plan shows."""
        if self.options.approved is None:
            return
        planned = self.options.approved.nodes[self.name]
        if changed := changed_since(planned.steps, found_in(steps)):
            raise self._unplanned(f"the machine or its Node changed after the plan: {'; '.join(changed)}")

    def _unplanned(self, why: str) -> OtherThanPlanned:
        return OtherThanPlanned(
            f"{self.name}: {why}",
            hint="`winboot plan --out FILE` makes a new plan; review it, and run it.",
            node=self.name,
        )

    def report(self, failure: Failure | None = None) -> NodeReport:
        """What has happened so far, as this node's part of the report."""
        record = self.record
        whys = {step.name: step.why for step in self.plan.steps}
        lost = (self._journal.problem,) if self._journal is not None and self._journal.problem else ()
        told = {**record.told, **self._own_told}
        steps = collect([*record.steps, *self._own_steps], whys)
        return NodeReport(
            node=self.name,
            address=self.spec.machine.address,
            os=self.spec.machine.os,
            steps=tuple(
                structs.replace(step, ended=told[step.name] - self._let_in) if step.name in told else step
                for step in steps
            ),
            began=self._let_in - self.began,
            failure=failure,
            reboots=record.reboots,
            detached=record.detached,
            reconnects=record.reconnects,
            pipelines=record.pipelines,
            ready=self.ready if self.cluster is not None else _ready_by_itself(steps),
            # Some quote certificate requests.
            notes=tuple(map(clean, (*self.notes, *lost))),
            digests=self.digests,
            needs=tuple(self.needs),
            live=self.live,
        )

    def _open(self) -> None:
        self._journal = Journal(self.context.journals / self.context.run / f"{self.name}.jsonl")
        script = render(self.plan.complete, self.spec, undo=self.options.undo)
        self.digests = Digests(settings_digest(self.spec), script.digest, script.library.sha256)
        approved = self.options.approved
        self._journal.write(
            "script",
            {
                **structs.asdict(self.digests),
                "winboot": winboot.__version__,
                "by": self.context.holder,
                "plan": approved.sha256 if approved is not None else None,
            },
        )
        self._runner = ScriptRunner(
            self.name,
            script,
            self._helpers,
            lambda: self.context.connect(self.spec),
            steps=[step.name for step in self.plan.node_side],
            listener=self.context.listener,
            journal=self._journal,
            patience=self.options.patience,
            restarts=self.options.restart,
            undoes=self.options.undo,
            stop=self.context.stop,
            now=self._cluster_time,
        )

    def _cluster_time(self) -> datetime | None:
        """The time that the machine's clock is compared with: the API server's, or without a kubeconfig the controller's.

        None if the API server does not answer: another check reports that.
        """
        if self.cluster is None:
            return datetime.now(UTC)
        try:
            return self.cluster.server_time()
        except ClusterError:
            return None

    def _close(self) -> None:
        if self._runner is not None:
            self._runner.forget()
        if self._journal is not None:
            self._journal.close()

    def _write(self, kind: str, data: dict[str, object]) -> None:
        if self._journal is not None:
            self._journal.write(kind, data)

    def _bug(self, error: Exception) -> InternalError:
        self._write("bug", {"traceback": "".join(traceback.format_exception(error))})
        where = self._journal.path if self._journal is not None else "the output of this command"
        return InternalError(
            f"{self.name}: a bug in winboot itself: {type(error).__name__}: {error}",
            hint=f"Report the bug with {where}; the same command continues.",
            node=self.name,
        )


def interrupted(node: str, what: str) -> Interrupted:
    """What ends the work on a node in the middle of it."""
    return Interrupted(
        f"{node}: interrupted: {what}",
        hint="Run the same command again; it continues where it was.",
        node=node,
    )


def under_way(*, begun: bool) -> str:
    """Of a node that has not ended, in a report that may be the last."""
    what = "winboot was still working on the node" if begun else "winboot had not started the node"
    return f"{what} when the report was written"


def _are_wanted(versions: VersionSet, spec: NodeSpec) -> bool:
    return all(versions.versions.get(one.name, one.version) == one.version for one in spec.artifacts)


def _in_words(versions: VersionSet) -> str:
    named = {
        name: versions.versions[name]
        for name in ("kubernetes", "containerd", "docker")
        if name in versions.versions
    }
    return ", ".join(f"{name} {version}" for name, version in (named or versions.versions).items())


def _held_step(name: str, wanted: NodeSpec, held: VersionSet) -> StepDone:
    """The difference between what a rollback holds and what the profile wants; only `upgrade` changes it."""
    differences = tuple(
        Difference(
            f"version of {one.name}",
            held.versions[one.name],
            one.version,
            key=f"held:{one.name}",
            disturbs=True,
        )
        for one in wanted.artifacts
        if held.versions.get(one.name, one.version) != one.version
    )
    since = f" at {held.at} by {held.by}" if held.at else ""
    problem = Problem(
        "RolledBack",
        f"the node was rolled back to {_in_words(held)}{since}, and keeps these versions",
        f"`winboot upgrade -l {name}` gives the node the profile's versions; or set the node's versions in the profile.",
    )
    return StepDone("", HELD_VERSIONS, "blocked", 0, differences, problem)


def _ready_by_itself(steps: Sequence[StepReport]) -> bool | None:
    """Whether the machine saw its own Node Ready; None if it did not look."""
    states = [step.state for step in steps if step.name == NODE_READY.name]
    return states[-1] in ("ok", "changed") if states else None


def _of_image(image: ImageNote, spec: NodeSpec) -> str:
    """What a baked image spares this node, and what it holds of other versions than the profile."""
    other = [
        f"{one.name} {image.artifacts[one.name]} (wanted: {one.version})"
        for one in spec.artifacts
        if image.artifacts.get(one.name, one.version) != one.version
    ]
    missing = sorted(set(spec.runtime.images) - set(image.images))
    said = f"from an image that winboot {image.winboot} baked at {image.at} with the profile {image.profile}"
    if not (other or missing):
        return f"{said}; the image has all programs and images"
    return f"{said}; winboot downloads the missing files: {', '.join((*other, *missing))}; bake a new image"


def _network_gone(spec: NodeSpec, steps: Sequence[StepDone]) -> bool:
    """Whether a look found the network that the pods are on, and not only the switch below it, to be missing."""
    makers = {"calico-node", "operator-network"} | (
        set() if spec.network.solution.first_switch else {"pod-network"}
    )
    return any(
        step.step in makers and difference.key == "network:present" and difference.is_ is None
        for step in steps
        for difference in step.differences
    )
