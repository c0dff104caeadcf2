"""After a restart the node comes back by itself: services that Windows gave up on are started by the startup task."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import count

import pytest
from winboot_lab.windows.door import MachineStopped

from tests.lab.actions import sc, stop
from tests.steps.bench import Bench
from tests.steps.builders import a_spec
from tests.steps.library import call
from tests.steps.nodes import Node
from winboot.config.node_spec import NodeSpec

SERVICES = ("containerd", "kubelet", "flanneld", "kube-proxy")
JOURNAL = r"C:\ProgramData\winboot\journal.jsonl"


def states(node: Node) -> dict[str, str]:
    """How winboot's services run."""
    found = [node.machine.services.find(name) for name in SERVICES]
    return {one.name: one.status for one in found if one is not None}


def journal(node: Node, kind: str) -> list[dict]:
    """The events of one kind in the node's journal."""
    lines = node.machine.files.text(JOURNAL).splitlines()
    return [event for event in (json.loads(line)["event"] for line in lines) if event["event"] == kind]


def restart(node: Node, seconds: float = 10) -> None:
    """A restart, and so long after it."""
    node.machine.reboot(seconds=1)
    node.site.settle(seconds)


def test_services_that_windows_gave_up_on_are_started(node: Node):
    """containerd did not answer in 30 seconds; what depends on it was given up as well."""
    node.machine.faults.times_out("containerd", times=1)
    restart(node, 100)

    assert set(states(node).values()) == {"Running"}
    assert "containerd" in {event["service"] for event in journal(node, "service-fallen")}
    node.site.settle(240)
    assert node.site.plan().exit_code == 0


def test_a_service_whose_program_was_missing_when_windows_started_it_is_started(node: Node):
    """A power cut between two renames left it under another name, and the startup task put it back."""
    place = r"C:\k\versions\kubernetes-1.36.5\kubelet.exe"
    node.machine.files.write(
        r"C:\ProgramData\winboot\old-files.txt", rf"{place}.winboot-old|{place}".encode() + b"\n"
    )
    node.machine.power_off()
    node.machine.files.move(place, rf"{place}.winboot-old")
    node.machine.power_on()
    node.site.settle(300)

    assert node.machine.files.exists(place)
    assert set(states(node).values()) == {"Running"}


def test_a_service_that_stays_down_is_reported(node: Node):
    node.machine.faults.times_out("containerd", times=1000)
    restart(node, 1100)

    (told,) = journal(node, "services-down")
    assert len(told["services"]) == 2, "the agent and kube-proxy do not start by themselves"
    assert [one.split(":")[0] for one in told["services"]] == ["containerd", "kubelet"]


def test_a_service_that_a_person_stopped_stays_stopped(node: Node):
    restart(node, 12)
    node.after(sc("stop", "kube-proxy"))
    node.site.settle(300)

    assert states(node)["kube-proxy"] == "Stopped"


def test_a_service_that_is_disabled_stays_down(node: Node):
    node.after(sc("config", "kubelet", "start=", "disabled"))
    node.machine.faults.times_out("containerd", times=1)
    restart(node, 300)

    assert states(node)["kubelet"] == "Stopped"
    assert states(node)["containerd"] == "Running"


@pytest.mark.check
@pytest.mark.parametrize("manager", ["sc", "nssm"])
def test_a_service_that_a_cut_left_half_made_does_not_start_with_the_machine(manager: str):
    """Without its arguments flanneld would run against etcd, without its environment with another node's name."""
    spec = a_spec(**{"manager: sc": f"manager: {manager}"})
    whole = definition(whose_power_is_cut(spec, at=1000))
    assert whole is not None and whole["start"] == 2
    cuts = [definition(whose_power_is_cut(spec, at=call)) for call in range(3, 30, 5)]

    half = [found for found in cuts if found not in (None, whole)]
    assert half
    assert {found["start"] for found in half} == {3}


def whose_power_is_cut(spec: NodeSpec, *, at: int) -> Bench:
    """A machine that is up again after a cut before that operation of the step that makes a service."""
    bench = Bench(spec=spec)
    bench.run("directories")
    calls = count(1)
    bench.machine.faults.watch_writes(lambda *_: bench.machine.power_off() if next(calls) == at else None)
    with suppress(MachineStopped):
        bench.run("containerd")
    if not bench.machine.running:
        bench.machine.power_on()
    bench.machine.settle(60)
    return bench


def definition(bench: Bench) -> dict[str, object] | None:
    """What the control manager knows of the service."""
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\containerd"
    found = bench.machine.registry.walk(key) if bench.machine.registry.exists(key) else ()
    values = {f"{path}\\{value.name}": value.data for path, each in found for value in each.values.values()}
    return {name.lower().removeprefix(f"{key}\\".lower()): data for name, data in values.items()} or None


def test_a_slow_start_is_no_failure_and_is_reported_until_the_next_restart(node: Node):
    """Windows has 30 seconds of patience: the next one may fail."""
    node.spoiled = True
    everything = ("kube-proxy", "flanneld", "kubelet", "containerd")
    node.after(*(sc("stop", name) for name in everything))
    node.machine.faults.starts_slowly("containerd", 45)

    assert node.change("containerd").states == {"containerd": "changed"}

    slow = "service containerd: time to start"
    (told,) = [
        one for one in node.look("containerd").step("containerd")["differences"] if one["what"] == slow
    ]
    assert told["policy"]
    assert 44 <= int(told["is"].split()[0]) <= 60
    node.machine.faults.starts_slowly("containerd", 1)
    restart(node, 200)
    assert slow not in node.look("containerd").differences("containerd")


def test_a_service_that_came_up_late_after_a_restart_is_reported(node: Node):
    node.spoiled = True
    node.machine.faults.times_out("containerd", times=1)
    restart(node, 240)

    told = node.look("containerd").step("containerd")
    assert told["state"] == "ok"
    assert [(one["what"], one["policy"]) for one in told["differences"]] == [
        ("service containerd: time to start", True)
    ]


START = """
$script:Run = New-Run -Mode Boot -Id r -Steps @(@{ Name = 'kubelet' }) -Secrets @{} -Facts @{} -Text ''
Start-FailedService
"""


def test_nothing_is_started_while_a_run_works_on_the_machine(node: Node):
    """It starts services itself, the network's agent only under its guard."""
    node.after(stop("kubelet"))
    node.machine.services.need("kubelet").exit_code = 1053
    with node.machine.session("Administrator") as session:
        handle = session.invoke("mutex.create", {"name": r"Global\winboot"}).objects[0]["handle"]
        session.invoke("mutex.wait", {"handle": handle, "milliseconds": 0})
        assert call(node, START).objects == ["kubelet"]
        assert states(node)["kubelet"] == "Stopped"

    assert call(node, START).objects == ["kubelet"]
    assert states(node)["kubelet"] == "Running"


def test_a_service_that_is_starting_is_waited_for_before_it_is_stopped(node: Node):
    node.after(
        sc("stop", "kube-proxy"), sc("stop", "flanneld"), sc("stop", "kubelet"), sc("stop", "containerd")
    )
    node.machine.faults.starts_slowly("containerd", 40)
    node.after(sc("start", "containerd"))
    assert states(node)["containerd"] == "StartPending"

    assert node.undo("containerd").step("containerd")["state"] == "changed"


@pytest.mark.parametrize("name", ["containerd", "kubelet"])
def test_why_a_service_died_is_in_the_problem(node: Node, name: str):
    node.after(
        sc("stop", "kube-proxy"), sc("stop", "flanneld"), sc("stop", "kubelet"), sc("stop", "containerd")
    )
    node.machine.faults.times_out(name, times=9)

    problem = node.change(name).problem(name)

    assert problem.id == "ServiceState"
    assert "(exit code 1053)" in problem.message
