"""Probes of a node: each fault is seen by the one probe that is about it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from winboot_lab.language.check import check_script

from tests.lab.site import Direct, Site
from tests.steps.builders import a_spec_of
from winboot.config.node_spec import NodeSpec
from winboot.node.probes import PROBES, Look, Probe, ServicePort, free_blocks, judge, look, probe_node
from winboot.remote.cluster.base import NodeFacts
from winboot.script.rendering import probes as probes_script

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
DNS = ServicePort("kube-system/kube-dns", "10.96.0.10", 53)


def a_look() -> dict[str, list[dict[str, Any]]]:
    """What a node says with which nothing is wrong."""
    return {
        "services": [
            {"name": name, "state": "Running", "ends": 0, "seconds": 700}
            for name in ("containerd", "kubelet", "flanneld", "kube-proxy")
        ],
        "processes": [{"name": "kubelet.exe", "count": 1}, {"name": "kube-proxy.exe", "count": 1}],
        "runtime": [
            {"name": "RuntimeReady", "ok": True, "message": ""},
            {"name": "NetworkReady", "ok": True, "message": ""},
        ],
        "networks": [
            {
                "name": "flannel.4096",
                "type": "Overlay",
                "management": "10.0.1.11",
                "router": "00-15-5D-01-02-03",
                "subnets": ["10.244.1.0/24"],
            }
        ],
        "endpoints": [{"name": "pod", "address": "10.244.1.4", "state": 3, "network": "flannel.4096"}],
        "balancers": [
            {
                "state": 2,
                "address": "10.96.0.10",
                "port": 53,
                "protocol": 6,
                "dsr": True,
                "source": "",
                "backends": 1,
            }
        ],
        "ports": [{"name": name, "range": "33000+32536", "excluded": []} for name in ("tcp", "udp")],
        "server": [{"server": "10.0.0.10:6443", "ok": True}],
        "disk": [{"drive": "C:\\", "free": 90, "size": 100, "image": True}],
        "clock": [{"now": NOW.isoformat(), "end": (NOW + timedelta(days=90)).isoformat()}],
    }


def a_node(spec: NodeSpec) -> NodeFacts:
    return NodeFacts(
        name=spec.node.name,
        version="1",
        ready=True,
        reason="",
        message="",
        system_uuid="",
        pod_cidrs=("10.244.1.0/24",),
        labels=spec.node.labels,
        annotations={"flannel.alpha.coreos.com/backend-data": '{"VNI":4096,"VtepMAC":"00:15:5d:01:02:03"}'},
        taints=spec.node.taints,
        addresses=(("InternalIP", "10.0.1.11"),),
        kubelet_version="",
        operating_system="windows",
    )


def judged(facts: dict[str, Any], node: NodeFacts | None = None) -> dict[str, Probe]:
    spec = a_spec_of("flannel-vxlan")
    found = judge(spec, Look(facts, at=NOW), node or a_node(spec), services=[DNS])
    return {one.id: one for one in found}


def test_a_node_that_works_passes_every_probe() -> None:
    found = judged(a_look())

    assert list(found) == list(PROBES)
    assert [one for one in found.values() if one.passed is not True] == []


FAULTS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("node-services", lambda f: f["services"][1].update(state="Stopped"), "kubelet is Stopped"),
    ("node-services", lambda f: f["services"][3].update(ends=4), "kube-proxy ended unexpectedly 4 times"),
    ("node-processes", lambda f: f["processes"][0].update(count=2), "2 processes of kubelet.exe"),
    ("node-runtime", lambda f: f["runtime"][1].update(ok=False, message="no plug-in"), "no plug-in"),
    ("node-runtime", lambda f: f["runtime"].clear(), "no answer"),
    ("node-network", lambda f: f["networks"][0].update(subnets=["10.244.9.0/24"]), "10.244.9.0/24"),
    ("node-network", lambda f: f["networks"][0].update(router="00-15-5D-FF-02-03"), "other nodes send to"),
    ("node-network", lambda f: f["networks"].clear(), "no HNS network flannel.4096"),
    ("node-endpoints", lambda f: f["endpoints"][0].update(state=1), "pod is in state 1"),
    ("node-services-in-hns", lambda f: f["balancers"].clear(), "kube-system/kube-dns 10.96.0.10:53"),
    ("node-services-in-hns", lambda f: f["balancers"][0].update(dsr=False), "without direct server return"),
    ("node-services-in-hns", lambda f: f["balancers"][0].update(state=1), "not in effect"),
    ("node-ports", lambda f: f["ports"][1].update(excluded=[[33000, 65400]]), "udp: 2 blocks"),
    ("node-server", lambda f: f["server"][0].update(ok=False), "does not accept a connection"),
    ("node-disk", lambda f: f["disk"][0].update(free=15), "15 % free on C:"),
    ("node-disk", lambda f: f["disk"][0].update(image=False), "pause image"),
    ("node-clock", lambda f: f["clock"][0].update(now=(NOW + timedelta(seconds=6)).isoformat()), "6 s off"),
    ("node-clock", lambda f: f["clock"][0].update(end=""), "no client certificate"),
    ("node-clock", lambda f: f["clock"][0].update(end=NOW.isoformat()), "certificate ends"),
]


@pytest.mark.parametrize(("id", "do", "words"), FAULTS)
def test_a_fault_is_seen_by_its_own_probe_and_no_other(id: str, do: Callable[[Any], Any], words: str) -> None:
    facts = copy.deepcopy(a_look())
    do(facts)

    found = judged(facts)

    assert [name for name, one in found.items() if not one.passed] == [id]
    assert words in found[id].seen
    assert found[id].cause and found[id].next


def test_what_only_winboots_files_answer_is_left_out_on_another_tools_node() -> None:
    facts = a_look()
    facts["maker"] = [{"id": "kubeadm", "what": "kubeadm, with NSSM", "changed": []}]
    facts["runtime"].clear()
    facts["disk"][0].update(image=False)
    facts["clock"][0].update(end="")
    facts["services"][3].update(state="", seconds=-1)

    found = judged(facts)

    left = {name: one for name, one in found.items() if not one.passed}
    assert list(left) == ["node-runtime", "node-disk", "node-clock"]
    assert all(
        one.left_out and one.passed is None and "kubeadm, with NSSM" in one.seen for one in left.values()
    )
    facts["services"][1].update(state="Stopped")
    assert judged(facts)["node-services"].seen == "kubelet is Stopped"


@pytest.mark.parametrize(("management", "passed"), [("10.0.1.11", True), ("", False)])
def test_any_network_will_do_where_another_owner_brings_one_without_a_name(
    management: str, passed: bool
) -> None:
    facts = a_look()
    facts["networks"][0].update(management=management)
    spec = a_spec_of("none")

    (found,) = [one for one in judge(spec, Look(facts, at=NOW), a_node(spec)) if one.id == "node-network"]

    assert found.passed is passed
    assert "repair" not in found.next


def test_what_kube_proxy_writes_on_each_overlay_is_no_fault() -> None:
    """A node port without direct server return, and an endpoint of its source address that is attached to nothing
    (lab/contracts/kube-proxy.yaml)."""
    facts = a_look()
    port = {"address": "", "port": 30080, "dsr": False}
    facts["balancers"].append({**facts["balancers"][0], **port})
    facts["endpoints"].append({**facts["endpoints"][0], "name": "", "address": "10.244.1.200", "state": 1})

    assert [name for name, one in judged(facts).items() if not one.passed] == []


def test_the_node_object_is_held_against_the_profile() -> None:
    spec = a_spec_of("flannel-vxlan")
    starting = replace(a_node(spec), taints=(*spec.node.taints, spec.node.startup_taint))

    assert "winboot.io/starting" in judged(a_look(), starting)["node-object"].seen
    assert judged(a_look(), replace(a_node(spec), ready=False, message="PLEG"))["node-object"].passed is False


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        ((("Hostname", "win-1"),), "NoNodeAddress: the Node has no address"),
        ((("InternalIP", "10.9.9.9"),), "OtherNodeAddress: the Node has 10.9.9.9; the machine has 10.0.1.11"),
    ],
)
def test_a_node_without_an_address_of_its_machine_has_a_probe_of_its_own(
    addresses: tuple[tuple[str, str], ...], words: str
) -> None:
    spec = a_spec_of("flannel-vxlan")
    facts = a_look() | {
        "interfaces": [{"address": "10.0.1.11", "alias": "Ethernet", "mtu": 1500, "forwarding": False}]
    }

    found = judged(facts, replace(a_node(spec), addresses=addresses))

    assert [name for name, one in found.items() if not one.passed] == ["node-address"]
    assert found["node-address"].seen == words
    assert "node_ip" in found["node-address"].next


def test_what_could_not_be_asked_is_neither_right_nor_wrong() -> None:
    facts = a_look()
    del facts["ports"]

    assert judged(facts)["node-ports"].passed is None


@pytest.mark.parametrize(
    ("range_", "excluded", "free"),
    [
        ("32768+128", [], 2),
        ("32768+128", [(32770, 32770)], 1),
        ("32769+127", [], 1),
        ("32768+63", [], 0),
        ("", [], 0),
    ],
)
def test_a_block_of_ports_is_free_when_no_reservation_touches_it(
    range_: str, excluded: list[tuple[int, int]], free: int
) -> None:
    assert free_blocks(range_, excluded) == free


def test_the_script_passes_the_strict_check() -> None:
    text = probes_script(a_spec_of("flannel-vxlan"))

    assert [str(one) for one in check_script(text, origin="probes")] == []


def test_a_joined_node_passes_and_its_services_are_waited_for_after_a_change(
    joined_site: Callable[[str], Site],
) -> None:
    site = joined_site("plain")
    controller = site.controller()
    spec, waited = site.specs()[0], []
    transport = Direct(controller, spec)
    site.machine.invoke("Restart-Service", {"Name": ["kube-proxy"]})

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return controller.stop.wait(seconds)

    cluster = controller._client(spec)
    found = probe_node(
        spec,
        transport,
        cluster.node("win-1"),
        services=[DNS],
        changed_s=5,
        wait=wait,
        now=cluster.server_time,
    )

    assert [one for one in found if one.passed is not True] == []
    assert len(waited) == 1 and 30 < waited[0] <= 60
    assert site.refusals == []


def test_a_service_that_ends_again_and_again_is_named(joined_site: Callable[[str], Site]) -> None:
    site = joined_site("plain")
    spec, controller = site.specs()[0], site.controller()
    kubelet = site.machine.processes.named("kubelet")[0]
    site.machine.processes.kill(kubelet.pid)
    site.settle(30)

    services = look(spec, Direct(controller, spec)).facts["services"]

    assert {one["name"]: one["ends"] for one in services}["kubelet"] == 1


@pytest.mark.parametrize(("off", "passed"), [(15, True), (16, False)])
def test_a_clock_that_was_read_within_a_long_look_is_right(off: int, passed: bool) -> None:
    """The look took 20 seconds, and the machine read its clock in one of them. Two machines of a busy lab were "12 s off"."""
    spec, facts = a_spec_of("flannel-vxlan"), a_look()
    facts["clock"][0]["now"] = (NOW + timedelta(seconds=off)).isoformat()

    found = judge(spec, Look(facts, at=NOW, margin=timedelta(seconds=10)), a_node(spec), services=[DNS])

    assert [one.passed for one in found if one.id == "node-clock"] == [passed]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"VtepMAC":' + "[" * 100_000, '{"VtepMAC":5}', "5", "null", "", "nonsense"]
)
def test_an_annotation_of_another_form_names_no_router(text: str) -> None:
    """A kubelet may write it; it must not end the probes."""
    node = a_node(a_spec_of("flannel-vxlan"))
    node = replace(node, annotations={"flannel.alpha.coreos.com/backend-data": text})

    assert judged(a_look(), node)["node-network"].passed is True
