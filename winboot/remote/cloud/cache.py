"""What a cloud answered last, in a file of its owner's alone: for `cache: true`, and for when the cloud does not answer.

It holds descriptions of machines and no secret. A file that is damaged, or of another form, is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from winboot.base.private import own_folder
from winboot.base.state import state_folder
from winboot.remote.cloud.base import CloudHost, NodeIdentity

_FORM: Final = 1
Found = tuple[CloudHost, NodeIdentity]


@dataclass(frozen=True, slots=True)
class Cached:
    """Hosts as they were `age` seconds ago."""

    age: float
    hosts: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class HostCache:
    """The cache of one inventory file in one account."""

    path: Path

    @classmethod
    def of(cls, settings: str, account: str) -> HostCache:
        """`settings` is the text that the query follows from: another query never finds this one's answer."""
        key = hashlib.sha256(f"{account}\0{settings}".encode()).hexdigest()[:20]
        return cls(state_folder("cache") / f"inventory-{key}.json")

    def read(self) -> Cached | None:
        """What was kept, or None."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["form"] != _FORM:
                return None
            hosts = tuple((_host(one["host"]), NodeIdentity(**one["identity"])) for one in kept["hosts"])
            return Cached(max(0.0, time.time() - float(kept["time"])), hosts)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, hosts: Sequence[Found]) -> None:
        """Keep them. A folder that cannot be written costs the cache, not the command."""
        kept = {
            "form": _FORM,
            "time": time.time(),
            "hosts": [{"host": _plain(host), "identity": asdict(identity)} for host, identity in hosts],
        }
        with contextlib.suppress(OSError):
            own_folder(self.path.parent)
            # mkstemp makes it 0600; a reader sees the old file or the new one.
            number, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            with os.fdopen(number, "w", encoding="utf-8") as file:
                json.dump(kept, file)
            Path(name).replace(self.path)


def _plain(host: CloudHost) -> dict[str, Any]:
    values = {one.name: getattr(host, one.name) for one in fields(host)}
    return {**values, "launched": host.launched.isoformat() if host.launched is not None else None}


def _host(values: dict[str, Any]) -> CloudHost:
    launched = values.pop("launched")
    return CloudHost(**values, launched=None if launched is None else datetime.fromisoformat(launched))
