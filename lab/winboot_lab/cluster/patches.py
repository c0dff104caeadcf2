"""The three kinds of patch that clients send: JSON patch, merge patch, and strategic merge patch."""

from __future__ import annotations

from typing import Any, Final

from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.kinds import Object, copied

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

# The lists that strategic merge joins by a key, by resource and path; every other list is replaced whole.
# In particular a node's taints are: a client that patches them must send all of them.
MERGE_KEYS: Final[dict[tuple[str, str], str]] = {
    ("nodes", "status.conditions"): "type",
    ("nodes", "status.addresses"): "type",
    ("pods", "status.conditions"): "type",
    ("pods", "spec.containers"): "name",
    ("pods", "spec.initContainers"): "name",
    ("pods", "spec.volumes"): "name",
    ("services", "spec.ports"): "port",
    ("daemonsets", "spec.template.spec.containers"): "name",
    ("daemonsets", "spec.template.spec.volumes"): "name",
}
_OWNERS: Final = "metadata.ownerReferences"
_PRIMITIVE_SETS: Final = {"metadata.finalizers", "spec.podCIDRs"}
_IGNORED_PREFIX: Final = "$setElementOrder/"
_DELETE_PREFIX: Final = "$deleteFromPrimitiveList/"


def check_patch_type(content_type: str) -> None:
    """415 for a patch of no known type; the API server says so before it looks for the object."""
    kind = _media_type(content_type)
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise ApiFailure(
            415,
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}; got {kind!r}",
        )


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def apply_patch(plural: str, target: Object, patch: Any, content_type: str) -> Object:
    """The object that `patch` makes of `target`."""
    check_patch_type(content_type)
    match _media_type(content_type):
        case "application/json-patch+json":
            return json_patch(target, patch)
        case "application/merge-patch+json":
            return _object(merge_patch(target, patch))
    return _object(_strategic(plural, "", target, patch))


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _strategic(plural: str, path: str, target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copied(patch)
    if patch.get("$patch") == "replace":
        return copied({k: v for k, v in patch.items() if k != "$patch"})
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith((_IGNORED_PREFIX, "$retainKeys")):
            continue
        if name.startswith(_DELETE_PREFIX):
            real = name.removeprefix(_DELETE_PREFIX)
            merged[real] = [v for v in merged.get(real, []) if v not in value]
            continue
        below = f"{path}.{name}" if path else name
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, list):
            merged[name] = _strategic_list(plural, below, merged.get(name) or [], value)
        else:
            merged[name] = _strategic(plural, below, merged.get(name), value)
    return merged


def _strategic_list(plural: str, path: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if path in _PRIMITIVE_SETS:
        return [*target, *(v for v in patch if v not in target)]
    key = "uid" if path == _OWNERS else MERGE_KEYS.get((plural, path))
    if key is None or any(isinstance(v, dict) and v.get("$patch") == "replace" for v in patch):
        return [copied(v) for v in patch if not (isinstance(v, dict) and set(v) == {"$patch"})]
    merged = [copied(v) for v in target]
    for value in patch:
        index = next((i for i, old in enumerate(merged) if old.get(key) == value.get(key)), None)
        if value.get("$patch") == "delete":
            if index is not None:
                del merged[index]
        elif index is None:
            merged.append(copied(value))
        else:
            merged[index] = _strategic(plural, path, merged[index], value)
    return merged


def json_patch(target: Object, operations: Any) -> Object:
    """RFC 6902: add, remove, replace, test, move and copy."""
    if not isinstance(operations, list):
        raise ApiFailure(400, "a JSON patch is a list of operations")
    document: Any = copied(target)
    for operation in operations:
        path = _pointer(operation["path"])
        match operation["op"]:
            case "add":
                _insert(document, path, copied(operation["value"]))
            case "remove":
                _take(document, path)
            case "replace":
                _take(document, path)
                _insert(document, path, copied(operation["value"]))
            case "test":
                if _read(document, path) != operation["value"]:
                    raise ApiFailure(
                        422, "the server rejected our request due to an error in our request: test failed"
                    )
            case "move":
                _insert(document, path, _take(document, _pointer(operation["from"])))
            case "copy":
                _insert(document, path, copied(_read(document, _pointer(operation["from"]))))
            case other:
                raise ApiFailure(400, f"unknown JSON patch operation {other!r}")
    return _object(document)


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _read(document: Any, path: list[str]) -> Any:
    for part in path:
        try:
            document = document[int(part)] if isinstance(document, list) else document[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise ApiFailure(422, f"the JSON patch names a missing path: /{'/'.join(path)}") from None
    return document


def _insert(document: Any, path: list[str], value: Any) -> None:
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), value)
    else:
        parent[last] = value


def _take(document: Any, path: list[str]) -> Any:
    found = _read(document, path)
    parent, last = _read(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return found


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise ApiFailure(400, "a patch must leave an object")
    return value
