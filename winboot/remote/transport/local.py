"""Scripts on this very machine: powershell.exe is started and spoken to over pipes (see `console`).

For a console session on the node, an image that is being built, or a machine without any listener. The account that
runs winboot must be an elevated administrator, as for any other transport.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Final

from winboot.base.errors import Unreachable
from winboot.base.secret import Secret
from winboot.remote.transport.base import Outside, Probe, Transport, nobody_waits
from winboot.remote.transport.console import ARGUMENTS, Conversation, standard_input
from winboot.remote.transport.probe import PROBE_SCRIPT, read_probe

# Names another program than the powershell.exe of Windows; the lab's stand-in is reached this way.
PROGRAM_VARIABLE: Final = "WINBOOT_POWERSHELL"
_PIECE: Final = 1 << 16
_LAST_WORDS: Final = 4096
_CLOSE_S: Final = 5
_QUIET_S: Final = 1.0


class LocalTransport(Transport):
    """This machine."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._running: _PipedProcess | None = None
        self.on_quiet = nobody_waits

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`."""
        payload = standard_input(script, arguments, secrets)
        process = self._running = _PipedProcess(_program(self._name), payload, self.on_quiet)
        del script, payload
        talk = Conversation(self._name, process)
        try:
            yield from talk.lines()
        finally:
            self._running = None
            if not talk.ended:
                process.stop()
            process.close()

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        return read_probe(lambda: self.run(PROBE_SCRIPT, {}, {}), Outside((), None), self._name)

    def close(self) -> None:
        """See `Transport.close`: nothing stays open between two runs."""

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        process = self._running
        if process is not None:
            process.stop()


def _program(name: str) -> str:
    """Where powershell.exe is. Raises Unreachable where this machine has none."""
    given = os.environ.get(PROGRAM_VARIABLE)
    root = os.environ.get("SYSTEMROOT", r"C:\Windows")
    standard = rf"{root}\System32\WindowsPowerShell\v1.0\powershell.exe"
    found = shutil.which(given or (standard if sys.platform == "win32" else "powershell.exe"))
    if found is None:
        raise Unreachable(
            f"{name}: this machine has no {given or 'powershell.exe'}",
            hint="`transport: local` is for winboot running on the Windows machine itself.",
            node=name,
        )
    return found


class _PipedProcess:
    """powershell.exe behind pipes; see `console.Process`. Two threads read, one writes, so that no pipe can fill up."""

    def __init__(self, program: str, payload: bytes, on_quiet: Callable[[], None]) -> None:
        self._on_quiet = on_quiet
        self._process = subprocess.Popen(
            [program, *ARGUMENTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own: Ctrl-C at the console reaches winboot alone, which then ends the script in order.
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            start_new_session=sys.platform != "win32",
        )
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._last_words = b""
        self._threads = [
            threading.Thread(target=self._write, args=(payload,), daemon=True),
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_error, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def receive(self) -> bytes:
        """More output; empty at the end."""
        while True:
            try:
                return self._said.get(timeout=_QUIET_S)
            except queue.Empty:
                self._on_quiet()

    def finish(self) -> tuple[int | None, str]:
        """The exit code and the last of standard error."""
        code = self._process.wait()
        self._threads[2].join(_CLOSE_S)
        return code, self._last_words.decode("utf-8", errors="replace")

    def stop(self) -> None:
        """End the script with whatever it started."""
        if self._process.poll() is not None:
            return
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill.exe", "/PID", str(self._process.pid), "/T", "/F"],
                capture_output=True,
                timeout=_CLOSE_S,
                check=False,
            )
        self._process.kill()

    def close(self) -> None:
        """Wait for the end, a bounded time, and close the pipes."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_S)
        for thread in self._threads:
            thread.join(_CLOSE_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _write(self, payload: bytes) -> None:
        # A program that ends early closes its end; why it did is in its exit code.
        with suppress(OSError):
            _pipe(self._process.stdin).write(payload)
        with suppress(OSError):
            _pipe(self._process.stdin).close()

    def _read_output(self) -> None:
        pipe = _pipe(self._process.stdout)
        with suppress(OSError, ValueError):
            while piece := os.read(pipe.fileno(), _PIECE):
                self._said.put(piece)
        self._said.put(b"")

    def _read_error(self) -> None:
        pipe = _pipe(self._process.stderr)
        with suppress(OSError, ValueError):
            while piece := os.read(pipe.fileno(), _PIECE):
                self._last_words = (self._last_words + piece)[-_LAST_WORDS:]


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
