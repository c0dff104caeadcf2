"""Select-Object, Sort-Object, Group-Object, Measure-Object, Compare-Object, Get-Unique, Tee-Object."""

from __future__ import annotations

from collections import deque
from typing import Any

from winboot_lab.engine.adapted import property_of
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.comparison import compare
from winboot_lab.engine.convert import to_bool, to_string
from winboot_lab.engine.exceptions import (
    DotNetException,
    PSArgumentException,
    RuntimeException,
)
from winboot_lab.engine.flow import StopUpstream
from winboot_lab.engine.introsort import introsort
from winboot_lab.engine.members import properties_of
from winboot_lab.engine.properties import Expression, expressions
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import (
    NOTHING,
    NoteProperty,
    PSCustomObject,
    decorate,
    enumerate_value,
    plain,
    type_of,
)
from winboot_lab.engine.wildcards import like

Value = Any


def order(left: Value, right: Value, scope: Scope, *, case: bool = False) -> int:
    """How the object cmdlets order two values; what cannot be compared goes by its text."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    try:
        return compare(left, right, scope, case=case)
    except DotNetException:
        return compare(_own_text(left), _own_text(right), scope, case=case)


def _own_text(value: Value) -> str:
    """ToString(), which for a custom object is empty."""
    return "" if isinstance(plain(value), PSCustomObject) else to_string(value)


# -- Select-Object


@cmdlet(
    "Select-Object",
    """
    InputObject: psobject value
    Property: object[] position=0 set=DefaultParameter,SkipLastParameter
    ExcludeProperty: string[] set=DefaultParameter,SkipLastParameter
    ExpandProperty: string set=DefaultParameter,SkipLastParameter
    Unique: switch
    Last: int range=0,2147483647 set=DefaultParameter
    First: int range=0,2147483647 set=DefaultParameter
    Skip: int range=0,2147483647 set=DefaultParameter
    SkipLast: int range=0,2147483647 set=SkipLastParameter
    Wait: switch set=DefaultParameter,IndexParameter
    Index: int[] range=0,2147483647 set=IndexParameter
    """,
    default_set="DefaultParameter",
)
class SelectObject:
    """Pick objects by place and properties by name."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.properties = expressions(call, call.items("Property"), (), named=True)
        self.excluded = call.items("ExcludeProperty") if self.properties else []
        self.expand: str | None = call["ExpandProperty"]
        self.first: int | None = call["First"]
        self.last: int | None = call["Last"]
        self.skip = call["Skip"] or 0
        self.skip_last = call["SkipLast"] or 0
        self.indexes = sorted(set(call.items("Index"))) if call.has("Index") else None
        self.unique = call.flag("Unique")
        self.seen = 0
        self.given = 0
        self.queue: deque[Value] = deque()
        self.kept: list[Value] = []

    def process(self) -> None:
        call = self.call
        item = call.bound.get("inputobject")
        if item is None or item is NOTHING:
            if not call.expects_input or item is NOTHING:
                return
            if self.properties or self.expand or self.unique:
                return
        self._place(item)

    def _place(self, item: Value) -> None:
        position, self.seen = self.seen, self.seen + 1
        if self.indexes is not None:
            if position in self.indexes:
                self._take(item)
            if self.indexes and position >= self.indexes[-1] and not self.call.flag("Wait"):
                raise StopUpstream(self.call.stage)
            return
        if self.skip_last:
            self.queue.append(item)
            if len(self.queue) > self.skip_last:
                self._take(self.queue.popleft())
            return
        if self.last is not None:
            self._first_and_last(item)
            return
        if position < self.skip:
            return
        if self.first is not None:
            if self.given >= self.first:
                self._stop()
                return
            self.given += 1
            self._take(item)
            if self.given >= self.first:
                self._stop()
            return
        self._take(item)

    def _first_and_last(self, item: Value) -> None:
        if self.first is not None and self.given < self.first:
            if self.seen > self.skip:
                self.given += 1
                self._take(item)
            return
        assert self.last is not None
        self.queue.append(item)
        if len(self.queue) > self.last + (self.skip if self.first is None else 0):
            self.queue.popleft()

    def _stop(self) -> None:
        if not self.call.flag("Wait") and not self.unique:
            raise StopUpstream(self.call.stage)

    def end(self) -> None:
        if self.last is not None:
            items = list(self.queue)
            if self.first is None and self.skip:
                items = items[: max(0, len(items) - self.skip)]
            for item in items[-self.last :] if self.last else []:
                self._take(item)

        if self.unique:
            for item in self.kept:
                self.call.stage.out(item)

    def _take(self, item: Value) -> None:
        if not self.properties and self.expand is None:
            self._give(item)
            return
        made = self._selected(item) if self.properties else None
        if self.expand is None:
            self._give(made)
            return
        self._expanded(item, made)

    def _give(self, item: Value) -> None:
        if not self.unique:
            self.call.stage.out(item)
        elif not any(self._same(item, known) for known in self.kept):
            self.kept.append(item)

    def _same(self, item: Value, known: Value) -> bool:
        left, right = plain(item), plain(known)
        if isinstance(left, PSCustomObject) and isinstance(right, PSCustomObject) and self.properties:
            mine, theirs = dict(left.items()), dict(right.items())
            return list(mine) == list(theirs) and all(
                order(mine[name], theirs[name], self.call.scope, case=True) == 0 for name in mine
            )
        if isinstance(left, PSCustomObject) and isinstance(right, PSCustomObject):
            return True
        return order(left, right, self.call.scope, case=True) == 0

    def _selected(self, item: Value) -> PSCustomObject:
        call = self.call
        made = PSCustomObject()
        made.extension.type_names = [
            f"Selected.{type_of(item).name if item is not None else 'System.Object'}",
            "System.Management.Automation.PSCustomObject",
            "System.Object",
        ]
        for wanted in self.properties:
            for name, value in self._values(wanted, item):
                if any(like(name, pattern) for pattern in self.excluded):
                    continue
                if name.lower() in made.extension.members:
                    failure = PSArgumentException(
                        f'The property cannot be processed because the property "{name}" already exists.'
                    )
                    call.error(
                        failure, "AlreadyExistingUserSpecifiedPropertyNoExpand", "InvalidOperation", item
                    )
                    continue
                made.extension.add(NoteProperty(name, value))
        return made

    def _values(self, wanted: Expression, item: Value) -> list[tuple[str, Value]]:
        scope = self.call.scope
        if wanted.block is not None:
            try:
                found = wanted.read(item, scope)
            except RuntimeException:
                # Select-Object swallows what a calculated property throws.
                if scope.session.errors:
                    scope.session.errors.pop(0)
                found = (None,)
            return [(wanted.label, found[0] if found else None)]
        names = wanted.names_in(item)
        if wanted.name is not None:
            names = names[:1]
        values = []
        for name in names:
            got = property_of(item, name, scope)
            values.append((wanted.name or name, None if got is None else got[0]))
        return values

    def _expanded(self, item: Value, extra: PSCustomObject | None) -> None:
        call = self.call
        assert self.expand is not None
        wanted = Expression(self.expand, pattern=self.expand)
        names = wanted.names_in(item)
        if len(names) > 1:
            call.refuse("-ExpandProperty with a wildcard that means several")
        found = property_of(item, names[0], call.scope) if names else None
        if found is None:
            call.error(
                PSArgumentException(f'Property "{self.expand}" cannot be found.'),
                "ExpandPropertyNotFound",
                "InvalidArgument",
                item,
            )
            return
        value = found[0]
        if value is None:
            return
        items = enumerate_value(value)
        for one in [value] if items is None else items:
            if one is None:
                continue
            self._give(one if extra is None else self._with_notes(one, extra))

    def _with_notes(self, value: Value, extra: PSCustomObject) -> Value:
        made, extension = decorate(value)
        for name, note in extra.items():
            if extension.find(name) is not None or property_of(made, name, self.call.scope) is not None:
                self.call.error(
                    PSArgumentException(
                        f'The property cannot be processed because the property "{name}" already exists.'
                    ),
                    "AlreadyExistingUserSpecifiedPropertyExpand",
                    "InvalidOperation",
                    value,
                )
                continue
            extension.add(NoteProperty(name, note))
        return made


# -- Sort-Object


@cmdlet(
    "Sort-Object",
    """
    InputObject: psobject value
    Property: object[] position=0
    Descending: switch
    Unique: switch
    CaseSensitive: switch
    Culture: string refused
    """,
)
class SortObject:
    """Sort; null objects vanish."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.keys = expressions(call, call.items("Property"), ("ascending", "descending"))
        self.items: list[Value] = []

    def process(self) -> None:
        item = self.call.bound.get("inputobject")
        if item is not None and item is not NOTHING:
            self.items.append(item)

    def end(self) -> None:
        call, scope = self.call, self.call.scope
        case = call.flag("CaseSensitive")
        rows = [self._row(item) for item in self.items]
        down = [self._descending(key) for key in self.keys] or [call.flag("Descending")]

        def by_keys(left: tuple[Value, list[Value]], right: tuple[Value, list[Value]]) -> int:
            for number, is_down in enumerate(down):
                result = order(left[1][number], right[1][number], scope, case=case)
                if result:
                    return -result if is_down else result
            return 0

        introsort(rows, by_keys)
        last: tuple[Value, list[Value]] | None = None
        for row in rows:
            if call.flag("Unique") and last is not None and by_keys(last, row) == 0:
                continue
            last = row
            call.stage.out(row[0])

    def _descending(self, key: Expression) -> bool:
        if "descending" in key.options:
            return to_bool(key.options["descending"])
        if "ascending" in key.options:
            return not to_bool(key.options["ascending"])
        return self.call.flag("Descending")

    def _row(self, item: Value) -> tuple[Value, list[Value]]:
        if not self.keys:
            return item, [plain(item)]
        values: list[Value] = []
        for key in self.keys:
            try:
                found = key.read(item, self.call.scope)
            except RuntimeException as failure:
                record = failure.error_record
                if self.call.session.errors and self.call.session.errors[0] is record:
                    self.call.session.errors.pop(0)
                self.call.error(failure, "ExpressionEvaluation", "InvalidResult", item)
                found = None
            values.append(None if found is None else plain(found[0]))
        return item, values


# -- Group-Object


# -- Measure-Object


# -- Compare-Object


# -- Get-Unique, Tee-Object


__all__ = ["order", "properties_of"]
