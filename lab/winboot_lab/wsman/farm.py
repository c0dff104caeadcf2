"""Any number of lab endpoints in one background thread.

    with Farm() as farm:
        node = farm.add("win-a1", executor, Settings(users={"Administrator": "secret"}))
        ... http://127.0.0.1:{node.http_port}/wsman ...

Closing the farm ends its thread, its sockets and every script that runs in it.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from winboot_lab.wsman.auth import Accounts
from winboot_lab.wsman.certificates import Authority
from winboot_lab.wsman.endpoint import Endpoint, Settings, State
from winboot_lab.wsman.executor import Executor

_T = TypeVar("_T")
_MOST_SCRIPTS = 256


class Farm:
    """Endpoints that live and end together. Its methods may be called from any thread but its own."""

    def __init__(self) -> None:
        self.authority = Authority()
        self.endpoints: dict[str, Endpoint] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="winboot-lab-")
        self._threads = ThreadPoolExecutor(_MOST_SCRIPTS, thread_name_prefix="lab-script")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lab-farm", daemon=True)
        self._thread.start()
        self._closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """A folder that ends with the farm."""
        return Path(self._folder.name)

    def ca_file(self) -> Path:
        """The CA that signs every HTTPS endpoint, as a PEM file that ends with the farm."""
        path = self.folder / "ca.pem"
        path.write_bytes(self.authority.pem)
        return path

    def add(self, name: str, executor: Executor, settings: Settings) -> Endpoint:
        """A new endpoint, listening."""
        file = self.folder / f"{len(self.endpoints)}.accounts"
        accounts = Accounts(file, settings.computer_name, settings.users, settings.keytab)
        certificate = tls = None
        if settings.https_port is not None:
            certificate = self.authority.issue([settings.address, name])
            tls = certificate.context(self.folder)
        endpoint = Endpoint(name, settings, executor, self._threads, accounts, certificate, tls)
        self.endpoints[name] = endpoint
        self._call(endpoint.become("up"))
        return endpoint

    def down(self, endpoint: Endpoint) -> None:
        """Take the machine off the network and kill its shells, as a restart does; wait until it is done."""
        self._call(endpoint.become("down"))

    def cut(self, endpoint: Endpoint) -> None:
        """Take the machine off the network; what runs on it continues. Wait until it is done."""
        self._call(endpoint.become("cut"))

    def up(self, endpoint: Endpoint) -> None:
        """Let it listen again, on the same ports; wait until it does."""
        self._call(endpoint.become("up"))

    def tell(self, endpoint: Endpoint, state: State) -> None:
        """The same without waiting, for callers that hold a lock. The first request comes first."""
        if self._closing:
            return
        done = asyncio.run_coroutine_threadsafe(endpoint.become(state), self._loop)
        done.add_done_callback(lambda future: _keep(endpoint, future))

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        if self._closing:
            return
        self._closing = True
        for endpoint in self.endpoints.values():
            self._call(endpoint.become("gone"))
        self._threads.shutdown(wait=True)
        self._call(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _keep(endpoint: Endpoint, future: Future[None]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        endpoint.crashes.append(error)


async def _finish() -> None:
    """Let what was cancelled come to its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)
