"""Which type a name in a script means: `[int]`, `[IO.File]`, `[Collections.Generic.List[string]]`.

A type that is not declared here is refused.
"""

from __future__ import annotations

from winboot_lab.engine.dotnet import DotNetType, accelerator_of, lookup, parse_type
from winboot_lab.engine.exceptions import RuntimeException
from winboot_lab.engine.refusal import Refusal


def find_type(text: str) -> DotNetType:
    """The type a script's `[text]` means. Raises PowerShell's TypeNotFound, or a Refusal."""

    def plain(name: str) -> DotNetType:
        found = lookup(name.strip())
        if found is None:
            raise not_found(name, text)
        return found

    return parse_type(text, plain)


def try_find_type(text: str) -> DotNetType | None:
    """Like find_type, but None where PowerShell finds no type."""
    try:
        return find_type(text)
    except RuntimeException:
        return None


def not_found(name: str, whole: str) -> RuntimeException | Refusal:
    """What to raise for a name that is not declared: winboot's own types exist once a script has added them."""
    if name.strip().lower().startswith("winboot."):
        return _type_not_found(whole)
    return Refusal("type", name)


def _type_not_found(name: str) -> RuntimeException:
    return RuntimeException(f"Unable to find type [{name}].", "TypeNotFound", "InvalidOperation", name)


def type_text(kind: DotNetType) -> str:
    """A type as `[string]` writes it: its short name if it has one, else the full name; generics with brackets."""
    if kind.kind == "array":
        assert kind.element is not None
        return type_text(kind.element) + "[" + "," * (kind.rank - 1) + "]"
    if kind.arguments:
        head = kind.name.partition("`")[0]
        return f"{head}[{','.join(type_text(argument) for argument in kind.arguments)}]"
    return _PREFERRED.get(kind.name) or accelerator_of(kind) or kind.name


_PREFERRED = {"System.Object": "System.Object", "System.Type": "type", "System.Single": "float"}
