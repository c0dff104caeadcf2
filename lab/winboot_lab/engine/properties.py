"""Properties as cmdlets see them: `Name`, `a*`, `{ $_.x }` and `@{ n = 'N'; e = { … } }` of Select-, Sort-, Group- and others.

In Windows PowerShell the keys of a hashtable are not properties here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from winboot_lab.engine.adapted import property_of
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.exceptions import NotSupportedException, RuntimeException
from winboot_lab.engine.invoke import Inline, Underbar
from winboot_lab.engine.members import properties_of
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import (
    NOTHING,
    ScriptBlock,
    _Mapping,
    plain,
)
from winboot_lab.engine.wildcards import has_wildcards, like

Value = Any


@dataclass(slots=True)
class Expression:
    """One property argument. `name` is the label given, `text` how it was written, `block` or `pattern` what to read."""

    text: str
    pattern: str | None = None
    block: Inline | None = None
    name: str | None = None
    options: dict[str, Value] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the result is called."""
        return self.name if self.name is not None else self.text

    def names_in(self, item: Value) -> list[str]:
        """The property names it means on an object: all that match, or itself."""
        assert self.pattern is not None
        if has_wildcards(self.pattern):
            return [name for name in properties_of(item) if like(name, self.pattern)]
        wanted = self.pattern.lower()
        return [next((name for name in properties_of(item) if name.lower() == wanted), self.pattern)]

    def read(self, item: Value, scope: Scope) -> tuple[Value] | None:
        """(value,) for an object, or None when the property is missing. A failing block raises."""
        if self.block is not None:
            keep = Underbar(scope)
            in_try, scope.session.in_try = scope.session.in_try, True
            try:
                value = self.block.value(item)
            finally:
                scope.session.in_try = in_try
                keep.restore()
            return (None if value is NOTHING else value,)
        assert self.pattern is not None
        if has_wildcards(self.pattern):
            names = self.names_in(item)
            return None if not names else property_of(item, names[0], scope)
        return property_of(item, self.pattern, scope)


def expressions(
    call: Call,
    values: Sequence[Value],
    keys: Sequence[str],
    *,
    named: bool = False,
) -> list[Expression]:
    """The property arguments of a call. `keys` are the hashtable keys allowed in addition to name/label/expression."""
    return [_expression(call, value, keys, named=named) for value in values]


def _expression(call: Call, value: Value, keys: Sequence[str], *, named: bool) -> Expression:
    bare = plain(value)
    if isinstance(bare, ScriptBlock):
        return Expression(bare.text, block=Inline(call.scope, bare))
    if isinstance(bare, _Mapping):
        return _from_table(call, bare, keys, named=named)
    if type(bare) is str:
        return Expression(bare, pattern=bare)
    raise unfit(call, "DictionaryKeyUnknownType")


def _from_table(call: Call, table: _Mapping, keys: Sequence[str], *, named: bool) -> Expression:
    made = Expression("")
    known = [*(("name", "label") if named else ()), "expression", *keys]
    for key, value in table.items():
        text = call.text(key).lower()
        full = next((name for name in known if text and name.startswith(text)), None)
        if full is None:
            raise unfit(call, "DictionaryKeyIllegal")
        bare = plain(value)
        if full in ("name", "label"):
            made.name = call.text(value)
        elif full == "expression":
            if isinstance(bare, ScriptBlock):
                made.block = Inline(call.scope, bare)
                made.text = made.text or bare.text
            elif type(bare) is str:
                made.pattern = bare
                made.text = made.text or bare
            else:
                raise unfit(call, "DictionaryKeyIllegalValue")
        else:
            made.options[full] = value
    if made.block is None and made.pattern is None:
        raise unfit(call, "DictionaryKeyMandatoryEntry")
    return made


def unfit(call: Call, id: str) -> RuntimeException:
    """The terminating error for an argument that is not a property."""
    return call.failure(
        call.record(NotSupportedException("Specified method is not supported."), id, "InvalidArgument")
    )
