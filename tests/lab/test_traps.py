"""The traps of a Windows node: a join whose script falls into one fails as it does on a real node.

One thing is falsified in the script that runs, so that winboot believes in it and only the node itself shows the fault. The
last column has the message of containerd, kubelet, kube-proxy, flanneld, HNS or Windows, or the machine's state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.cluster import ClusterPlan

from tests.lab import actions
from tests.lab.scenes import PROFILES, SCENES
from tests.lab.site import NodePlan, Site, only, problems
from tests.matrix import first
from winboot.node.run import Patience
from winboot.report.results import Report

Falsify = Callable[[str], str]


@dataclass(frozen=True)
class Place:
    """The place of a join: the profile's settings, the cluster, and an administrator's actions before and after it."""

    name: str
    wishes: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    cluster: Callable[[], ClusterPlan] = ClusterPlan
    before: Callable[[Site], object] = lambda site: None
    after: Callable[[Site], object] = lambda site: None

    def site(self, folder: Path) -> Site:
        """A bare machine there."""
        profile = PROFILES / f"{self.profile}.yaml" if self.profile else None
        plan = NodePlan("win-1", "2022", "10.0.1.11")
        site = Site(folder, plan, cluster=self.cluster(), wishes=self.wishes, profile=profile)
        self.before(site)
        return site


@dataclass(frozen=True)
class Trap:
    """`mutate` makes the false script, `told` is the message on the node, `effect` a check of the node's state.

    `well` means that the node seems well until a pod needs the missing part.
    """

    sentence: str
    mutate: Falsify
    told: str = ""
    effect: Callable[[Site], object] | None = None
    place: Place = field(default_factory=lambda: HOST_GW)
    well: bool = False


def put(pattern: str, new: str, *, where: str = "") -> Falsify:
    """Replace every place that matches, in the step of a name or anywhere among the steps; there must be one."""

    def mutate(script: str) -> str:
        begin = script.index("#region Steps")
        end = script.index("#endregion", begin)
        if where:
            begin = script.index(f"\nName = '{where}'\n", begin, end)
            following = script.find("\nName = '", begin + 1, end)
            end = end if following < 0 else following
        falsified, count = re.subn(pattern, lambda match: match.expand(new), script[begin:end])
        assert count, pattern
        return script[:begin] + falsified + script[end:]

    return mutate


def everywhere(pattern: str, new: str) -> Falsify:
    """Replace in the library, too."""

    def mutate(script: str) -> str:
        falsified, count = re.subn(pattern, lambda match: match.expand(new), script)
        assert count, pattern
        return falsified

    return mutate


def both(*mutations: Falsify) -> Falsify:
    """One after the other."""

    def mutate(script: str) -> str:
        for each in mutations:
            script = each(script)
        return script

    return mutate


def addresses(site: Site) -> set[str]:
    """The kinds of address in the Node's status."""
    return {one["type"] for one in site.node()["status"]["addresses"]}


def run_pod(site: Site) -> None:
    """Start a pod."""
    pods = "/api/v1/namespaces/default/pods"
    site.admin("POST", pods, {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}})
    site.settle(30)


def restart(site: Site) -> None:
    """Windows updates itself, say."""
    site.machine.reboot()
    site.settle(1500)


def delays(site: Site, service: str) -> list[str]:
    """What `sc.exe qfailure` shows."""
    shown = actions.program(site, r"C:\Windows\System32\sc.exe", "qfailure", service).stdout.decode()
    return re.findall(r"Delay = (\d+ milliseconds)", shown)


def behind_a_proxy(site: Site) -> None:
    """The registry answers only through the proxy, as the machine's variables say since a moment after its restart."""
    site.internet.proxy("proxy.lab", 3128)
    site.internet.behind_proxy.add("registry.k8s.io")


def has_address(site: Site) -> bool:
    """Whether the machine is where its inventory says."""
    return site.machine.network.holder("10.0.1.11") is not None


HOST_GW: Final = Place("a bridge with a pod on it", after=run_pod)
VXLAN: Final = Place(
    "an overlay and a restart", profile="flannel-vxlan", cluster=SCENES["vxlan"].cluster, after=restart
)
OLDER: Final = Place(
    "an older kubelet",
    wishes={"kubernetes": {"version": "1.30.14"}},
    cluster=lambda: ClusterPlan(version="1.30.14"),
)
PROXIED: Final = Place(
    "a registry behind a proxy",
    wishes={"proxy": {"https": "http://proxy.lab:3128", "no_proxy": [".lab"]}},
    before=behind_a_proxy,
)
PLACES: Final = (HOST_GW, VXLAN, OLDER, PROXIED)

# The rewiring as part of the session that it cuts off; startup task and guard that do nothing; an agent that Windows
# itself starts with the machine.
IN_THE_SESSION: Final = put(
    r"Start-Rewiring[^}]*", "Start-NetworkAgent -Wanted $network -Seconds 180 ", where="pod-network"
)
UNGUARDED: Final = both(
    everywhere(r"'Boot' \{ Invoke-Boot \}", "'Boot' { }"),
    everywhere(r"'Guard' \{ Invoke-Guard \}", "'Guard' { }"),
)
BY_ITSELF: Final = both(
    put(r"start = 'demand'", "start = 'auto'", where="flanneld"),
    put(r"else \{ 'demand' \}", "else { 'auto' }", where="flanneld"),
)

TRAPS: Final = (
    Trap(
        "win-bridge without apiVersion 2 looks for an endpoint of Docker's time and finds none",
        put('"apiVersion": 2', '"apiVersion": 1', where="cni-config"),
        r"failed to find HNSEndpoint \S+: Endpoint \S+ not found",
    ),
    Trap(
        "flanneld made a service by itself never answers the service control manager",
        put(
            r"command_line = 'C:\\k\\versions\\nssm-2.24\\nssm.exe'",
            r"command_line = 'C:\\k\\versions\\flannel-0.28.9\\flanneld.exe'",
            where="flanneld",
        ),
        r"service flanneld does not start .*: .*did not respond to the start or control request in a timely",
    ),
    Trap(
        "a network made inside the remote session takes session and static address along",
        # The startup task of winboot's own would put the address back.
        both(IN_THE_SESSION, UNGUARDED),
        r"cut off|does not answer",
        effect=lambda site: not has_address(site) and not site.machine.reachable(),
    ),
    Trap(
        "host-local gives the first pod the address of the host's own endpoint",
        put("'<<pod_endpoint>>'; holder", "'<<pod_first>>'; holder"),
        r"The IP address is either invalid or not part of any configured subnet",
        well=True,
    ),
    Trap(
        "flannel's VNI of Linux does not work on Windows",
        put('"VNI": 4096, "Port": 4789', '"VNI": 1, "Port": 8472'),
        r"VNI 1 must be greater than or equal to 4096",
        place=VXLAN,
    ),
    Trap(
        "a kubelet with cgroups enabled does not start on Windows",
        put('"cgroupsPerQOS": false', '"cgroupsPerQOS": true'),
        r"CgroupsPerQOS \(--cgroups-per-qos\) true is not supported on Windows",
        place=OLDER,
    ),
    Trap(
        "a kubelet with an external cloud provider and no node-ip has no InternalIP",
        put("--node-ip=[0-9.<>a-z_]+", "--cloud-provider=external", where="kubelet"),
        effect=lambda site: addresses(site) == {"Hostname"},
    ),
    Trap(
        "containerd does not read a configuration that is newer than it",
        put("version = 3", "version = 5", where="containerd-config"),
        r"expected containerd config version equal to or less than `4`, got `5`",
    ),
    Trap(
        "recovery delays in seconds are read as milliseconds, and the service is given up within one",
        put(r"restart_ms = @\(10000, 30000, 60000\)", "restart_ms = @(10, 30, 60)", where="kubelet"),
        effect=lambda site: (
            delays(site, "kubelet") == ["10 milliseconds", "30 milliseconds", "60 milliseconds"]
        ),
        well=True,
    ),
    Trap(
        "a service does not see variables that the machine got after its start",
        put(r"'HTTPS?_PROXY=[^']*',?\s*", ""),
        r"registry.k8s.io/pause\S* cannot be pulled",
        place=PROXIED,
    ),
    Trap(
        "a byte order mark, which PowerShell writes unasked, is no JSON to containerd",
        put(r"(10-flannel\.conflist' = ')\{", "\\1\ufeff{"),
        r"invalid character 'ï' looking for beginning of value",
    ),
    Trap(
        "a kubelet ends over a flag that was removed",
        put("--node-ip=", "--network-plugin=cni --node-ip=", where="kubelet"),
        r"unknown flag: --network-plugin",
    ),
    Trap(
        "kube-proxy ends over a feature gate that is locked",
        put('("kind": "KubeProxyConfiguration",)', r'\1 "featureGates": {"WinDSR": false},'),
        r"cannot set feature gate WinDSR to false, feature is locked to true",
    ),
    Trap(
        "a restart takes an overlay along, and with its new network the static address",
        both(UNGUARDED, BY_ITSELF),
        effect=lambda site: not has_address(site) and not site.machine.reachable(),
        place=VXLAN,
        well=True,
    ),
)
# A run that loses its machine for good must notice within real seconds; the lab's own time does not count for that.
IMPATIENT: Final = Patience(poll=5.0, reconnect=0.3)
NUMBERED: Final = [
    pytest.param(
        trap,
        id=f"{n}. {trap.sentence}",
        marks=pytest.mark.check if n % 8 == 3 else pytest.mark.matrix,
    )
    for n, trap in enumerate(TRAPS, 1)
]


def said(site: Site, report: Report) -> str:
    """All that anybody says of what is wrong: the report, the Node, the pods' and the services' own words."""
    told = problems(report)
    for node in site.admin("GET", "/api/v1/nodes")["items"]:
        told += [one["message"] for one in node["status"]["conditions"]]
    for name in ("containerd", "kubelet", "flanneld", "kube-proxy"):
        path = rf"C:\var\log\{name}\{name}.log"
        if site.machine.files.exists(path):
            told.append(site.machine.files.text(path))
    told += [event.message for event in site.machine.events.query("System")]
    return "\n".join(told)


@pytest.mark.parametrize("trap", NUMBERED)
def test_each_trap_shows_its_reason_as_on_a_real_node(trap: Trap, tmp_path: Path) -> None:
    site = trap.place.site(tmp_path)
    mutate = lambda script: trap.mutate(script) if "$steps = @(" in script else script  # noqa: E731

    report = site.controller(rewrite=mutate).join(ready=60.0, patience=IMPATIENT)
    trap.place.after(site)

    told = said(site, report)
    assert re.search(trap.told, told), told
    assert trap.effect is None or trap.effect(site), told
    assert bool(problems(report)) != trap.well, problems(report)
    assert not site.refusals


@pytest.mark.matrix
def test_an_address_that_a_session_took_along_comes_back_by_the_startup_task(tmp_path: Path) -> None:
    """It watches after the restart, for any program that makes a network; without it the machine is lost (trap 3)."""
    site = HOST_GW.site(tmp_path)
    mutate = lambda script: IN_THE_SESSION(script) if "$steps = @(" in script else script  # noqa: E731

    report = site.controller(rewrite=mutate).join(ready=60.0, patience=IMPATIENT)

    assert any("ConnectionLost" in told for told in problems(report)), problems(report)
    assert has_address(site)
    assert site.machine.reachable()
    # The next join, with the true script, finishes it.
    assert problems(site.join()) == []


@pytest.mark.parametrize("place", first(0, PLACES, lambda place: place.name, daily=0))
def test_without_the_traps_the_node_is_ready(place: Place, tmp_path: Path) -> None:
    """In the same places without the traps, no program prints those messages: they come from the traps alone."""
    site = place.site(tmp_path)

    report = site.join()
    place.after(site)

    told = said(site, report)
    assert (problems(report), only(report).ready) == ([], True)
    assert site.machine.reachable()
    assert site.plan().exit_code == 0
    assert [t.sentence for t in TRAPS if t.told and re.search(t.told, told)] == []
    assert [t.sentence for t in TRAPS if t.effect and t.place is place and t.effect(site)] == []
    assert not site.refusals


def test_each_trap_has_a_sentence_of_its_own() -> None:
    assert len(TRAPS) == len({trap.sentence for trap in TRAPS}) == 14
