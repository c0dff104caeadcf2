"""The rules on small texts, and the library, the steps and the frame held to them."""

from __future__ import annotations

import re
from functools import cache

import pytest
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import Assignment, FunctionDefinition, Hashtable, Variable, walk

from tests.every import assert_none_wrong
from tests.powershell.style import Remark, Switches, remarks, switches_of
from tests.steps.builders import ROOT, a_spec_of
from winboot.script.library import functions, library, library_files, summary, templates_root
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers, probes, render
from winboot.script.steps import STEPS

PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))
# A function with a value, a switch and a second value.
GET_ONE: Switches = {"get-one": frozenset({"deep"})}
# Functions that are called with one table or by a computed name, as their siblings are, and do not read all of it.
ONE_SIGNATURE = {
    ("Get-AzureStateDifference", "Network"),
    ("Get-FolderDifference", "Ours"),
    ("Get-EndpointVip", "Known"),
}


def of_rule(rule: str, text: str) -> list[Remark]:
    """What is to be said about a text by one rule."""
    return [one for one in remarks(text) if one.rule == rule]


@pytest.mark.parametrize("name", ["Get-Items", "Set-Routes", "Remove-SERVICES", "Read-Metadata"])
def test_a_plural_noun_is_named(name: str) -> None:
    assert of_rule("plural", f"\nfunction {name} {{ 1 }}") == [Remark("plural", name, 2)]


@pytest.mark.parametrize("name", ["Get-Address", "Get-Status", "Get-Axis", "Set-ClientDns", "Get-Item"])
def test_a_singular_noun_that_ends_with_s_is_not(name: str) -> None:
    assert of_rule("plural", f"function {name} {{ 1 }}") == []


def test_a_parameter_that_nothing_reads_is_named_with_its_line() -> None:
    text = "function Get-One {\n    param([string]$Used,\n        [string]$Idle)\n    $used\n}"
    assert of_rule("unread", text) == [Remark("unread", "Get-One", 3, "Idle")]


@pytest.mark.parametrize(
    "body", ["(& { $One })", '"a $One b"', "@PSBoundParameters", "f @One", "$One = 1; $One", "{ $One }"]
)
def test_a_parameter_may_be_read_in_a_nested_block_in_a_text_or_with_all_others(body: str) -> None:
    assert of_rule("unread", f"function Get-One {{ param($One) program.exe {body} }}") == []


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("Get-One 'a'", "'a'"),
        ("Get-One -Name 'a' $b", "$b"),
        ("Get-One -Deep $a", "$a"),
        ("Get-One -Deep:$true (Get-Item -Path 'x')", "(Get-Item -Path 'x')"),
        ("GET-ONE @rest 5", "5"),
        ('"$(Get-One a)"', "a"),
        ("@{ a = { Get-One a } }", "a"),
        ("Join-Path 'a' -ChildPath 'b'", "'a'"),
        ("Where-Object { $_ } 'a'", "'a'"),
    ],
)
def test_an_argument_without_a_name_is_named_with_its_line(call: str, argument: str) -> None:
    found = remarks(f"\n{call}", GET_ONE)

    assert [(one.rule, one.line, one.subject) for one in found] == [("positional", 2, argument)]


@pytest.mark.parametrize(
    "call",
    [
        "Get-One -Name 'a' -Deep -Other $b",
        "Get-One @rest",
        "Get-One -Name @('a', 'b')",
        "Get-One -Deep:$a",
        "'a' | Where-Object { $_ } | ForEach-Object { $_ }",
        "sc.exe stop kubelet",
        "& $block 5",
    ],
)
def test_names_splats_a_pipeline_block_and_arguments_of_programs_pass(call: str) -> None:
    assert remarks(call, GET_ONE) == []


def test_a_function_of_the_same_text_is_one_of_the_library() -> None:
    text = "function Get-Two { param($One) $One }\nGet-Two 1"

    assert [(one.name, one.line) for one in of_rule("positional", text)] == [("Get-Two", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "function Get-One {\n    # The one.\n    1\n}",
        "function Get-One($One) { # The one.\n $One }",
        "function Get-One {\n    <# The one. #>\n    param([int]$One)\n    $One }",
    ],
)
def test_a_function_whose_first_line_is_a_comment_has_one(text: str) -> None:
    assert of_rule("uncommented", text) == []


@pytest.mark.parametrize(
    "text", ["# The one.\nfunction Get-One { 1 }", "function Get-One {\n    1\n    # It is 1.\n}"]
)
def test_a_comment_elsewhere_does_not_travel_with_the_function_or_comes_too_late(text: str) -> None:
    assert [one.name for one in of_rule("uncommented", text)] == ["Get-One"]


def test_a_parameter_without_a_type_is_named_with_its_line() -> None:
    text = "function Get-One {\n    param([Parameter(Mandatory)]$One,\n        [object]$Other)\n    $One, $Other\n}"

    assert of_rule("untyped", text) == [Remark("untyped", "Get-One", 2, "One")]


@cache
def library_switches() -> Switches:
    return {
        name: switches for text in library_files().values() for name, switches in switches_of(text).items()
    }


def test_the_library_is_held_to_the_rules() -> None:
    assert_none_wrong(
        {
            file: [
                one
                for one in remarks(text, library_switches())
                if (one.name, one.subject) not in ONE_SIGNATURE
            ]
            for file, text in library_files().items()
        }
    )


# One sentence, which an administrator reads in the contents of the library.
SUMMARY = re.compile(r"[A-Z][^.]{10,88}\.")


def test_each_library_file_begins_with_a_summary_of_one_sentence() -> None:
    assert [name for name, text in library_files().items() if not SUMMARY.fullmatch(summary(text))] == []


def test_the_contents_of_the_library_have_the_summary_of_each_file() -> None:
    contents = library().text.partition("\n# ---- ")[0]

    assert [name for name, text in library_files().items() if summary(text) not in contents] == []


@pytest.mark.parametrize("text", ["function Get-One {", "# The one.", "$one # SUMMARY Gets one thing.", ""])
def test_a_file_without_a_summary_in_its_first_line_has_none(text: str) -> None:
    assert summary(f"{text}\n# SUMMARY Gets one thing.\n") == ""


@cache
def frame_and_steps(profile: str, *, undo: bool) -> str:
    """A rendered script without its library."""
    spec = a_spec_of(profile, "2019" if profile == "ltsc-2019" else "2022")
    return render(make_plan(spec, STEPS), spec, undo=undo).node_part


def scripts_of_profiles() -> dict[str, str]:
    """The scripts of join and remove of each shipped profile. Upgrade, rollback and repair run the script of join."""
    return {
        f"{profile}, {'remove' if undo else 'join'}": frame_and_steps(profile, undo=undo)
        for profile in PROFILES
        for undo in (False, True)
    }


def test_steps_and_frame_name_the_arguments_that_they_pass() -> None:
    assert_none_wrong(
        {
            name: [one for one in remarks(text, library_switches()) if one.rule == "positional"]
            for name, text in scripts_of_profiles().items()
        }
    )


@pytest.mark.parametrize("profile", ["minimal", "ltsc-2019"])
def test_a_step_that_can_only_look_has_no_change(profile: str) -> None:
    script = frame_and_steps(profile, undo=False)

    assert re.findall(r"^ *Change = \{\n(?: *#.*\n)*? *\}", script, re.MULTILINE) == []
    assert script.count("Look = {") - script.count("Change = {") == 2


def values_that_nothing_reads(script: str) -> list[tuple[str, str]]:
    """The variables of each step's values block that no other block of the step reads."""
    found: list[tuple[str, str]] = []
    for table in (node for node in walk(parse(script)) if isinstance(node, Hashtable)):
        parts = {key.extent.text: value for key, value in table.pairs}
        if "Values" not in parts:
            continue
        sets = [
            node.target.name
            for node in walk(parts["Values"])
            if isinstance(node, Assignment) and isinstance(node.target, Variable)
        ]
        others = (value for key, value in parts.items() if key != "Values")
        read = {node.name for other in others for node in walk(other) if isinstance(node, Variable)}
        found += [(parts["Name"].extent.text, name) for name in sets if name not in read]
    return found


def test_a_value_that_nothing_reads_is_named() -> None:
    step = "@{ Name = 'one'; Values = { $a = 1; $b = 2 }; Undo = { $b } }"

    assert values_that_nothing_reads(step) == [("'one'", "a")]


def test_no_script_has_values_that_nothing_reads() -> None:
    assert_none_wrong({name: values_that_nothing_reads(text) for name, text in scripts_of_profiles().items()})


def test_the_look_of_verify_has_no_values_that_nothing_reads() -> None:
    assert_none_wrong({profile: unread_by_verify(profile) for profile in PROFILES})


def unread_by_verify(profile: str) -> list[str]:
    text = probes(a_spec_of(profile, "2019" if profile == "ltsc-2019" else "2022"))
    _, _, rest = text.partition("$script:Wanted = ")
    (table, *_) = (node for node in walk(parse(f"$wanted = {rest}")) if isinstance(node, Hashtable))
    keys = [key.extent.text for key, _ in table.pairs]

    assert "services" in keys
    return [key for key in keys if f"$script:Wanted.{key}" not in text]


def test_functions_outside_the_library_have_singular_nouns() -> None:
    assert_none_wrong(
        {
            path.name: of_rule("plural", path.read_text(encoding="utf-8"))
            for path in templates_root().glob("*.ps1")
        }
    )


@pytest.mark.parametrize("text", [helpers().restart, helpers().boot_id], ids=["restart", "boot id"])
def test_the_helpers_name_the_arguments_that_they_pass(text: str) -> None:
    assert [one for one in remarks(text) if one.rule == "positional"] == []


def test_the_pattern_of_the_tool_cuts_the_functions_that_the_parser_finds() -> None:
    """The tool has no parser: `winboot.script.library` cuts helper scripts by the layout of the files."""
    parsed = {
        node.name: f"{node.extent.text}\n"
        for text in library_files().values()
        for node in walk(parse(text))
        if isinstance(node, FunctionDefinition)
    }

    assert {name: one.text for name, one in functions().items()} == parsed
