"""System.Text.RegularExpressions as objects, and WildcardPattern."""

from __future__ import annotations

from winboot_lab.engine import regexes
from winboot_lab.engine.convert import NOT_CONVERTED, converts, to_string
from winboot_lab.engine.dotnet import Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.regexes import Group, Match, Regex, regex
from winboot_lab.engine.types.delegates import Delegate
from winboot_lab.engine.values import STRING, Array, Value, View

_NS = "System.Text.RegularExpressions."
REGEX = dotnet(_NS + "Regex", Regex, accelerators=["regex"])
CAPTURE = dotnet(_NS + "Capture")
GROUP = dotnet(_NS + "Group", Group, base=CAPTURE)
MATCH = dotnet(_NS + "Match", Match, base=GROUP)


@converts(REGEX)
def _to_regex(value: Value) -> Value:
    if type(value) is not str:
        return NOT_CONVERTED
    try:
        return regex(value)
    except ArgumentException as cause:
        from winboot_lab.engine.convert import failure

        raise failure(value, REGEX, "InvalidCastConstructorException", cause) from None


def _needs(text: str | None, name: str = "input") -> str:
    if text is None:
        raise ArgumentNullException(name)
    return text


REGEX.method("ToString()")(lambda self: self.pattern)
REGEX.method("Replace(string input, string replacement)")(
    lambda self, text, new: self.replace(_needs(text), _needs(new, "replacement"))
)


def _evaluate(
    runtime: Runtime, self: Regex, text: str, evaluator: Delegate, count: int = -1, start: int = 0
) -> str:
    return self.replace(_needs(text), lambda found: to_string(evaluator.call(runtime, [found])), count, start)


_EVALUATOR = _NS + "MatchEvaluator"
REGEX.method(f"Replace(string input, {_EVALUATOR} evaluator)", effect=True)(_evaluate)


def _pieces(self: Regex, text: str, count: int = 0) -> Array:
    return Array(self.split(_needs(text), count), STRING)


REGEX.method("Split(string input)")(_pieces)
REGEX.method("Split(string input, int count)")(_pieces)


def _static(name: str, parameters: str, run: Value, *, effect: bool = False) -> None:
    """A static method with a pattern, without and with options."""

    def plain(*arguments: Value) -> Value:
        return run(regexes.IGNORE_CASE * 0, *arguments)

    REGEX.static_method(f"{name}(string input, string pattern{parameters})", effect=effect)(plain)


def _made(pattern: str, options: int) -> Regex:
    return regex(_needs(pattern, "pattern"), options)


_static("IsMatch", "", lambda options, text, pattern: _made(pattern, options).search(_needs(text)).success)
_static("Match", "", lambda options, text, pattern: _made(pattern, options).search(_needs(text)))
_static(
    "Matches",
    "",
    lambda options, text, pattern: MatchCollection(list(_made(pattern, options).matches(_needs(text)))),
)
_static("Split", "", lambda options, text, pattern: _pieces(_made(pattern, options), text))
_static(
    "Replace",
    ", string replacement",
    lambda options, text, pattern, new: _made(pattern, options).replace(
        _needs(text), _needs(new, "replacement")
    ),
)


def _static_evaluate(options: int, runtime: Runtime, text: str, pattern: str, evaluator: Delegate) -> str:
    return _evaluate(runtime, _made(pattern, options), text, evaluator)


_static("Replace", f", {_EVALUATOR} evaluator", _static_evaluate, effect=True)
REGEX.static_method("Escape(string str)")(lambda text: regexes.escape(_needs(text, "str")))

# -- captures, groups, matches

CAPTURE.prop("Index", "int", lambda self: self.index)
CAPTURE.prop("Length", "int", lambda self: len(self.value))
CAPTURE.prop("Value", "string", lambda self: self.value)
CAPTURE.method("ToString()")(lambda self: self.value)
GROUP.prop("Success", "bool", lambda self: self.success)
GROUP.prop("Name", "string", lambda self: self.name)


class MatchCollection(View):
    """Regex.Matches."""

    def __init__(self, items: list[Value]) -> None:
        super().__init__(_NS + "MatchCollection", lambda: items)


class GroupCollection(View):
    """Match.Groups: by number or name."""

    def __init__(self, match: Match) -> None:
        super().__init__(_NS + "GroupCollection", match.groups)
        self.match = match


MATCH.prop("Groups", "object", GroupCollection)


_COLLECTIONS = {name: dotnet(_NS + name) for name in ("MatchCollection", "GroupCollection")}


def _item(self: View, index: int) -> Value:
    items = self.read()
    if isinstance(self, GroupCollection):
        return items[index] if 0 <= index < len(items) else Group(self.match, 10**6)
    if not 0 <= index < len(items):
        raise ArgumentOutOfRangeException("i")
    return items[index]


for _kind in _COLLECTIONS.values():
    _kind.prop("Count", "int", len)
    _kind.method("Item(int i)")(_item)


@_COLLECTIONS["GroupCollection"].method("Item(string groupname)")
def _group_by_name(self: GroupCollection, name: str) -> Value:
    number = self.match.regex.group_number(name)
    return Group(self.match, 10**6) if number is None else _item(self, number)
