"""Delegates (Func, Action, Predicate and the named ones), made from script blocks by casting; and Nullable[T]."""

from __future__ import annotations

from collections.abc import Sequence

from winboot_lab.engine.convert import CONVERTERS, NOT_CONVERTED, convert, converts
from winboot_lab.engine.dotnet import VALUE_TYPE, DotNetType, Runtime, dotnet, generic
from winboot_lab.engine.values import NOTHING, Instance, ScriptBlock, Value


class Delegate(Instance):
    """A delegate over a script block."""

    def __init__(self, dotnet_type: DotNetType, block: ScriptBlock) -> None:
        self.dotnet_type = dotnet_type
        self.block = block

    def call(self, runtime: Runtime, arguments: Sequence[Value]) -> Value:
        """Run the block with these arguments."""
        result = runtime.call(self.block, list(arguments))
        return None if result is NOTHING else result


DELEGATE = dotnet("System.Delegate")
MULTICAST = dotnet("System.MulticastDelegate", base=DELEGATE)


def _declare(name: str) -> DotNetType:
    made = dotnet(name, base=MULTICAST)

    @converts(made)
    def from_block(value: Value) -> Value:
        return Delegate(made, value) if isinstance(value, ScriptBlock) else NOT_CONVERTED

    return made


@converts(DELEGATE)
def _any_delegate(value: Value) -> Value:
    return Delegate(DELEGATE, value) if isinstance(value, ScriptBlock) else NOT_CONVERTED


def _declare_generic(name: str) -> None:
    def make(arguments: tuple[DotNetType, ...]) -> DotNetType:
        text = ",".join(argument.name for argument in arguments)
        made = DotNetType(f"{name}`{len(arguments)}[{text}]", base=MULTICAST, arguments=arguments)

        @converts(made)
        def from_block(value: Value) -> Value:
            return Delegate(made, value) if isinstance(value, ScriptBlock) else NOT_CONVERTED

        return made

    generic(name, make)


def _nullable(arguments: tuple[DotNetType, ...]) -> DotNetType:
    made = DotNetType(
        f"System.Nullable`1[{arguments[0].name}]", base=VALUE_TYPE, kind="value", arguments=arguments
    )
    CONVERTERS[made] = lambda value: convert(value, arguments[0])
    return made


generic("System.Nullable", _nullable)
for _name in ("Func", "Action", "Predicate", "Converter", "Comparison"):
    _declare_generic("System." + _name)
for _name in (
    "System.Action",
    "System.Text.RegularExpressions.MatchEvaluator",
    "System.Net.Security.RemoteCertificateValidationCallback",
):
    _declare(_name)
