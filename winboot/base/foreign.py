"""JSON or YAML text of another party (a machine, a cluster, an annotation) as a value of a declared form.

Build decoders when a module is loaded: msgspec completes a type at its first use, and two threads must not meet there.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import yaml

Form = TypeVar("Form")


class Malformed(ValueError):
    """The text is not JSON, or JSON of another form."""


def decoded(decoder: msgspec.json.Decoder[Form], text: str | bytes) -> Form:
    """The value that this text holds. Raises Malformed, and nothing else, for every other text."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        # A lone surrogate is a ValueError, brackets nested by the thousand are a RecursionError.
        raise Malformed(str(error)) from None


def converted(data: object, form: type[Form]) -> Form:
    """The value that this plain data holds. Raises Malformed for other data."""
    try:
        return msgspec.convert(data, form)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(str(error)) from None


def ready(*forms: Any) -> None:
    """Completes these types for `converted`, while one thread runs."""
    for form in forms:
        msgspec.json.Decoder(form)


class _Loader(yaml.SafeLoader):
    """Refuses half a surrogate pair, which an escape can write and no file or header can hold; go-yaml refuses it, too
    (yaml.v2, scannerc.go: "found invalid Unicode character escape code")."""

    def construct_scalar(self, node: Any) -> Any:
        text = super().construct_scalar(node)
        text.encode()
        return text


def yaml_of(text: str) -> Any:
    """The plain value of a YAML text. Raises Malformed, and nothing else, for every other text."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        # A date that does not exist is a ValueError; `!!bool x`, `!!int ""` and `!!timestamp x` are the last three
        # (PyYAML, constructor.py, SafeConstructor).
        raise Malformed(f"{type(error).__name__}: {error}") from None
