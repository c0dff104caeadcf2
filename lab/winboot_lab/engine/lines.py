"""Objects as the lines that PowerShell prints: simple values and errors; what would be a table or a list is refused."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.exceptions import ErrorRecord
from winboot_lab.engine.objects import InformationRecord, _Message
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.texts import to_text
from winboot_lab.engine.values import NOTHING, NUMBER_CLASSES, Char, EnumValue, enumerate_value, plain

Value = Any

_SIMPLE = NUMBER_CLASSES | {str, bool, Char}


def lines_of(value: Value, scope: Scope) -> list[str]:
    """The lines that the default formatting of one object gives."""
    bare = plain(value)
    if bare is None or bare is NOTHING:
        return []
    if type(bare) is str:
        return bare.replace("\r\n", "\n").split("\n")
    if type(bare) in _SIMPLE or isinstance(bare, EnumValue):
        return [to_text(bare, scope)]
    items = enumerate_value(bare)
    if items is not None:
        return [line for item in items for line in lines_of(item, scope)]
    if isinstance(bare, (InformationRecord, _Message)):
        return str(bare).split("\n")
    if isinstance(bare, ErrorRecord):
        return error_lines(bare)
    raise Refusal("value", f"{type(bare).__name__} as text", "its default formatting")


def error_lines(record: ErrorRecord) -> list[str]:
    """An error as the host shows it: command, message, position, category and id."""
    from winboot_lab.engine.types.failures import CategoryInfo

    if record.id == "NativeCommandErrorMessage":
        return [record.message]
    invocation = record.invocation
    who = ""
    if invocation is not None:
        command = invocation.command
        who = invocation.called if invocation.called not in ("", "&", ".") else getattr(command, "name", "")
    text = f"{who} : {record.message}" if who else record.message
    if invocation is not None and invocation.extent is not None:
        text += "\n" + invocation.position_message
    text += f"\n    + CategoryInfo          : {CategoryInfo(record)}"
    text += f"\n    + FullyQualifiedErrorId : {record.id}\n "
    return text.replace("\r\n", "\n").split("\n")
