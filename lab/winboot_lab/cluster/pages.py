"""Lists in pages: `limit` and `continue`, as the API server serves them from one state of its store."""

from __future__ import annotations

import base64
import binascii
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.kinds import Object

KEPT: Final = 100  # states whose later pages a client can still ask for; etcd forgets them by compaction


class Pages:
    """The rest of each list that was begun, by its token. Under the store's lock."""

    def __init__(self) -> None:
        self._rest: OrderedDict[str, tuple[str, list[Object]]] = OrderedDict()

    def page(
        self, items: list[Object], revision: str, query: Mapping[str, str]
    ) -> tuple[list[Object], dict[str, Any]]:
        """One page and the list's metadata; 400 for a token of another form, 410 for one that is too old."""
        limit = _limit(query.get("limit", ""))
        if token := query.get("continue", ""):
            revision, items = self._taken_up(token)
        metadata: dict[str, Any] = {"resourceVersion": revision}
        if not limit or len(items) <= limit:
            return items, metadata
        metadata["continue"] = self._kept(items[limit:], revision)
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(items) - limit
        return items[:limit], metadata

    def forget(self) -> None:
        """What compaction does: later pages are too old."""
        self._rest.clear()

    def _kept(self, rest: list[Object], revision: str) -> str:
        first = rest[0]["metadata"]
        start = f"{first.get('namespace', '')}/{first['name']}"
        token = _encode({"v": "meta.k8s.io/v1", "rv": int(revision), "start": start, "n": len(rest)})
        self._rest[token] = revision, rest
        while len(self._rest) > KEPT:
            self._rest.popitem(last=False)
        return token

    def _taken_up(self, token: str) -> tuple[str, list[Object]]:
        _check(token)
        if token not in self._rest:
            raise ApiFailure(
                410,
                "The provided continue parameter is too old to display a consistent list result. You can start "
                "a new list without the continue parameter.",
            )
        return self._rest[token]


def _limit(text: str) -> int:
    try:
        return max(0, int(text or 0))
    except ValueError:
        raise ApiFailure(400, f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _encode(value: Mapping[str, Any]) -> str:
    raw = json.dumps(value, separators=(",", ":")).encode("utf-8")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _check(token: str) -> None:
    try:
        known = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["v"] == "meta.k8s.io/v1"
    except (binascii.Error, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ApiFailure(400, "continue key is not valid: the token is not one of this server's")
