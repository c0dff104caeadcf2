"""The first-boot endpoint refuses each forged or stale proof by its own name."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.join.fakes import FakeCluster, a_node
from tests.steps.builders import a_spec_of
from winboot.base.errors import InvalidInput, UsageError
from winboot.operations.firstboot.door import MEANT_S, Door, Meant, Shared
from winboot.operations.firstboot.hello import Done, Hello, Refusal
from winboot.operations.firstboot.store import HOST_VOUCHER_S, PER_MINUTE, Store

SPEC = a_spec_of("flannel-host-gw")
NAME, HERE, OURS, ANOTHER = SPEC.node.name, "10.224.0.11", "11111111-0000-0000-0000-000000000001", "another"
THEIRS = "22222222-0000-0000-0000-000000000002"


class Clock:
    """The seconds of the epoch, as the test says."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """One host of the group `windows`, a cluster, and what is remembered."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.store = Store(folder / "first-boot.json", self.clock)
        self.cluster = FakeCluster()
        self.door = Door(self.store, lambda: [(SPEC, ("windows",))], lambda spec: self.cluster)

    def ask(self, voucher: str = "", **changed: Any) -> str:
        """The refusal's name, "Ready" for a machine that is its node already, or the node's name."""
        hello = Hello(OURS, "WIN-X", (HERE,), "", voucher, HERE)
        answer = self.door.ask(replace(hello, **changed))
        if isinstance(answer, Done):
            return "Ready"
        return answer.id if isinstance(answer, Refusal) else answer.node.name

    def wait(self, uuid: str) -> str:
        """The name of the refusal of a caller without a proof, kept as the endpoint keeps it."""
        refusal = self.door.ask(Hello(uuid, "WIN-X", (HERE,), "", "", HERE))
        assert isinstance(refusal, Refusal)
        self.store.refuse(refusal, uuid=uuid, address=HERE, node=refusal.node)
        self.clock.now += 1.0
        return refusal.id


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_voucher_of_the_host_or_of_its_group_lets_the_machine_in_again_and_again(scene: Scene) -> None:
    for voucher in (scene.store.voucher("host", NAME), scene.store.voucher("group", "windows")):
        assert [scene.ask(voucher.reveal()) for _ in range(2)] == [NAME, NAME]


def test_what_is_kept_of_a_voucher_is_its_hash(scene: Scene) -> None:
    voucher = scene.store.voucher("host", NAME).reveal()

    assert voucher.partition(".")[2] not in scene.store.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"voucher": "0000.made-up"}, "UnknownVoucher"),
        ({"voucher": "no voucher at all"}, "UnknownVoucher"),
        ({"peer": "10.224.0.12"}, "AnotherAddress"),
        ({"host": "win-b7"}, "NotMeant"),
    ],
)
def test_a_proof_that_is_not_its_own_is_refused(scene: Scene, changed: dict[str, str], refusal: str) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()

    assert scene.ask(**{"voucher": voucher, **changed}) == refusal


@pytest.mark.parametrize("secret", ["", ".", ".another"])
def test_the_id_of_a_voucher_is_no_proof(scene: Scene, secret: str) -> None:
    """Lists and logs show it."""
    id_ = scene.store.voucher("group", "windows").reveal().partition(".")[0]

    assert scene.ask(f"{id_}{secret}") == "UnknownVoucher"


def test_a_voucher_of_another_group_is_for_no_machine_here(scene: Scene) -> None:
    assert scene.ask(scene.store.voucher("group", "others").reveal()) == "NotMeant"


def test_a_revoked_voucher_is_unknown(scene: Scene) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()
    scene.store.revoke(voucher.partition(".")[0])

    assert scene.ask(voucher) == "UnknownVoucher"
    with pytest.raises(UsageError, match="does not exist"):
        scene.store.revoke("0000")


def test_a_voucher_of_a_host_is_good_for_one_machine_and_an_hour(scene: Scene) -> None:
    used, late = (scene.store.voucher("host", NAME).reveal() for _ in range(2))
    scene.ask(used)
    assert scene.ask(used, uuid=ANOTHER) == "VoucherRefused", "within the hour, too"
    scene.clock.now += HOST_VOUCHER_S + 1

    assert scene.ask(used, uuid=ANOTHER) == "VoucherRefused"
    assert scene.ask(late) == "VoucherRefused"
    assert scene.ask(used) == NAME, "the same machine continues"


def test_a_voucher_of_a_group_lets_so_many_in_within_a_minute(scene: Scene) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()
    for number in range(PER_MINUTE):
        assert scene.ask(voucher, uuid=f"machine-{number}") == NAME

    assert scene.ask(voucher, uuid="one more") == "VoucherRefused"
    scene.clock.now += 60.0
    assert scene.ask(voucher, uuid="one more") == NAME


def test_an_approval_names_the_machine_that_it_lets_in(scene: Scene) -> None:
    """Not the last that called: another caller at the address of the node may come in between."""
    assert [scene.wait(uuid) for uuid in (OURS, THEIRS)] == ["NotApproved"] * 2
    approved = scene.store.approve(NAME, OURS)

    assert approved is not None
    assert (approved.uuid, approved.address) == (OURS, HERE)
    assert scene.ask() == NAME
    assert scene.ask(uuid=THEIRS) == "NotApproved"
    assert [one.uuid for one in scene.store.read().about(NAME)] == [THEIRS, OURS], "both are shown"


def test_a_caller_without_a_proof_stays_beside_the_machine_that_is_known(scene: Scene) -> None:
    for state in ("joining", "failed", "Ready"):
        scene.store.note(NAME, state, "as it was", uuid=OURS, address=HERE)
        known = scene.store.read().machines
        scene.wait(OURS)
        scene.wait(THEIRS)

        assert scene.store.read().machines == known
        assert scene.store.read().about(NAME)[0].why == "as it was"


def test_of_callers_without_a_proof_the_newest_few_are_kept(scene: Scene) -> None:
    for number in range(20):
        scene.clock.now += 1.0
        scene.wait(f"{number:08}-0000-0000-0000-000000000000")

    waiting = scene.store.read().about(NAME)
    assert [one.uuid[:8] for one in waiting] == [f"{number:08}" for number in range(19, 11, -1)]


def test_a_machine_may_be_approved_before_it_calls(scene: Scene) -> None:
    assert scene.store.approve(NAME, OURS) is None
    assert scene.ask() == NAME


@pytest.mark.parametrize("uuid", ["", "win-a1", OURS[:8]])
def test_what_is_no_uuid_is_not_approved(scene: Scene, uuid: str) -> None:
    with pytest.raises(UsageError, match="is not an SMBIOS UUID"):
        scene.store.approve(NAME, uuid)


def test_the_record_only_grows_and_names_each_approval_and_each_used_voucher(scene: Scene) -> None:
    record, seen = scene.store.path.with_suffix(".jsonl"), [""]
    voucher = scene.store.voucher("group", "windows").reveal()
    for step in (
        lambda: scene.ask(voucher),
        lambda: scene.ask(voucher),
        lambda: scene.store.approve(NAME, OURS),
        lambda: scene.store.note(NAME, "Ready", "", uuid=OURS, address=HERE),
        lambda: scene.store.revoke(voucher.partition(".")[0]),
    ):
        step()
        seen.append(record.read_text(encoding="ascii"))

    assert all(after.startswith(before) for before, after in pairwise(seen))
    lines = [json.loads(line) for line in seen[-1].splitlines()]
    assert [line["event"] for line in lines] == [
        "voucher made",
        "voucher used",
        "approved",
        "approval used",
        "voucher revoked",
    ]
    assert lines[1] == {
        "time": "1970-01-12T13:46:40+00:00",
        "event": "voucher used",
        "voucher": voucher.partition(".")[0],
        "node": NAME,
        "machine": OURS,
        "address": HERE,
    }
    assert (lines[2]["machine"], bool(lines[2]["by"])) == (OURS, True)
    assert voucher.partition(".")[2] not in seen[-1]
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_what_cannot_be_recorded_does_not_happen(scene: Scene) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()
    record = scene.store.path.with_suffix(".jsonl")
    record.unlink()
    record.symlink_to("elsewhere")

    with pytest.raises(InvalidInput, match="cannot be written"):
        scene.ask(voucher)
    with pytest.raises(InvalidInput, match="cannot be written"):
        scene.store.approve(NAME, OURS)
    assert (scene.store.read().approved, scene.store.find(voucher).used) == ({}, {})  # type: ignore[union-attr]


def test_state_of_a_former_release_is_read_without_unproven_callers(scene: Scene) -> None:
    seen = {
        "node": NAME,
        "why": "",
        "uuid": OURS,
        "address": HERE,
        "at": 1.0,
        "let_in": OURS,
        "ready_at": 2.0,
    }
    machines = {NAME: {**seen, "state": "Ready"}, "win-b7": {**seen, "state": "waits"}}
    text = json.dumps({"vouchers": {}, "approved": {}, "machines": machines, "refused": {}})
    scene.store.path.write_text(text, encoding="utf-8")

    assert {name: one.ready_at for name, one in scene.store.read().machines.items()} == {NAME: 2.0}


def test_what_let_a_machine_in_is_spent_once_its_node_is_ready(scene: Scene) -> None:
    """Its pods may call from its address and say its UUID, while its Node is not Ready for a moment."""
    voucher = scene.store.voucher("host", NAME).reveal()
    scene.store.approve(NAME, OURS)
    assert [scene.ask(), scene.ask(voucher)] == [NAME, NAME]

    scene.clock.now += 60.0
    scene.store.note(NAME, "Ready", "", uuid=OURS, address=HERE)

    assert [scene.ask(), scene.ask(voucher)] == ["NotApproved", "VoucherRefused"]
    assert scene.ask(scene.store.voucher("host", NAME).reveal()) == NAME, "a new one is for a new beginning"


def test_a_machine_that_is_being_joined_stays_remembered_if_another_asks_for_its_name(scene: Scene) -> None:
    scene.store.note(NAME, "joining", "", uuid=OURS, address=HERE)

    assert scene.ask() == "NotApproved"
    assert scene.ask(uuid=ANOTHER) == "AnotherMachine"
    assert scene.store.read().machines[NAME].state == "joining"


def test_the_same_refusal_is_written_once_a_minute_whatever_uuid_it_is_said_with(scene: Scene) -> None:
    for number in range(3):
        scene.store.refuse(Refusal("Strange", f"it says {number}"), uuid=str(number), address=HERE)
    assert scene.store.read().refused[HERE].uuid == "0"

    scene.store.refuse(Refusal("Other", "it says more"), uuid="3", address=HERE)
    scene.clock.now += 61.0
    scene.store.refuse(Refusal("Other", "it says more"), uuid="4", address=HERE)
    assert scene.store.read().refused[HERE].uuid == "4"


def test_a_cloned_machine_is_refused_while_the_first_one_joins_and_afterwards(scene: Scene) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()
    scene.store.note(NAME, "joining", "", uuid=OURS, address=HERE)

    assert scene.ask(voucher, uuid=ANOTHER) == "AnotherMachine"
    scene.store.note(NAME, "Ready", "", uuid=OURS, address=HERE)
    scene.cluster.node_facts = a_node(name=NAME, system_uuid=OURS)
    assert scene.ask(voucher, uuid=ANOTHER) == "AnotherMachine"
    assert scene.ask(voucher) == "Ready"


def test_an_endpoint_that_ended_in_the_middle_keeps_no_name_from_another_machine(scene: Scene) -> None:
    voucher = scene.store.voucher("group", "windows").reveal()
    scene.store.note(NAME, "joining", "", uuid=OURS, address=HERE)
    scene.store.begin()

    assert scene.ask(voucher, uuid=ANOTHER) == NAME
    assert scene.store.read().machines[NAME].state == "failed"


def test_the_inventory_is_resolved_once_for_all_concurrent_calls() -> None:
    clock, asked = Clock(), list[float]()

    def ask() -> Meant:
        asked.append(clock.now)
        if len(asked) == 1:
            raise InvalidInput("the profile is being written")
        return [(SPEC, ())]

    meant = Shared(ask, now=clock)
    with pytest.raises(InvalidInput):
        meant()
    assert [meant(), meant()] == [[(SPEC, ())]] * 2
    clock.now += MEANT_S
    meant()

    assert len(asked) == 3


@pytest.mark.parametrize(
    "said",
    [
        {"uuid": "\x1b[2J"},
        [],
        {},
        {"uuid": 5},
        {"uuid": "x" * 300},
        {"uuid": "a", "addresses": ["a"] * 65},
        {"uuid": "a", "addresses": [1]},
    ],
)
def test_what_is_no_hello_is_refused(said: Any) -> None:
    with pytest.raises(InvalidInput):
        Hello.read(said, HERE)


def test_what_is_remembered_and_cannot_be_read_is_named(scene: Scene) -> None:
    scene.store.path.write_text('{"vouchers": 3}', encoding="utf-8")

    with pytest.raises(InvalidInput, match="cannot be read"):
        scene.store.read()
