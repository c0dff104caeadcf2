"""The files of a lab: an inventory and a profile that reach its machines, with its CA, kubeconfig and hashes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from winboot.base.private import replace_privately

if TYPE_CHECKING:
    from winboot.config.node_spec import Artifact
    from winboot_lab.cluster.plan import ClusterPlan
    from winboot_lab.node import LabNode
    from winboot_lab.up import Lab

PASSWORD_VARIABLE: Final = "WINBOOT_LAB_PASSWORD"
# Programs outside the lab use the mirror as an HTTP proxy: only the lab resolves its name.
MIRROR_VARIABLE: Final = "WINBOOT_LAB_MIRROR"
POLL_S: Final = 0.05
# The keys of a profile that name files; a relative one is meant from the profile's folder.
FILE_KEYS: Final = ("file", "overlay", "look", "change", "undo")
# Where the lab's machines and its API server have their addresses.
MACHINES: Final = IPv4Network("10.0.0.0/16")


@dataclass(frozen=True, slots=True)
class Staged:
    """The files that were written, and where the password is expected."""

    inventory: Path
    profile: Path
    kubeconfig: Path
    password: str
    password_variable: str = PASSWORD_VARIABLE


def lab_profile(lab: Lab) -> dict[str, Any]:
    """A profile for the lab's cluster: what a person would write for a small flannel cluster."""
    plan = lab.cluster.plan
    return {
        "kubernetes": {"version": plan.version},
        "cluster": {},
        "network": {"cni": "flannel", "mode": "host-gw"},
        "node": {"labels": {"pool": "windows"}, "taints": ["os=windows:NoSchedule"]},
        "artifacts": {},
    }


def fitting_cluster(profile: Path | None) -> ClusterPlan:
    """A cluster for a rehearsal of this profile: version, networks and CNI are as it says.

    Networks in which the lab's machines and its API server have their own addresses are the lab's, where pods do not
    share them. Raises InvalidInput with every complaint about the profile.
    """
    from winboot.config.networks.vxlan import Vxlan
    from winboot.config.profile import load_profile
    from winboot_lab.cluster.plan import ClusterPlan

    if profile is None:
        return ClusterPlan()
    wanted = load_profile(profile)
    network, own = wanted.network, ClusterPlan()
    vxlan = network.vxlan or Vxlan()
    needs = {need.check for need in wanted.solution.needs}
    # Azure's pods have addresses of the network that the machines are in: here, the lab's.
    pods = (str(MACHINES),) if wanted.solution.pods_in_node_network else _free(wanted.cluster.pod_cidr)
    backend: dict[str, Any] = {"Type": network.mode or "host-gw"}
    if network.mode == "vxlan":
        backend |= {"VNI": vxlan.vni, "Port": vxlan.port}
    return ClusterPlan(
        version=str(wanted.kubernetes.version),
        pod_cidrs=pods or own.pod_cidrs,
        service_cidrs=_free(wanted.cluster.service_cidr) or own.service_cidrs,
        allocates=wanted.solution.pod_cidr,
        flannel=backend if "flannel-config" in needs else None,
        # Whether its operator or a person brings Calico makes no difference to what is there in the end.
        calico="calico-vxlan" in needs and "calico-rbac" not in needs,
        kube_proxy_pods="calico-vxlan" in needs and "calico-rbac" not in needs,
        calico_nodes="calico-rbac" in needs,
        antrea="antrea-config" in needs,
        ovn="10.132.0.0/14" if "ovn-hybrid-overlay" in needs else "",
    )


def _free(cidrs: Iterable[IPv4Network | IPv6Network]) -> tuple[str, ...]:
    """The networks as text; none when the lab's machines live in one of them."""
    several = list(cidrs)
    taken = any(isinstance(cidr, IPv4Network) and cidr.overlaps(MACHINES) for cidr in several)
    return () if taken else tuple(map(str, several))


def stage(
    lab: Lab,
    folder: Path,
    profile: Path | None = None,
    *,
    wishes: Mapping[str, Any] | None = None,
    node_ip: bool = False,
) -> Staged:
    """Write inventory.yaml, profile.yaml, ca.crt and kubeconfig into `folder`.

    `profile` is a profile of the user's: its cluster section and its artifact source become the lab's. `wishes` is
    laid over the lab's own profile, section by section. With `node_ip` the inventory names the addresses of the nodes,
    which otherwise each machine finds out. The password goes into the environment of this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kubeconfig = folder / "kubeconfig"
    lab.server.write_admin_kubeconfig(kubeconfig)
    (folder / "ca.crt").write_text(lab.cluster.authority.pem, encoding="ascii")
    wanted = lab_profile(lab) if profile is None else at_home(profile)
    for section, values in (wishes or {}).items():
        wanted[section] = {**wanted.get(section, {}), **values} if isinstance(values, Mapping) else values
    fit(wanted, lab)
    written = Staged(folder / "inventory.yaml", folder / "profile.yaml", kubeconfig, lab.password)
    written.inventory.write_text(dump(_inventory(lab, node_ip=node_ip)), encoding="utf-8")
    written.profile.write_text(dump(wanted), encoding="utf-8")
    os.environ[PASSWORD_VARIABLE] = lab.password
    wanted["artifacts"]["sha256"] = hashes(written.inventory)
    written.profile.write_text(dump(wanted), encoding="utf-8")
    return written


def at_home(profile: Path) -> dict[str, Any]:
    """A profile as plain data; relative file names become full paths."""

    def named(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: named(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [named(one) for one in value]
        return str((profile.parent / value).resolve()) if key in FILE_KEYS else value

    wanted: dict[str, Any] = named(yaml.load(profile.read_text(encoding="utf-8"), _Words))
    return wanted


class _Words(yaml.SafeLoader):
    """As winboot reads profiles: only true and false are truth values, `on` and `off` are words (YAML 1.2)."""


_Words.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in known if first in "tTfF" or tag != "tag:yaml.org,2002:bool"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def fit(wanted: dict[str, Any], lab: Lab) -> None:
    """Make a profile one of the lab's cluster and mirror."""
    plan = lab.cluster.plan
    wanted["cluster"] = {
        **{k: v for k, v in wanted.get("cluster", {}).items() if k in ("dns_domain", "bootstrap_token")},
        "server": plan.server,
        "ca": {"file": "./ca.crt"},
        "kubeconfig": {"file": "./kubeconfig"},
        "pod_cidr": list(plan.pod_cidrs),
        "service_cidr": list(plan.service_cidrs),
    }
    wanted["artifacts"] = {**wanted.get("artifacts", {}), "source": lab.mirror_url, "urls": {}, "sha256": {}}


def _inventory(lab: Lab, *, node_ip: bool) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for plan in lab.plans:
        endpoint = lab.nodes[plan.name].endpoint
        group = groups.setdefault(
            f"windows-{plan.release}", {"profile": "./profile.yaml", "os": plan.release, "hosts": {}}
        )
        group["hosts"][plan.name] = {
            "address": endpoint.settings.address,
            "connection": way(lab.nodes[plan.name]),
            # winboot connects to the lab's machines on loopback, so the inventory states the address or certificate name.
            **({"node_ip": plan.address} if node_ip else {"certificate_names": [plan.address]}),
        }
    connection = {
        "user": r".\Administrator",
        "password": {"env": PASSWORD_VARIABLE},
        # The lab's time runs faster than ours.
        "poll_s": POLL_S,
    }
    return {"defaults": {"connection": connection}, "groups": groups}


def way(node: LabNode) -> dict[str, Any]:
    """How a machine is reached: over SSH where its sshd runs, else over WinRM."""
    if node.ssh is None and node.endpoint.certificate is not None:
        tls = {"fingerprint": f"sha256:{node.endpoint.certificate.fingerprint}"}
        return {"port": node.endpoint.https_port, "scheme": "https", "auth": "ntlm", "tls": tls}
    if node.ssh is None:
        return {"port": node.endpoint.http_port, "scheme": "http", "auth": "ntlm"}
    return {
        "transport": "ssh",
        "port": node.ssh.port,
        "host_key": node.ssh.fingerprint,
        "user": node.ssh.user,
    }


def hashes(inventory: Path) -> dict[str, str]:
    """The hashes of all artifacts, and of the programs inside, from the mirror's own content."""
    from winboot.config.inventory import load_inventory
    from winboot.config.node_spec import resolve

    found: dict[str, str] = {}
    for machine in load_inventory(inventory):
        for artifact in resolve(machine.profile, machine).artifacts:
            if artifact.key not in found:
                found |= _artifact_hashes(artifact)
    return found


def _artifact_hashes(artifact: Artifact) -> dict[str, str]:
    from winboot_lab.mirror import hashes_of

    found = hashes_of(artifact.url)
    wanted = {member.path for member in artifact.members}
    return {artifact.key: found[""]} | {
        artifact.member_key(name): value
        for name, value in found.items()
        if name in wanted and artifact.kind != "file"
    }


def write_environment(
    staged_folder: Path, password: str, more: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """A file to source in another terminal: password, inventory and kubeconfig. It is its owner's alone."""
    path = staged_folder / "env"
    values = {
        PASSWORD_VARIABLE: password,
        "WINBOOT_INVENTORY": str((staged_folder / "inventory.yaml").resolve()),
        "KUBECONFIG": str((staged_folder / "kubeconfig").resolve()),
        **more,
    }
    replace_privately(
        path, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    )
    return path


def dump(data: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True))
