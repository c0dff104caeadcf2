"""The nodes that tests play on: each is joined once, then used by one test after another.

A test that leaves its node as it found it may use the joined one; whoever cannot promise that spoils it, and the next
test gets a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.lab.site import NodePlan, Site, only, problems
from winboot.lab.cluster import ClusterPlan
from winboot.lab.cluster.authority import Authority

PROXY: Final = "proxy.corp.example"
MIRROR: Final = "mirror.corp.example"
# Secrets that must not be seen anywhere; the tests look for them.
REGISTRY_PASSWORD: Final = "canary-of-the-registry"
PROXY_TOKEN: Final = "canary.of-the-service.account"
REGISTRY_VARIABLE: Final = "WINBOOT_TEST_REGISTRY_PASSWORD"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a site is made of: a release, a kind of cluster, a profile laid over the lab's."""

    release: Any = "2022"
    cluster: Callable[[], ClusterPlan] = ClusterPlan
    wishes: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Site], None] = lambda site: None


def own_credential(folder: Path) -> None:
    """A kubeconfig as somebody made it for kube-proxy alone, with a token."""
    (folder / "kube-proxy.kubeconfig").write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: https://elsewhere:6443}}}}]
users: [{{name: kube-proxy, user: {{token: {PROXY_TOKEN}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: kube-proxy}}}}]
current-context: c
""",
        encoding="utf-8",
    )


def trusted_root(folder: Path) -> None:
    """A CA of some company."""
    (folder / "root.pem").write_text(Authority("a company").pem, encoding="ascii")


def _everything(site: Site) -> None:
    site.internet.proxy(PROXY, 3128)
    site.outside.images.hosts.add(MIRROR)


EVERYTHING: Final[Mapping[str, Any]] = {
    "windows": {
        "page_file_mib": 4096,
        "defender_exclusions": True,
        "long_paths": True,
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
}

SCENES: Final[Mapping[str, Scene]] = {
    "plain": Scene(),
    "everything": Scene(wishes=EVERYTHING, prepare=_everything),
}


class Scenes:
    """The joined nodes of one test run."""

    def __init__(self, folder: Callable[[str], Path]) -> None:
        self._folder = folder
        self._joined: dict[str, Site] = {}

    def bare(self, name: str) -> Site:
        """A new site, on which nothing has happened yet."""
        scene = SCENES[name]
        folder = self._folder(name)
        trusted_root(folder)
        own_credential(folder)
        plan = NodePlan("win-1", scene.release, "10.0.1.11")
        site = Site(folder, plan, cluster=scene.cluster(), wishes=scene.wishes)
        scene.prepare(site)
        return site

    def joined(self, name: str) -> Site:
        """A site whose node is joined; the same one for all who ask, until it is spoiled."""
        if name not in self._joined:
            site = self.bare(name)
            report = site.join()
            assert not problems(report), problems(report)
            assert only(report).ready
            site.settle(60)
            self._joined[name] = site
        return self._joined[name]

    def take(self, name: str) -> Site:
        """A joined site for oneself: whoever asks next gets another one, unless this one is given back."""
        site = self.joined(name)
        del self._joined[name]
        return site

    def give_back(self, name: str, site: Site) -> None:
        """The site is as it was when it was taken."""
        self._joined[name] = site
