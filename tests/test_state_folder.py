"""The state folder has one door: each command that keeps or reads something there refuses a folder of another user, by name."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import winboot
from tests.cli.test_exit_codes import World
from winboot.base.errors import ForeignFolder
from winboot.base.private import others_say, own_folder, stranger_above
from winboot.cli import run
from winboot.operations.firstboot.store import Store
from winboot.remote.cloud.cache import HostCache

PACKAGE = Path(winboot.__file__).parent
NOBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="chown to another user needs root"
)

USERDATA = "userdata --for file --endpoint here --group pool --by-hand"
# What uses the state folder, by the function that asks for it: commands that come there first.
CALLERS: dict[str, list[str]] = {
    "report/archive.py __init__": ["runs", "log last", "report last", "status"],
    "cli/targets.py run_context": [
        "plan",
        "join --yes",
        "repair --yes",
        "verify",
        "preflight",
        "remove --limit win-1 --yes",
        "rollback win-1 --yes",
    ],
    "cli/first_boot.py store": [
        "hook voucher",
        "hook voucher --group pool",
        "hook approve win-1 4C4C4544-0042",
        "why win-1",
    ],
    "cli/first_boot.py key_file": [USERDATA],
    "cli/hook.py status": ["hook status"],
    "cli/hook.py serve": [],
    # What cannot be kept there is printed again: the command itself refuses the folder, or needs none.
    "cli/seen.py first_time": [],
    "remote/cloud/cache.py of": [],
}


def calls_of(name: str) -> set[str]:
    """The functions of winboot that call this one, as `file function`."""
    return {
        f"{path.relative_to(PACKAGE).as_posix()} {function.name}"
        for path in PACKAGE.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
    }


def test_every_caller_of_the_state_folder_is_tried_here() -> None:
    assert calls_of("state_folder") == set(CALLERS)


def test_nothing_else_finds_the_state_folder_or_makes_a_folder_in_it() -> None:
    named = [
        path for path in PACKAGE.rglob("*.py") if 'get("WINBOOT_STATE")' in path.read_text(encoding="utf-8")
    ]

    assert [path.name for path in named] == ["state.py"]
    # A report has the folder that the user names.
    assert calls_of("make_private_folder") == {"base/private.py own_folder", "report/file.py _try"}


def of_another(folder: Path) -> Path:
    os.chown(folder, NOBODY, NOBODY)
    return folder


def for_everybody(folder: Path) -> Path:
    folder.chmod(0o777)
    return folder


def behind_anothers_link(folder: Path) -> Path:
    link = folder.with_name("link")
    link.symlink_to(folder)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    return link


def behind_a_link_into_anothers_folder(folder: Path) -> Path:
    theirs = folder.with_name("theirs")
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    (theirs / "hop").symlink_to(folder)
    os.chown(theirs / "hop", 0, 0, follow_symlinks=False)
    link = folder.with_name("link")
    link.symlink_to(theirs / "hop")
    return link


Damage = Callable[[Path], Path]
DAMAGES: list[Damage] = [of_another, for_everybody, behind_anothers_link, behind_a_link_into_anothers_folder]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(tmp_path, monkeypatch, capsys)


@NEEDS_ROOT
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", [one for commands in CALLERS.values() for one in commands])
def test_a_command_refuses_a_state_folder_that_another_user_may_change(
    command: str, damage: Damage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.folder / "state").mkdir()
    folder = damage(world.folder / "state")
    monkeypatch.setenv("WINBOOT_STATE", str(folder))
    monkeypatch.chdir(world.folder)

    assert run(command.split()) == 64

    told = world.capsys.readouterr().err
    assert f"winboot does not use the folder {folder}" in told
    assert "WINBOOT_STATE" in told
    assert list((world.folder / "state").iterdir()) == []
    assert world.connections == 0


@NEEDS_ROOT
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_clouds_answer_is_not_cached_where_another_user_may_change_it(
    damage: Damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which addresses a password is sent to."""
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("WINBOOT_STATE", str(damage(tmp_path / "state")))

    with pytest.raises(ForeignFolder):
        HostCache.of("settings", "account")


@NEEDS_ROOT
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_folder_is_asked_about_once_more_when_something_is_kept_in_it(
    damage: Damage, tmp_path: Path
) -> None:
    """Another user may be quicker between the two."""
    (tmp_path / "state").mkdir()
    folder = damage(tmp_path / "state")

    with pytest.raises(ForeignFolder):
        own_folder(folder / "runs")
    with pytest.raises(ForeignFolder), Store(folder / "first-boot.json").change():
        pytest.fail("the folder was used")


@NEEDS_ROOT
def test_a_folder_behind_the_users_own_link_is_used(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")

    assert own_folder(tmp_path / "link" / "runs").is_dir()


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")

    assert stranger_above(tmp_path / "one") == ""


def key_of_another(key: Path) -> None:
    os.chown(key, NOBODY, NOBODY)


def key_behind_anothers_link(key: Path) -> None:
    key.rename(key.with_name("real"))
    key.symlink_to(key.with_name("real"))
    os.chown(key, NOBODY, NOBODY, follow_symlinks=False)


def key_that_everybody_may_write(key: Path) -> None:
    key.chmod(0o602)


@NEEDS_ROOT
@pytest.mark.parametrize("damage", [key_of_another, key_behind_anothers_link, key_that_everybody_may_write])
def test_a_key_that_another_user_may_have_put_there_is_not_the_endpoints(
    damage: Callable[[Path], None], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.folder)
    command = f"{USERDATA} --bootstrap-key own.key".split()
    assert run(command) == 0
    world.capsys.readouterr()
    damage(world.folder / "own.key")

    assert run(command) == 64

    shown = world.capsys.readouterr()
    assert "own.key" in shown.err and "cannot use" in shown.err
    assert shown.out == ""
    assert others_say(world.folder / "own.key")
