"""Objects by kind, namespace and name, with resource versions and a log that watches read.

Nothing here knows what an object means; that is the API's and the controllers' business.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from secrets import choice
from typing import Final

from winboot_lab.cluster.failure import ApiFailure, already_exists, conflict, not_found
from winboot_lab.cluster.kinds import Kind, Object, copied

HISTORY: Final = 5000  # events a watch can be behind before it has to list again
# Of a generated name (staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go, alphanums).
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log: ADDED, MODIFIED or DELETED."""

    revision: int
    type: str
    key: Key
    object: Object


class Store:
    """The cluster's state. All methods may be called from any thread."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._objects: dict[Key, Object] = {}
        self._by_kind: dict[tuple[str, str], dict[Key, Object]] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._log: deque[Change] = deque(maxlen=HISTORY)
        self._revision = 1
        # One lock for the whole cluster: a lab's requests are few, and read-modify-write becomes simple to
        # get right.
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)

    @property
    def revision(self) -> str:
        return str(self._revision)

    def stopwatch(self) -> Callable[[], float]:
        """Seconds of real time since this call: watches end by the wall clock, not by the lab's."""
        start = time.monotonic()
        return lambda: time.monotonic() - start

    def timestamp(self) -> str:
        """Now, as Kubernetes writes times."""
        return f"{self._now():%Y-%m-%dT%H:%M:%SZ}"

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """A copy of the object, or None."""
        with self.lock:
            found = self._objects.get(_key(kind, namespace, name))
            return copied(found) if found is not None else None

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """A copy of the object; 404 when it is missing."""
        found = self.find(kind, namespace, name)
        if found is None:
            raise not_found(kind.plural, name, kind.group)
        return found

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """Copies of all objects of a kind, ordered by namespace and name; no namespace: everywhere."""
        with self.lock:
            return [copied(o) for o in self.look(kind, namespace)]

    def look(self, kind: Kind, namespace: str = "") -> list[Object]:
        """The stored objects themselves, for reading under the lock: each request reads rules."""
        found = self._by_kind.get((kind.group, kind.plural), {})
        return [found[k] for k in sorted(found) if namespace in ("", k[2])]

    def latest(self, kind: Kind) -> int:
        """The revision of the last change to a kind: while it stays, a watch would have nothing to report."""
        return self._latest.get((kind.group, kind.plural), 0)

    def create(self, kind: Kind, new: Object) -> Object:
        """Store a new object; gives it uid, creation time and resource version."""
        with self.lock:
            metadata = new.setdefault("metadata", {})
            namespace = metadata.get("namespace", "") if kind.namespaced else ""
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = metadata["generateName"] + "".join(choice(_LETTERS) for _ in range(5))
            name = metadata.get("name", "")
            if not name:
                raise ApiFailure(422, "name or generateName is required", reason="Invalid")
            key = _key(kind, namespace, name)
            if key in self._objects:
                raise already_exists(kind.plural, name, kind.group)
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = self.timestamp()
            new["apiVersion"], new["kind"] = kind.api_version, kind.kind
            return self._put("ADDED", key, new)

    def replace(self, kind: Kind, new: Object) -> Object:
        """Store a new state; 409 when the object's resourceVersion is not the stored one."""
        with self.lock:
            metadata = new["metadata"]
            namespace = metadata.get("namespace", "") if kind.namespaced else ""
            key = _key(kind, namespace, metadata["name"])
            old = self._objects.get(key)
            if old is None:
                raise not_found(kind.plural, metadata["name"], kind.group)
            version = metadata.get("resourceVersion")
            if version and version != old["metadata"]["resourceVersion"]:
                raise conflict(kind.plural, metadata["name"], kind.group)
            for kept in ("uid", "creationTimestamp"):
                metadata[kept] = old["metadata"][kept]
            new["apiVersion"], new["kind"] = kind.api_version, kind.kind
            if _same(old, new):
                return copied(old)  # type: ignore[no-any-return]
            return self._put("MODIFIED", key, new)

    def delete(self, kind: Kind, namespace: str, name: str) -> Object:
        """Remove an object and return its last state."""
        with self.lock:
            found = self._objects.pop(_key(kind, namespace, name), None)
            if found is None:
                raise not_found(kind.plural, name, kind.group)
            self._revision += 1
            del self._by_kind[kind.group, kind.plural][_key(kind, namespace, name)]
            self._latest[kind.group, kind.plural] = self._revision
            found["metadata"]["resourceVersion"] = self.revision
            self._log.append(Change(self._revision, "DELETED", _key(kind, namespace, name), found))
            self._changed.notify_all()
            return copied(found)  # type: ignore[no-any-return]

    def changes_since(
        self, kind: Kind, namespace: str, revision: int, wait_s: float
    ) -> tuple[list[Change], int]:
        """Changes after `revision` (waiting up to `wait_s` for one), and the revision to go on from."""

        def matching() -> list[Change]:
            return [
                c
                for c in self._log
                if c.revision > revision
                and c.key[:2] == (kind.group, kind.plural)
                and namespace in ("", c.key[2])
            ]

        with self.lock:
            if self._log and revision < self._log[0].revision - 1 and len(self._log) == HISTORY:
                raise ApiFailure(410, f"too old resource version: {revision} ({self._log[0].revision})")
            found = matching()
            if not found and wait_s > 0:
                self._changed.wait_for(lambda: bool(matching()), wait_s)
                found = matching()
            return [Change(c.revision, c.type, c.key, copied(c.object)) for c in found], self._revision

    def everything(self) -> Iterator[Object]:
        """Copies of all objects, for a snapshot."""
        with self.lock:
            yield from [copied(self._objects[k]) for k in sorted(self._objects)]

    def _put(self, change: str, key: Key, new: Object) -> Object:
        self._revision += 1
        new["metadata"]["resourceVersion"] = self.revision
        stored = copied(new)
        self._objects[key] = stored
        self._by_kind.setdefault(key[:2], {})[key] = stored
        self._latest[key[:2]] = self._revision
        self._log.append(Change(self._revision, change, key, stored))
        self._changed.notify_all()
        return copied(stored)  # type: ignore[no-any-return]


def _key(kind: Kind, namespace: str, name: str) -> Key:
    return (kind.group, kind.plural, namespace if kind.namespaced else "", name)


def _same(old: Object, new: Object) -> bool:
    """Whether nothing but the resource version differs: such an update makes no event, as in etcd."""
    left = {**old, "metadata": {**old["metadata"], "resourceVersion": ""}}
    right = {**new, "metadata": {**new["metadata"], "resourceVersion": ""}}
    return left == right
