"""The nodes that tests play on: bare ones, and joined ones, of which each test gets a copy (tests/lab/copies.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from winboot_lab.cluster import ClusterPlan
from winboot_lab.cluster.authority import CLIENT_AUTH, Authority, Subject
from winboot_lab.cluster.kubeconfig import write_kubeconfig
from winboot_lab.mirror import sha256_of
from winboot_lab.programs.base import Run
from winboot_lab.programs.calico import calico_node
from winboot_lab.up import MIRROR_HOST

from tests.lab.site import NodePlan, Site, only, problems

PROFILES: Final = Path(__file__).parents[2] / "profiles"
PROXY: Final = "proxy.corp.example"
MIRROR: Final = "mirror.corp.example"
# A secret that must not be seen anywhere; the tests look for it.
REGISTRY_PASSWORD: Final = "canary-of-the-registry"
REGISTRY_VARIABLE: Final = "WINBOOT_TEST_REGISTRY_PASSWORD"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a site is made of: a release, a shipped profile or the lab's own, what is laid over it, and the
    cluster that fits.
    """

    release: Any = "2022"
    profile: str | None = None
    wishes: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Site], None] = lambda site: None
    # Of the cluster, where no shipped profile names it.
    version: str = ""

    @property
    def file(self) -> Path | None:
        """The shipped profile."""
        return None if self.profile is None else PROFILES / f"{self.profile}.yaml"

    def cluster(self) -> ClusterPlan:
        """A cluster that is as the profile says."""
        if self.file is None:
            return ClusterPlan(version=self.version) if self.version else ClusterPlan()
        profile = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        network, cluster = profile["network"], profile["cluster"]
        own = "calico" in profile.get("artifacts", {})
        backend = {"Type": network.get("mode") or "host-gw"}
        if backend["Type"] == "vxlan":
            backend |= {"VNI": 4096, "Port": 4789}
        return ClusterPlan(
            version=str(profile["kubernetes"]["version"]),
            # Azure's pods have addresses of the network that the machines are in.
            pod_cidrs=("10.0.0.0/16",) if network["cni"] == "azure" else _several(cluster["pod_cidr"]),
            service_cidrs=_several(cluster["service_cidr"]),
            # Azure's virtual network and Calico's pools hand out addresses themselves.
            allocates=network["cni"] not in ("azure", "calico", "ovn-hybrid"),
            flannel=backend if network["cni"] == "flannel" else None,
            # The result is the same for every way to install Calico.
            calico=network["cni"] == "calico" and not own,
            calico_nodes=own,
            antrea=network["cni"] == "antrea",
            ovn="10.132.0.0/14" if network["cni"] == "ovn-hybrid" else "",
        )


def _several(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def all_profiles() -> list[str]:
    """The shipped profiles."""
    return sorted(path.stem for path in PROFILES.glob("*.yaml"))


def own_credential(site: Site) -> None:
    """A kubeconfig that an administrator made for kube-proxy alone, with a certificate for a month."""
    now = site.time.datetime()
    subject = Subject("system:kube-proxy")
    pair = site.cluster.authority.issue(subject, (CLIENT_AUTH,), (now, now + timedelta(days=30)))
    write_kubeconfig(
        site.folder / "kube-proxy.kubeconfig", site.cluster.plan.server, site.cluster.authority.pem, pair
    )


def trusted_root(folder: Path) -> None:
    """A CA of some company."""
    (folder / "root.pem").write_text(Authority("a company").pem, encoding="ascii")


def _everything(site: Site) -> None:
    site.internet.proxy(PROXY, 3128)
    site.outside.serve_registry(MIRROR)


# What install-calico.ps1 makes for Calico's programs; winboot does not read it.
CALICO_CREDENTIAL: Final = r"C:\CalicoWindows\calico-kube-config"


def by_hand(run: Run, node: Mapping[str, Any]) -> None:
    """Calico's services as an administrator installed them: the same, but the configuration is winboot's."""
    calico_node(run, node)
    written = r"C:\etc\cni\net.d\10-calico.conflist"
    if run.exists(written):
        run.machine.files.delete(written)
    if not run.exists(CALICO_CREDENTIAL):
        run.write(CALICO_CREDENTIAL, b"kind: Config\n")


def _by_hand(site: Site) -> None:
    site.outside.host_processes["calico/node-windows"] = by_hand


def _by_dhcp(site: Site) -> None:
    """The address by DHCP, and name servers that an administrator set."""
    net = site.machine.network
    uplink = net.management()
    assert uplink is not None
    uplink.served = True
    net.set_dhcp(uplink, True)
    uplink.dns = ["10.0.0.2"]
    site.settle(30)


def own_file(name: str, version: str = "1.0.0") -> dict[str, str]:
    """A file of the user's, as a profile names it."""
    url = f"http://{MIRROR_HOST}/own/{version}/{name}"
    return {"url": url, "sha256": sha256_of(url)}


PROVIDER: Final[Mapping[str, Any]] = {
    **own_file("ecr-credential-provider.exe"),
    "images": ["*.dkr.ecr.*.amazonaws.com"],
    "environment": {"AWS_REGION": "eu-west-1"},
}
STORAGE: Final[Mapping[str, Any]] = {
    "csi_proxy": {
        **own_file("csi-proxy-1.3.0.tar.gz", "1.3.0"),
        "version": "1.3.0",
        "require_privacy": False,
    },
    "smb": True,
    "iscsi": True,
    "flex_volumes": {"microsoft.com~smb.cmd": {name: own_file(name) for name in ("smb.cmd", "smb.ps1")}},
}
EVERYTHING: Final[Mapping[str, Any]] = {
    "windows": {
        "page_file_mib": 4096,
        "defender_exclusions": True,
        "long_paths": True,
        "excluded_ports": [{"protocol": "udp", "start": 65330}],
        "keepalive": {},
        "power_plan": "high-performance",
        "crash_dump": "kernel",
        "time_servers": ["time.corp.example"],
        "known_fixes": ["smb-compartment"],
        "trust_roots": [{"file": "./root.pem"}],
        "dns_suffixes": ["corp.example"],
    },
    "proxy": {
        "http": f"http://{PROXY}:3128",
        "https": f"http://{PROXY}:3128",
        "no_proxy": [".corp.example", ".lab"],
    },
    "runtime": {
        "registries": {
            "registry.k8s.io": {"mirrors": [f"https://{MIRROR}"]},
            "private.corp.example": {
                "mirrors": [f"https://{MIRROR}/private"],
                "user": "me",
                "password": {"env": REGISTRY_VARIABLE},
            },
        }
    },
    "kubelet": {"credential_providers": {"ecr-credential-provider": PROVIDER}},
    "storage": STORAGE,
}

SCENES: Final[Mapping[str, Scene]] = {
    "plain": Scene(),
    "everything": Scene(wishes=EVERYTHING, prepare=_everything),
    "own credential": Scene(
        release="2025",
        wishes={
            "kube_proxy": {"kubeconfig": {"file": "./kube-proxy.kubeconfig"}},
            "services": {"manager": "nssm"},
        },
        prepare=own_credential,
    ),
    "vxlan": Scene(profile="flannel-vxlan"),
    "own network": Scene(
        profile="win-bridge",
        wishes={"network": {"routes": "winboot"}},
    ),
    "own overlay": Scene(profile="win-overlay"),
    "azure": Scene(profile="azure"),
    "operator": Scene(profile="calico"),
    "operator by DHCP": Scene(profile="calico", prepare=_by_dhcp),
    "own calico": Scene(profile="calico-node"),
    "own calico of one program": Scene(profile="calico-node", wishes={"artifacts": {"calico": "3.33.0"}}),
    "antrea": Scene(profile="antrea"),
    "ovn": Scene(profile="ovn-hybrid"),
    "installed by hand": Scene(profile="calico-services", prepare=_by_hand),
    "docker": Scene(release="2019", version="1.30.14", wishes={"runtime": {"name": "docker"}}),
}


class Scenes:
    """The sites of one test run, each in a folder of its own."""

    def __init__(self, folder: Callable[[str], Path]) -> None:
        self._folder = folder

    def bare(self, name: str) -> Site:
        """A new site, on which nothing has happened yet."""
        scene = SCENES[name]
        folder = self._folder(name.replace(" ", "-"))
        trusted_root(folder)
        plan = NodePlan("win-1", scene.release, "10.0.1.11")
        return Site(
            folder,
            plan,
            cluster=scene.cluster(),
            wishes=scene.wishes,
            profile=scene.file,
            prepare=scene.prepare,
        )

    def joined(self, name: str) -> Site:
        """A new site whose node is joined."""
        site = self.bare(name)
        report = site.join()
        assert not problems(report), problems(report)
        assert only(report).ready
        site.settle(60)
        return site
