"""Every key of profile, group and host, changed alone, is a difference in the plan, or refused, or listed with its reason."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import yaml
from winboot_lab.cli.staging import hashes
from winboot_lab.cluster import ClusterPlan
from winboot_lab.cluster.authority import Authority

from tests.lab.scenes import Scenes, own_file
from tests.lab.site import Site, only
from winboot.base.errors import InvalidInput
from winboot.config.inventory import Connection, HostKeys
from winboot.config.model import Model
from winboot.config.profile import Profile
from winboot.config.profile.gmsa import Account, Domain, Webhook
from winboot.config.profile.reference import LoginReference, Reference
from winboot.report.events import Difference

Laid = Mapping[
    str, Any
]  # what is laid over profile or host; maps merge, everything else replaces, null removes

LOOK: Final = "New-Difference -Key 'own' -What 'own file' -Is 'absent' -Want 'present'\n"
# In the place of a step: the files are refused, or the machine says that it cannot be so.
REFUSED: Final = "(refused)"
REFUSED_THERE: Final = "node-preflight"
SERVER: Final = "https://10.0.0.99:6443"


@dataclass(frozen=True)
class Case:
    """What is changed, and the step that shows it. On a joined node of a scene; or, for what acts on a new machine alone, on a
    bare one of it: then the plan is to be another one."""

    step: str
    profile: Laid = field(default_factory=dict)
    host: Laid = field(default_factory=dict)
    scene: str = "plain"
    bare: bool = False


def _at(path: str, value: Any) -> dict[str, Any]:
    """`a.b`, 1 as {"a": {"b": 1}}; no key of a profile has a dot but registry hosts, which are not named so."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def _registry(**keys: Any) -> dict[str, Any]:
    return {"runtime": {"registries": {"private.corp.example": keys}}}


def _provider(**keys: Any) -> dict[str, Any]:
    return {"kubelet": {"credential_providers": {"ecr-credential-provider": keys}}}


def _csi_proxy(**keys: Any) -> dict[str, Any]:
    return {"storage": {"csi_proxy": keys}}


def _flex(**keys: Any) -> dict[str, Any]:
    return {"storage": {"flex_volumes": {"microsoft.com~smb.cmd": {"smb.ps1": keys}}}}


def _plugin(**keys: Any) -> dict[str, Any]:
    guid = "CCC2A336-D7F3-4818-A213-272B7924213E"
    domain = {"dns_name": "corp.example", "netbios_name": "CORP", "sid": "S-1-5-21-1-2-3", "guid": guid}
    file = {**own_file("smb.cmd"), "app_id": guid, **keys}
    return {"gmsa": {"domain": domain, "plugin_guid": guid, "plugin": file}}


def _events() -> dict[str, str]:
    return {**own_file("smb.ps1"), "provider": "331CCC5F-7C20-4FF8-B3A9-62EF90DCC870"}


NSSM: Final = "nssm.exe"
CASES: Final[Mapping[str, Case]] = {
    "kubernetes.version": Case("artifacts", _at("kubernetes.version", "1.34.9")),
    "cluster.server": Case(REFUSED_THERE, _at("cluster.server", SERVER)),
    "cluster.ca": Case("kubelet-credentials", _at("cluster.ca", {"file": "./other.crt"})),
    "cluster.pod_cidr": Case("flanneld-config", _at("cluster.pod_cidr", ["10.245.0.0/16"])),
    "cluster.service_cidr": Case("cni-config", _at("cluster.service_cidr", ["10.97.0.0/16"])),
    "cluster.node_cidr": Case("containerd", {"cluster": {"node_cidr": ["10.9.0.0/16"]}}, scene="everything"),
    "cluster.dns_service_ip": Case("kubelet-config", _at("cluster.dns_service_ip", ["10.96.0.53"])),
    "cluster.dns_domain": Case("kubelet-config", _at("cluster.dns_domain", "other.local")),
    "network.cni": Case("cni-config", {"network": {"cni": "win-bridge", "mode": None}}),
    "network.mode": Case("pod-network", _at("network.mode", "vxlan")),
    "network.managed_by": Case(REFUSED, _at("network.managed_by", "operator"), scene="own calico"),
    "network.vxlan.vni": Case("pod-network", _at("network.vxlan.vni", 4097), scene="vxlan"),
    "network.vxlan.mac_prefix": Case(
        "flanneld-config", _at("network.vxlan.mac_prefix", "0E-2B"), scene="vxlan"
    ),
    "network.network_name": Case("pod-network", _at("network.network_name", "other0")),
    "network.ipam": Case("cni-config", _at("network.ipam", "azure-cns"), scene="azure"),
    "network.routes": Case("pod-routes", _at("network.routes", "network"), scene="own network", bare=True),
    "network.nat_exceptions.add": Case("cni-config", _at("network.nat_exceptions.add", ["172.20.0.0/16"])),
    "network.nat_exceptions.remove": Case(
        "cni-config", _at("network.nat_exceptions.remove", ["node_subnet"])
    ),
    "runtime.containerd": Case("artifacts", _at("runtime.containerd", "2.2.9")),
    "runtime.name": Case(REFUSED, {"runtime": {"name": "docker", "docker": "19.03.15"}}),
    "runtime.docker": Case("artifacts", _at("runtime.docker", "28.5.1"), scene="docker"),
    "runtime.cri_dockerd": Case("artifacts", _at("runtime.cri_dockerd", "0.3.25"), scene="docker"),
    "runtime.pause_image": Case("pause-image", _at("runtime.pause_image", "registry.k8s.io/pause:3.10")),
    "runtime.images": Case(
        "pause-image", _at("runtime.images", ["mcr.microsoft.com/oss/kubernetes/pause:3.9"])
    ),
    "runtime.registries.mirrors": Case(
        "containerd-config", _registry(mirrors=["https://other.corp.example"])
    ),
    "runtime.registries.ca": Case(
        "containerd-config",
        _registry(mirrors=["https://other.corp.example"], ca="C:\\k\\ca.pem"),
        scene="everything",
    ),
    "runtime.registries.skip_verify": Case(
        "containerd-config", _registry(skip_verify=True), scene="everything"
    ),
    "runtime.registries.override_path": Case(
        "containerd-config", _registry(override_path=True), scene="everything"
    ),
    "runtime.registries.client.cert": Case(REFUSED, _registry(client={"cert": "C:\\k\\a.pem"})),
    "runtime.registries.client.key": Case(REFUSED, _registry(client={"key": "C:\\k\\a.pem"})),
    "runtime.registries.header": Case(
        "containerd-config", _registry(header={"X-Team": "a"}), scene="everything"
    ),
    "runtime.isolation": Case(REFUSED, _at("runtime.isolation", ["process", "hypervisor"])),
    "runtime.root": Case(REFUSED_THERE, _at("runtime.root", r"D:\containerd")),
    "runtime.ephemeral": Case(REFUSED, _at("runtime.ephemeral", True)),
    "runtime.config": Case("containerd-config", _at("runtime.config", {"debug": {"level": "debug"}})),
    "runtime.log.max_size_mib": Case("kubelet", _at("runtime.log.max_size_mib", 60)),
    "runtime.log.max_files": Case("log-rotation", _at("runtime.log.max_files", 6)),
    "services.manager": Case("kubelet", _at("services.manager", "nssm")),
    "services.overrides": Case("kubelet", _at("services.overrides.kubelet", "nssm")),
    "services.environment": Case("kubelet", _at("services.environment.kubelet", {"A_NAME": "a value"})),
    "services.priority": Case(
        "kube-proxy",
        _at("services.priority.kube-proxy", "HIGH_PRIORITY_CLASS"),
        scene="own credential",
    ),
    "kubelet.config": Case("kubelet-config", _at("kubelet.config.maxPods", 60)),
    "kubelet.flags": Case("kubelet", _at("kubelet.flags.v", "4")),
    "kubelet.credential_providers.url": Case(
        REFUSED, _provider(url="https://x.example/ecr"), scene="everything"
    ),
    "kubelet.credential_providers.sha256": Case("artifacts", _provider(sha256="0" * 64), scene="everything"),
    "kubelet.credential_providers.images": Case(
        "kubelet-config", _provider(images=["x.example"]), scene="everything"
    ),
    "kubelet.credential_providers.cache": Case("kubelet-config", _provider(cache="1h"), scene="everything"),
    "kubelet.credential_providers.args": Case("kubelet-config", _provider(args=["v1"]), scene="everything"),
    "kubelet.credential_providers.environment": Case(
        "kubelet-config", _provider(environment={"A": "b"}), scene="everything"
    ),
    "kube_proxy.managed_by": Case("kube-proxy", _at("kube_proxy.managed_by", "operator"), bare=True),
    "kube_proxy.config": Case("kube-proxy-config", _at("kube_proxy.config.configSyncPeriod", "10m")),
    "kube_proxy.flags": Case("kube-proxy", _at("kube_proxy.flags.v", "4")),
    "kube_proxy.dsr": Case("kube-proxy-config", _at("kube_proxy.dsr", "off")),
    "node.labels": Case("node-labels", _at("node.labels.rack", "r1")),
    "node.taints": Case("node-labels", _at("node.taints", ["a=b:NoSchedule"])),
    "boot.check_machine": Case("kubelet", _at("boot.check_machine", True)),
    "boot.taints": Case("kubelet-config", _at("boot.taints", ["karpenter.sh/unregistered:NoExecute"])),
    "node.scheduled_events": Case("azure-events", _at("node.scheduled_events", True)),
    "proxy.http": Case("containerd", _at("proxy.http", "http://other.corp.example:3128")),
    "proxy.https": Case("containerd", _at("proxy.https", "http://other.corp.example:3128")),
    "proxy.no_proxy": Case("containerd", _at("proxy.no_proxy", [".other.example"]), scene="everything"),
    "windows.features": Case("windows-features", _at("windows.features", ["Containers", "Hyper-V"])),
    "windows.rename": Case("computer-name", _at("windows.rename", False), bare=True),
    "windows.page_file_mib": Case("system-settings", _at("windows.page_file_mib", 8192)),
    "windows.dynamic_ports.start": Case("dynamic-ports", _at("windows.dynamic_ports.start", 32900)),
    "windows.dynamic_ports.count": Case("dynamic-ports", _at("windows.dynamic_ports.count", 30000)),
    "windows.excluded_ports.protocol": Case(
        "dynamic-ports", _at("windows.excluded_ports", [{"start": 65330}]), scene="everything"
    ),
    "windows.excluded_ports.start": Case("dynamic-ports", _at("windows.excluded_ports", [{"start": 65331}])),
    "windows.excluded_ports.count": Case(
        "dynamic-ports",
        _at("windows.excluded_ports", [{"protocol": "udp", "start": 65330, "count": 2}]),
        scene="everything",
    ),
    "windows.keepalive.time_ms": Case("system-settings", _at("windows.keepalive.time_ms", 70000)),
    "windows.keepalive.interval_ms": Case("system-settings", _at("windows.keepalive.interval_ms", 2000)),
    "windows.firewall.node_ports": Case("firewall-rules", _at("windows.firewall.node_ports", False)),
    "windows.firewall.kube_proxy_health": Case(
        "firewall-rules", _at("windows.firewall.kube_proxy_health", False)
    ),
    "windows.firewall.sources": Case("firewall-rules", _at("windows.firewall.sources", ["10.0.0.0/8"])),
    "windows.defender_exclusions": Case("defender-exclusions", _at("windows.defender_exclusions", True)),
    "windows.update_hold": Case("system-settings", _at("windows.update_hold", True)),
    "windows.known_fixes": Case("system-settings", _at("windows.known_fixes", ["smb-compartment"])),
    "windows.trust_roots": Case("trust-roots", _at("windows.trust_roots", [{"file": "./root.pem"}])),
    "windows.time_servers": Case("system-settings", _at("windows.time_servers", ["time.other.example"])),
    "windows.long_paths": Case("system-settings", _at("windows.long_paths", True)),
    "windows.power_plan": Case("system-settings", _at("windows.power_plan", "high-performance")),
    "windows.crash_dump": Case("system-settings", _at("windows.crash_dump", "small")),
    "windows.dns_suffixes": Case("system-settings", _at("windows.dns_suffixes", ["other.example"])),
    "artifacts.cni_plugins": Case("artifacts", _at("artifacts.cni_plugins", "1.6.2"), scene="own network"),
    "artifacts.flannel": Case("artifacts", _at("artifacts.flannel", "0.26.7")),
    "artifacts.flannel_cni": Case("artifacts", _at("artifacts.flannel_cni", "1.6.2-flannel1")),
    "artifacts.azure_cni": Case("artifacts", _at("artifacts.azure_cni", "1.7.2"), scene="azure"),
    "artifacts.hybrid_overlay": Case("artifacts", _at("artifacts.hybrid_overlay", "1.4.0"), scene="ovn"),
    "artifacts.calico": Case("artifacts", _at("artifacts.calico", "3.31.1"), scene="own calico"),
    "artifacts.crictl": Case("artifacts", _at("artifacts.crictl", "1.33.0")),
    "artifacts.nssm": Case("artifacts", _at("artifacts.nssm", "2.24-101"), scene="own credential"),
    "artifacts.sha256": Case(
        "artifacts", {"artifacts": {"sha256": {f"kubectl/{ClusterPlan().version}/kubectl.exe": "0" * 64}}}
    ),
    "steps.name": Case(
        "own-step", {"steps": [{"name": "own-step", "look": "./look.ps1", "change": "./change.ps1"}]}
    ),
    "steps.look": Case(
        "own-step", {"steps": [{"name": "own-step", "look": "./look.ps1", "change": "./change.ps1"}]}
    ),
    "storage.csi_proxy.url": Case(REFUSED, _csi_proxy(url="https://x.example/csi-proxy"), scene="everything"),
    "storage.csi_proxy.sha256": Case("artifacts", _csi_proxy(sha256="0" * 64), scene="everything"),
    "storage.csi_proxy.version": Case("csi-proxy", _csi_proxy(version="1.3.1"), scene="everything"),
    "storage.csi_proxy.member": Case(REFUSED, _csi_proxy(member="csi.exe"), scene="everything"),
    "storage.csi_proxy.require_privacy": Case(
        "csi-proxy", _csi_proxy(require_privacy=True), scene="everything"
    ),
    "storage.smb": Case("storage-services", _at("storage.smb", True), bare=True),
    "storage.iscsi": Case("storage-services", _at("storage.iscsi", True)),
    "storage.flex_volumes.url": Case(REFUSED, _flex(url="/smb.ps1"), scene="everything"),
    "storage.flex_volumes.sha256": Case("artifacts", _flex(sha256="0" * 64), scene="everything"),
    "gmsa.plugin.url": Case("artifacts", _plugin()),
    "gmsa.plugin.sha256": Case("artifacts", _plugin(sha256="0" * 64)),
    "gmsa.plugin.app_id": Case("gmsa", _plugin()),
    **{
        f"gmsa.plugin.events.{name}": Case("artifacts", _plugin(events=_events()))
        for name in ("url", "sha256")
    },
    "gmsa.plugin.events.provider": Case("gmsa", _plugin(events=_events())),
    "host.computer_name": Case("computer-name", host={"computer_name": "OTHER-1"}),
    "host.node_ip": Case(REFUSED_THERE, host={"node_ip": "10.0.1.12"}),
    "host.provider_id": Case("kubelet-config", host={"provider_id": "aws:///eu-west-1a/i-0abc"}),
    "host.(section)": Case("kubelet-config", host=_at("kubelet.config.maxPods", 60)),
}
OURS: Final = "winboot's own way, to the machine or to the cluster: the machine is the same"
CLUSTERS: Final = (
    "what `winboot manifests gmsa` prints (tests/config/test_gmsa.py), or a notice (tests/steps/test_gmsa.py)"
)
# Keys that change nothing on a node by themselves, with the reason.
WITHOUT: Final[Mapping[str, str]] = {
    "kubernetes.keep_versions": "how many former versions stay: what runs is the same",
    "kubernetes.overlay": "facts by which the files are judged; what they decide are other keys",
    "cluster.ca_hash": "`init` finds the certificate by it, once",
    "cluster.kubeconfig": OURS,
    "cluster.context": OURS,
    "cluster.bootstrap_token": "where a token comes from when a node needs one; a node that has joined needs none",
    "boot.ready_file": "first boot writes it once, when the Node is Ready (tests/lab/test_first_boot.py)",
    "network.vxlan.port": "Windows takes 4789 alone: `check` refuses another one",
    "network.antrea.testsigning": "`accepted` is its one value; without it `check` refuses antrea",
    "name": "a word for people",
    **{f"gmsa.webhook.{name}": CLUSTERS for name in Webhook.model_fields},
    **{f"gmsa.accounts.{name}": CLUSTERS for name in Account.model_fields},
    **{f"gmsa.domain.{name}": CLUSTERS for name in Domain.model_fields},
    "gmsa.plugin_guid": CLUSTERS,
    "runtime.registries.user": "a part of a secret, as `password`",
    "kube_proxy.kubeconfig": "a secret is compared by presence, server and CA, never by value",
    "runtime.registries.password": "a secret is compared by presence, never by value: a changed one is written by the next "
    "change of that file",
    "windows.features_source": "where a feature is taken from when it is not there; one that is there needs none",
    "artifacts.source": "where a program is taken from when it is not there; the hash says which it is",
    "artifacts.urls": "where a program is taken from when it is not there; the hash says which it is",
    "steps.why": "a sentence in the script and the plan",
    "steps.needs": "the order",
    "steps.change": "what a difference leads to; the look alone decides whether there is one",
    "steps.undo": "for `remove`",
    "host.address": OURS,
    "host.os": "preflight stops where the machine is another one (tests/preflight)",
    "host.certificate_names": "what the certificate may say is decided at its next request (tests/cluster)",
    **{f"host.connection.{name}": OURS for name in Connection.model_fields},
    "group.profile": "names the file whose keys are above",
    "group.hosts": "which machines there are",
    "group.members": "which machines there are",
    "group.(section)": "the same keys, merged (tests/config/test_inventory.py)",
}


def _models(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def keys_of(model: type[Model], prefix: str = "") -> Iterator[str]:
    """Every key of a model; those of its sections in their place. A reference to a secret or a file is one key."""
    for name, info in model.model_fields.items():
        inner = [one for one in _models(info.annotation) if one not in (Reference, LoginReference)]
        if not inner or name in ("tls", "proxy_jump"):
            yield f"{prefix}{name}"
        for one in inner if name not in ("tls", "proxy_jump") else ():
            yield from keys_of(one, f"{prefix}{name}.")


def test_every_key_is_in_the_table_or_on_the_list_with_its_reason() -> None:
    """A new key is not forgotten."""
    keys = {*keys_of(Profile), *keys_of(HostKeys, "host.")}
    structure = {"host.(section)", "group.profile", "group.hosts", "group.members", "group.(section)"}

    assert set(CASES) & set(WITHOUT) == set()
    assert {*CASES, *WITHOUT} == keys | structure


def _merged(below: Any, above: Any) -> Any:
    """As profiles and inventories are merged: maps merge, everything else replaces, null removes."""
    if not (isinstance(below, dict) and isinstance(above, Mapping)):
        return above
    laid = {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}
    return {key: value for key, value in laid.items() if value is not None}


def _changed(site: Site, case: Case, folder: Path) -> None:
    """The site's files elsewhere, with the change laid over them, and the hashes that belong to it."""
    shutil.copytree(site.folder, folder, ignore=shutil.ignore_patterns("journals"))
    (folder / "other.crt").write_text(Authority("another").pem, encoding="ascii")
    (folder / "look.ps1").write_text(LOOK, encoding="utf-8")
    (folder / "change.ps1").write_text("", encoding="utf-8")
    inventory, profile = folder / site.files.inventory.name, folder / site.files.profile.name
    wanted = yaml.safe_load(profile.read_text(encoding="utf-8"))
    profile.write_text(yaml.safe_dump(_merged(wanted, case.profile)), encoding="utf-8")
    if case.host:
        groups = yaml.safe_load(inventory.read_text(encoding="utf-8"))
        for group in groups["groups"].values():
            group["hosts"] = {name: _merged(host, case.host) for name, host in group["hosts"].items()}
        inventory.write_text(yaml.safe_dump(groups), encoding="utf-8")
    if "sha256" not in case.profile.get("artifacts", {}):
        pinned = _merged(wanted, _merged(case.profile, {"artifacts": {"sha256": None}}))
        pinned = {**pinned, "artifacts": {**pinned.get("artifacts", {}), "sha256": hashes(inventory)}}
        profile.write_text(yaml.safe_dump(pinned), encoding="utf-8")
    site.files = replace(site.files, inventory=inventory, profile=profile)


def _found(site: Site) -> dict[str, tuple[Difference, ...]]:
    """What a plan shows of each step, a problem as a difference. The task that has the script changes with every script: it
    does not count."""
    steps = only(site.plan()).steps
    return {
        step.name: (*step.differences, *((Difference(step.problem.id, None, None),) if step.problem else ()))
        for step in steps
        if step.name != "postboot-task"
    }


ON_JOINED: Final = [name for name, case in CASES.items() if not case.bare]
# The scenes whose keys are looked at by `make check`: each other one costs a join.
DAILY: Final = ("plain", "everything", "docker")
# The keys that a change of the tool is likeliest to lose.
FEW: Final = ("kubernetes.version", "kubelet.config", "runtime.pause_image", "host.provider_id")


@pytest.mark.parametrize(
    "scene",
    [
        # A second join of the other scenes is in the matrices of chains and rooms.
        pytest.param(one, marks=() if one in {CASES[name].scene for name in FEW} else pytest.mark.matrix)
        for one in sorted({CASES[name].scene for name in ON_JOINED})
    ],
)
def test_nothing_differs_before_a_key_is_changed(scene: str, joined_site: Callable[[str], Site]) -> None:
    assert not any(_found(joined_site(scene)).values())


# What acts on more steps than the one that shows it, or stops the plan: only alone does it say something.
FAR_REACHING: Final = re.compile(
    r"cluster\.|network\.|services\.manager|kubernetes\.|runtime\.registries\.mirrors|proxy\.https?$|host\.computer_name"
    # A download asks every source, those of other keys too.
    r"|storage\.(csi_proxy|flex_volumes)|gmsa\.plugin\.|kubelet\.credential_providers\.sha256"
)


def _together() -> list[Case]:
    """The other keys, as few changes as there may be: in one change each step has one key."""
    made: list[dict[str, Case]] = []
    for name in ON_JOINED:
        case = CASES[name]
        if FAR_REACHING.match(name) or case.step in (REFUSED, REFUSED_THERE):
            continue
        key = f"{case.scene} {case.step}"
        fitting = (
            one for one in made if key not in one and {it.scene for it in one.values()} == {case.scene}
        )
        change = next(fitting, None)
        if change is None:
            made.append(change := {})
        change[key] = case
    return [list(one.values()) for one in made]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(
            cases,
            id=f"{cases[0].scene}: {len(cases)} keys",
            marks=pytest.mark.check if cases[0].scene in DAILY else pytest.mark.matrix,
        )
        for cases in _together()
    ],
)
def test_keys_that_are_changed_together_are_a_difference_each(
    cases: list[Case], joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    site = joined_site(cases[0].scene)
    profile: Laid = {}
    host: Laid = {}
    for case in cases:
        profile, host = _merged(profile, case.profile), _merged(host, case.host)
    _changed(site, replace(cases[0], profile=profile, host=host), tmp_path / "changed")

    steps = {step.name: step for step in only(site.plan()).steps}
    silent = [case.step for case in cases if not [it for it in steps[case.step].differences if not it.policy]]
    assert silent == [], {name: step.problem for name, step in steps.items() if step.problem}


def _mark(name: str) -> Any:
    """What is seen together with others every day is looked at alone by hand."""
    if name in FEW:
        return ()
    case = CASES[name]
    alone = FAR_REACHING.match(name) or case.step in (REFUSED, REFUSED_THERE)
    return pytest.mark.check if alone and case.scene in DAILY else pytest.mark.matrix


@pytest.mark.parametrize("key", [pytest.param(name, marks=_mark(name)) for name in ON_JOINED])
def test_a_key_that_is_changed_alone_is_a_difference(
    key: str, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    case = CASES[key]
    site = joined_site(case.scene)
    if case.step == REFUSED:
        with pytest.raises(InvalidInput):
            _changed(site, case, tmp_path / "changed")
        return
    _changed(site, case, tmp_path / "changed")

    found = _found(site)
    assert [one for one in found.get(case.step, ()) if not one.policy], {
        name: [one.key for one in differences] for name, differences in found.items() if differences
    }


@pytest.mark.check
@pytest.mark.parametrize("key", [name for name, case in CASES.items() if case.bare])
def test_a_key_that_acts_on_a_new_machine_is_another_plan_there(
    key: str, scenes: Scenes, tmp_path: Path
) -> None:
    case = CASES[key]
    site = scenes.bare(case.scene)
    before = _found(site)

    _changed(site, case, tmp_path / "changed")

    assert _found(site).get(case.step) != before.get(case.step)
