"""The password of a machine that only its cloud knows: asked for once a process, when the first session is opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from winboot.base.errors import CloudError
from winboot.base.secret import Secret
from winboot.config.inventory import Connection
from winboot.config.inventory.cloud_name import ProviderName
from winboot.config.node_spec import NodeSpec
from winboot.config.profile.reference import Held
from winboot.remote.cloud import connect
from winboot.remote.cloud.base import Provider
from winboot.remote.cloud.lookup import machine_of

# EC2 API, GetPasswordData: "wait up to 15 minutes after you launch an instance".
LONGEST_S: Final = 15 * 60.0


class Passwords:
    """What was fetched already. `timeout` bounds the wait for a machine that still starts."""

    def __init__(self, *, timeout: float = LONGEST_S, wait: Callable[[float], bool] | None = None) -> None:
        self._timeout = timeout
        self._wait = wait if wait is not None else _sleep
        self._known: dict[tuple[str, Path], Secret] = {}
        self._opened: dict[tuple[Any, ...], Provider] = {}
        self._lock = threading.Lock()

    def connection(self, spec: NodeSpec, *, timeout: float | None = None) -> Connection:
        """The node's connection with the password in it; `timeout` replaces its own. Raises CloudError,
        InvalidInput."""
        connection, provider_id = spec.machine.connection, spec.machine.provider_id
        key = connection.password.instance_key if connection.password is not None else None
        if key is None or provider_id is None or not provider_id.startswith("aws:///"):
            return connection
        with self._lock:
            known = self._known.get((provider_id, key))
        if known is None:
            known = self._fetched(provider_id, key, self._timeout if timeout is None else timeout)
            with self._lock:
                self._known[provider_id, key] = known
        return connection.model_copy(update={"password": Held.of(known)})

    def missing(self, spec: NodeSpec) -> str:
        """Why there is no password yet, asked once and without waiting; empty where there is one, or none is needed."""
        try:
            self.connection(spec, timeout=0.0)
        except CloudError as error:
            return error.problem
        return ""

    def _fetched(self, provider_id: str, key: Path, timeout: float) -> Secret:
        provider, host = machine_of(provider_id, self._connected)
        secret = provider.password(host, key, timeout=timeout, wait=self._wait)
        assert secret is not None  # EC2 has one, or CloudError says that it has none
        return secret

    def _connected(self, name: ProviderName, **settings: Any) -> Provider:
        """One session of the SDK for each region: each asks for credentials, and reads the services' models."""
        where = (name, *sorted(settings.items()))
        with self._lock:
            if where not in self._opened:
                self._opened[where] = connect(name, **settings)
            return self._opened[where]


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


_SHARED: Final = Passwords()


def with_password(spec: NodeSpec) -> Connection:
    """The connection of a node, with what only its cloud knows."""
    return _SHARED.connection(spec)


def without_password(spec: NodeSpec) -> str:
    """Why a node's first password cannot be read yet; empty where it can, or none is needed."""
    return _SHARED.missing(spec)
