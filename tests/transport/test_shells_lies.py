"""A machine that lies over SSH or a local shell: the run ends with a named error for any output of its program."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Self

import paramiko
import pytest

from winboot.base.errors import ConnectionLost, ProtocolError, ScriptFailed
from winboot.config.inventory import Connection
from winboot.config.profile.reference import LoginReference
from winboot.remote.transport import console
from winboot.remote.transport.connect import connect
from winboot.remote.transport.console import Conversation

PASSWORD: Final = "correct horse"


def frame(kind: str, text: str) -> bytes:
    return f"#winboot:{kind}:{base64.b64encode(text.encode()).decode()}\n".encode()


DEEP: Final = "[" * 100_000
# What the program says, and the error that the run ends with; None: it ends in order.
LIES: Final[dict[str, tuple[bytes, type[Exception] | None]]] = {
    "no id of a process": (frame("start", "1; format c:"), ProtocolError),
    "an id that is no number": (frame("start", "\u0661"), ProtocolError),
    "an id of 5,000 digits": (frame("start", "9" * 5000), ProtocolError),
    "an end that is a text": (frame("start", "1") + frame("end", '"x"'), ProtocolError),
    "an end that is a list": (frame("start", "1") + frame("end", "[]"), ProtocolError),
    "an end that is deep": (frame("start", "1") + frame("end", DEEP), ProtocolError),
    "an error that is a text": (frame("start", "1") + frame("end", '{"error": "x"}'), ProtocolError),
    "an error that is a list": (frame("start", "1") + frame("end", '{"error": [1]}'), ProtocolError),
    "an error that is deep": (frame("start", "1") + frame("end", '{"error":' + DEEP), ProtocolError),
    "an error of other things": (
        frame("start", "1") + frame("end", json.dumps({"error": {"id": 1, "message": [], "position": {}}})),
        ScriptFailed,
    ),
    "output before the start": (frame("output", "x") + frame("end", "{}"), None),
    "two ends": (frame("end", "{}") + frame("end", "[]"), None),
    "no frame at all": (b"\x00\xff\xfe" * 100 + b"\n", ProtocolError),
    "frames of no kind": (frame("", "x") + frame("a b", "x") + b"#winboot:output:\n", ProtocolError),
}


class Saying:
    """A program with this output, in pieces of 32 KiB."""

    def __init__(self, said: bytes) -> None:
        self._pieces: Iterator[bytes] = (said[at : at + 32_768] for at in range(0, len(said), 32_768))

    def receive(self) -> bytes:
        return next(self._pieces, b"")

    def finish(self) -> tuple[int | None, str]:
        return 1, "\x1b[2J"


@pytest.mark.parametrize("lie", LIES)
def test_whatever_a_program_says_ends_by_name(lie: str) -> None:
    said, error = LIES[lie]
    lines = Conversation("win-1", Saying(said)).lines()

    if error is None:
        list(lines)
        return
    with pytest.raises(error) as caught:
        list(lines)
    assert "\x1b" not in str(caught.value)


def test_a_line_without_an_end_ends_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LONGEST_LINE", 1 << 20)

    with pytest.raises(ProtocolError, match="a line of output is longer than 1 MiB"):
        list(Conversation("win-1", Saying(b"x" * ((1 << 20) + 32_768))).lines())


class Liar(paramiko.ServerInterface):
    """An sshd that takes the password, and answers any command with a given text; errors without an end after it."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.commands: list[bytes] = []

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.common.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.commands.append(command)
        threading.Thread(target=self._answer, args=(channel,), daemon=True).start()
        return True

    def _answer(self, channel: paramiko.Channel) -> None:
        # Until the other end closes.
        with suppress(OSError, EOFError):
            if b"taskkill" in self.commands[-1]:
                while True:
                    channel.send(b"x" * 4096)
            channel.sendall(self._said)
            channel.shutdown_write()
            # It keeps to no protocol: nothing may come after the end of the output (RFC 4254, 5.3).
            channel.eof_sent = False
            while True:
                channel.send_stderr(b"\x1b[2J" * 1024)


class Sshd:
    """The liar on a port of loopback."""

    def __init__(self, said: bytes) -> None:
        self.server = Liar(said)
        self.key = paramiko.ECDSAKey.generate()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[paramiko.Transport] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(self.key.asbytes()).digest()
        return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                transport = paramiko.Transport(client)
                transport.add_server_key(self.key)
                self._open.append(transport)
                with suppress(paramiko.SSHException, EOFError, OSError):
                    transport.start_server(server=self.server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for one in self._open:
            one.close()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        pytest.param(frame("start", "1") + frame("output", "hi"), ConnectionLost, id="errors without an end"),
        pytest.param(
            frame("start", "4") + frame("end", '{"error": "x"}'), ProtocolError, id="no error record"
        ),
        pytest.param(frame("start", "x"), ProtocolError, id="no id"),
    ],
)
def test_a_lying_sshd_ends_its_run(
    said: bytes, error: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEST_SSH_PASSWORD", PASSWORD)
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    with Sshd(said) as sshd:
        settings: dict[str, object] = {
            "transport": "ssh",
            "host": "127.0.0.1",
            "port": sshd.port,
            "user": "Administrator",
            "password": LoginReference(env="TEST_SSH_PASSWORD"),
            "host_key": sshd.fingerprint,
        }
        with closing(connect(Connection.model_validate(settings), name="win-1")) as transport:
            with pytest.raises(error) as caught:
                list(transport.run("'hi'", {}, {}))
            assert "\x1b" not in str(caught.value)
