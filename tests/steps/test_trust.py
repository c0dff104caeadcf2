"""winboot starts and believes no file before it has checked which accounts could have put it there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest
from winboot_lab.language.parser import parse
from winboot_lab.language.silent import functions_of
from winboot_lab.language.syntax import (
    Command,
    FunctionDefinition,
    InvokeMember,
    Member,
    ScriptBlockExpression,
    StringConstant,
    Variable,
    walk,
)
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import CHANGE_PERMISSIONS, READ, WRITE, Rule
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit, image_bytes

from tests.steps.bench import Bench, close_folder
from tests.steps.library import call
from winboot.script.library import library_files

# -- there is no other way: the library's syntax trees

READERS = re.compile(
    r"^\[(?:System\.)?(?:IO\.File\]::(?:ReadAll\w+|ReadLines|Open\w*|Copy)|IO\.FileStream\]::new|IO\.StreamReader\]::new)\("
)
STARTERS = re.compile(r"^\[(?:System\.)?Diagnostics\.Process\]::")
READING = {
    "Get-Content",
    "Import-Csv",
    "Import-Clixml",
    "Import-Module",
    "Import-PowerShellDataFile",
    "Select-String",
}
STARTING = {
    "Start-Process",
    "Invoke-Item",
    "Invoke-Expression",
    "Invoke-Command",
    "Start-Job",
    "Invoke-CimMethod",
}


@cache
def functions() -> dict[str, FunctionDefinition]:
    """All functions of the library, by their names."""
    tree = parse("\n".join(library_files().values()))
    return {one.name: one for one in functions_of(tree).values()}


def calls(function: FunctionDefinition) -> set[str]:
    """The commands that a function names."""
    return {
        node.elements[0].value
        for node in walk(function)
        if isinstance(node, Command) and isinstance(node.elements[0], StringConstant)
    }


def members(function: FunctionDefinition) -> Iterator[str]:
    """The texts of its calls into .NET."""
    return (node.extent.text for node in walk(function) if isinstance(node, InvokeMember))


def having(pattern: re.Pattern[str]) -> set[str]:
    """The functions that call into .NET so."""
    return {name for name, one in functions().items() if any(pattern.search(text) for text in members(one))}


def callers(of: str) -> set[str]:
    """The functions that call a function."""
    return {name for name, one in functions().items() if of in calls(one)}


def test_one_function_starts_programs_and_it_asks_whose_they_are() -> None:
    assert having(STARTERS) == {"Start-Program"}
    assert "Assert-OwnProgram" in calls(functions()["Start-Program"])
    assert callers("Start-Program") == {"Invoke-Program", "Start-ProgramWithoutWait"}


def test_no_function_has_another_way_to_start_or_to_read_something() -> None:
    for name, one in functions().items():
        assert not calls(one) & (STARTING | READING), name
        for node in walk(one):
            if not isinstance(node, Command):
                continue
            first = node.elements[0]
            # A script block of winboot, a function by its name, a cmdlet: never a path.
            assert isinstance(first, Variable | Member | ScriptBlockExpression | StringConstant), (
                name,
                node.extent.text,
            )
            if isinstance(first, StringConstant):
                assert re.fullmatch(r"[A-Z][A-Za-z]+-[A-Za-z0-9]+", first.value), (name, first.value)


def test_what_opens_a_file_to_read_it_asks_whose_it_is_or_keeps_it_unread() -> None:
    """Open-FlushedFile writes, Receive-Rest adds to a download of the private folder, whose hash is compared, and
    Save-FileToDisk flushes; Read-MetadataText reads what Azure answers."""
    assert having(READERS) == {
        "Open-SharedFile",
        "Open-FlushedFile",
        "Save-FileToDisk",
        "Receive-Rest",
        "Invoke-LogRotation",
        "Read-MetadataText",
    }
    assert callers("Open-SharedFile") == {
        "Get-PathHash",
        "Read-AnyFileByte",
        "Copy-WholeFile",
        "Get-LogSize",
        "Read-LogEnd",
    }
    assert "Get-PathDoubt" in calls(functions()["Get-LogSize"])
    assert "Get-LogSize" in calls(functions()["Read-LogEnd"]), "a log of size 0 is not opened"
    assert callers("Read-AnyFileByte") == {"Read-FileByte", "Save-FormerFile"}
    assert callers("Copy-WholeFile") == {
        "Save-FormerFile",
        "Restore-File",
        "Copy-UnplacedProgram",
        "Install-OneArtifact",
        "Receive-Rest",
    }
    for name in ("Get-PathHash", "Get-KnownHash", "Read-FileByte"):
        assert "Test-OwnPath" in calls(functions()[name]), name
    assert {"Get-PathDoubt", "Get-FolderDoubt"} <= calls(functions()["Invoke-LogRotation"])


def test_a_service_is_started_after_its_programs_were_looked_at() -> None:
    """The other one starts Windows' own hns."""
    assert callers("Start-Service") == {"Start-CurrentService", "Get-HnsObject"}
    assert "Get-ServiceDoubt" in calls(functions()["Start-CurrentService"]) & calls(
        functions()["Start-FailedService"]
    )


# -- what an ordinary user can do before the first look


@pytest.fixture
def alice(bench: Bench) -> Token:
    bench.machine.accounts.add("alice", administrator=False)
    return bench.machine.accounts.token("alice")


class Spy:
    """A program that notes the account that started it."""

    def __init__(self) -> None:
        self.started_by: list[str] = []

    def run(self, machine: object, process: Process, *_: object) -> Exit:
        self.started_by.append(process.token.name)
        return Exit(0, b"{}")


@pytest.mark.parametrize(
    ("step", "program", "settings"),
    [
        ("registration", r"C:\k\versions\kubectl-1.36.5\kubectl.exe", r"C:\k\kubeconfig"),
        ("pause-image", r"C:\k\versions\crictl-1.36.0\crictl.exe", r"C:\k\crictl.yaml"),
    ],
)
def test_a_look_does_not_start_a_program_of_an_ordinary_user(
    bench: Bench, alice: Token, step: str, program: str, settings: str
):
    """Every user may make C:\\k on a bare machine."""
    spy = Spy()
    bench.machine.programs.add("theirs", spy)
    files = bench.machine.files
    files.make_directory(program.rpartition("\\")[0], alice)
    files.write(program, image_bytes("theirs"), alice)
    files.write(settings, b"users: []\n", alice)

    told = bench.look(step)

    assert spy.started_by == []
    assert told.step(step)["state"] != "failed"
    if step == "registration":
        (notice,) = [text for what, text in told.differences(step).items() if settings in what]
        assert alice.sid in (notice[0] or "")


def doubt(bench: Bench, path: str, *, program: bool = False) -> str:
    """What Get-PathDoubt says; an empty text where nothing is doubted."""
    found = call(bench, f"Get-PathDoubt -Path '{path}'{' -Program' if program else ''}").objects
    return str(found[0]) if found and found[0] is not None else ""


FILE = r"C:\a\b\tool.exe"


@pytest.fixture
def own(bench: Bench) -> str:
    """A program in folders that only administrators may change."""
    files = bench.machine.files
    close_folder(files, r"C:\a")
    files.make_directory(r"C:\a\b")
    files.write(FILE, b"x")
    return FILE


def test_a_file_of_administrators_is_believed(bench: Bench, own: str):
    assert doubt(bench, own) == doubt(bench, own, program=True) == ""
    assert doubt(bench, r"C:\nowhere\at\all") == ""


@pytest.mark.parametrize("path", [r"C:\a", r"C:\a\b", FILE])
@pytest.mark.parametrize("how", ["owner", "rules"])
def test_an_owner_or_a_writer_at_any_height_is_a_doubt(
    bench: Bench, alice: Token, own: str, path: str, how: str
):
    acl = bench.machine.files.need(path)[1].acl
    if how == "owner":
        acl.owner = alice.sid
    else:
        acl.explicit.append(Rule(alice.sid, CHANGE_PERMISSIONS))

    assert path in doubt(bench, own)
    assert alice.sid in doubt(bench, own, program=True)


def test_a_user_that_may_only_add_files_spoils_a_program_and_no_settings(
    bench: Bench, alice: Token, own: str
):
    """An administrator's mkdir below C:\\ lets users add files: those already there stay an administrator's."""
    bench.machine.files.need(r"C:\a\b")[1].acl.explicit.append(Rule(alice.sid, WRITE))

    assert doubt(bench, own) == ""
    assert alice.sid in doubt(bench, own, program=True)


@pytest.mark.parametrize("share", [7, 0])
@pytest.mark.parametrize("kind", ["Junction", "SymbolicLink", "HardLink"])
def test_a_link_that_others_can_have_made_is_a_doubt(
    bench: Bench, alice: Token, own: str, kind: str, share: int
):
    files = bench.machine.files
    files.make_directory(r"C:\theirs", alice)
    if kind == "Junction":
        files.link(r"C:\theirs\b", r"C:\a\b", kind, alice)
        path = r"C:\theirs\b\tool.exe"
    else:
        path = r"C:\open\tool.exe"
        files.make_directory(r"C:\open")
        # A symbolic link by a user with the privilege, or made while the machine was in developer mode.
        files.link(path, own, kind, alice if kind == "HardLink" else SYSTEM_TOKEN)
        files.need(path, follow=False)[1].acl.owner = alice.sid
        files.hold(path, READ, pid=4000, token=SYSTEM_TOKEN, share=share)

    assert doubt(bench, path)
    assert doubt(bench, path, program=True)


def test_the_kubelets_link_to_its_certificate_is_followed_and_its_end_is_looked_at(
    bench: Bench, alice: Token, own: str
):
    files = bench.machine.files
    files.link(r"C:\a\current.pem", own, "SymbolicLink")

    assert doubt(bench, r"C:\a\current.pem") == ""
    files.need(r"C:\a\current.pem", follow=False)[1].acl.owner = alice.sid
    assert doubt(bench, r"C:\a\current.pem") == r"C:\a\current.pem is a link"
    files.need(r"C:\a\current.pem", follow=False)[1].acl.owner = SYSTEM_TOKEN.sid
    files.need(own)[1].acl.owner = alice.sid
    assert alice.sid in doubt(bench, r"C:\a\current.pem")


def test_a_file_that_is_not_believed_is_taken_for_absent(bench: Bench, alice: Token, own: str):
    assert call(bench, f"Read-FileText -Path '{own}'").objects == ["x"]
    bench.machine.files.need(own)[1].acl.owner = alice.sid

    assert call(bench, f"Read-FileText -Path '{own}'; (Get-PathHash -Path '{own}')").objects == [None]
    refused = call(bench, f"Invoke-Program -Path '{own}'")
    assert refused.id.removeprefix("winboot.") == "NotOurs"
    assert alice.sid in refused.message


def test_a_folder_is_asked_about_once(bench: Bench, own: str):
    """A look reads dozens of files in a handful of folders."""
    counted = (
        "function Get-UntrustedReplacer { param([string]$Path) $script:Asked++ }\n$script:Asked = 0\n"
        'foreach ($n in 1..20) { [void](Get-PathDoubt -Path "C:\\a\\b\\$n") }; $script:Asked'
    )

    assert call(bench, counted).objects == [2]


@pytest.mark.parametrize("line", [rf'"{FILE}" --v=2', rf"{FILE} --v=2"])
def test_the_program_of_a_service_is_found_in_its_command_line(
    bench: Bench, alice: Token, own: str, line: str
):
    key = r"SYSTEM\CurrentControlSet\Services\tool"
    asked = f"Write-Registry -Path '{key}' -Name 'ImagePath' -Value '{line}' -Kind 'String'; Get-ServiceDoubt -Name 'tool'"

    assert call(bench, asked).objects == []
    bench.machine.files.need(own)[1].acl.owner = alice.sid
    assert alice.sid in call(bench, asked).objects[0]
