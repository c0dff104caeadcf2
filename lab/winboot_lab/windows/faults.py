"""Faults on demand: what a test or a rehearsal makes go wrong, and when it strikes.

machine.faults.at_statement(40, machine.reboot)             a reboot in mid-step
machine.faults.before_command("Register-ScheduledTask", machine.power_off)
machine.faults.watch_writes(hook)                   calls hook(command, parameters) before each operation that changes something
machine.faults.dies("kubelet", times=2, after=0.5)          a service that dies n times
machine.faults.times_out("containerd", times=1)             a service that the manager gives up on (error 1053)
machine.faults.starts_slowly("containerd", 20)              a service that is StartPending for so long
machine.faults.disk_full(free=1_000_000)  .disk_slow(0.2)   a full disk, a slow disk
machine.faults.hold(path, 0.3, share="Read")                a file that another program has open for so long
machine.faults.scan(40, 0.3, share="Read")                  the same, for whatever the 40th file operation touches
machine.faults.skew(-600)                                   a clock that is ten minutes late
machine.faults.policy(key, name, "DWord", 1)                a Group Policy that holds a value
machine.faults.policy_without_local_rules("Domain")         a Group Policy that ignores local firewall rules
machine.faults.unreachable() / .stays_down()                a machine that never answers (again)
machine.world.damage(url, b"...")                           a wrong hash from the mirror (see sockets.py)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from winboot_lab.windows.door import Plain
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.files import Files, share_mask
from winboot_lab.windows.host import Actor, Host
from winboot_lab.windows.network import Network
from winboot_lab.windows.processes import Process, Processes
from winboot_lab.windows.programs_api import Died
from winboot_lab.windows.registry import POLICIES, Data, Kind

Strike = Callable[[], None]
Told = Callable[[str, "Mapping[str, Plain]"], None]

# The first words of cmdlets that change nothing, and of primitives that do.
_LOOKING = ("get-", "test-", "wait-", "select-", "new-scheduledtask", "convert")
_WRITING = (
    *(
        "file.write",
        "file.append",
        "file.move",
        "file.replace",
        "file.copy",
        "file.delete",
        "file.make-directory",
    ),
    *("file.handle-write", "file.handle-resize", "file.set-", "file.link", "acl.set", "certificate.add"),
    *("certificate.remove", "eventlog.create", "hcs.destroy-layer", "process.stop"),
    *("hcn.modify", "hcn.create", "hcn.delete", "hcn.join"),
    *("registry.set", "registry.delete", "registry.create", "program.run", "program.start"),
)

_READ = 1
# A holder outside the model: a virus scanner, a backup, an indexer. No process of the machine has this id.
_SOMEBODY = 0

# Primitives that open, rename or delete a file, and so meet the sharing modes of the programs that have it open.
TOUCHING = frozenset(
    f"file.{verb}"
    for verb in ("read", "write", "append", "open", "delete", "delete-directory", "move", "copy", "replace")
)


@dataclass(slots=True)
class _Death:
    times: int
    after: float


@dataclass(slots=True)
class _Ambush:
    left: int
    strike: Strike
    command: str = ""


@dataclass(slots=True)
class _Scan:
    """Another program opens what the `left`th file operation from now on touches, or the next one that is about a file
    that is there."""

    left: int
    seconds: float | None
    share: str


class Faults:
    """What is arranged to go wrong on one machine."""

    def __init__(self, machine: Host, files: Files, network: Network, processes: Processes) -> None:
        self._machine, self._files, self._network, self._processes = machine, files, network, processes
        self._deaths: dict[str, _Death] = {}
        self._silent: dict[str, int] = {}
        self._slow: dict[str, float] = {}
        self._statements: list[_Ambush] = []
        self._commands: list[_Ambush] = []
        self._writes: list[Told] = []
        self._scans: list[_Scan] = []
        # What was opened by hold or scan: the path and the share mode.
        self.held: list[tuple[str, str]] = []
        self.comes_back = True

    # ---- arranging -------------------------------------------------------------------------------------

    def at_statement(self, number: int, strike: Strike) -> None:
        """Strike once, before the `number`th statement that any session runs from now on."""
        self._statements.append(_Ambush(number, strike))

    def before_command(self, command: str, strike: Strike, *, call: int = 1) -> None:
        """Strike once, before the `call`th invocation of a cmdlet or primitive."""
        self._commands.append(_Ambush(call, strike, command.lower()))

    def watch_writes(self, told: Told) -> None:
        """Call `told` before each operation that changes something, in whatever session or task: cmdlet or primitive, and its
        parameters. `told` may strike."""
        self._writes.append(told)

    def dies(self, service: str, *, times: int, after: float = 0.0) -> None:
        """The service's process dies the next `times` it is started, `after` seconds later."""
        self._deaths[service.lower()] = _Death(times, after)

    def times_out(self, service: str, *, times: int = 1) -> None:
        """The next `times` the service is started it does not answer the manager within its 30 seconds."""
        self._silent[service.lower()] = times

    def starts_slowly(self, service: str, seconds: float) -> None:
        """Each start of the service is pending for so long: it has answered the manager, and is not done."""
        self._slow[service.lower()] = seconds

    def disk_full(self, drive: str = "C:", *, free: int = 0) -> None:
        """Leave only `free` bytes on the drive."""
        volume = self._files.volumes[drive]
        volume.other = volume.total - volume.used - free

    def disk_slow(self, seconds: float) -> None:
        """Each file operation takes so long."""
        self._machine.hardware.disk_delay = seconds

    def hold(self, path: str, seconds: float | None = None, *, share: str = "Read") -> bool:
        """Another program has the file open for reading, for so long (None: until the machine goes down).

        `share` names what it lets others do meanwhile, as FileShare and CreateFile's dwShareMode do. Without `Delete` it
        stops every rename, delete and replace, without `Write` every write, `None` reads too
        (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew, dwShareMode). False when it is absent, or
        open without any sharing.
        """
        files = self._files
        try:
            opened = files.open(path, "Open", _READ, share_mask(share), pid=_SOMEBODY)
        except Failure:
            return False
        self.held.append((opened.path, share))
        if seconds is not None:
            self._machine.after(seconds, lambda: files.close(opened.handle))
        return True

    def scan(self, call: int, seconds: float | None, *, share: str = "Read") -> None:
        """Before the `call`th file operation from now on, another program opens the files it is about (see `hold`). Where
        there is nothing to open, it does so before the first one after it that is about a file that is there."""
        self._scans.append(_Scan(call, seconds, share))

    def scan_no_more(self) -> None:
        """Scans that have not struck yet are off; what is held stays held."""
        self._scans.clear()

    def skew(self, seconds: float) -> None:
        """The machine's clock is off by so much; waiting is not affected."""
        self._machine.skew = seconds

    def policy(self, key: str, name: str, kind: Kind, data: Data) -> None:
        """A Group Policy sets a registry value, and puts it back at once whenever another program changes it."""
        self._machine.registry.policies.discard((key.lower(), name.lower()))
        self._machine.registry.set(key, name, kind, data)
        self._machine.registry.policies.add((key.lower(), name.lower()))

    def policy_without_local_rules(self, profile: str = "Domain") -> None:
        """A Group Policy that makes the firewall ignore local rules in a profile."""
        self.policy(rf"{POLICIES}\WindowsFirewall\{profile}Profile", "AllowLocalPolicyMerge", "DWord", 0)

    def unreachable(self, on: bool = True) -> None:
        """Cut the machine off from the network (it runs on)."""
        self._network.cut_off = on
        self._machine.signal("network-lost" if on else "network-back")

    def stays_down(self) -> None:
        """After the next restart the machine never comes up."""
        self.comes_back = False

    # ---- striking --------------------------------------------------------------------------------------

    def statement(self) -> bool:
        """A statement is about to run; whether a fault waited for one."""
        if not self._statements:
            return False
        self._spring(self._statements, lambda ambush: True)
        return True

    def before(self, session: Actor, command: str, parameters: Mapping[str, Plain]) -> None:
        """A cmdlet or primitive is about to run."""
        lower = command.lower()
        self._spring(self._commands, lambda ambush: ambush.command == lower)
        if self._writes and self._changes_something(lower, parameters):
            for told in self._writes:
                told(lower, parameters)
        if lower in TOUCHING:
            self._touch(parameters)
        if lower.startswith("file.") and self._machine.hardware.disk_delay:
            session.wait(self._machine.hardware.disk_delay)

    def _changes_something(self, command: str, parameters: Mapping[str, Plain]) -> bool:
        """Whether a cmdlet or primitive does."""
        match command:
            case "hns.call":
                return parameters.get("method") != "GET"
            case "file.make-directory":
                path = parameters.get("path")
                return not (isinstance(path, str) and self._files.is_directory(path))
            case "file.open":
                return str(parameters.get("mode")).lower() in (
                    "create",
                    "createnew",
                    "openorcreate",
                    "truncate",
                )
            case _ if "." in command:
                return command.startswith(_WRITING)
            case _:
                return not command.startswith(_LOOKING)

    def _touch(self, parameters: Mapping[str, Plain]) -> None:
        for scan in list(self._scans):
            scan.left -= 1
            if scan.left > 0:
                continue
            about = [parameters.get(name) for name in ("path", "source", "destination")]
            files = [file for path in about for file in self._files_of(path)]
            opened = [self.hold(file, scan.seconds, share=scan.share) for file in files]
            if any(opened):
                self._scans.remove(scan)

    def _files_of(self, path: Plain) -> list[str]:
        """The file itself; of a folder the first file below it."""
        files = self._files
        if not isinstance(path, str) or path.startswith("\\\\"):
            return []
        if not files.is_directory(path):
            return [path] if files.exists(path) else []
        return [below for below, node in files.walk(path) if not node.directory][:1]

    def _spring(self, ambushes: list[_Ambush], fits: Callable[[_Ambush], bool]) -> None:
        for ambush in [a for a in ambushes if fits(a)]:
            ambush.left -= 1
            if ambush.left <= 0:
                ambushes.remove(ambush)
                ambush.strike()

    def silent(self, service: str) -> bool:
        """Whether the service that is being started does not answer this time."""
        left = self._silent.get(service.lower(), 0)
        self._silent[service.lower()] = left - 1
        return left > 0

    def pending(self, service: str) -> float:
        """How long the service that is being started is pending."""
        return self._slow.get(service.lower(), 0.0)

    def starting(self, service: str, process: Process) -> None:
        """A service's process was created."""
        death = self._deaths.get(service.lower())
        if death is None or death.times <= 0:
            return
        death.times -= 1
        self._machine.after(death.after, lambda: self._kill(process))

    def _kill(self, process: Process) -> None:
        if process.running:
            self._processes.finish(process, Died(0xC0000005))
