"""The work items of a running hook, for `winboot hook status`: one JSON text for each connection to a local socket.

The socket lies in the state folder, in a folder with mode 0700; both sides check that the other one's user is theirs or root.
"""

from __future__ import annotations

import os
import socket
import socketserver
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from winboot.base.errors import UsageError
from winboot.base.foreign import Malformed, decoded
from winboot.base.private import own_folder
from winboot.operations.hook.work_queue import WorkQueue
from winboot.report.shape import WorkItem

_TIMEOUT_S: Final = 5.0
_LONGEST: Final = 16 * 1024 * 1024


_ITEMS: Final[msgspec.json.Decoder[list[WorkItem]]] = msgspec.json.Decoder(list[WorkItem])


def status_of(items: WorkQueue) -> list[WorkItem]:
    """All items that have not ended, the oldest first."""
    now = items.clock()
    return [
        WorkItem(
            machine=one.action.instance,
            group=one.action.group,
            action=one.action.kind,
            node=one.node,
            state=one.state,
            reason=one.reason,
            seconds=int(now - one.since),
        )
        for one in items.items()
    ]


class StatusServer:
    """Answers each connection with the items, while the context lasts. Raises ForeignFolder, OSError when it begins."""

    def __init__(self, folder: Path, items: Callable[[], list[WorkItem]]) -> None:
        self._path = own_folder(folder) / f"{os.getpid()}.sock"
        self._path.unlink(missing_ok=True)

        class Handler(socketserver.StreamRequestHandler):
            timeout = _TIMEOUT_S

            def handle(self) -> None:
                self.wfile.write(msgspec.json.encode(items()))

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

            def verify_request(self, request: Any, client_address: Any) -> bool:
                return _is_ours(request)

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A reader that went away ends no work."""

        self._server = Server(str(self._path), Handler)
        self._path.chmod(0o600)
        self._thread = threading.Thread(target=self._server.serve_forever, name="status", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)
        self._thread.join()


def read_status(folder: Path) -> list[WorkItem]:
    """The items of all hooks that use this folder. Raises UsageError if none runs, or if one answers anything else."""
    found, running = list[WorkItem](), 0
    for path in sorted(folder.glob("*.sock")):
        there = path.lstat()
        if not stat.S_ISSOCK(there.st_mode) or there.st_uid not in (0, os.geteuid()):
            continue
        text = _read(path)
        if text is None:
            # A process that was killed left its socket.
            continue
        running += 1
        try:
            items = decoded(_ITEMS, text)
        except Malformed as error:
            raise UsageError(
                f"{path} answered no list of work items: {error}",
                hint="Use the winboot that runs as `winboot hook serve`.",
            ) from error
        found += items
    if not running:
        raise UsageError(
            f"no hook runs with the state folder {folder}",
            hint="In a cluster: kubectl exec deploy/winboot-hook -- winboot hook status. Else set the hook's WINBOOT_STATE.",
        )
    return found


def _read(path: Path) -> str | None:
    text = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        try:
            connection.connect(str(path))
            if not _is_ours(connection):
                return None
            while len(text) <= _LONGEST and (part := connection.recv(65536)):
                text += part
        except OSError:
            return None
    return text.decode("utf-8", "replace")


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end's process is our user's or root's (unix(7), SO_PEERCRED). Elsewhere the folder's mode decides."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    form = struct.Struct("3i")
    _, user, _ = form.unpack(connection.getsockopt(socket.SOL_SOCKET, option, form.size))
    return user in (0, os.geteuid())
