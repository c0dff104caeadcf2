"""What several cmdlet families share: CIM instances, their errors, and the way CDXML cmdlets select."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from winboot_lab.windows.call import Call
from winboot_lab.windows.door import Parameter, Plain, Problem, Record, Typed

CIM = "Microsoft.Management.Infrastructure.CimInstance"
CIM_EXCEPTION = "Microsoft.Management.Infrastructure.CimException"
_JOB_EXCEPTION = "Microsoft.PowerShell.Cmdletization.Cim.CimJobException"

T = TypeVar("T")


def instance(class_name: str, properties: dict[str, Plain], *, text: str | None = None) -> Record:
    """A CIM instance of a class."""
    return Record(f"{CIM}#{class_name}", properties, text=text)


def class_of(record: Record) -> str:
    """The CIM class of an instance."""
    return record.type_name.rpartition("#")[2]


def uint32(value: int) -> Typed:
    """A CIM uint32."""
    return Typed("System.UInt32", value & 0xFFFFFFFF)


def uint64(value: int) -> Typed:
    """A CIM uint64."""
    return Typed("System.UInt64", value)


def uint16(value: int) -> Typed:
    """A CIM uint16."""
    return Typed("System.UInt16", value)


def uint8(value: int) -> Typed:
    """A CIM uint8."""
    return Typed("System.Byte", value)


def enum(type_name: str, value: int, text: str) -> Typed:
    """A member of a .NET enum."""
    return Typed(type_name, value, text)


def wildcard(pattern: str) -> Callable[[str], bool]:
    """A PowerShell wildcard as a test, without case. A backtick escapes."""
    out, index = "", 0
    while index < len(pattern):
        char = pattern[index]
        if char == "`" and index + 1 < len(pattern):
            index += 1
            out += re.escape(pattern[index])
        elif char == "*":
            out += ".*"
        elif char == "?":
            out += "."
        elif char == "[" and "]" in pattern[index:]:
            end = pattern.index("]", index)
            out += "[" + pattern[index + 1 : end].replace("\\", "\\\\").replace("^", "\\^") + "]"
            index = end
        else:
            out += re.escape(char)
        index += 1
    matcher = re.compile(out, re.IGNORECASE | re.DOTALL)
    return lambda text: matcher.fullmatch(text) is not None


def has_wildcard(text: str) -> bool:
    """Whether a text is a pattern."""
    return any(c in text for c in "*?[")


def not_found(call: Call, class_name: str, property_name: str, value: str) -> Problem:
    """What a CDXML cmdlet says when a queried property has no match."""
    message = (
        f"No {class_name} objects found with property '{property_name}' equal to '{value}'.  "
        "Verify the value of the property and retry."
    )
    identifier = f"CmdletizationQuery_NotFound_{property_name},{call.command.name}"
    return Problem(message, identifier, "ObjectNotFound", _JOB_EXCEPTION, target=value)


def nothing_fits(call: Call, class_name: str) -> Problem:
    """What a CDXML cmdlet says when several conditions together have no match."""
    message = (
        f"No matching {class_name} objects found by CIM query for instances of the class on the CIM server."
    )
    return Problem(
        message, f"CmdletizationQuery_NotFound,{call.command.name}", "ObjectNotFound", _JOB_EXCEPTION
    )


def windows_error(
    call: Call, code: int, message: str, *, category: str = "NotSpecified", target: str = ""
) -> Problem:
    """A Windows error as CDXML cmdlets report it."""
    return Problem(
        message,
        f"Windows System Error {code},{call.command.name}",
        category,
        CIM_EXCEPTION,
        target=target or None,
    )


def hresult_error(
    call: Call, hresult: int, message: str, *, category: str = "NotSpecified", target: str = ""
) -> Problem:
    """An HRESULT as CIM cmdlets report it."""
    return Problem(
        message,
        f"HRESULT 0x{hresult:08x},{call.command.name}",
        category,
        CIM_EXCEPTION,
        target=target or None,
        hresult=hresult,
    )


def select(
    call: Call,
    things: Iterable[T],
    parameter: str,
    property_name: str,
    class_name: str,
    text: Callable[[T], str],
) -> list[T]:
    """The things whose property is one of a parameter's values; a plain value without a match is an error."""
    everything = list(things)
    if not call.has(parameter):
        return everything
    found: list[T] = []
    for wanted in call.texts(parameter):
        fits = wildcard(wanted)
        matched = [t for t in everything if fits(text(t))]
        if not matched and not has_wildcard(wanted):
            call.fail(not_found(call, class_name, property_name, wanted))
        found.extend(t for t in matched if t not in found)
    return found


def sets(*pairs: Parameter) -> tuple[Parameter, ...]:
    """A tuple of parameters, for signatures that share some."""
    return pairs
