"""Select-Object, Sort-Object, Group-Object, Measure-Object, Compare-Object, Get-Unique, Tee-Object."""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from typing import Any

from winboot_lab.engine.adapted import property_of
from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.comparison import compare
from winboot_lab.engine.convert import convert, to_bool, to_string
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    IOException,
    PSArgumentException,
    RuntimeException,
    UnauthorizedAccessException,
)
from winboot_lab.engine.flow import StopUpstream
from winboot_lab.engine.introsort import introsort
from winboot_lab.engine.members import properties_of
from winboot_lab.engine.properties import Expression, expressions
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import (
    DOUBLE,
    NOTHING,
    NUMBER_CLASSES,
    PS_OBJECT,
    Array,
    ArrayList,
    Collection,
    Hashtable,
    NoteProperty,
    PSCustomObject,
    Structured,
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


@cmdlet(
    "Group-Object",
    """
    InputObject: psobject value
    Property: object[] position=0
    NoElement: switch
    AsHashTable: switch alias=AHT set=HashTable
    AsString: switch set=HashTable
    CaseSensitive: switch
    Culture: string refused
    """,
)
class GroupObject:
    """Gather objects with equal keys, in order of first appearance."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.keys = expressions(call, call.items("Property"), ())
        self.groups: list[tuple[list[Value], list[Value]]] = []
        if call.flag("AsString") and not call.flag("AsHashTable"):
            call.fail(
                ArgumentException(
                    "The command cannot be run because the AsString parameter requires that you specify the "
                    "AsHashtable parameter."
                ),
                "ArgumentException",
                "InvalidArgument",
            )

    def process(self) -> None:
        item = self.call.bound.get("inputobject")
        if item is None or item is NOTHING:
            return
        values = self._values(item)
        for known, items in self.groups:
            if self._same(values, known):
                items.append(item)
                return
        self.groups.append((values, [item]))

    def _values(self, item: Value) -> list[Value]:
        if not self.keys:
            return [plain(item)]
        found = [key.read(item, self.call.scope) for key in self.keys]
        return [None if value is None else plain(value[0]) for value in found]

    def _same(self, left: list[Value], right: list[Value]) -> bool:
        case = self.call.flag("CaseSensitive")
        for a, b in zip(left, right, strict=True):
            if (a is None) != (b is None):
                return False
            if a is not None and (to_string(a) == "") != (to_string(b) == ""):
                return False
            if order(a, b, self.call.scope, case=case):
                return False
        return True

    def end(self) -> None:
        if self.call.flag("AsHashTable"):
            self._table()
            return
        for values, items in self.groups:
            name = ", ".join(to_string(value) for value in values)
            members: dict[str, Value] = {
                "Count": len(items),
                "Name": name,
                "Group": Collection([] if self.call.flag("NoElement") else items, PS_OBJECT),
                "Values": ArrayList(values),
            }
            kind = "GroupInfoNoElement" if self.call.flag("NoElement") else "GroupInfo"
            self.call.write(Structured(f"Microsoft.PowerShell.Commands.{kind}", members))

    def _table(self) -> None:
        table = Hashtable(ignore_case=not self.call.flag("CaseSensitive"))
        for values, items in self.groups:
            key = values[0] if len(values) == 1 else Array(values)
            if self.call.flag("AsString"):
                key = ", ".join(to_string(value) for value in values)
            if key is None:
                raise Refusal("parameter", "Group-Object -AsHashTable", "a group without a key")
            if table.has(key):
                raise Refusal("parameter", "Group-Object -AsHashTable", "two groups of the same key")
            table.put(key, Collection(items, PS_OBJECT))
        self.call.write(table)


# -- Measure-Object


@cmdlet(
    "Measure-Object",
    """
    InputObject: psobject value
    Property: string[] position=0 filled
    Sum: switch set=GenericMeasure
    Average: switch set=GenericMeasure
    Maximum: switch set=GenericMeasure
    Minimum: switch set=GenericMeasure
    Line: switch set=TextMeasure
    Word: switch set=TextMeasure
    Character: switch set=TextMeasure
    IgnoreWhiteSpace: switch set=TextMeasure
    """,
    default_set="GenericMeasure",
)
class MeasureObject:
    """Count, sum, average, extremes; or lines, words, characters."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.text = call.set_name == "TextMeasure"
        self.names: list[str] = call.items("Property")
        if any("*" in name or "?" in name for name in self.names):
            call.refuse("-Property with a wildcard")
        self.found: dict[str | None, list[Value]] = {name: [] for name in self.names} or {None: []}

    def process(self) -> None:
        item = self.call.bound.get("inputobject")
        if item is None or item is NOTHING:
            return
        if not self.names:
            self.found[None].append(item)
            return
        for name in self.names:
            got = property_of(item, name, self.call.scope)
            if got is not None and got[0] is not None:
                self.found[name].append(got[0])

    def end(self) -> None:
        call = self.call
        for name, values in self.found.items():
            if name is not None and not values:
                if call.scope.strict >= 2 or values is None:
                    call.error(
                        PSArgumentException(
                            f'Cannot process argument because the value of argument "{name}" is not valid. Change the '
                            f'value of the "{name}" argument and run the operation again.'
                        ),
                        "GenericMeasurePropertyNotFound",
                        "ObjectNotFound",
                        None,
                    )
                    continue
                call.error(
                    PSArgumentException(
                        f'The property "{name}" cannot be found in the input for any objects.'
                    ),
                    "GenericMeasurePropertyNotFound",
                    "InvalidArgument",
                    None,
                )
                continue
            call.write(self._texts(name, values) if self.text else self._numbers(name, values))

    def _numbers(self, name: str | None, values: list[Value]) -> Structured:
        call = self.call
        result: dict[str, Value] = dict.fromkeys(
            ("Count", "Average", "Sum", "Maximum", "Minimum", "Property")
        )
        result["Count"] = len(values)
        result["Property"] = name
        if call.flag("Sum") or call.flag("Average"):
            numbers = [number for number in (self._number(value) for value in values) if number is not None]
            total = sum(numbers)
            if call.flag("Sum"):
                result["Sum"] = float(total)
            if call.flag("Average") and values:
                result["Average"] = float(total) / len(values)
        kind = "GenericMeasureInfo"
        for what, sign in (("Maximum", 1), ("Minimum", -1)):
            if call.flag(what) and values:
                best = self._extreme(values, sign)
                result[what] = best
                if not isinstance(best, float):
                    kind = "GenericObjectMeasureInfo"
        return Structured(f"Microsoft.PowerShell.Commands.{kind}", result)

    def _number(self, value: Value) -> float | None:
        bare = plain(value)
        if type(bare) in NUMBER_CLASSES:
            return float(bare)
        try:
            return float(convert(bare, DOUBLE))
        except DotNetException:
            self.call.error(
                PSArgumentException(f'Input object "{to_string(bare)}" is not numeric.'),
                "NonNumericInputObject",
                "InvalidType",
                value,
            )
            return None

    def _extreme(self, values: list[Value], sign: int) -> Value:
        converted = []
        for value in values:
            bare = plain(value)
            if type(bare) is str:
                try:
                    bare = float(convert(bare, DOUBLE))
                except DotNetException:
                    bare = plain(value)
            converted.append(bare)
        best = converted[0]
        for value in converted[1:]:
            if order(value, best, self.call.scope) * sign > 0:
                best = value
        return float(best) if type(best) in NUMBER_CLASSES or isinstance(best, Decimal) else best

    def _texts(self, name: str | None, values: list[Value]) -> Structured:
        call = self.call
        texts = [to_string(value) for value in values]
        result: dict[str, Value] = dict.fromkeys(("Lines", "Words", "Characters", "Property"))
        result["Property"] = name
        if call.flag("Line"):
            result["Lines"] = sum(text.count("\n") + (not text.endswith("\n")) for text in texts if text)
        if call.flag("Word"):
            result["Words"] = sum(len(text.split()) for text in texts)
        if call.flag("Character"):
            spaces = call.flag("IgnoreWhiteSpace")
            result["Characters"] = sum(
                len(text) if not spaces else sum(not letter.isspace() for letter in text) for text in texts
            )
        return Structured("Microsoft.PowerShell.Commands.TextMeasureInfo", result)


# -- Compare-Object


_Compared = tuple[Value, list[Value]]
_NO_LIMIT = 2**31 - 1


@cmdlet(
    "Compare-Object",
    """
    ReferenceObject: psobject[] mandatory position=0 none
    DifferenceObject: psobject[] mandatory position=1 value none
    SyncWindow: int
    Property: object[]
    ExcludeDifferent: switch
    IncludeEqual: switch
    PassThru: switch
    Culture: string refused
    CaseSensitive: switch
    """,
)
class CompareObject:
    """What is only on one side. The order of the output is that of the real one's matching."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.window: int = call["SyncWindow"] if call.has("SyncWindow") else _NO_LIMIT
        self.keys = expressions(call, call.items("Property"), ())
        self.references = deque((item, self._values(item)) for item in call.items("ReferenceObject"))
        # What finds no partner in its turn waits here, as long as the window lets it.
        self.waiting: dict[str, list[_Compared]] = {"<=": [], "=>": []}

    def process(self) -> None:
        for item in self.call.items("DifferenceObject"):
            self._turn((item, self._values(item)))

    def end(self) -> None:
        while self.references:
            self._turn(None)
        for side in ("=>", "<="):
            for entry in self.waiting[side]:
                self._write(entry, side)

    def _turn(self, theirs: _Compared | None) -> None:
        """The next difference object and the next reference object."""
        mine = self.references.popleft() if self.references else None
        if mine is not None and theirs is not None and self._same(mine, theirs):
            self._write(mine, "==")
            return
        known = self._partner(theirs, "<=")
        if known is not None:
            self._write(known, "==")
            theirs = None
        if mine is not None and self._partner(mine, "=>") is not None:
            self._write(mine, "==")
            mine = None
        self._wait(theirs, "=>")
        self._wait(mine, "<=")

    def _partner(self, entry: _Compared | None, side: str) -> _Compared | None:
        """The equal object that waits on the other side; it waits no longer."""
        backlog = self.waiting[side]
        for number, known in enumerate(backlog):
            if entry is not None and self._same(entry, known):
                return backlog.pop(number)
        return None

    def _wait(self, entry: _Compared | None, side: str) -> None:
        if entry is None:
            return
        backlog = [*self.waiting[side], entry]
        while len(backlog) > max(self.window, 0):
            self._write(backlog.pop(0), side)
        self.waiting[side] = backlog

    def _values(self, item: Value) -> list[Value]:
        if not self.keys:
            return [plain(item)]
        found = [key.read(item, self.call.scope) for key in self.keys]
        return [None if value is None else plain(value[0]) for value in found]

    def _same(self, left: _Compared, right: _Compared) -> bool:
        case = self.call.flag("CaseSensitive")
        return all(
            order(a, b, self.call.scope, case=case) == 0 for a, b in zip(left[1], right[1], strict=True)
        )

    def _write(self, entry: _Compared, side: str) -> None:
        call = self.call
        if side == "==":
            if not call.flag("IncludeEqual"):
                return
        elif call.flag("ExcludeDifferent"):
            return
        if call.flag("PassThru"):
            made, extension = decorate(entry[0])
            extension.add(NoteProperty("SideIndicator", side))
            call.write(made)
            return
        shown = PSCustomObject()
        if self.keys:
            for key, value in zip(self.keys, entry[1], strict=True):
                shown.put(key.label, value)
        else:
            shown.put("InputObject", entry[0])
        shown.put("SideIndicator", side)
        call.write(shown)


# -- Get-Unique, Tee-Object


@cmdlet(
    "Get-Unique",
    """
    InputObject: psobject value
    AsString: switch set=AsString
    OnType: switch set=UniqueByType
    """,
    default_set="AsString",
)
class GetUnique:
    """Drop an object that equals the one before it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.last: Value = NOTHING

    def process(self) -> None:
        call = self.call
        item = call.bound.get("inputobject")
        if self.last is not NOTHING:
            if call.flag("OnType"):
                same = type_of(item) is type_of(self.last)
            elif call.flag("AsString"):
                same = to_string(item) == to_string(self.last)
            else:
                same = order(item, self.last, call.scope, case=True) == 0
            if same:
                return
        self.last = item
        call.stage.out(item)


@cmdlet(
    "Tee-Object",
    """
    InputObject: psobject value
    FilePath: string mandatory position=0 set=File
    LiteralPath: string mandatory alias=PSPath set=LiteralFile
    Append: switch set=File
    Variable: string mandatory set=Variable
    """,
    default_set="File",
)
class TeeObject:
    """Pass objects on and keep them in a variable or file."""

    def __init__(self, call: Call) -> None:
        from winboot_lab.engine.cmdlets.out_file import FileSink, open_failure

        self.call = call
        self.items: list[Value] = []
        self.sink: FileSink | None = None
        path = call["FilePath"] or call["LiteralPath"]
        if path is not None:
            try:
                self.sink = FileSink(call.scope, path, append=call.flag("Append"))
            except (IOException, UnauthorizedAccessException) as failure:
                raise open_failure(failure, "OutFileCommand", path) from None

    def process(self) -> None:
        item = self.call.bound.get("inputobject")
        if self.sink is not None:
            self.sink.write(item)
        else:
            self.items.append(item)
        self.call.stage.out(item)

    def end(self) -> None:
        if self.sink is not None:
            self.sink.close()
            return
        value = self.items[0] if len(self.items) == 1 else Array(self.items) if self.items else NOTHING
        name = self.call["Variable"]
        self.call.scope.assign(name.lower(), name, value)


__all__ = ["order", "properties_of"]
