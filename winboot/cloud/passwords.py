"""The password of a machine that only its cloud knows: asked for once a process, when the first session is opened."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from winboot.cloud import connect
from winboot.cloud.base import Provider, Query
from winboot.errors import NoSuchHost
from winboot.inventory import Connection
from winboot.profile.reference import Held
from winboot.secret import Secret
from winboot.spec import NodeSpec

# EC2 API, GetPasswordData: "wait up to 15 minutes after you launch an instance".
LONGEST_S: Final = 15 * 60.0
Open = Callable[[str], Provider]


class Passwords:
    """What was fetched already. `timeout` bounds the wait for a machine that still starts."""

    def __init__(
        self,
        *,
        timeout: float = LONGEST_S,
        wait: Callable[[float], bool] | None = None,
        opened: Open | None = None,
    ) -> None:
        self._timeout = timeout
        self._wait = wait if wait is not None else _sleep
        self._open: Open = opened if opened is not None else lambda region: connect("aws", regions=(region,))
        self._known: dict[tuple[str, Path], Secret] = {}
        self._lock = threading.Lock()

    def connection(self, spec: NodeSpec) -> Connection:
        """The node's connection with the password in it. Raises CloudError, InvalidInput."""
        connection, provider_id = spec.machine.connection, spec.machine.provider_id
        key = connection.password.instance_key if connection.password is not None else None
        if key is None or provider_id is None or not provider_id.startswith("aws:///"):
            return connection
        zone, _, instance = provider_id.removeprefix("aws:///").partition("/")
        with self._lock:
            known = self._known.get((instance, key))
        if known is None:
            known = self._fetched(zone, instance, key)
            with self._lock:
                self._known[instance, key] = known
        return connection.model_copy(update={"password": Held.of(known)})

    def _fetched(self, zone: str, instance: str, key: Path) -> Secret:
        # eu-west-1a is in eu-west-1, us-west-2-lax-1a in us-west-2: a region ends with its number.
        found = re.match(r"[a-z]+(-[a-z]+)+-\d+", zone)
        region = found.group(0) if found is not None else zone
        provider = self._open(region)
        host = next(provider.hosts(Query(ids=(instance,))), None)
        secret = (
            provider.password(host, key, timeout=self._timeout, wait=self._wait) if host is not None else None
        )
        if secret is None:
            raise NoSuchHost(f"there is no instance {instance} in {region}", hint="It was terminated.")
        return secret


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


_SHARED: Final = Passwords()


def with_password(spec: NodeSpec) -> Connection:
    """The connection of a node, with what only its cloud knows."""
    return _SHARED.connection(spec)
