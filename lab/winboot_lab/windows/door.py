"""The one door into a lab Windows machine: the shapes that pass it, and the table of all it answers to.

Each actor on the machine (the PowerShell evaluator, programs, tests) holds a `Door` and calls
`invoke(command, parameters)`. A command is either a cmdlet of `door.commands` (bound beforehand by the
evaluator's one binder) or a primitive with a dotted name from the table below. Unknown commands, parameters,
keys and classes are a `Refusal`.

Conventions
-----------
- Paths are absolute Windows paths (`C:\\k\\kubelet.exe`; `/` is accepted), names compare without case, and
  the answer carries the name as it was created. Registry keys are written with the long hive name
  (`HKEY_LOCAL_MACHINE\\SOFTWARE`).
- Byte content is `bytes`. Times: an aware datetime is UTC (`Kind` Utc), a naive one is the machine's local
  time.
- A number, enum or other .NET value that is not Int32, Int64, Double, String, Boolean, DateTime, TimeSpan
  or Byte[] comes as `Typed(type_name, value, text)`. An `int` outside Int32 is an Int64.
- An object with members comes as `Record(type_name, properties)`. Where its methods work, `handle` is set
  and `object.call` calls them. A Record handed out may be handed back (as `-InputObject`, `-CimInstance`);
  only its type name and properties count then.
- `Result.errors` of a **cmdlet** are complete: `id` is the whole FullyQualifiedErrorId, `category` and
  `exception` are PowerShell's. Errors of a **primitive** carry the .NET exception (`exception`, `hresult`)
  and the short id that a MethodInvocationException would have; a provider cmdlet builds its own id from
  `exception`.
- "one or none" below: an empty `objects` with no error means "there is no such thing".

Primitives
----------
files (exceptions: FileNotFoundException 80070002, DirectoryNotFoundException 80070003,
UnauthorizedAccessException 80070005, IOException 80070020 sharing violation, 80070050/800700B7 exists,
80070091 directory not empty, 80070070 disk full, 8007007B name, PathTooLongException 800700CE,
ArgumentException):
  file.stat  path, follow=False
      -> one or none: Record file {path, name, kind 'file'|'directory', length, attributes (int flags),
         created, modified, accessed (UTC), link_type None|'SymbolicLink'|'Junction'|'HardLink', target
         None|str, version str ('' for what is no program)}
  file.list  path
      -> Record file for each child, sorted by name; IOException 8007010B when not a directory
  file.read  path, share='Read'
      -> bytes
  file.write  path, content, mode='Create', share='Read', security=None
      -> nothing. mode: Create CreateNew Open OpenOrCreate Truncate Append
  file.append  path, content
      -> nothing (creates the file)
  file.open  path, mode, access='Read'|'Write'|'ReadWrite', share ('None' or names joined by ', '),
      security=None, delete_on_close=False
      -> Record handle {handle, path, length}
  file.handle-read  handle, offset, count
      -> bytes (may be shorter)
  file.handle-write  handle, offset, content
      -> nothing
  file.handle-length  handle
      -> int
  file.handle-resize  handle, length
      -> nothing
  file.close  handle
      -> nothing; closing twice is fine
  file.delete  path
      -> nothing; an absent file is fine, an absent folder is DirectoryNotFound; read-only is
         UnauthorizedAccess, open elsewhere is a sharing violation
  file.delete-directory  path, recurse=False
      -> nothing. Does not follow junctions or links
  file.make-directory  path, security=None
      -> Record file; parents are made; an existing directory is fine
  file.move  source, destination, overwrite=False
      -> nothing (files and directories; a running program may be moved)
  file.copy  source, destination, overwrite=False
      -> nothing (files only)
  file.replace  source, destination, backup=None
      -> nothing
  file.set-attributes  path, attributes
      -> nothing
  file.set-times  path, created=None, modified=None, accessed=None
      -> nothing
  file.link  path, target, kind
      -> Record file. kind: SymbolicLink Junction HardLink
  file.entry  path, access (int)
      -> Record {tag (int, of a reparse point, else 0), names (int), owner (SID)} of the path itself, opened with these
         rights and sharing of everything
  file.space  path
      -> Record {total, free} of the volume in bytes
  file.volumes
      -> Record {name 'C:\\', kind 'Fixed'|'CDRom', format, label, total, free, ready}
access control (kind 'file' or 'registry'; rules are explicit and inherited, in canonical order; identities
are SIDs):
  acl.get  path, kind='file'
      -> Record acl {owner, group, protected, rules: [Record rule {identity, rights (int), type
         'Allow'|'Deny', inheritance (int: 1 container, 2 object), propagation (int: 1 no-propagate, 2
         inherit-only), inherited}], sddl}
  acl.set  path, kind='file', owner=None, group=None, protected=None, preserve=True, rules=None
      -> nothing. rules: the explicit ones; preserve: on protecting, turn inherited into explicit
  acl.enable-privileges
      -> nothing. From now on the session may take the ownership of keys, and give it to any account
  acl.name  sid
      -> one or none: str account name (`NT AUTHORITY\\SYSTEM`)
  acl.sid  name
      -> one or none: str SID; accepts short and `.\\` and `MACHINE\\` forms
registry (ArgumentException, UnauthorizedAccessException, SecurityException, IOException). A value comes as
Record value {name, kind, value}: kind is a RegistryValueKind name. DWord is a signed int, QWord an int,
MultiString a list of str, Binary/None bytes, ExpandString the unexpanded text with `expanded` next to it.
The default value's name is ''.
  registry.stat  key
      -> one or none: Record key {name, values, subkeys}
  registry.list  key
      -> str for each subkey, sorted without case
  registry.values  key
      -> Record value for each, in creation order
  registry.get  key, name
      -> one or none: Record value
  registry.set  key, name, kind, value
      -> nothing. The key must exist
  registry.create  key
      -> Record {created: bool}; parents are made
  registry.delete-key  key, recurse=False
      -> nothing. ArgumentException when absent, InvalidOperationException with subkeys
  registry.delete-value  key, name
      -> nothing. ArgumentException when absent
environment (target: Process, User, Machine):
  environment.get  name, target='Process'
      -> one or none: str
  environment.set  name, value, target='Process'
      -> nothing; value None or '' deletes
  environment.all  target='Process'
      -> dict name -> str
time:
  clock.now  utc=False
      -> datetime (aware when utc)
  clock.sleep  milliseconds
      -> nothing
  clock.ticks
      -> float: monotonic seconds since boot (Stopwatch, TickCount)
  clock.zone
      -> Record {id, offset_minutes}
named mutexes (names compare exactly; `Global\\` and `Local\\` prefixes; handles belong to the session):
  mutex.create  name, initially_owned=False
      -> Record {handle, created_new: bool, owned: bool}
  mutex.open  name
      -> Record {handle}; WaitHandleCannotBeOpenedException when absent
  mutex.wait  handle, milliseconds
      -> str 'acquired' | 'abandoned' | 'timeout' (milliseconds -1: no limit)
  mutex.release  handle
      -> nothing; ApplicationException when not the owner
  mutex.close  handle
      -> nothing
programs and processes:
  program.find  name, directories=None
      -> one or none: str full path (PATH and PATHEXT of the session)
  program.run  command_line, working_directory=None, environment=None, stdin=b'', timeout_ms=-1
      -> Record {exit_code, stdout: bytes, stderr: bytes, pid, timed_out, took_ms, open_until (uptime at which its
         pipes close: what it started may keep them)}. The command line is raw; its
         first word (quoted or not) is the full path of the program. Win32Exception 2 when it is absent, 193
         when it is no program, 5 when it may not be read
  program.start  command_line, working_directory=None, environment=None
      -> Record process; does not wait
  program.wait  pid, milliseconds
      -> one or none: int exit code (none: still running)
  process.list
      -> Record process {pid, parent, name, path, command_line, start_time, priority, session, user}
  process.get  pid
      -> one or none: Record process
  process.stop  pid
      -> nothing; ArgumentException when absent
  process.current
      -> Record process: the PowerShell process of this session
this machine:
  computer.info
      -> Record {name, active_name, domain, part_of_domain, workgroup, os_version, build, ubr, product,
         processors, memory, system_directory, uuid, boot_time}
  identity.current
      -> Record {name, sid, groups: [sid], elevated, authentication}
network:
  network.interfaces
      -> Record {id, name, description, kind, status 'Up'|'Down', mac, index, mtu, dhcp, forwarding,
         addresses: [{address, prefix_length}], gateways, dns_servers, dns_suffix}
  network.listeners  protocol='tcp'
      -> Record {address, port, pid}
  dns.resolve  name
      -> str addresses; SocketException 11001
  socket.connect  host, port, milliseconds=-1, spent=0
      -> Record {handle, local_address, remote_address}; SocketException 10061 refused, 10060 timed out,
         10051 unreachable, 11001 unknown host; TimeoutException when `milliseconds` passed first. `spent`:
         milliseconds of earlier waits for this attempt
  socket.secure  handle, host
      -> bytes: the certificate (DER) that the server shows; IOException when it speaks no TLS
  socket.send  handle, data: bytes
      -> nothing; IOException when the connection is gone. After socket.secure alone
  socket.receive  handle, count, milliseconds=0
      -> bytes, none at the end; IOException when nothing came for so long (0: 100 s) or it is gone
  socket.close  handle
      -> nothing
  http.get  url, headers={}, proxy=None, milliseconds=100000, method='GET', body=b''
      -> Record {status, reason, headers: dict, content: bytes, complete: bool, pace: float}. pace: bytes a
         second, 0 for all at once. complete False: the
         connection broke after `content`. WebException (status in `target`: ConnectFailure,
         NameResolutionFailure, Timeout, TrustFailure, ProxyNameResolutionFailure)
certificates (store: 'LocalMachine\\Root', 'LocalMachine\\My' ...):
  certificate.list  store
      -> Record {thumbprint, raw: bytes}
  certificate.add  store, raw
      -> nothing
  certificate.remove  store, thumbprint
      -> nothing
serial ports:
  serial.ports
      -> str names
  serial.write  line
      -> nothing
event log:
  eventlog.source  source
      -> one or none: str name of the log it writes to
  eventlog.create  source, log
      -> nothing; ArgumentException when the source exists
  eventlog.write  source, message, id=0, kind='Information', category=0
      -> nothing
  eventlog.query  log, provider=None, ids=None, newest=None, oldest_first=False
      -> Record as Get-WinEvent gives
host networking:
  hns.call  method, path, request, seconds=inf
      -> str JSON answer, as vmcompute.dll's HNSCall gives ({"Success": ..., "Output"|"Error": ...});
         TimeoutException when HNS takes longer than `seconds`
  hcn.query  id, query, seconds=inf
      -> str JSON properties of a network, as computenetwork.dll's HcnQueryNetworkProperties gives; TimeoutException as above
  hcn.modify  id, settings, seconds=inf
      -> nothing; HcnModifyNetwork; TimeoutException as above
  hcn.list  kind, query
      -> str JSON list of the objects that HcnEnumerate<kind>s finds by a query (kind: Network, Endpoint, LoadBalancer)
  hcn.create  kind, settings
      -> str JSON object, as HcnCreate<kind> gives
  hcn.delete  kind, id
      -> nothing; HcnDelete<kind>
  hcn.join  namespace, settings
      -> nothing; HcnModifyNamespace
objects:
  object.call  object, member, arguments=[]  what the method returns; `refreshed` holds the properties the
      object has afterwards
      -> (ServiceController.Refresh/Start/Stop/WaitForStatus, Process.Kill/WaitForExit/Refresh)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

Plain: TypeAlias = (
    "bool | int | float | str | bytes | datetime | timedelta | list[Plain] | dict[str, Plain]"
    " | Typed | Record | None"
)


@dataclass(frozen=True, slots=True)
class Typed:
    """A .NET scalar that Python's types do not name: `Typed("System.UInt32", 5)`; an enum has `text`."""

    type_name: str
    value: int | float | str
    text: str | None = None


@dataclass(slots=True)
class Record:
    """An object with members. `text` is its ToString() where scripts may ask for it; None means: refuse."""

    type_name: str
    properties: dict[str, Plain]
    handle: str | None = None
    text: str | None = None

    def __getitem__(self, name: str) -> Plain:
        """The property `name`, spelled exactly."""
        return self.properties[name]


@dataclass(frozen=True, slots=True)
class Problem:
    """What becomes an ErrorRecord. `category` is an ErrorCategory name, `exception` a full .NET type name, `inner` what
    its InnerException holds.
    """

    message: str
    id: str
    category: str
    exception: str
    target: Plain = None
    terminating: bool = False
    hresult: int | None = None
    inner: Problem | None = None


@dataclass(slots=True)
class Result:
    """What a command gave: objects, errors and warnings in order; `refreshed` only after `object.call`."""

    objects: list[Plain] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refreshed: dict[str, Plain] | None = None


ALL_SETS = "__AllParameterSets"


@dataclass(frozen=True, slots=True)
class InSet:
    """How a parameter behaves in one parameter set."""

    name: str = ALL_SETS
    mandatory: bool = False
    position: int | None = None
    by_value: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter: .NET type name, aliases, allowed words, and its place in each set."""

    name: str
    type_name: str = "System.String"
    aliases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    sets: tuple[InSet, ...] = (InSet(),)


@dataclass(frozen=True, slots=True)
class CommandSignature:
    """What the binder needs to know of one cmdlet.

    Parameters that the real cmdlet has and this list lacks are refused by name. `kind` is what Get-Command
    calls it (CDXML cmdlets are functions). The binder adds the common parameters, and -WhatIf/-Confirm when
    `should_process`; under -WhatIf nothing is invoked. `confirm_impact` High asks for -Confirm:$false in a
    session without a person. Pipeline input is bound by the binder, one `invoke` for each object.
    """

    name: str
    module: str
    parameters: tuple[Parameter, ...] = ()
    default_set: str = ALL_SETS
    aliases: tuple[str, ...] = ()
    kind: Literal["Cmdlet", "Function"] = "Cmdlet"
    should_process: bool = False
    confirm_impact: Literal["None", "Low", "Medium", "High"] = "Medium"


class Clock(Protocol):
    """The machine's time. Waiting advances it and costs real time scaled by `scale`."""

    scale: float

    def now(self) -> datetime:
        """The machine's UTC time, skew included."""

    def ticks(self) -> float:
        """Monotonic lab seconds since the machine booted; clock skew does not touch it."""

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of lab time pass; raises MachineStopped when the machine goes down meanwhile."""


class Door(Protocol):
    """What an acting party holds: a session on a machine, or the machine itself as its own console."""

    @property
    def commands(self) -> Mapping[str, CommandSignature]:
        """The cmdlets the machine implements, by lower-case name."""

    @property
    def clock(self) -> Clock:
        """The machine's clock."""

    def invoke(self, command: str, parameters: Mapping[str, Plain], input: Sequence[Plain] = ()) -> Result:
        """Run one cmdlet or primitive. Raises Refusal for what the machine does not know."""

    def acting(self) -> AbstractContextManager[None]:
        """An actor that computes (runs a script) does it inside; other threads' waiting then does not overtake it."""

    def checkpoint(self) -> None:
        """Called before every statement: due work, faults, stop. Raises MachineStopped or Interrupted."""


class MachineStopped(Exception):
    """The machine went down (reboot, power off) under the actors on it. No script sees this."""


class Interrupted(Exception):
    """The acting session was closed from outside. No script sees this."""
