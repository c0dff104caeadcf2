"""`winboot-lab-powershell`: powershell.exe of a lab machine as a program of this host.

If `WINBOOT_LAB_CONSOLE` names the address (host:port) of a running lab's console, the command runs on that lab's machine.
Else it runs on a bare machine of its own that is gone afterwards. Such a machine has a copy of the folder that
`WINBOOT_LAB_FOLDER` names (default: the folder of the script after -File): scripts and JSON, nothing hidden.

It is what `transport: local` starts in a rehearsal, and what a real sshd starts: as a forced command it takes the
words of SSH_ORIGINAL_COMMAND.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine

CONSOLE_VARIABLE: Final = "WINBOOT_LAB_CONSOLE"
FOLDER_VARIABLE: Final = "WINBOOT_LAB_FOLDER"
GUEST_FOLDER: Final = r"C:\host"
_BROUGHT: Final = frozenset({".ps1", ".psm1", ".psd1", ".json", ".txt"})
HEAD: Final = struct.Struct(">cI")  # what follows (o output, e error, x exit code), and its length in bytes


def main() -> NoReturn:
    """Run the command line of this process on a lab machine; the exit code is that of the command."""
    command = os.environ.get("SSH_ORIGINAL_COMMAND") or subprocess.list2cmdline(
        ["powershell.exe", *sys.argv[1:]]
    )
    given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    address = os.environ.get(CONSOLE_VARIABLE)
    code = _elsewhere(address, command, given) if address else _here(command, given)
    sys.stdout.flush()
    # powershell.exe gives the low byte only where the system takes no more; Python would refuse a larger number.
    os._exit(code & 0xFF)


def _here(command: str, given: bytes) -> int:
    # The engine takes a second to import, which a rehearsal would pay for each script.
    from winboot_lab.console import run_command
    from winboot_lab.windows.processes import split_arguments
    from winboot_lab.windows.session import StandardStreams

    machine, words = bare_machine(), split_arguments(command)
    at = next((n for n, word in enumerate(words) if word.lower() == "-file"), len(words)) + 1
    if at < len(words) and Path(words[at]).is_file():
        script = Path(words[at]).resolve()
        folder = Path(os.environ.get(FOLDER_VARIABLE) or script.parent).resolve()
        _bring(machine, folder)
        words[at] = _guest_path(script, folder)
        command = subprocess.list2cmdline(words)
    return run_command(machine, command, StandardStreams(given, _output, _error))


def bare_machine() -> Machine:
    """A machine of its own, with the programs that Windows brings."""
    from winboot_lab.programs import Outside, install_programs
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.programs import Programs
    from winboot_lab.windows.sockets import World

    world, programs = World(), Programs()
    install_programs(programs, Outside(world))
    return Machine(world=world, programs=programs)


def _bring(machine: Machine, folder: Path) -> None:
    """Copy what scripts read of a folder of this host to the machine."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix.lower() in _BROUGHT:
                file = Path(place) / name
                machine.files.make_directory(_guest_path(file.parent, folder))
                machine.files.write(_guest_path(file, folder), file.read_bytes())


def _guest_path(path: Path, folder: Path) -> str:
    return "\\".join((GUEST_FOLDER, *path.relative_to(folder).parts))


def _elsewhere(address: str, command: str, given: bytes) -> int:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        asked = json.dumps({"command": command, "input": len(given)})
        server.sendall(asked.encode("ascii") + b"\n" + given)
        with server.makefile("rb") as answer:
            while head := answer.read(HEAD.size):
                kind, length = HEAD.unpack(head)
                data = answer.read(length)
                if kind == b"x":
                    return int(struct.unpack(">i", data)[0])
                (_output if kind == b"o" else _error)(data)
    return 255  # the machine went away in the middle, as ssh says it


def _output(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _error(content: bytes) -> None:
    sys.stderr.buffer.write(content)
    sys.stderr.buffer.flush()


if __name__ == "__main__":
    main()
