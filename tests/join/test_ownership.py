"""Claims of a join: taken before the first change, released with the node's outcome, and lost to another run."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Time
from tests.config.scene import a_spec
from tests.join.fakes import CUT, FakeCluster, FakeLeases, FakeMachine, Found, Scene, a_node
from winboot.base.errors import ClusterRefused, ClusterUnreachable
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import Options, Ownership
from winboot.node.fleet.ownership import OK, is_done, notes_of
from winboot.operations.join import join, survey
from winboot.operations.remove import Removal, remove
from winboot.remote.cluster.base import token_id
from winboot.remote.cluster.claims import RESULT, SETTINGS_DIGEST, Claim
from winboot.remote.cluster.sessions import Held
from winboot.report.results import NodeReport, Report

UNDONE = Removal()


class Refused:
    """A cluster that has no place for claims."""

    def read(self, node: str) -> None:
        raise ClusterRefused("leases is forbidden", hint="")

    all = create = renew = delete = read


@dataclass
class Runs:
    """Runs of winboot that share a place for claims, and a clock."""

    folder: Path
    time: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        self.claims = FakeLeases()

    def scene(self, name: str, *found: Found, claims: Any = None, **machine: Any) -> Scene:
        """One of them, with its own machine."""
        (self.folder / "site").mkdir(exist_ok=True)
        scene = Scene(self.folder / "site", *found, **machine)
        made = scene._context()
        place = self.claims if claims is None else claims
        ownership = Ownership(name, name, lambda spec: place, 60, self.time.clock)
        context = replace(made, claims=ownership, run=name)
        scene._context = lambda: context  # type: ignore[method-assign]
        return scene

    @property
    def told(self) -> dict[str, tuple[str, str]]:
        """The holder and the outcome of each node."""
        return {
            claim.node: (claim.holder, claim.notes.get(RESULT, ""))
            for claim in self.claims.all()
            if "/" not in claim.node
        }


DIFFERS = Found("directories")


def taken(ownership: Ownership, spec: NodeSpec) -> tuple[Held | None, bool]:
    """The claim on a node, without waiting."""
    return ownership.take(
        spec, by_force=False, patience=0.0, poll=0.0, wait=lambda seconds: True, say=lambda text, left: None
    )


def test_a_node_that_is_right_costs_no_claim(tmp_path: Path) -> None:
    runs = Runs(tmp_path)

    scene = runs.scene("one")
    scene.join()

    assert (scene.machine.modes, list(runs.claims.all())) == (["Look"], [])


def test_a_plan_claims_nothing(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    scene = runs.scene("one", DIFFERS)
    survey([scene.spec], scene._context(), Options(patience=scene.patience))

    assert list(runs.claims.all()) == []


def test_a_node_is_claimed_while_it_is_changed_and_the_claim_records_the_outcome(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    during: list[dict[str, tuple[str, str]]] = []

    report = runs.scene("one", DIFFERS, during=lambda: during.append(runs.told)).join()

    assert (report.outcome, during, runs.told) == (
        "changed",
        [{"win-1": ("one", "")}],
        {"win-1": ("", "ok")},
    )


def test_a_failed_node_is_reported_by_its_cause(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.scene("one", DIFFERS, fails_at="directories").join()

    assert runs.told == {"win-1": ("", "failed:directories: ChangeFailed")}


def test_a_second_run_waits_looks_again_and_finds_the_work_done(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    other: list[NodeReport] = []
    second = runs.scene("two", DIFFERS)
    threads: list[threading.Thread] = []

    def start() -> None:
        thread = threading.Thread(target=lambda: other.append(second.join()))
        threads.append(thread)
        thread.start()
        while not any("held by another run" in one for one in second.listener.said):
            thread.join(0.01)
        # What the first one does to the machine.
        second.machine.found = []

    first = runs.scene("one", DIFFERS, during=start)
    assert first.join().outcome == "changed"
    threads[0].join()

    assert second.machine.modes == ["Look", "Look"]
    assert {step.state for step in other[0].steps if step.name in second.machine.steps} == {"ok"}
    assert second.listener.said.count("held by another run (one); waiting") == 1


def test_a_run_that_waits_too_long_learns_the_owner_of_the_node(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.claims.create(Claim("win-1", "you@desk (run 7)", 60))
    scene = runs.scene("one", DIFFERS)
    scene.patience = replace(scene.patience, held=0.0)

    report = scene.join()

    assert (
        report.failure is not None
        and report.failure.message == "win-1: held by another run: you@desk (run 7)"
    )
    assert scene.machine.modes == ["Look"]


def test_a_claim_that_is_over_is_taken_and_the_node_raises_its_fence(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.claims.create(Claim("win-1", "a killed run", 60))
    scene = runs.scene("one", DIFFERS)
    say = scene.listener.say

    def waits(node: str, text: str) -> None:
        say(node, text)
        runs.time.wait(60)

    scene.listener.say = waits  # type: ignore[method-assign]

    assert scene.join().outcome == "changed"
    assert list(
        zip(scene.machine.modes, [facts["TakeOver"] for facts in scene.machine.facts], strict=True)
    ) == [
        ("Look", False),
        # It had to wait, so that its look is old.
        ("Look", True),
        ("Change", True),
    ]


def test_take_over_does_not_wait(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.claims.create(Claim("win-1", "you@desk", 60))
    scene = runs.scene("one", DIFFERS)

    assert (scene.join(take_over=True).outcome, scene.listener.said.count("held")) == ("changed", 0)


@pytest.mark.parametrize(
    ("run", "more", "deleted"),
    [
        ("killed", {}, True),
        ("killed", {"cluster": FakeCluster(fails={"forget_token": CUT})}, True),
        # The other run may still need it on the node; it expires.
        ("killed", {"fails_at": "directories"}, False),
        # Versions before this annotation.
        ("", {}, False),
        ("killed", {"profile": "cluster: {bootstrap_token: {env: TOKEN}}"}, False),
    ],
    ids=["joined", "the cluster fails", "the join fails", "a claim without a run", "a token of the profile"],
)
def test_a_join_that_takes_over_deletes_the_token_of_the_killed_run(
    run: str, more: dict[str, Any], deleted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "ghijkl.0123456789abcdef")
    runs = Runs(tmp_path)
    runs.claims.create(Claim("win-1", "you@desk", 60, run=run))
    scene = runs.scene("one", DIFFERS, **more)

    report = scene.join(take_over=True)

    assert (report.exit_code == 0) == ("fails_at" not in more)
    assert (("forget_token", token_id(run, "win-1")) in scene.cluster.calls) == deleted


def test_a_run_whose_node_was_taken_over_ends_as_superseded(tmp_path: Path) -> None:
    """It learns that from the claim where the node has not said so yet."""
    runs = Runs(tmp_path)

    def take() -> None:
        there = runs.claims.read("win-1")
        assert there is not None
        runs.claims.renew(replace(there, holder="you@desk", transitions=1, notes={}))

    report = runs.scene("one", DIFFERS, during=take).join()

    assert report.failure is not None and (report.failure.name, report.exit_code) == ("Superseded", 75)
    assert report.failure.message == "win-1: another run has taken over this node: you@desk"
    assert runs.told == {"win-1": ("you@desk", "")}


def test_a_node_without_claims_in_its_cluster_is_changed_under_its_own_mutex_and_fence(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    scene = runs.scene("one", DIFFERS, claims=Refused(), profile="cluster: {kubeconfig: {file: admin.conf}}")

    assert (scene.join().outcome, scene.machine.modes) == ("changed", ["Look", "Change"])


def test_a_refused_claim_is_not_asked_for_again(tmp_path: Path) -> None:
    place: Any = Refused()
    asked: list[NodeSpec] = []

    def leases(spec: NodeSpec) -> Any:
        asked.append(spec)
        return place

    ownership = Ownership("one", "one", leases)
    spec = a_spec(tmp_path)

    assert [taken(ownership, spec) for _ in range(2)] == [(None, False)] * 2
    assert len(asked) == 1
    assert ownership.done([spec]) == frozenset()


def test_nodes_that_are_done_come_last_and_are_looked_at_all_the_same(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    order: list[str] = []

    def joined(name: str, *bad: str) -> Report:
        scene = runs.scene(name)
        names = [f"win-{number}" for number in range(1, 5)]
        specs = [replace(scene.spec, node=replace(scene.spec.node, name=node)) for node in names]
        machines = {
            node: FakeMachine(scene.machine.steps, *([DIFFERS] if name == "one" or node in bad else []))
            for node in names
        }
        for node in bad:
            machines[node].fails_at = "directories"

        def connect(spec: Any) -> Any:
            order.append(spec.node.name)
            return machines[spec.node.name]

        context = replace(scene._context(), connect=connect)
        return join(specs, context, Options(patience=scene.patience, workers=1))

    joined("one", "win-2")
    assert order == ["win-1", "win-2", "win-3", "win-4"]
    order.clear()

    report = joined("two")

    assert order == ["win-2", "win-1", "win-3", "win-4"]
    assert [node.node for node in report.nodes] == ["win-1", "win-2", "win-3", "win-4"]
    assert all(node.pipelines == 1 and node.failure is None for node in report.nodes)


def test_a_removal_leaves_no_claim(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    scene = runs.scene("one")
    remove([scene.spec], scene._context(), Options(patience=scene.patience), UNDONE)

    assert runs.told == {}


def test_a_claim_goes_back_to_the_cluster_that_gave_it(tmp_path: Path) -> None:
    """Another node's thread may find out meanwhile that the cluster grants no rights there."""
    spec, cluster = a_spec(tmp_path), FakeLeases()
    ownership = Ownership("one", "one", lambda spec: cluster)
    held, _ = taken(ownership, spec)
    assert held is not None
    ownership._without.add(f"{spec.cluster.kubeconfig} {spec.cluster.context or ''}")

    ownership.give_back(spec, held, "ok")
    ownership.close()

    assert held.taken_by is None
    assert cluster.kept[spec.node.name].notes[RESULT] == "ok"


def test_claims_that_cannot_be_listed_are_asked_for_once(tmp_path: Path) -> None:
    asked: list[str] = []

    class Silent(Refused):
        def all(self) -> None:  # type: ignore[override]
            asked.append("all")
            self.read("")

    place: Any = Silent()
    ownership = Ownership("one", "one", lambda spec: place)

    assert ownership.done([a_spec(tmp_path)] * 3) == frozenset()
    assert asked == ["all"]


def test_an_api_server_that_is_away_for_a_moment_costs_a_wait(tmp_path: Path) -> None:
    spec, folder = a_spec(tmp_path), FakeLeases()
    failures = [ClusterUnreachable("connection reset")]

    class Away:
        read, renew, delete, all = folder.read, folder.renew, folder.delete, folder.all

        def create(self, claim: Claim) -> Claim:
            if failures:
                raise failures.pop()
            return folder.create(claim)

    place: Any = Away()
    ownership = Ownership("one", "one", lambda spec: place)
    said: list[str] = []

    held, waited = ownership.take(
        spec,
        by_force=False,
        patience=60,
        poll=0.0,
        wait=lambda seconds: False,
        say=lambda text, left: said.append(text),
    )
    ownership.close()

    assert waited
    assert said == ["its claim is not free now; waiting"]
    assert held is not None and held.claim.holder == "one"


def test_a_machine_that_became_a_node_while_one_waited_for_it_is_a_node(tmp_path: Path) -> None:
    """Its pods would be disturbed without a drain."""
    runs = Runs(tmp_path)
    runs.claims.create(Claim("win-1", "a killed run", 60))
    scene = runs.scene("one", DIFFERS)
    scene.cluster.node_facts = None

    def waits(node: str, text: str) -> None:
        if "waiting" in text:
            scene.cluster.node_facts = a_node()
            runs.time.wait(60)

    scene.listener.say = waits  # type: ignore[method-assign]
    scene.join()

    assert [facts["NodeIsLive"] for facts in scene.machine.facts][:2] == [False, True]


def test_a_node_is_done_by_the_settings_that_it_has_now_alone(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    ended = notes_of(spec) | {RESULT: OK}

    assert is_done(Claim("win-1", "", 60, notes=ended), spec)
    assert not is_done(Claim("win-1", "", 60, notes=ended | {SETTINGS_DIGEST: "of yesterday"}), spec)
    assert not is_done(Claim("win-1", "", 60, notes=notes_of(spec)), spec)
