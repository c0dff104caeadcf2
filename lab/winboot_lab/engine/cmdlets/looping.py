"""ForEach-Object and Where-Object."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import CORE, cmdlet
from winboot_lab.engine.compiler.core import emit
from winboot_lab.engine.convert import to_bool
from winboot_lab.engine.dotnet import DotNetType
from winboot_lab.engine.exceptions import PSArgumentException
from winboot_lab.engine.invoke import Inline, Underbar
from winboot_lab.engine.members import find_property, get_member, invoke_member
from winboot_lab.engine.operators import binary
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.typenames import find_type
from winboot_lab.engine.values import NOTHING, ScriptBlock, _Mapping, plain, type_of
from winboot_lab.engine.wildcards import has_wildcards

Value = Any


@cmdlet(
    "ForEach-Object",
    """
    InputObject: psobject value
    Begin: scriptblock set=ScriptBlockSet
    Process: scriptblock[] mandatory position=0 null none set=ScriptBlockSet
    End: scriptblock set=ScriptBlockSet
    RemainingScripts: scriptblock[] rest null none set=ScriptBlockSet
    MemberName: string mandatory position=0 set=PropertyAndMethodSet
    ArgumentList: object[] rest alias=Args set=PropertyAndMethodSet
    """,
    module=CORE,
    default_set="ScriptBlockSet",
    should_process=True,
)
class ForEachObject:
    """Run a script block, or read or call a member, for each object."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.blocks: list[Inline] = []
        self.first: Inline | None = None
        self.last: Inline | None = None
        if call.set_name == "ScriptBlockSet":
            self._sort_blocks()
        self.keep = Underbar(call.scope)

    def _sort_blocks(self) -> None:
        """Of several blocks without names the first is -Begin and the last -End."""
        call = self.call
        blocks = [block for block in call.items("Process") if block is not None]
        blocks += [block for block in call.items("RemainingScripts") if block is not None]
        begin, end = call["Begin"], call["End"]
        if begin is None and len(blocks) > 1:
            begin = blocks.pop(0)
        if (end is None and len(blocks) > 1 and not call.has("Begin")) or (end is None and len(blocks) > 1):
            end = blocks.pop()
        scope = call.scope
        self.first = None if begin is None else Inline(scope, begin)
        self.last = None if end is None else Inline(scope, end)
        self.blocks = [Inline(scope, block) for block in blocks]

    def begin(self) -> None:
        if self.first is not None:
            self._run(self.first, None)

    def process(self) -> None:
        call = self.call
        item = call.bound.get("inputobject")
        if call.set_name == "PropertyAndMethodSet":
            self._member(item)
            return
        if not call.expects_input and "inputobject" not in call.bound:
            item = None
        for block in self.blocks:
            self._run(block, item)

    def _run(self, block: Inline, item: Value) -> None:
        keep = Underbar(self.call.scope)
        try:
            block.run(item, self.call.stage.out)
        finally:
            keep.restore()

    def end(self) -> None:
        if self.last is not None:
            self._run(self.last, None)

    def _member(self, item: Value) -> None:
        call = self.call
        name = call["MemberName"]
        scope = call.scope
        if has_wildcards(name):
            call.refuse("-MemberName with a wildcard")
        if item is None:
            if scope.strict >= 2:
                call.error("InputObject is null.", "InputObjectIsNull", "InvalidArgument", None)
            else:
                call.write(None)
            return
        if call.has("ArgumentList"):
            emit(call.stage.out, invoke_member(item, name, call.items("ArgumentList"), scope))
            return
        bare = plain(item)
        if isinstance(bare, _Mapping) and bare.has(name):
            emit(call.stage.out, bare.get(name))
            return
        found = find_property(item, name, scope)
        if found is not None:
            emit(call.stage.out, found[0])
        elif _has_method(item, name):
            emit(call.stage.out, invoke_member(item, name, [], scope))
        elif scope.strict >= 2:
            call.error(
                PSArgumentException(f'The input name "{name}" cannot be resolved to a member.'),
                "PropertyOrMethodNotFound",
                "InvalidArgument",
                item,
            )
        else:
            call.write(None)


def _has_method(item: Value, name: str) -> bool:
    from winboot_lab.engine.dotnet import Method
    from winboot_lab.engine.values import ScriptMethod, extension_of

    extension = extension_of(item)
    if extension is not None and isinstance(extension.find(name), ScriptMethod):
        return True
    return isinstance(type_of(plain(item)).find(name), Method)


_OPERATORS = {
    "EQ": ("ieq", "IEQ"),
    "NE": ("ine", "INE"),
    "GT": ("igt", "IGT"),
    "LT": ("ilt", "ILT"),
    "GE": ("ige", "IGE"),
    "LE": ("ile", "ILE"),
    "Like": ("ilike", "ILike"),
    "NotLike": ("inotlike", "INotLike"),
    "Match": ("imatch", "IMatch"),
    "NotMatch": ("inotmatch", "INotMatch"),
    "Contains": ("icontains", "IContains"),
    "NotContains": ("inotcontains", "INotContains"),
    "In": ("iin", "IIn"),
    "NotIn": ("inotin", "INotIn"),
    "CEQ": ("ceq", ""),
    "CNE": ("cne", ""),
    "CGT": ("cgt", ""),
    "CLT": ("clt", ""),
    "CGE": ("cge", ""),
    "CLE": ("cle", ""),
    "CLike": ("clike", ""),
    "CNotLike": ("cnotlike", ""),
    "CMatch": ("cmatch", ""),
    "CNotMatch": ("cnotmatch", ""),
    "CContains": ("ccontains", ""),
    "CNotContains": ("cnotcontains", ""),
    "CIn": ("cin", ""),
    "CNotIn": ("cnotin", ""),
    "Is": ("is", ""),
    "IsNot": ("isnot", ""),
}


def _where_signature() -> str:
    sets = [*(f"{name}Set" for name in _OPERATORS), "NotSet"]
    lines = [
        "InputObject: psobject value",
        "FilterScript: scriptblock mandatory position=0 set=ScriptBlockSet",
        f"Property: string mandatory position=0 set=EqualSet,{','.join(sets)}",
        f"Value: object position=1 set=EqualSet,{','.join(sets)}",
    ]
    for name, (_, alias) in _OPERATORS.items():
        extra = f" alias={alias}" if alias else ""
        place = "EQSet" if name == "EQ" else f"{name}Set"
        lines.append(f"{name}: switch mandatory set={place}{extra}")
        if name == "EQ":
            lines.append("EQ: switch set=EqualSet")
    return "\n".join(lines)


@cmdlet("Where-Object", _where_signature(), module=CORE, default_set="EqualSet")
class WhereObject:
    """Let those objects pass for which a condition holds."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.block = Inline(call.scope, call["FilterScript"]) if call.has("FilterScript") else None
        chosen = [name for name in _OPERATORS if call.flag(name)]
        self.operator = _OPERATORS[chosen[0]][0] if chosen else None
        if self.block is None and self.operator is not None and not call.has("Value"):
            call.fail(
                "The specified operator requires both the -Property and -Value parameters. Provide values for both "
                "parameters, and then try the command again.",
                "ValueNotSpecifiedForWhereObject",
                "InvalidArgument",
            )
        if self.block is None and self.operator is None and call.has("Value"):
            call.fail(
                "Cannot process the command because no operator is specified. Specify an operator.",
                "OperatorNotSpecified",
                "InvalidArgument",
            )

    def process(self) -> None:
        call = self.call
        if not call.expects_input and "inputobject" not in call.bound:
            return
        item = call.bound.get("inputobject")
        if self.block is not None:
            keep = Underbar(call.scope)
            try:
                passes = to_bool(self.block.value(item))
            finally:
                keep.restore()
        else:
            passes = self._compare(item)
        if passes:
            call.stage.out(item)

    def _compare(self, item: Value) -> bool:
        call = self.call
        found = self._property(item)
        if self.operator is None:
            return to_bool(found)
        value = call["Value"]
        if self.operator in ("is", "isnot"):
            value = self._type(value)
        return to_bool(binary(self.operator)(found, value, call.scope))

    def _property(self, item: Value) -> Value:
        call = self.call
        name = call["Property"]
        if item is None:
            return None
        bare = plain(item)
        if isinstance(bare, _Mapping) and bare.has(name):
            return bare.get(name)
        found = find_property(item, name, call.scope)
        if found is None:
            if call.scope.strict >= 2:
                call.error(
                    PSArgumentException(f'The input name "{name}" cannot be resolved to a property.'),
                    "PropertyNotFound",
                    "InvalidArgument",
                    item,
                )
            return None
        return found[0]

    def _type(self, value: Value) -> DotNetType:
        bare = plain(value)
        if isinstance(bare, DotNetType):
            return bare
        text = self.call.text(bare)
        return find_type(text.strip("[]") if text.startswith("[") else text)


__all__ = ["NOTHING", "Refusal", "ScriptBlock", "get_member"]
