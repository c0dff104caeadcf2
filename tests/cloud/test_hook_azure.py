"""A scale set goes from 0 to 3 to 1: ARM is the stand-in (TLS, pages, 429, long operations), the machines are canned.

What Azure says it says by what there is and by scheduled events, so that a killed worker is followed by one that sees the
same. `tests/cloud/test_hook_azure_lab.py` plays the same story with machines of the lab.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster.identity import user

from tests.cloud.azure_arm import SUBSCRIPTION, Arm
from tests.cloud.azure_fixtures import an_arm, an_azure
from tests.cloud.hook_bench import Bench, CannedMachine, Killed, Tap, a_bench
from tests.cloud.test_metadata import MALFORMED
from winboot.config.annotations import CORDON, EVENTS
from winboot.operations.hook import Worker
from winboot.operations.hook.dry_run import forecasts
from winboot.operations.hook.metrics import Log
from winboot.remote.cloud.azure import Repairs, ScaleSet
from winboot.remote.cloud.azure_names import ResourceId
from winboot.remote.cloud.azure_policy import actions
from winboot.remote.cloud.azure_queue import AzureQueue, seconds_of, unfit
from winboot.remote.cloud.base import Message, Query

NOTICE = {
    "scheduledEventsProfile": {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}}
}


class WithTasks(AzureQueue):
    """Before each look the machines' tasks have written what their metadata services list (lib/events.ps1)."""

    world: World

    def receive(self, most: int, visibility: int) -> list[Message]:
        self.world.tasks()
        return super().receive(most, visibility)


@dataclass
class World:
    """A scale set without instances, and the cluster."""

    arm: Arm
    bench: Bench
    pool: str
    log: StringIO
    # Nodes whose machines' tasks write nothing.
    silent: set[str] = field(default_factory=set)

    def worker(self, name: str = "one", tap: Tap | None = None, **settings: Any) -> Worker:
        """A new process: its work, and the queue that sees by it."""
        tap, pace = tap or Tap(), self.bench.pace(name)
        work = self.bench.work(tap, **settings)
        queue = WithTasks(
            self.bench.provider,
            work,
            work.context.connect,
            pace.stop().wait,
            Log(self.log),
            clock=pace.now,
        )
        queue.world = self
        worker = self.bench.worker(queue, name, tap=tap, work=work, pace=pace, idle=35.0)

        def wait(seconds: float) -> bool:
            # A worker that is driven twice has another signal.
            return worker.stop.wait(seconds)

        queue.wait = wait
        return worker

    def tasks(self) -> None:
        """Each machine that is a node writes what concerns it into its Node, unless its kubelet has written something else."""
        annotations = {
            one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in self.bench.nodes()
        }
        for machine in self.bench.machines.values():
            name = machine.spec.node.name
            if name not in annotations or machine.modes == [] or name in self.silent:
                continue
            status, body = machine.metadata("GET", "")
            events = json.loads(body)["Events"] if status == 200 and machine.lies is None else []
            own = ResourceId.parse(machine.provider_id).machine_name
            text = ";".join(written(one) for one in events if own in one["Resources"])
            if annotations[name].get(EVENTS, "") != text:
                tells(self, name, text)

    def machine(self, name: str) -> CannedMachine:
        """The machine of a Node."""
        return next(one for one in self.bench.machines.values() if one.spec.node.name == name)

    def gone_are_silent(self) -> None:
        """The node controller's word on Nodes whose machines are gone."""
        there = {one["properties"]["osProfile"]["computerName"] for one in self.arm.children(self.pool)}
        for node in self.bench.nodes():
            if node["metadata"]["name"] not in there:
                self.not_ready(node["metadata"]["name"])

    def protections(self) -> list[bool]:
        """The requests about instance protection, in order."""
        policies = [
            body["properties"].get("protectionPolicy") for _, body in self.arm.bodies if "properties" in body
        ]
        return [one["protectFromScaleIn"] for one in policies if one]

    def not_ready(self, name: str) -> None:
        """The node controller's word on a kubelet that is silent."""
        self.bench.report(user(f"system:node:{name}", "system:nodes"), name, "", ready=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with (
        an_arm(tmp_path) as (arm, certificate),
        a_bench(tmp_path, "pool.azure.yaml", subscription_id=SUBSCRIPTION) as bench,
    ):
        bench.provider, bench.metadata = an_azure(arm, certificate), arm.metadata
        pool = arm.add_set("pool", virtualMachineProfile=NOTICE, singlePlacementGroup=True)
        yield World(arm, bench, pool, StringIO())
        bench.provider.close()
        assert not arm.unknown


def test_a_scale_set_goes_from_0_to_3_to_1_without_a_command(world: World) -> None:
    world.arm.scale(world.pool, 3)
    world.arm.throttled = 1
    worker = world.worker()

    assert world.bench.drive(worker) == ["continue"] * 3
    assert sorted(world.bench.open_nodes()) == ["pool000000", "pool000001", "pool000002"]
    assert sorted(world.protections()) == [False] * 3 + [True] * 3
    assert world.bench.drive(worker) == []

    world.arm.scale_in(world.pool, 1)
    assert world.bench.drive(worker) == ["done"] * 2
    assert world.bench.open_nodes() == ["pool000000"]
    assert len(world.arm.approved) == 2 and world.arm.events == []
    assert [one["name"] for one in world.arm.children(world.pool)] == ["0"]
    assert world.bench.leases() == []
    # Machines outside of scale sets are listed as well, where there are any.
    alone = {"Microsoft.Network/networkInterfaces/read"}
    assert world.arm.actions | alone == set(actions(("hook",)))


@pytest.mark.parametrize("at", [3, 9, 15, 21])
def test_a_worker_that_is_killed_is_followed_by_one_that_ends_the_work(world: World, at: int) -> None:
    world.arm.scale(world.pool, 1)
    first = world.worker(tap=Tap(die_at=at))
    with pytest.raises(Killed):
        world.bench.drive(first)
    assert world.bench.drive(world.worker("next"))[-1] == "continue"
    assert world.bench.open_nodes() == ["pool000000"]
    (host,) = world.bench.provider.hosts(Query())
    assert (host.data["protected"], host.tags) == (False, {})

    world.arm.scale(world.pool, 2)
    world.bench.drive(world.worker("third"))
    world.arm.scale_in(world.pool, 1)
    with pytest.raises(Killed):
        world.bench.drive(world.worker("fourth", tap=Tap(die_at=at // 3)))
    world.gone_are_silent()
    # Killed after the approval, it has left nothing to do but the Node of a machine that is gone.
    assert world.bench.drive(world.worker("fifth"))[-1:] in (["done"], [])
    assert world.bench.open_nodes() == ["pool000000"] and len(world.arm.approved) == 1


def test_a_machine_that_never_boots_is_abandoned_and_rests(world: World) -> None:
    """Azure has no answer to a machine that did not come: it is left, and tried again later."""
    world.bench.dead = 1
    world.arm.scale(world.pool, 1)
    worker = world.worker()

    assert world.bench.drive(worker, seconds=1000.0) == ["abandon"]
    (done,) = [one for one in world.bench.said(worker) if one["message"] == "done"]
    assert "connection refused" in done["reason"]
    assert world.protections() == [True, False]
    assert world.bench.drive(worker, seconds=600.0) == []
    (machine,) = world.bench.machines.values()
    machine.dead = False
    assert world.bench.drive(world.worker("after a restart")) == ["continue"]


def lists(world: World) -> list[str]:
    """The requested lists of machines and interfaces, by the last word of their paths."""
    words = ("virtualMachines", "networkInterfaces", "virtualMachineScaleSets")
    asked = [path.rpartition("/")[2] for method, path in world.arm.requests if method == "GET"]
    return [one for one in asked if one in words]


def test_a_look_lists_the_machines_once_however_many_are_joined(world: World) -> None:
    """Reads of a subscription are limited (429): what a look has found is passed on to each machine's work."""
    found = []
    for size in (1, 5):
        world.arm.requests.clear()
        world.arm.scale(world.pool, size)
        assert world.bench.drive(world.worker(), seconds=20.0) == ["continue"] * (size - len(found))
        found.append(lists(world).count("virtualMachineScaleSets"))
        # Protected and let go again, each read and waited for: what concerns one machine costs the same for each.
        reads = [
            path for method, path in world.arm.requests if method == "GET" and "/virtualMachines/" in path
        ]
        assert len(reads) == 4 * (size - len(found) + 1)

    # The groups at the start, and one look.
    assert found == [2, 2]


def test_silent_nodes_of_gone_machines_cost_one_more_list(world: World) -> None:
    world.arm.scale(world.pool, 3)
    worker = world.worker()
    world.bench.drive(worker, seconds=20.0)
    plain = lists(world).count("virtualMachineScaleSets")
    world.arm.scale(world.pool, 0)
    for number in range(3):
        world.not_ready(f"pool{number:06}")
    world.arm.requests.clear()

    assert world.bench.drive(world.worker("next"), seconds=20.0) == []

    assert world.bench.nodes() == []
    assert lists(world).count("virtualMachineScaleSets") == plain + 1


def test_a_flexible_sets_machine_is_joined_unprotected_and_the_log_says_so(world: World) -> None:
    world.arm.add_set("flex", mode="Flexible", virtualMachineProfile=NOTICE)
    world.arm.add_machine("flex_0", address="10.2.1.9", computer_name="flex000000", scale_set="flex")

    assert world.bench.drive(world.worker()) == ["continue"]

    assert world.bench.open_nodes() == ["flex000000"] and world.protections() == []
    assert "no instance protection" in world.log.getvalue()


def test_what_a_person_has_protected_stays_protected(world: World) -> None:
    world.arm.scale(world.pool, 1)
    (instance,) = world.arm.children(world.pool)
    instance["properties"]["protectionPolicy"] = {"protectFromScaleIn": True}

    world.bench.drive(world.worker())

    assert world.protections() == []


def test_a_node_whose_machine_is_gone_without_notice_is_deleted_when_it_is_silent(world: World) -> None:
    world.arm.scale(world.pool, 2)
    worker = world.worker()
    world.bench.drive(worker)
    world.arm.scale(world.pool, 1)

    assert world.bench.drive(worker) == []
    assert len(world.bench.nodes()) == 2
    world.not_ready("pool000001")
    assert world.bench.drive(worker) == []

    assert world.bench.open_nodes() == ["pool000000"]
    assert "gone without notice" in world.log.getvalue()


def test_a_machine_that_another_inventory_means_is_left_alone(world: World) -> None:
    world.arm.add_set("linux", 0)
    world.arm.add_machine("alone", address="10.1.0.9", os="Linux")

    assert world.bench.drive(world.worker()) == [] and world.bench.machines == {}


def test_a_machine_that_joins_by_itself_is_finished_here(world: World) -> None:
    """Serving certificate, labels and taints, and last the startup taint; no script of winboot runs on it."""
    world.arm.scale(world.pool, 1)
    worker = world.worker(self_registering=True)
    (target,) = worker.work.targets()
    assert world.bench.drive(worker, seconds=1000.0) == ["abandon"]
    world.bench.register(target.spec, target.member.identity.provider_id, "uuid")

    assert world.bench.drive(world.worker("two", self_registering=True)) == ["continue"]

    assert world.bench.open_nodes() == ["pool000000"]
    (node,) = world.bench.nodes()
    assert "winboot.io/owned" in node["metadata"]["annotations"]
    requests = world.bench.admin("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
    assert [one["status"]["conditions"][0]["type"] for one in requests] == ["Approved"]
    assert [one.modes for one in world.bench.machines.values() if one.modes] == []


def test_a_node_of_that_name_that_is_another_machine_is_not_finished(world: World) -> None:
    world.arm.scale(world.pool, 1)
    worker = world.worker(self_registering=True)
    (target,) = worker.work.targets()
    world.bench.register(target.spec, "azure:///subscriptions/another", "uuid")

    assert world.bench.drive(worker, seconds=1000.0) == ["abandon"]
    assert world.bench.open_nodes() == []


def cordoned(world: World) -> list[bool]:
    return [bool(one["spec"].get("unschedulable")) for one in world.bench.nodes()]


def test_a_spot_machine_is_cordoned_drained_let_go_and_its_node_goes_with_it(world: World) -> None:
    world.arm.scale(world.pool, 2)
    worker, seen = world.worker(), []
    world.bench.drive(worker)
    in_time = soon(worker)
    world.arm.plan("pool_1", "Preempt", in_time)
    plain = worker.work.drain

    def drain(place: Any, seconds: float, over: Any) -> str:
        seen.append((place.node.name, cordoned(world), world.arm.approved.copy(), 0 < seconds <= 30))
        return plain(place, seconds, over)

    worker.work.__class__ = type("Noted", (type(worker.work),), {"drain": staticmethod(drain)})

    assert world.bench.drive(worker) == ["done"]

    assert seen == [("pool000001", [False, True], [], True)]
    assert len(world.arm.approved) == 1 and world.bench.open_nodes() == ["pool000000"]


def tells(world: World, name: str, text: str) -> None:
    """What the task of a machine writes into its Node, as its kubelet may."""
    patch = {"metadata": {"annotations": {EVENTS: text}}}
    kubelet = user(f"system:node:{name}", "system:nodes")
    path, kind = f"/api/v1/nodes/{name}", "application/merge-patch+json"
    world.bench.lab.request(kubelet, "PATCH", path, patch, content_type=kind)


def planned(world: World, name: str) -> str:
    """The event that a machine's metadata service lists for it, in the words of its task."""
    (event,) = [one for one in world.arm.events if name in one["Resources"]]
    return written(event)


def written(event: dict[str, Any]) -> str:
    return "|".join(event[key] for key in ("EventType", "EventStatus", "EventId", "NotBefore"))


def soon(worker: Worker, seconds: float = 30.0) -> str:
    """A time in so many seconds, as Azure writes it."""
    return format_datetime(worker.pace.today() + timedelta(seconds=seconds), usegmt=True)


def test_what_a_machine_reports_is_done_before_the_next_look(world: World) -> None:
    """Its notice is over before the next look (--every 3600)."""
    world.arm.scale(world.pool, 2)
    worker = world.worker()
    world.bench.drive(worker, seconds=20.0)
    queue_of(worker).every = 3600.0
    world.silent.add("pool000001")
    event = soon(worker, 60.0)

    def preempt() -> None:
        world.arm.plan("pool_1", "Preempt", event)
        tells(world, "pool000001", planned(world, "pool_1"))

    at = world.bench.kernel.now + 50.0
    seen: list[list[bool]] = []
    world.bench.kernel.at(at, preempt)
    world.bench.kernel.at(at + 5.0, lambda: seen.append(cordoned(world)))

    assert world.bench.drive(worker, seconds=100.0) == ["done"]
    # Cordoned, drained, let go, and deleted with its machine, in five seconds.
    assert seen == [[False]]
    assert len(world.arm.approved) == 1 and world.bench.open_nodes() == ["pool000000"]


def queue_of(worker: Worker) -> AzureQueue:
    """The queue behind a worker's tap."""
    queue: AzureQueue = worker.queue._inner  # type: ignore[attr-defined]
    return queue


def two_nodes(world: World) -> Worker:
    """A worker with two machines that it has joined. The second one lies from now on."""
    world.arm.scale(world.pool, 2)
    worker = world.worker()
    world.bench.drive(worker, seconds=40.0)
    world.silent.add("pool000001")
    return worker


def test_a_machine_that_lies_about_events_is_drained_itself(world: World) -> None:
    worker = two_nodes(world)
    tells(world, "pool000001", "Reboot|Scheduled|pool_0|;Reboot|Scheduled|pool000000|")

    assert set(world.bench.drive(worker, seconds=40.0)) == {"done"}

    assert cordoned(world) == [False, True] and world.arm.approved == []


def test_a_machine_that_reports_anothers_event_does_not_begin_it(world: World) -> None:
    worker = two_nodes(world)
    world.silent.add("pool000000")
    world.arm.plan("pool_0", "Reboot", soon(worker, 3600.0))
    tells(world, "pool000001", planned(world, "pool_0"))

    world.bench.drive(worker, seconds=60.0)

    assert world.arm.approved == []
    assert "pool000000" in world.bench.open_nodes() and cordoned(world) == [False, True]
    event = world.arm.events[0]["EventId"]
    assert {one["event"] for one in world.bench.said(worker) if "event" in one} == {event}, "the log names it"


def test_a_machine_in_no_set_reports_like_others(world: World) -> None:
    world.arm.add_machine("alone", address="10.1.0.9", computer_name="alone")
    worker = world.worker()
    world.bench.drive(worker)
    world.arm.plan("alone", "Reboot")

    assert world.bench.drive(worker, seconds=20.0) == ["done"]

    assert cordoned(world) == [True] and len(world.arm.approved) == 1


@pytest.mark.parametrize("one_group", [True, False], ids=["one placement group", "several"])
@pytest.mark.parametrize("liar", [0, 1, 2])
def test_a_machine_that_reports_the_end_of_others_ends_none_of_them(
    world: World, liar: int, one_group: bool
) -> None:
    """Its metadata service and its kubelet lie; ARM lists the others as running, and they report nothing."""
    world.arm.resources[world.pool.lower()]["properties"]["singlePlacementGroup"] = one_group
    world.arm.scale(world.pool, 3)
    worker = world.worker()
    world.bench.drive(worker)
    others = [f"pool_{one}" for one in range(3) if one != liar]
    events = [
        {
            "EventId": one.replace("pool_", "E-"),
            "EventType": "Terminate",
            "EventStatus": "Scheduled",
            "Resources": [one],
            "NotBefore": "",
        }
        for one in others
    ]
    name = f"pool{liar:06}"
    world.machine(name).lies = lambda method, content: (200, json.dumps({"Events": events}))
    world.silent.add(name)
    tells(world, name, ";".join(map(written, events)))

    world.bench.drive(worker, seconds=100.0)

    assert world.bench.open_nodes() == ["pool000000", "pool000001", "pool000002"]
    assert cordoned(world) == [one == liar for one in range(3)] and world.arm.approved == []


def test_a_malformed_answer_costs_its_own_machine_only(world: World) -> None:
    """A proxy answers at the metadata address, say: the worker continues, and joins the next machine."""
    count = len(MALFORMED)
    world.arm.scale(world.pool, count)
    worker = world.worker()
    world.bench.drive(worker, seconds=40.0)
    for number, line in enumerate(MALFORMED):
        world.arm.plan(f"pool_{number}", "Reboot", soon(worker, 3600.0))
        world.machine(f"pool{number:06}").answers = line
    world.arm.scale(world.pool, count + 1)

    outcomes = world.bench.drive(worker, seconds=40.0)

    assert set(outcomes) == {"continue", "done"} and outcomes.count("continue") == 1

    assert cordoned(world) == [True] * count + [False] and world.arm.approved == []
    assert world.log.getvalue().count("was not approved") >= count


def test_a_provider_id_of_another_form_stops_no_look(world: World) -> None:
    """A kubelet chooses it, and its Node may be silent."""
    world.arm.scale(world.pool, 1)
    worker = world.worker()
    (target,) = worker.work.targets()
    other = replace(target.spec, node=replace(target.spec.node, name="odd"))
    world.bench.register(other, "azure://../../odd", "uuid", ready=False)

    assert world.bench.drive(worker) == ["continue"]

    assert "pool000000" in world.bench.open_nodes() and len(world.bench.nodes()) == 2


@pytest.mark.parametrize("kind", ["Reboot", "Redeploy"])
def test_a_machine_that_comes_back_is_drained_before_and_takes_pods_after(world: World, kind: str) -> None:
    world.arm.scale(world.pool, 1)
    worker = world.worker()
    world.bench.drive(worker)
    world.arm.plan("pool_0", kind)

    assert world.bench.drive(worker, seconds=20.0) == ["done"]
    assert cordoned(world) == [True] and len(world.arm.approved) == 1
    assert world.bench.drive(worker) == []
    assert cordoned(world) == [False] and "takes pods again" in world.log.getvalue()


def test_a_cordon_that_is_not_for_an_event_stays(world: World) -> None:
    """An upgrade's, while its node is Ready again and not proved yet."""
    world.arm.scale(world.pool, 1)
    worker = world.worker()
    world.bench.drive(worker)
    (node,) = world.bench.nodes()
    node["metadata"].setdefault("annotations", {})[CORDON] = "true"
    node["spec"]["unschedulable"] = True
    world.bench.admin("PUT", f"/api/v1/nodes/{node['metadata']['name']}", node)

    world.bench.drive(worker)

    assert cordoned(world) == [True]


def test_a_freeze_is_noted_once_and_nothing_else(world: World) -> None:
    world.arm.scale(world.pool, 1)
    worker = world.worker()
    world.bench.drive(worker)
    world.arm.plan("pool_0", "Freeze")

    assert world.bench.drive(worker) == []
    assert cordoned(world) == [False] and world.arm.approved == []
    assert world.log.getvalue().count("noted only") == 1


def test_a_machine_whose_end_begins_during_its_join_is_drained_after_it(world: World) -> None:
    """It reports nothing before it is a node."""
    world.arm.scale(world.pool, 1)
    world.bench.drive(world.worker())
    world.arm.scale(world.pool, 2)
    tap = Tap()
    worker = world.worker(tap=tap)
    tap.before["machine.run"] = lambda: world.arm.scale_in(world.pool, 1)

    assert world.bench.drive(worker) == ["continue", "done"]

    assert world.bench.open_nodes() == ["pool000000"] and len(world.arm.approved) == 1


def test_a_machine_that_never_boots_holds_no_worker(world: World) -> None:
    world.bench.dead = 1
    world.arm.scale(world.pool, 2)
    worker = world.worker()
    worker.settings = replace(worker.settings, workers=1)

    assert world.bench.drive(worker, seconds=1000.0) == ["continue", "abandon"]

    done = [one["result"] for one in world.bench.said(worker) if one["message"] == "done"]
    assert done == ["CONTINUE", "ABANDON"] and len(world.bench.open_nodes()) == 1


def a_set(**changes: Any) -> ScaleSet:
    given: dict[str, Any] = {
        "repairs": Repairs(enabled=True, grace="PT45M", action="Replace"),
        "notice": "PT10M",
    }
    return ScaleSet("rg-pool", "pool", changes.pop("uniform", True), 3, **{**given, **changes})


def test_a_scale_set_that_works_against_the_hook_is_named() -> None:
    assert list(unfit(a_set(), 2400.0)) == []
    (grace,) = unfit(a_set(repairs=Repairs(enabled=True, grace="PT10M")), 2400.0)
    assert "PT10M" in grace and "2400" in grace
    (flexible,) = unfit(a_set(uniform=False), 2400.0)
    assert "Flexible" in flexible and "protection" in flexible
    (notice,) = unfit(a_set(notice=""), 2400.0)
    assert "terminateNotificationProfile" in notice
    assert [seconds_of(text) for text in ("PT10M", "PT1H30M", "PT30S", "", "10")] == [600, 5400, 30, 0, 0]


def test_a_dry_run_says_what_a_scale_set_leads_to_and_does_nothing(world: World) -> None:
    world.arm.scale(world.pool, 1)

    def would() -> list[str]:
        """With a signal that comes instead of the pause before a second look."""
        worker = world.worker()
        hooks: Any = worker.queue
        hooks._inner.wait = lambda seconds: seconds > 0
        return [what for _, what in forecasts(hooks, worker.work)]

    assert (would(), would()) == (["join pool000000"], ["join pool000000"])
    assert (world.bench.nodes(), world.bench.leases(), world.protections(), world.arm.approved) == (
        [],
        [],
        [],
        [],
    )
    assert {mode for machine in world.bench.machines.values() for mode in machine.modes} == set()

    worker = world.worker()
    world.bench.drive(worker)
    before = world.protections()
    world.arm.plan("pool_0", "Preempt", soon(worker, 300.0))

    assert would() == ["cordon and drain pool000000: Preempt"]
    assert (world.bench.open_nodes(), world.arm.approved, world.protections()) == (["pool000000"], [], before)
