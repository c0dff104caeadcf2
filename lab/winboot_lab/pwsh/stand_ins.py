"""C# for what touches the machine: a class for each .NET type and each cmdlet, with the members that the lab declares.

A member hands its arguments to the lab and gives what comes back. Overloads, parameter types, enums and properties are the
declared ones, so it is the real engine that chooses an overload, converts an argument and refuses what fits none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from winboot_lab.engine import run as _run  # declares the types
from winboot_lab.engine.dotnet import DotNetType, Method, Overload, Property, Slot, every_type, lookup
from winboot_lab.engine.types import entry, hcn, hns, layer, privilege
from winboot_lab.windows.door import ALL_SETS, CommandSignature, Parameter

_LOADED = _run

_FAMILIES: Final = (
    "Microsoft.Win32.",
    "System.Diagnostics.",
    "System.IO.",
    "System.Net.",
    "System.Security.",
)
# What only computes, or what both sides exchange by its text: the real ones are used.
_REAL: Final = frozenset(
    {
        "System.IO.StringReader",
        "System.IO.StringWriter",
        "System.Net.IPAddress",
        "System.Net.IPEndPoint",
        "System.Net.NetworkCredential",
        "System.Net.WebUtility",
        "System.Net.Mail.MailAddress",
        "System.Net.Security.RemoteCertificateValidationCallback",
        "System.Net.Sockets.SocketError",
        "System.Net.WebExceptionStatus",
        "System.Security.SecureString",
    }
)
_MORE: Final = (
    "System.Environment",
    "System.Threading.Mutex",
    "System.Threading.Thread",
    "System.Threading.WaitHandle",
)
# The engine's own short names for types that have stand-ins here.
BUILT_IN: Final = ("X509Certificate",)

_PLAIN: Final = {
    "System.Object": "object",
    "System.String": "string",
    "System.Boolean": "bool",
    "System.Int32": "int",
    "System.Int64": "long",
    "System.Char": "char",
    "System.Byte": "byte",
    "System.Double": "double",
    "System.UInt32": "uint",
    "System.UInt64": "ulong",
    "System.Int16": "short",
}
_KNOWN: Final = frozenset(
    {
        "System.DateTime",
        "System.TimeSpan",
        "System.Guid",
        "System.Uri",
        "System.Version",
        "System.Type",
        "System.Text.Encoding",
        "System.Security.SecureString",
        "System.Net.IPAddress",
        "System.StringComparison",
        "System.EnvironmentVariableTarget",
        "System.Collections.IDictionary",
        "System.Globalization.CultureInfo",
    }
)


def stand_ins() -> dict[str, DotNetType]:
    """The types that have a stand-in, by full name."""
    found = {
        kind.name: lookup(kind.name) or kind
        for kind in every_type()
        if (kind.name.startswith(_FAMILIES) or kind.name in _MORE)
        and kind.name not in _REAL
        and not kind.name.endswith("Exception")
        and not any(sign in kind.name for sign in "`[+_")
    }
    for kind in (hns.HNS, hcn.HCN, layer.LAYER, entry.ENTRY, privilege.PRIVILEGE):
        found[kind.name] = kind
    return found


def csharp(commands: Iterable[CommandSignature]) -> str:
    """The source of all stand-ins, and of the cmdlets among these commands."""
    types = stand_ins()
    parts = [_enum(kind) if kind.kind == "enum" else _Class(kind, types).text for kind in types.values()]
    parts.extend(_cmdlet(signature) for signature in commands if signature.kind == "Cmdlet")
    return "\n".join(parts)


def class_name(name: str) -> str:
    """The stand-in's name as reflection spells it."""
    return f"Stand.{name}"


def _enum(kind: DotNetType) -> str:
    space, _, short = kind.name.rpartition(".")
    constants = ", ".join(f"@{name} = {number}" for name, number in kind.constants.items())
    under = _PLAIN[kind.underlying.name] if kind.underlying is not None else "int"
    flags = "[global::System.Flags] " if kind.flags else ""
    return f"namespace Stand.{space} {{ {flags}public enum {short} : {under} {{ {constants} }} }}"


class _Class:
    """One class: its members in C#."""

    def __init__(self, kind: DotNetType, types: dict[str, DotNetType]) -> None:
        self.kind = kind
        self._types = types
        self._seen: set[str] = set()
        self.space, _, self.short = kind.name.rpartition(".")
        base = kind.base
        while base is not None and base.name == kind.name:  # a kind of its own for a process's streams, say
            base = base.base
        self.base = f"Stand.{base.name}" if base is not None and base.name in types else "Lab.Kept"
        lines = [*self._constructors()]
        # The lab has some types twice: the readers of a process's output are StreamReaders that know less, and one thing more.
        for one in [
            kind,
            *(other for other in every_type() if other.name == kind.name and other is not kind),
        ]:
            lines.extend(self._members(one.members, static=False))
            lines.extend(self._members(one.statics, static=True))
        body = "\n    ".join(lines)
        self.text = f"namespace Stand.{self.space} {{ public class {self.short} : global::{self.base}\n{{\n    {body}\n}} }}"

    def _constructors(self) -> Iterator[str]:
        yield f"protected internal {self.short}(Lab.Tag tag) : base(tag) {{ }}".replace(
            "(Lab.", "(global::Lab."
        )
        for number, overload in enumerate(self.kind.constructors.overloads):
            for slots in _shapes(overload):
                head, given, back = self._parameters(slots)
                if self._again(".ctor", slots):
                    continue
                ask = f'(long)global::Lab.Wire.Now.Ask("new", "{self.kind.name}", null, {number}, all)'
                yield (
                    f"public {self.short}({head}) : base(global::Lab.Tag.Any) "
                    f"{{ object[] all = {given}; Handle = {ask}; {back} }}"
                )

    def _members(self, table: dict[str, Method | Property], *, static: bool) -> Iterator[str]:
        for member in table.values():
            if not member.name.isidentifier() or member.name == self.short:
                continue
            if isinstance(member, Property):
                yield from self._property(member, static=static)
            else:
                for number, overload in enumerate(member.overloads):
                    yield from self._method(member, number, overload, static=static)

    def _property(self, member: Property, *, static: bool) -> Iterator[str]:
        if member.name.lower() in self._seen or any(
            member.name.lower() in step.members
            for step in list(self.kind.lineage())[1:]
            if step.name in self._types
        ):
            return
        self._seen.add(member.name.lower())
        word = "static " if static else ""
        target = f'"{self.kind.name}"' if static else "Handle"
        read = "get" if static else "read"
        name = self._type(member.type_name) if member.set is not None else "object"
        ask = f'global::Lab.Wire.Now.Ask("{read}", {target}, "{member.name}", 0, new object[0])'
        text = f"get {{ return {_cast(name, ask)}; }}"
        if member.set is not None:
            write = "set" if static else "write"
            text += f' set {{ global::Lab.Wire.Now.Ask("{write}", {target}, "{member.name}", 0, new object[] {{ value }}); }}'
        yield f"public {word}{name} @{member.name} {{ {text} }}"

    def _method(self, member: Method, number: int, overload: Overload, *, static: bool) -> Iterator[str]:
        if member.name in ("ToString", "Equals", "GetHashCode", "GetType"):
            return
        word = "static " if static else ""
        new = "" if static else "new " if self._inherited(member.name) else ""
        target = f'"{self.kind.name}"' if static else "Handle"
        kind = "static" if static else "call"
        for slots in _shapes(overload):
            if self._again(member.name, slots):
                continue
            head, given, back = self._parameters(slots)
            ask = f'global::Lab.Wire.Now.Ask("{kind}", {target}, "{member.name}", {number}, all)'
            if overload.void:
                yield f"public {new}{word}void @{member.name}({head}) {{ object[] all = {given}; {ask}; {back} }}"
            else:
                yield (
                    f"public {new}{word}object @{member.name}({head}) "
                    f"{{ object[] all = {given}; object answer = {ask}; {back} return answer; }}"
                )

    def _inherited(self, name: str) -> bool:
        return any(
            name.lower() in step.members for step in list(self.kind.lineage())[1:] if step.name in self._types
        )

    def _again(self, name: str, slots: list[Slot]) -> bool:
        """Two overloads may come to the same C#, where a parameter's type has no stand-in; the first one stays."""
        key = f"{name.lower()}({','.join(self._type(slot.type_name) for slot in slots)})"
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _parameters(self, slots: list[Slot]) -> tuple[str, str, str]:
        heads, given, back = [], [], []
        for place, slot in enumerate(slots):
            name = self._type(slot.type_name)
            prefix = "ref " if slot.by_reference else "params " if slot.spread else ""
            heads.append(f"{prefix}{name} @{slot.name}")
            given.append(f"@{slot.name}")
            if slot.by_reference:
                back.append(f"@{slot.name} = {_cast(name, f'all[{place}]')};")
        return ", ".join(heads), f"new object[] {{ {', '.join(given)} }}", " ".join(back)

    def _type(self, name: str) -> str:
        if name.endswith("[]"):
            return self._type(name[:-2]) + "[]"
        found = lookup(name)
        if found is None:
            return "object"
        if found.name in _PLAIN:
            return _PLAIN[found.name]
        if found.name in self._types:
            return f"global::Stand.{found.name}"
        return f"global::{found.name}" if found.name in _KNOWN else "object"


def _cast(name: str, value: str) -> str:
    if name == "object":
        return value
    return f"global::System.Management.Automation.LanguagePrimitives.ConvertTo<{name}>({value})"


def _shapes(overload: Overload) -> Iterator[list[Slot]]:
    """The overload with each number of optional parameters left out."""
    slots = list(overload.slots)
    yield slots
    while slots and slots[-1].optional:
        slots = slots[:-1]
        yield slots


# -- cmdlets of the machine


_PARAMETERS: Final = {
    **_PLAIN,
    "System.Management.Automation.SwitchParameter": "global::System.Management.Automation.SwitchParameter",
    "System.TimeSpan": "global::System.TimeSpan",
    "System.DateTime": "global::System.DateTime",
    "System.Collections.Hashtable": "global::System.Collections.Hashtable",
    "System.Collections.IDictionary": "global::System.Collections.IDictionary",
    "System.UInt16": "ushort",
    "System.Guid": "global::System.Guid",
    "System.Version": "global::System.Version",
}


def parameter_type(name: str) -> str:
    """The C# type of a command's parameter; one that only Windows' modules have is an object."""
    if name.endswith("[]"):
        return parameter_type(name[:-2]) + "[]"
    return _PARAMETERS.get(name, "object")


def _cmdlet(signature: CommandSignature) -> str:
    verb, _, noun = signature.name.partition("-")
    more = (
        f', DefaultParameterSetName = "{signature.default_set}"' if signature.default_set != ALL_SETS else ""
    )
    if signature.should_process:
        more += ", SupportsShouldProcess = true"
    body = "\n    ".join(_declared(parameter) for parameter in signature.parameters)
    return (
        f'namespace Stand.Cmdlets {{ [global::System.Management.Automation.Cmdlet("{verb}", "{noun}"{more})] '
        f"public sealed class {verb}{noun}Command : global::Lab.MachineCmdlet\n{{\n    {body}\n}} }}"
    )


def _declared(parameter: Parameter) -> str:
    marks = [f"[global::System.Management.Automation.Parameter({words})]" for words in places(parameter)]
    if parameter.aliases:
        marks.append(f"[global::System.Management.Automation.Alias({_list(parameter.aliases)})]")
    if parameter.words:
        marks.append(f"[global::System.Management.Automation.ValidateSet({_list(parameter.words)})]")
    return f"{''.join(marks)} public {parameter_type(parameter.type_name)} @{parameter.name} {{ get; set; }}"


def places(parameter: Parameter, true: str = "true", quote: str = '"') -> Iterator[str]:
    """The arguments of a [Parameter()] for each set it is in."""
    for place in parameter.sets:
        words = [] if place.name == ALL_SETS else [f"ParameterSetName = {quote}{place.name}{quote}"]
        if place.position is not None:
            words.append(f"Position = {place.position}")
        words.extend(
            f"{name} = {true}"
            for name, given in (
                ("Mandatory", place.mandatory),
                ("ValueFromPipeline", place.by_value),
                ("ValueFromPipelineByPropertyName", place.by_name),
            )
            if given
        )
        yield ", ".join(words)


def _list(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)
