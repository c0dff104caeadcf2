"""The bridge to a real PowerShell, as far as it goes without one: values on the wire, C# and commands from declarations."""

import json
import re
import uuid
from typing import Any

import pytest
from winboot_lab.engine.dotnet import Method, lookup
from winboot_lab.engine.moments import UTC, DateTime, TimeSpan
from winboot_lab.engine.values import (
    Array,
    ByteArray,
    Char,
    Hashtable,
    Int64,
    PSCustomObject,
    SecureString,
    UInt32,
    Version,
    enum_value,
)
from winboot_lab.language.parser import parse
from winboot_lab.pwsh.commands import modules
from winboot_lab.pwsh.stand_ins import csharp, stand_ins
from winboot_lab.pwsh.wire import Cabinet
from winboot_lab.windows import cmdlets
from winboot_lab.windows.call import CMDLETS
from winboot_lab.windows.door import CommandSignature, InSet, Parameter

_DECLARED = cmdlets  # importing it fills CMDLETS

VALUES: list[Any] = [
    None,
    True,
    7,
    'a \u00fc \U0001f600 "\\\n',
    Int64(2**40),
    UInt32(2**31),
    2.5,
    Char("x"),
    ByteArray(b"\x00\xff"),
    DateTime(638_000_000_000_000_000, UTC),
    TimeSpan(-5),
    uuid.UUID(int=5),
    Version(1, 2),
    Array([1, Array(["a"]), None]),
    enum_value("System.IO.FileMode", "Append"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_went(value: Any):
    cabinet = Cabinet()

    back = cabinet.from_json(json.loads(json.dumps(cabinet.to_json(value))))

    assert type(back) is type(value)
    assert back == value


def test_tables_and_objects_keep_their_names_and_order():
    cabinet = Cabinet()
    table = Hashtable.of({"Mode": "Look", "n": 1})
    thing = PSCustomObject.of({"b": 1, "a": PSCustomObject.of({"c": None})})

    assert dict(cabinet.from_json(cabinet.to_json(table)).items()) == dict(table.items())
    back = cabinet.from_json(cabinet.to_json(thing))
    assert [name for name, _ in back.items()] == ["b", "a"]
    assert back.get("a").get("c") is None


def test_a_secret_crosses_the_wire_as_a_secret():
    cabinet = Cabinet()

    back = cabinet.from_json(cabinet.to_json(SecureString("hidden")))

    assert isinstance(back, SecureString)
    assert back.secret == "hidden"


def test_an_object_of_the_lab_is_kept_and_comes_back_as_itself():
    cabinet = Cabinet()
    folder = lookup("System.IO.DirectoryInfo")
    assert folder is not None
    kept = object()

    number = cabinet.number(kept)

    assert cabinet.number(kept) == number
    assert cabinet.from_json({"i": str(number)}) is kept


def test_every_overload_of_a_stand_in_is_there():
    kind = stand_ins()["System.IO.File"]
    text = csharp([])
    body = text.partition("public class File ")[2].partition("namespace ")[0]

    for member in kind.statics.values():
        assert isinstance(member, Method)
        assert len(re.findall(rf" @{member.name}\(", body)) >= 1, member.name
    assert 'Ask("static", "System.IO.File", "Copy", 1, all)' in body


def test_an_enum_keeps_its_numbers():
    assert "public enum FileMode : int { @CreateNew = 1, @Create = 2, @Open = 3," in csharp([])


def test_a_command_has_its_sets_aliases_and_words():
    signature = CommandSignature(
        "Get-Thing",
        "Things",
        (
            Parameter("Name", "System.String[]", ("N",), sets=(InSet("ByName", True, 0, True, True),)),
            Parameter("Kind", "System.String", words=("A", "B")),
        ),
        default_set="ByName",
        kind="Function",
        should_process=True,
    )

    made = modules([signature])

    assert "[CmdletBinding(DefaultParameterSetName = 'ByName', SupportsShouldProcess = $true)]" in made
    assert (
        "[Parameter(ParameterSetName = 'ByName', Position = 0, Mandatory = $true, ValueFromPipeline = $true, "
        "ValueFromPipelineByPropertyName = $true)][Alias('N')] [string[]] ${Name}"
    ) in made
    assert "[ValidateSet('A', 'B')] [string] ${Kind}" in made


def test_the_modules_of_all_commands_are_a_script_that_parses():
    signatures = [cmdlet.signature for cmdlet in CMDLETS.values()]

    parse(modules(signatures))

    assert {one.name for one in signatures if one.kind == "Function"} <= set(
        re.findall(r"^function (\S+)", modules(signatures), re.MULTILINE)
    )


def test_each_cmdlet_of_the_machine_is_a_class():
    signatures = [cmdlet.signature for cmdlet in CMDLETS.values()]
    text = csharp(signatures)

    for signature in signatures:
        made = f"public sealed class {signature.name.replace('-', '')}Command" in text
        assert made == (signature.kind == "Cmdlet"), signature.name
