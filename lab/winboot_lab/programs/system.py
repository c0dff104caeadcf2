"""Programs of Windows itself: netsh, powercfg, shutdown, w32tm, curl, powershell, taskkill. Others are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot_lab.engine.refusal import Refusal
from winboot_lab.programs.base import Run, windows_text
from winboot_lab.programs.wrappers import StartScript
from winboot_lab.windows.boot import TEST_SIGNING_ELEMENT
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.install import POWER_SCHEMES, SCHEMES
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.registry import SERVICES
from winboot_lab.windows.session import Computer, StandardStreams

_TIME: Final = SERVICES + r"\W32Time\Parameters"
# Characters: "Maximum of 512 characters allowed" (shutdown /?).
_SECURE_BOOT: Final = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\SecureBoot\State"
_LONGEST_COMMENT: Final = 512
_PORTS: Final = ("protocol", "startport", "numberofports", "store")


class Netsh:
    """netsh interface ipv4|ipv6: dynamic ports, excluded ports, forwarding. Words may be shortened."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words = argv[1:]
        if (
            len(words) < 4
            or not "interface".startswith(words[0].lower())
            or words[1].lower() not in ("ipv4", "ipv6")
        ):
            raise run.refuse(" ".join(words[:2]))
        verb, what, rest = words[2].lower(), words[3].lower(), words[4:]
        if "dynamicportrange".startswith(what) and len(what) > 3:
            return self._dynamic(run, verb, rest)
        if "excludedportrange".startswith(what) and len(what) > 3:
            return self._excluded(run, verb, rest)
        if what == "interface" and verb == "set":
            return self._interface(run, rest)
        raise run.refuse(" ".join(words[:4]))

    def _dynamic(self, run: Run, verb: str, words: list[str]) -> Exit:
        values = _named(run, words, _PORTS)
        protocol = values.get("protocol", "tcp").lower()
        if verb == "show":
            start, count = run.machine.network.ports[protocol]
            return Exit(
                0,
                windows_text(
                    "",
                    f"Protocol {protocol} Dynamic Port Range",
                    "---------------------------------",
                    f"Start Port      : {start}",
                    f"Number of Ports : {count}",
                    "",
                ),
            )
        if verb != "set":
            raise run.refuse(f"{verb} dynamicportrange")
        start, count = int(values["startport"]), int(values["numberofports"])
        if start < 1025 or count < 255 or start + count > 65536:
            return Exit(1, windows_text("The parameter is incorrect.", ""))
        run.machine.network.ports[protocol] = (start, count)
        return Exit(0, windows_text("Ok.", ""))

    def _excluded(self, run: Run, verb: str, words: list[str]) -> Exit:
        values = _named(run, words, _PORTS)
        excluded = run.machine.network.excluded
        protocol = values.get("protocol", "tcp").lower()
        if verb == "show":
            lines = [
                f"{s:10d}  {s + n - 1:10d}  {'*' if own else ''}"
                for p, s, n, own in excluded
                if p == protocol
            ]
            return Exit(0, windows_text("", f"Protocol {protocol} Port Exclusion Ranges", "", *lines, ""))
        entry = (protocol, int(values["startport"]), int(values["numberofports"]), True)
        if verb == "add":
            if any(p == protocol and s < entry[1] + entry[2] and entry[1] < s + n for p, s, n, _ in excluded):
                return Exit(
                    1,
                    windows_text(
                        "The process cannot access the file because it is being used by another process.", ""
                    ),
                )
            excluded.append(entry)
        elif verb == "delete" and entry in excluded:
            excluded.remove(entry)
        elif verb == "delete":
            return Exit(1, windows_text("The system cannot find the file specified.", ""))
        else:
            raise run.refuse(f"{verb} excludedportrange")
        return Exit(0, windows_text("Ok.", ""))

    def _interface(self, run: Run, words: list[str]) -> Exit:
        values = _named(
            run, words, ("interface", "forwarding", "weakhostsend", "weakhostreceive", "mtu", "store")
        )
        net, name = run.machine.network, values.get("interface", "")
        adapter = net.by_index(int(name)) if name.isdigit() else net.adapter(name)
        if adapter is None:
            return Exit(
                1, windows_text("The filename, directory name, or volume label syntax is incorrect.", "")
            )
        if "forwarding" in values:
            adapter.forwarding = values["forwarding"].lower() == "enabled"
        if "weakhostsend" in values:
            adapter.weak_host_send = values["weakhostsend"].lower() == "enabled"
        if "weakhostreceive" in values:
            adapter.weak_host_receive = values["weakhostreceive"].lower() == "enabled"
        if "mtu" in values:
            adapter.mtu = int(values["mtu"])
        return Exit(0, windows_text("Ok.", ""))


def _named(run: Run, words: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """`start=1000`, or by position; a name may be shortened as far as it stays its own."""
    found: dict[str, str] = {}
    for position, word in enumerate(words):
        short, equals, value = word.partition("=")
        if not equals:
            if position >= len(names):
                raise run.refuse(word)
            found[names[position]] = word
            continue
        hits = [n for n in names if n.startswith(short.lower())]
        if len(hits) != 1:
            raise run.refuse(word)
        found[hits[0]] = value
    return found


class Bcdedit:
    """bcdedit: test signing of the current boot entry, in force from the next start on
    (learn.microsoft.com/windows-hardware/drivers/install/the-testsigning-boot-configuration-option)."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words = [one.upper().replace("-", "/", 1) for one in argv[1:]]
        match words:
            case ["/SET", "TESTSIGNING", _] if (
                machine.registry.number(_SECURE_BOOT, "UEFISecureBootEnabled") == 1
            ):
                # Test signing and Secure Boot exclude each other (the same page).
                raise run.refuse(f"{' '.join(argv[1:])} with Secure Boot on")
            case ["/SET", "TESTSIGNING", ("ON" | "OFF") as value]:
                machine.registry.set(TEST_SIGNING_ELEMENT, "Element", "Binary", bytes([value == "ON"]))
            case ["/DELETEVALUE", "TESTSIGNING"] if machine.registry.exists(TEST_SIGNING_ELEMENT):
                machine.registry.wipe(TEST_SIGNING_ELEMENT)
            case _:
                raise run.refuse(" ".join(argv[1:]))
        return Exit(0, windows_text("The operation completed successfully."))


class Powercfg:
    """powercfg: which power plan is active."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words = [argv[1].lstrip("/-").lower() if len(argv) > 1 else "", *argv[2:]]
        match words:
            case ["getactivescheme"]:
                active = machine.registry.text(POWER_SCHEMES, "ActivePowerScheme")
                return Exit(0, windows_text(f"Power Scheme GUID: {active}  ({SCHEMES.get(active, '')})"))
            case ["setactive" | "s", scheme]:
                if scheme.lower() not in SCHEMES:
                    return Exit(
                        1,
                        b"",
                        windows_text("The power scheme, subgroup or setting specified does not exist."),
                    )
                machine.registry.set(POWER_SCHEMES, "ActivePowerScheme", "String", scheme.lower())
                return Exit(0)
        raise run.refuse(" ".join(argv[1:]))


class Shutdown:
    """shutdown: /r with /t, /c and /d. Its exit code is that of InitiateShutdown (winerror.h).

    1190 ERROR_SHUTDOWN_IS_SCHEDULED: another one waits for the end of its delay. Windows gives 1115
    ERROR_SHUTDOWN_IN_PROGRESS from the end of that delay on. It has no moment here: the lab's machine is down at once.
    """

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words, delay, verb, comment = argv[1:], 30.0, "", ""
        while words:
            word = words.pop(0).lower().lstrip("/-")
            match word:
                case "r" | "s" | "a":
                    verb = word
                case "t" | "c" | "d":
                    value = words.pop(0) if words else ""
                    delay = float(value) if word == "t" else delay
                    comment = value if word == "c" else comment
                case "f":
                    pass
                case _:
                    raise run.refuse(f"/{word}")
        if verb != "r":
            raise run.refuse(f"/{verb}")
        if len(comment) > _LONGEST_COMMENT:
            raise run.refuse("/c")
        if not machine.power.request_restart(delay, process.path, comment=comment):
            return Exit(1190, b"", windows_text("A system shutdown has already been scheduled.(1190)"))
        return Exit(0)


class W32tm:
    """w32tm: /config and /resync."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words = argv[1:]
        if words[:1] == ["/resync"]:
            return Exit(
                0,
                windows_text(
                    "Sending resync command to local computer", "The command completed successfully."
                ),
            )
        if words[:1] != ["/config"]:
            raise run.refuse(" ".join(words[:1]))
        for word in words[1:]:
            name, _, value = word.partition(":")
            match name.lower():
                case "/manualpeerlist":
                    machine.registry.set(_TIME, "NtpServer", "String", value)
                case "/syncfromflags":
                    kinds = {"manual": "NTP", "domhier": "NT5DS", "no": "NoSync", "all": "AllSync"}
                    machine.registry.set(_TIME, "Type", "String", kinds[value.lower()])
                case "/update" | "/reliable":
                    pass
                case _:
                    raise run.refuse(name)
        return Exit(0, windows_text("The command completed successfully."))


class Curl:
    """curl: one URL into one file, with -L, -f, -s, -S, -C - and -x."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One download."""
        run = Run(machine, process, argv, env, stdin)
        out, proxy, url, resume = "", env.get("HTTPS_PROXY") or env.get("https_proxy") or "", "", False
        words = argv[1:]
        while words:
            word = words.pop(0)
            if word in ("-o", "--output"):
                out = words.pop(0)
            elif word in ("-x", "--proxy"):
                proxy = words.pop(0)
            elif word in ("-C", "--continue-at"):
                resume = words.pop(0) == "-"
            elif word in ("--retry", "--connect-timeout", "--max-time"):
                words.pop(0)
            elif word.startswith("-") and set(word[1:]) <= set("fsSL"):
                continue
            elif word.startswith("-"):
                raise run.refuse(word)
            else:
                url = word
        return self._fetch(run, url, out, proxy, resume=resume)

    def _fetch(self, run: Run, url: str, out: str, proxy: str, *, resume: bool) -> Exit:
        files, target = run.machine.files, run.path(out) if out else ""
        have = files.read(target) if resume and target and files.exists(target) else b""
        headers = {"Range": f"bytes={len(have)}-"} if have else {}
        try:
            answer = run.machine.sockets.fetch(url, headers=headers, proxy=proxy or None)
        except Failure as e:
            code = {"NameResolutionFailure": 6, "TrustFailure": 60, "Timeout": 28}.get(
                str(e.problem.target), 7
            )
            return Exit(code, b"", windows_text(f"curl: ({code}) {e.problem.message}"))
        if answer.status >= 400:
            return Exit(
                22, b"", windows_text(f"curl: (22) The requested URL returned error: {answer.status}")
            )
        content = (have if answer.status == 206 else b"") + answer.content
        if target:
            files.write(target, content, run.process.token)
        if not answer.complete:
            return Exit(
                18, b"", windows_text("curl: (18) transfer closed with outstanding read data remaining")
            )
        return Exit(0, b"" if target else content)


class Taskkill:
    """taskkill: /PID with /F and /T."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command."""
        run = Run(machine, process, argv, env, stdin)
        words, pids, tree = list(argv[1:]), [], False
        while words:
            match words.pop(0).lower():
                case "/pid":
                    pids.append(int(words.pop(0)))
                case "/t":
                    tree = True
                case "/f":
                    pass
                case other:
                    raise run.refuse(other)
        for pid in pids:
            if machine.processes.get(pid) is None:
                return Exit(128, b"", windows_text(f'ERROR: The process "{pid}" not found.'))
            self._kill(machine, pid, tree=tree)
        return Exit(
            0, windows_text(*(f"SUCCESS: The process with PID {p} has been terminated." for p in pids))
        )

    def _kill(self, machine: Computer, pid: int, *, tree: bool) -> None:
        if tree:
            for child in [p for p in machine.processes.all() if p.parent == pid]:
                self._kill(machine, child.pid, tree=True)
        machine.processes.kill(pid)


class PowerShell:
    """powershell.exe: the lab's own engine, in a new session of the same user. What NSSM keeps running is a start script."""

    def is_service(self, argv: list[str]) -> bool:
        """It answers no control manager."""
        return False

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> StartScript:
        """A running start script."""
        run = Run(machine, process, argv, env)
        if not argv[-1].lower().endswith(("startkubelet.ps1", "kubeletstart.ps1")):
            raise run.refuse("that stays")
        return StartScript(run, argv[-1])

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Run what the arguments say. What it writes is given back where it was given something to read."""
        said: list[bytes] = []
        with machine.session(token=process.token, logon="console") as session:
            session.standard = StandardStreams(stdin, said.append)
            return Exit(machine.run_powershell(session, argv[1:]), b"".join(said))


class Refused:
    """A program of Windows that the lab has as a file only."""

    def __init__(self, name: str) -> None:
        self._name = name

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Says that the lab does not know it."""
        raise Refusal("program", " ".join([self._name, *argv[1:3]]))
