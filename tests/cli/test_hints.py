"""The command line accepts every winboot command that a text of winboot names.

The texts are read from the source. Their placeholders get a value, and the real command line reads them; the commands
themselves do nothing, except those that contact nothing, which are run.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.exceptions import Exit, TyperException

from winboot.cli import commands, run
from winboot.cli.application import app

ROOT: Final = Path(__file__).parents[2]
NAMES: Final = frozenset(one.name for one in commands.COMMANDS)
# What a text leaves open, as {field}, <name> or NAME, and a value of its form. A text with a new one gets it here.
VALUES: Final = {
    "INVENTORY": "inventory.yaml",
    "inventory": "inventory.yaml",
    "hosts_file": "inventory.yaml",
    "FILE": "file.json",
    "FOLDER": "folder",
    "NAME": "win",
    "NODE": "win-1",
    "name": "rbac",
    "id": "flannel-host-gw",
    "build.Port": "5986",
    "kind": "flag",
    "_EXAMPLES.get(kind, 'NAME')": "node-ip",
}
# Contact nothing: these, and each --help, are run, in a folder with an inventory and what it names.
HARMLESS: Final = ("steps", "explain", "manifests", "render", "check", "cloud policy")
# They need keys that the profile of that folder does not have.
OF_OTHER_PROFILES: Final = ("manifests gmsa",)
# Options that hints name without a command, and that are not winboot's: whose they are.
OF_OTHERS: Final = {
    "--allocate-node-cidrs": "kube-controller-manager",
    "--cluster-cidr": "kube-controller-manager",
    "--configure-cloud-routes": "cloud-controller-manager",
    "--namespace": "kubectl",
    "--output": "kubectl, and commands of winboot",
    "--print-join-command": "kubeadm",
    "--force": "pipx, and commands of winboot",
}

_QUOTED: Final = re.compile(r"`winboot ([^`]*)(`?)")
# Without quotes only what cannot be a word of the sentence belongs to the command: options, fields, CAPITALS.
_BARE: Final = re.compile(
    r"(?<![`\w/.-])winboot ("
    + "|".join(sorted(NAMES))
    + r")((?: (?:--?[a-z][a-z-]*|\$?\{+[^}]*\}+|[A-Z]{2,}))+)"
)
_OPTION: Final = re.compile(r"(?<![\w`-])`?(--[a-z][a-z-]+)")


@dataclass(frozen=True, slots=True)
class Named:
    """A command in a text: its `words`; `explains` in a docstring, which may name it without arguments."""

    place: str
    words: str
    closed: bool = True
    explains: bool = False


def texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str, bool]]:
    """Each text of a module, its fields as {source}, and whether it is a docstring."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node, node.value, id(node) in docstrings
        elif isinstance(node, ast.JoinedStr):
            yield node, "".join(map(_part, node.values)), False


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        # What a field holds is a text of its own.
        return "{" + ast.unparse(part.value).replace("`", "") + "}"
    assert isinstance(part, ast.Constant)
    return str(part.value)


def commands_in(path: str, source: str) -> Iterator[Named]:
    """Each command of winboot's that a text of this module names."""
    lines = source.splitlines()
    for node, text, explains in texts(ast.parse(source)):
        for found in (*_QUOTED.finditer(text), *_BARE.finditer(text)):
            quoted = found.re is _QUOTED
            words = found[1] if quoted else found[1] + found[2]
            first = f"winboot {words.split(' ')[0]}"
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            line = next((one for one in span if first in lines[one - 1]), node.lineno)
            yield Named(f"{path}:{line}", words, bool(found[2]) or not quoted, explains)


def _value(found: re.Match[str]) -> str:
    name = next(part for part in found.groups() if part)
    return shlex.quote(VALUES[name]) if name in VALUES else found[0]


def words_of(named: Named) -> list[str]:
    """The words of the command line, with a value for every placeholder that has one."""
    return shlex.split(re.sub(r"\$?\{+([^}]*)\}+|<([a-z]+)>|\b([A-Z]{2,})\b", _value, named.words))


@functools.cache
def _reader() -> Any:
    """winboot's own command line, whose commands do nothing."""
    commands.register(app, [])
    root = typer.main.get_command(app)
    _silence(root)
    return root


def _silence(command: Any) -> None:
    if below := getattr(command, "commands", None):
        for each in below.values():
            _silence(each)
    if command.callback is not None:  # a command, or a group that does something by itself
        command.callback = lambda **_: None


def _options(command: Any) -> set[str]:
    own = {word for one in command.params for word in one.opts}
    return own.union(*map(_options, getattr(command, "commands", {}).values()))


def complaint(named: Named) -> str | None:
    """What the command line has against a command that a text names; None where it takes it."""
    if not named.closed:
        return f"{named.place}: `winboot {named.words}: no second backquote in this text"
    words = words_of(named)
    if named.explains and all(not one.startswith("-") for one in words) and _is_command(words):
        return None
    try:
        _reader().main(args=words, prog_name="winboot", standalone_mode=False)
    except Exit:
        return None
    except TyperException as error:
        return f"{named.place}: winboot {named.words}: {error.format_message() or type(error).__name__}"
    return None


def _is_command(words: list[str]) -> bool:
    command = _reader()
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            return False
    return True


def unknown_options(path: str, source: str) -> Iterator[str]:
    """Options that hints name and no command of winboot's has: "Run again with --drain"."""
    known = _options(_reader()) | OF_OTHERS.keys() | {"--help"}
    tree = ast.parse(source)
    hints = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in {"hint", "owner_hint"}
        for part in ast.walk(node.value)
    }
    # Modules of nothing but next steps.
    whole = path.endswith(("report/hints.py", "script/problems.py"))
    for node, text, _ in texts(tree):
        if whole or id(node) in hints:
            for option in _OPTION.findall(text):
                if option not in known:
                    yield f"{path}:{node.lineno}: {option}: no command has this option"


@functools.cache
def modules() -> tuple[tuple[str, str], ...]:
    """The path and text of every module of winboot."""
    files = sorted((ROOT / "winboot").rglob("*.py"))
    return tuple((file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files)


@functools.cache
def every_command() -> tuple[Named, ...]:
    return tuple(named for path, source in modules() for named in commands_in(path, source))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an inventory and what it names, and a home without anything in it: where a user tries a hint."""
    for folder in ("profiles", "inventories"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "inventories")
    shutil.copy("minimal.yaml", "inventory.yaml")
    return tmp_path


def test_every_command_that_a_text_names_is_taken_by_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WINBOOT_INVENTORY", raising=False)
    found = every_command()
    told = {named.words.split(" ")[0] for named in found}

    assert {"init", "plan", "join", "repair", "manifests", "explain", "cloud", "inventory"} <= told
    assert [wrong for named in found if (wrong := complaint(named))] == []


def test_every_option_that_a_hint_names_is_an_option_of_some_command() -> None:
    assert [wrong for path, source in modules() for wrong in unknown_options(path, source)] == []


PLANTED = [
    ("hint='Run `winboot jion`.'", "No such command"),
    ("hint='Run `winboot cloud polices aws`.'", "No such command"),
    ("hint='Run `winboot repair --drian`.'", "No such option"),
    ("hint='Run `winboot manifests rbac` or `winboot plan --out`.'", "--out"),
    ("hint='Run `winboot plan --workers many`.'", "--workers"),
    ("hint='Run `winboot cloud policy gcp`.'", "gcp"),
    ("hint='Run `winboot cloud policy`.'", "Missing"),
    ("hint='Run `winboot schema plan FILE`.'", "unexpected extra argument"),
    ("hint=f'Run `winboot init --renwe -i {inventory}`.'", "No such option"),
    ("hint=f'Then winboot init --renwe takes {it}.'", "No such option"),
    ("hint='Run ' '`winboot ' 'jion`.'", "No such command"),
    ("hint='Run `winboot join ' + name + '`.'", "no second backquote"),
    ("hint=f'Run {\"`winboot jion`\" if it else that}.'", "No such command"),
]


@pytest.mark.parametrize(("keyword", "said"), PLANTED, ids=[row[0] for row in PLANTED])
def test_a_wrong_command_is_found_with_its_place(keyword: str, said: str) -> None:
    source = f"\n\nraise UsageError('so',\n    {keyword}\n)\n"

    wrong = [one for named in commands_in("x.py", source) if (one := complaint(named))]

    assert len(wrong) == 1
    assert wrong[0].startswith("x.py:4: ") and said in wrong[0]


def test_a_wrong_option_is_found_in_a_hint_alone() -> None:
    source = "raise UsageError('--that is wrong',\n    hint='Run again with --drian, or `--yse`.')\n"

    wrong = list(unknown_options("x.py", source))

    assert [one.split(": ")[:2] for one in wrong] == [["x.py:2", "--drian"], ["x.py:2", "--yse"]]


def test_a_docstring_may_name_a_command_that_there_is_without_arguments() -> None:
    source = '"""`winboot cloud policy`, `winboot hook` and `winboot hook srve`."""\n'

    wrong = [one for named in commands_in("x.py", source) if (one := complaint(named))]

    assert len(wrong) == 1 and "srve" in wrong[0]


def _harmless() -> list[str]:
    """The command lines that contact nothing, once each, without those of which the text leaves something open."""
    lines = {
        shlex.join(words_of(named))
        for named in every_command()
        if not named.explains and named.closed and "{" not in named.words
    }
    begins = tuple(f"{one} " for one in HARMLESS)
    return sorted(
        line
        for line in lines
        if (line.endswith("--help") or f"{line} ".startswith(begins))
        and not line.startswith(OF_OTHER_PROFILES)
    )


def test_what_contacts_nothing_is_done_as_the_text_says_it(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _harmless()
    assert {"steps", "check", "render", "manifests rbac", "manifests operator", "cloud policy azure"} <= set(
        lines
    )

    wrong = []
    for line in lines:
        code = run(shlex.split(line))
        said = capsys.readouterr()
        if code or not said.out:
            wrong.append((line, code, said.err))

    assert wrong == []
