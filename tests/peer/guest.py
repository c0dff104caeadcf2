"""winboot's side of a room: a folder with profile, inventory, CA and kubeconfig, and the room itself as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.config.scene import GOOD, an_inventory
from tests.peer.conduct import CONDUCTS
from tests.peer.outsider import OUTSIDERS
from tests.peer.room import PASSWORD, USER, address_of
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

# Each conduct that is not good, and the name that such a node has in the report.
NAMED: Final[Mapping[str, str]] = {
    "silent": "QuietNode",
    "chatty": "QuietNode",
    "lying": "IncompleteRun",
    "damaged": "BadEvent",
    "breaking off": "ConnectionLost",
    "never back": "Unreachable",
    "gone": "Unreachable",
    "deaf": "Unreachable",
    "redirecting": "ProtocolError",
    "slow": "ProtocolError",
}
assert NAMED.keys() == {*CONDUCTS, *OUTSIDERS} - {"good"}


def conducts(count: int, bad: Sequence[str], every: int) -> dict[str, str]:
    """So many nodes, of which every n-th behaves as one of `bad`, in turn."""
    return {
        f"n{number:03}": "good" if number % every else bad[number // every % len(bad)]
        for number in range(count)
    }


@dataclass(frozen=True, slots=True)
class Guest:
    """A running room, and the files with which winboot finds it."""

    folder: Path
    inventory: Path
    nodes: Mapping[str, str]
    process: subprocess.Popen[str]

    @property
    def bad(self) -> dict[str, str]:
        """The nodes that will not end well, each with the name that its report should have."""
        return {name: NAMED[conduct] for name, conduct in self.nodes.items() if conduct != "good"}

    def specs(self) -> list[NodeSpec]:
        """What is to be made of each machine."""
        return [resolve(machine.profile, machine) for machine in load_inventory(self.inventory)]

    def left(self) -> dict[str, Any]:
        """What winboot has left behind so far (Room.left)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def winboot(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command on the inventory."""
        return subprocess.Popen(
            [sys.executable, "-m", "winboot", *arguments, "-i", str(self.inventory)],
            env=os.environ | {"WINBOOT_TEST_PASSWORD": PASSWORD, "WINBOOT_STATE": str(self.folder / "state")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def a_room(folder: Path, nodes: Mapping[str, str]) -> Iterator[Guest]:
    """A room of these nodes (name → conduct) until the end of the context."""
    model = _model(folder)
    plan = {
        "version": str(model.kubernetes.version),
        "steps": [step.name for step in make_plan(model, STEPS, only=(), skip=()).node_side],
        "taint": {"key": model.node.startup_taint.key, "effect": model.node.startup_taint.effect},
        "nodes": dict(nodes),
    }
    file = folder / "room.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.peer", str(file)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ports = json.loads(process.stdout.readline())
        yield Guest(folder, _inventory(folder, model, ports), nodes, process)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _model(folder: Path) -> NodeSpec:
    """Any of the nodes: they differ in names and addresses alone."""
    host = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {n000: }}}"
    (machine,) = load_inventory(an_inventory(folder, host))
    return resolve(machine.profile, machine)


def _inventory(folder: Path, model: NodeSpec, ports: Mapping[str, int]) -> Path:
    """Every download has a hash here, though none is made."""
    names = [name for one in model.artifacts for name in one.pins]
    hashes = "".join(f"    {json.dumps(name)}: {'0' * 64}\n" for name in names)
    profile = f"{GOOD}artifacts:\n  sha256:\n{hashes}"
    hosts = "".join(
        f"      {name}: {{address: {address_of(number)}, "
        f"connection: {{host: 127.0.0.1, port: {port}, scheme: http}}}}\n"
        for number, (name, port) in enumerate(ports.items())
    )
    login = f"{{user: {USER}, password: {{env: WINBOOT_TEST_PASSWORD}}, poll_s: 0.5}}"
    text = f'groups:\n  pool:\n    profile: profile.yaml\n    os: "2022"\n    connection: {login}\n    hosts:\n{hosts}'
    (folder / "profile.yaml").write_text(profile, encoding="utf-8")
    path = folder / "inventory.yaml"
    path.write_text(text, encoding="utf-8")
    return path
