"""Models of files that people write: pydantic underneath, complaints with file, line and column on top.

`build` makes a model from marked nodes and returns every complaint at once. The base class `Model` refuses
unknown keys and treats a null like an absent key. So a null in a higher layer of an inventory removes what a lower
one set.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from winboot.config.source import (
    Complaint,
    Node,
    PathParts,
    Text,
    Wrong,
    child,
    dotted,
    locate,
    nearest,
    raw,
    typed,
)

AModel = TypeVar("AModel", bound="Model")


class Model(BaseModel):
    """A section of a file: unknown keys are refused, nulls are absent keys, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Keys people bring from elsewhere, and what to write instead here.
    elsewhere: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None}
        return value


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def expanded(text: str) -> Path:
    """A path with `~` as the home folder; an unknown user stays as it is written, and is not found."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def is_file(path: Path) -> bool:
    """Is there a file? A name that no file system takes (too long) does not exist, and is not an error."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _local_path(value: Any) -> Any:
    """A path is relative to the file it is written in; `~` is the home folder."""
    if not isinstance(value, str):
        return value
    path = expanded(value)
    if isinstance(value, Text) and not path.is_absolute():
        return Path(value.place.file).parent / path
    return path


Item = TypeVar("Item")
OneOrMany = Annotated[tuple[Item, ...], BeforeValidator(_one_or_many)]
"""A list, or a single value, which means a list of one."""

LocalPath = Annotated[Path, BeforeValidator(_local_path)]
"""A file here (not on the node)."""

OpenMap = Annotated[dict[str, Any], BeforeValidator(typed)]
"""A map whose keys another program defines; numbers and booleans as YAML understands them."""


def build(model: type[AModel], node: Node, prefix: PathParts = ()) -> tuple[AModel | None, list[Complaint]]:
    """The model of a node, or None and all complaints; `prefix` is the path of the node in its file."""
    try:
        return model.model_validate(raw(node)), []
    except ValidationError as error:
        complaints = [_complaint(model, node, prefix, details) for details in error.errors(include_url=False)]
        return None, list(_once(complaints))


def _once(complaints: Sequence[Complaint]) -> Iterator[Complaint]:
    """A value that fits no member of a union has a complaint of each: the one that says all of them is enough."""
    for one in complaints:
        others = [
            two for two in complaints if (two.place, two.path, two.wrong) == (one.place, one.path, one.wrong)
        ]
        if one is max(others, key=lambda two: len(two.expected)):
            yield one


def _complaint(model: type[Model], node: Node, prefix: PathParts, error: Mapping[str, Any]) -> Complaint:
    path = _real_path(node, error["loc"], error["type"])
    kind, context = error["type"], error.get("ctx") or {}
    shown = dotted((*prefix, *path))
    if kind == "extra_forbidden":
        return _unknown_key(model, node, path, shown)
    if kind == "missing":
        return Complaint(
            locate(node, path[:-1], key=True), shown, "this key is missing", expected=_want(model, path)
        )
    if kind == "none_required":
        return Complaint(locate(node, path), shown, "no value", _want(model, path))
    cause = context.get("error")
    if isinstance(cause, Wrong):
        return Complaint(locate(node, path), shown, cause.wrong, cause.expected, cause.did_you_mean)
    value = error["input"]
    wrong = _written(value)
    if kind in ("literal_error", "enum"):
        choices = _literals(model, path)
        return Complaint(
            locate(node, path),
            shown,
            wrong,
            " | ".join(choices),
            nearest(value, choices) if isinstance(value, str) else "",
        )
    expected = _range(model, path) or _EXPECTED.get(kind) or _want(model, path) or "another value"
    return Complaint(locate(node, path), shown, wrong, expected)


# Pydantic's kinds of errors in words for people who do not know that it is there. A number says its range.
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "path_type": "a path",
}


def _written(value: Any) -> str:
    match value:
        case str():
            return repr(str(value))
        case dict():
            return "found a mapping"
        case list() | tuple():
            return "found a list"
        case None:
            return "no value"
    return repr(value)


def _range(model: type[Model], path: PathParts) -> str:
    """The numbers that a field takes (`a whole number from 1 to 65535`), or "" where it has no bounds."""
    owner = model_at(model, path[:-1])
    info = owner.model_fields.get(str(path[-1])) if owner and path else None
    bounds: dict[str, Any] = {}
    for one in _metadata(info):
        bounds |= {
            name: getattr(one, name)
            for name in ("ge", "gt", "le", "lt")
            if getattr(one, name, None) is not None
        }
    if not bounds or info is None:
        return ""
    kind = "a number" if float in _choices_of_types(info.annotation) else "a whole number"
    low = f"from {bounds['ge']}" if "ge" in bounds else f"above {bounds['gt']}" if "gt" in bounds else ""
    high = f"to {bounds['le']}" if "le" in bounds else f"below {bounds['lt']}" if "lt" in bounds else ""
    words = [str(one) for one in _choices(info.annotation)]
    return " | ".join([*words, " ".join(part for part in (kind, low, high) if part)])


def _metadata(info: FieldInfo | None) -> Iterable[Any]:
    """The constraints of a field, and of the members of its union."""
    if info is None:
        return
    yield from info.metadata
    for annotated in _annotated(info.annotation):
        for one in typing.get_args(annotated)[1:]:
            yield from one.metadata if isinstance(one, FieldInfo) else [one]


def _annotated(annotation: Any) -> Iterable[Any]:
    if typing.get_origin(annotation) is Annotated:
        yield annotation
    else:
        for part in typing.get_args(annotation):
            yield from _annotated(part)


def _choices_of_types(annotation: Any) -> Iterable[Any]:
    """The plain types in an annotation."""
    if isinstance(annotation, type):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _choices_of_types(part)


def _real_path(node: Node, loc: Sequence[str | int], kind: str) -> PathParts:
    """Pydantic's path without the parts that only its unions know; the last part of a missing key is kept."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        step = child(node, part)
        if step is not None:
            path.append(part)
            node = step[1]
        elif kind == "missing" and index == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _unknown_key(model: type[Model], node: Node, path: PathParts, shown: str) -> Complaint:
    key = str(path[-1])
    owner = model_at(model, path[:-1])
    known = list(owner.model_fields) if owner else []
    instead = owner.elsewhere.get(key, "") if owner else ""
    if instead:
        place = locate(node, path, key=True)
        return Complaint(place, shown, f"unknown key {key!r}", expected=instead)
    meant = nearest(key, known)
    return Complaint(
        locate(node, path, key=True),
        shown,
        f"unknown key {key!r}",
        expected="" if meant or not known else "one of " + ", ".join(known),
        did_you_mean=meant,
    )


def _want(model: type[Model], path: PathParts) -> str:
    owner = model_at(model, path[:-1])
    info = owner.model_fields.get(str(path[-1])) if owner else None
    return (info.description or "") if info else ""


def _literals(model: type[Model], path: PathParts) -> list[str]:
    owner = model_at(model, path[:-1])
    info = owner.model_fields.get(str(path[-1])) if owner else None
    if info is None:
        # A list item or a map value: the choices are in the type of the field above it.
        return _literals(model, path[:-1]) if len(path) > 1 else []
    return [str(choice) for choice in _choices(info.annotation)]


def _choices(annotation: Any) -> Iterable[Any]:
    if typing.get_origin(annotation) is Literal:
        yield from typing.get_args(annotation)
    else:
        for part in typing.get_args(annotation):
            yield from _choices(part)


def model_at(model: type[Model], path: PathParts) -> type[Model] | None:
    """The model class of the value at a path, or None where the path leads out of the models."""
    current: Any = model
    for part in path:
        owner = next(iter(_models(current)), None)
        if owner is None:
            return None
        if isinstance(current, type) and issubclass(current, Model):
            info = current.model_fields.get(str(part))
            current = info.annotation if info else None
        else:
            current = _inside(current, part)
    return next(iter(_models(current)), None)


def _inside(annotation: Any, part: str | int) -> Any:
    """The annotation one step inside a container or an optional model."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType, Annotated):
        for argument in arguments:
            if isinstance(argument, type) and issubclass(argument, Model):
                info = argument.model_fields.get(str(part))
                if info is not None:
                    return info.annotation
            elif typing.get_origin(argument) is not None:
                return _inside(argument, part)
        return None
    return arguments[-1] if origin is dict and arguments else arguments[0] if arguments else None


def _models(annotation: Any) -> Iterable[type[Model]]:
    if isinstance(annotation, type):
        if issubclass(annotation, Model):
            yield annotation
    else:
        for part in typing.get_args(annotation):
            yield from _models(part)
