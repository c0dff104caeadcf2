"""From an HTTP path to what it names, and selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.kinds import BY_PATH, NAMESPACES, Kind, Object

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Target:
    """A resource path: a collection when `name` is empty."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows `proxy`

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    def verb(self, method: str, query: Mapping[str, str]) -> str:
        """The API verb of an HTTP method on this path."""
        if method == "GET":
            if self.name and query.get("watch") not in ("true", "1"):
                return "get"
            return "watch" if query.get("watch") in ("true", "1") else "list"
        if method == "DELETE":
            return "delete" if self.name else "deletecollection"
        try:
            return _VERBS[method]
        except KeyError:
            raise ApiFailure(405, "the server does not allow this method on the requested resource") from None


def parse_path(path: str) -> Target | None:
    """The target of a resource path; None for another path; 404 for an unknown resource."""
    parts = [unquote(p) for p in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or (namespace and not kind.namespaced and kind is not NAMESPACES):
        raise ApiFailure(404, "the server could not find the requested resource")
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        raise ApiFailure(404, "the server could not find the requested resource")
    return Target(kind, namespace, name, subresource, "/".join(rest[3:]))


def parse_fields(selector: str) -> tuple[tuple[str, str], ...]:
    """A field selector's equalities."""
    pairs = []
    for part in filter(None, selector.split(",")):
        name, _, value = part.partition("==" if "==" in part else "=")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def matches_fields(found: Object, fields: tuple[tuple[str, str], ...]) -> bool:
    """Whether each dotted field has its value (a missing field counts as empty; `!=` negates)."""
    for name, value in fields:
        negated = name.endswith("!")
        current: object = found
        for part in name.rstrip("!").split("."):
            current = current.get(part) if isinstance(current, dict) else None
        if (str(current if current is not None else "") == value) == negated:
            return False
    return True


_IN: Final = re.compile(r"\A(?P<key>\S+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)\Z")


def matches_labels(found: Object, selector: str) -> bool:
    """Whether the object's labels satisfy a label selector."""
    labels = found.get("metadata", {}).get("labels") or {}
    return all(
        _label_requirement(labels, r.strip()) for r in re.split(r",(?![^(]*\))", selector) if r.strip()
    )


def _label_requirement(labels: Mapping[str, str], requirement: str) -> bool:
    if match := _IN.match(requirement):
        values = {v.strip() for v in match["values"].split(",")}
        has = labels.get(match["key"]) in values
        return has if match["op"] == "in" else not has
    if "!=" in requirement:
        key, _, value = requirement.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in requirement:
        key, _, value = requirement.replace("==", "=").partition("=")
        return labels.get(key.strip()) == value.strip()
    if requirement.startswith("!"):
        return requirement[1:].strip() not in labels
    return requirement in labels
