"""What is wrong on the controller's side is found before the first machine is contacted, and said once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_exit_codes import INVENTORY, Nodes, World
from tests.config.scene import an_inventory
from tests.shape import lines_of
from winboot.base.errors import ClusterUnreachable
from winboot.config.compat.version import Version


class Away(Nodes):
    """An API server that does not answer; `asked` counts how often it was tried."""

    asked = 0

    def version(self) -> Version:
        self.asked += 1
        raise ClusterUnreachable("the API server https://10.0.0.10:6443 does not answer", hint="Is it up?")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    return World(tmp_path, monkeypatch, capsys)


def with_password(world: World, reference: str, *, of: str = "pool") -> None:
    login = f"connection: {{user: .\\Administrator, password: {reference}}}"
    text = INVENTORY.replace('os: "2022"', f'os: "2022"\n    {login}')
    if of == "win-2":
        text = INVENTORY.replace("{address: 10.0.1.12}", f"{{address: 10.0.1.12, {login}}}")
    an_inventory(world.folder, text)


@pytest.mark.parametrize("command", ["plan", "join", "repair", "preflight"])
@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("{env: NO_SUCH_PASSWORD}", "the environment variable NO_SUCH_PASSWORD is not set"),
        ("{file: nowhere.txt}", "nowhere.txt cannot be read"),
        ("{command: [no-such-program-here, x]}", "the program no-such-program-here does not exist"),
    ],
)
def test_a_password_that_cannot_be_had_is_reported_once_before_any_contact(
    world: World, command: str, reference: str, said: str
) -> None:
    with_password(world, reference)

    code = world.winboot(command)

    told = "".join(world.capsys.readouterr())
    assert code == 64
    assert world.connections == 0
    assert told.count(said) == 1
    assert "win-1, win-2: connection.password: " in told


def test_a_password_of_one_machine_does_not_cost_the_others_theirs(world: World) -> None:
    with_password(world, "{env: NO_SUCH_PASSWORD}", of="win-2")

    code = world.winboot("join", "-o", "json")

    lines = [one for one in lines_of(world.capsys.readouterr().out) if one["kind"] == "node"]
    assert code == 3
    assert {one["node"]: one["outcome"] for one in lines} == {"win-1": "changed", "win-2": "failed"}


@pytest.mark.parametrize("command", ["plan", "join", "repair", "preflight"])
def test_an_api_server_that_is_away_is_asked_once_for_all_nodes(world: World, command: str) -> None:
    world.cluster = away = Away("win-1", "win-2")

    code = world.winboot(command)

    told = "".join(world.capsys.readouterr())
    assert code == 69
    assert (away.asked, world.connections) == (1, 0)
    assert told.count("does not answer") == 1
