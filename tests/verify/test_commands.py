"""`winboot join --verify` and `winboot verify` as a user starts them: over WinRM, against an API server, and killed."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest
from winboot_lab.cli.staging import Staged, stage
from winboot_lab.cluster.identity import Identity
from winboot_lab.cluster.kinds import NAMESPACES
from winboot_lab.up import Lab

from winboot import cli

PLACES = 5


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has ended with and said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Site:
    """A lab with one machine, and what `join --verify` said when it became a node."""

    lab: Lab
    staged: Staged
    first: Said

    def __call__(self, *words: str) -> Said:
        return run(self.staged, *words)

    def spaces(self) -> list[str]:
        """The namespaces of verifications, when the cluster's controllers have done what they had to."""
        self.lab.cluster.settle()
        found = [one["metadata"]["name"] for one in self.lab.cluster.objects(NAMESPACES)]
        return [name for name in found if name.startswith("winboot-verify")]


def run(staged: Staged, command: str, *words: str) -> Said:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = cli.run([command, "-i", str(staged.inventory), *words])
    return Said(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch, Lab(nodes=1) as lab:
        patch.setenv("WINBOOT_STATE", str(folder / "state"))
        staged = stage(lab, folder)
        yield Site(lab, staged, run(staged, "join", "--verify", "-o", "json"))


@pytest.mark.matrix
def test_join_verify_reports_the_flows_of_the_changed_node_after_the_run(site: Site) -> None:
    said = site.first

    flows = [one for one in said.lines if one["kind"] == "flow"]
    failed = [one for one in flows if one["state"] in ("failed", "untried")]
    assert failed == []
    assert said.code == 0
    kinds = [kind for kind, _ in itertools.groupby(one["kind"] for one in said.lines)]
    assert kinds.index("flow") > kinds.index("node")
    assert {"pod-start", "exec", "dns-short", "node-services"} <= {
        one["flow"] for one in flows if one["state"] == "passed"
    }
    assert site.spaces() == []


@contextmanager
def heard(site: Site, act: Callable[[int], None]) -> Iterator[None]:
    """Each request of the user reaches `act` with its number."""
    count = itertools.count(1)

    def hear(who: Identity, method: str, path: str) -> None:
        if who.name == "kubernetes-admin":
            act(next(count))

    site.lab.cluster.faults.refuse = hear
    try:
        yield
    finally:
        site.lab.cluster.faults.refuse = None


def verifying(site: Site) -> subprocess.Popen[bytes]:
    """The real command in a process of its own."""
    words = [sys.executable, "-m", "winboot", "verify", "-i", str(site.staged.inventory), "-o", "json"]
    with (site.staged.inventory.parent / "verify.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))


@pytest.fixture(scope="module")
def requests(site: Site) -> int:
    """How many requests a verification makes."""
    numbers: list[int] = []
    with heard(site, numbers.append):
        code = verifying(site).wait(300)
    assert code in (0, 1), (site.staged.inventory.parent / "verify.log").read_text()
    return max(numbers)


@pytest.mark.matrix
@pytest.mark.parametrize("place", range(PLACES))
def test_what_kill_9_of_the_command_leaves_goes_with_the_next(place: int, site: Site, requests: int) -> None:
    at = 4 + place * (requests - 4) // PLACES
    killed: list[int] = []

    def act(number: int) -> None:
        if number >= at and not killed:
            killed.append(number)
            process.kill()

    with heard(site, act):
        process = verifying(site)
        assert process.wait(300) == -9
    before = site.spaces()

    said = site("verify", "--flows", "pod-start", "-o", "json")

    assert said.code == 0, said.out + said.err
    assert all(name in said.out for name in before)
    assert site.spaces() == []
