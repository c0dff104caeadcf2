"""A value that never prints.

A `Secret` is not a `str`, on purpose: nothing that formats, logs, serialises or renders text can take it by accident.
The renderer refuses it (`winboot.script.literals`). Code that calls `reveal()` either sends the value (transports),
reads a certificate or kubeconfig out of it, or looks for it to hide it (the journal); tests/test_secret.py lists the
modules.
"""

from __future__ import annotations

from typing import Final, NoReturn


class Secret:
    """Holds a text that goes only where `reveal()` is called."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value: Final = value

    def reveal(self) -> str:
        """The text itself. Call it only where the value leaves for the node or the cluster."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be copied, pickled or written to a file")
