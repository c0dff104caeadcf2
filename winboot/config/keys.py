"""The keys of profiles and inventories by their dotted names, for `winboot explain`, and for complaints about a key
that is in the wrong place or has another tool's name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from winboot.config.compat import load
from winboot.config.inventory import HostKeys
from winboot.config.model import Model, model_at
from winboot.config.networks import NETWORKS
from winboot.config.profile import Profile, Reference
from winboot.config.source import Complaint

_UNKNOWN: Final = re.compile(r"unknown key '([^']+)'")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `path` as in `network.cni`, the file it belongs to, what it does, its default, and the keys below it."""

    path: str
    file: str
    says: str
    default: str
    below: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.path}: a key of the {self.file}", f"  {self.says}"]
        if self.default:
            lines.append(f"  default  {self.default}")
        if self.below:
            lines.append(f"  below    {', '.join(self.below)}")
        return "\n".join(lines)


@cache
def keys() -> dict[str, Key]:
    """All of them, by path, in the order of the models."""
    found = [*_keys(HostKeys, "", "inventory"), *_keys(Profile, "", "profile")]
    return {key.path: key for key in reversed(found)}


def key_named(name: str) -> Key | None:
    """The key of that path; a last part that only one key has is enough. None where it is missing."""
    wanted = name.strip().strip(".")
    if wanted in keys():
        return keys()[wanted]
    ends = [key for path, key in keys().items() if path.rpartition(".")[2] == wanted]
    return ends[0] if len(ends) == 1 else None


# Names that other tools have for things that have a key here; without case, dashes and underscores.
_OF_OTHERS: Final = {
    "ansiblehost": "address",
    "ansibleuser": "connection.user",
    "ansibleport": "connection.port",
    "ansiblepassword": "connection.password",
    "ansibleconnection": "connection.transport",
    "ansiblewinrmtransport": "connection.auth",
    "ansiblewinrmscheme": "connection.scheme",
    "username": "connection.user",
    "ip": "address",
    "ipaddress": "address",
    "hostip": "address",
    "fqdn": "address",
    "release": "os",
    "osversion": "os",
    "winrmport": "connection.port",
    "sshkey": "connection.key",
    "privatekey": "connection.key",
    "cafile": "connection.tls.ca",
    "httpproxy": "proxy.http",
    "httpsproxy": "proxy.https",
    "podsubnet": "cluster.pod_cidr",
    "podnetworkcidr": "cluster.pod_cidr",
    "clustercidr": "cluster.pod_cidr",
    "servicesubnet": "cluster.service_cidr",
    "serviceclusteriprange": "cluster.service_cidr",
    "clusterdns": "cluster.dns_service_ip",
    "apiserver": "cluster.server",
    "controlplaneendpoint": "cluster.server",
    "kubernetesversion": "kubernetes.version",
    "kubeversion": "kubernetes.version",
    "k8sversion": "kubernetes.version",
    "kubeletversion": "kubernetes.version",
    "containerdversion": "runtime.containerd",
    "sandboximage": "runtime.pause_image",
    "podinfracontainerimage": "runtime.pause_image",
    "registrymirrors": "runtime.registries",
    "mirrors": "runtime.registries",
    "nodelabels": "node.labels",
    "registerwithtaints": "node.taints",
    "nodetaints": "node.taints",
    "kubeletextraargs": "kubelet.flags",
    "extraargs": "kubelet.flags",
    "ntp": "windows.time_servers",
    "ntpservers": "windows.time_servers",
    "networkplugin": "network.cni",
    "cniplugin": "network.cni",
    "hostname": "computer_name",
    "windowsfeatures": "windows.features",
    "pagefile": "windows.page_file_mib",
    "mirror": "artifacts.source",
}


# Keys at the top of a file that is another one than it is taken for.
_OF_FILES: Final = {
    "hosts": "groups.NAME.hosts, in an inventory",
    "profile": "groups.NAME.profile, in an inventory",
    "groups": "a profile here: an inventory has groups",
    "apiversion": "a winboot file; apiVersion and kind belong to a Kubernetes object",
    "kind": "a winboot file; apiVersion and kind belong to a Kubernetes object",
}


def housed(complaint: Complaint) -> Complaint:
    """The complaint with the place of a key that is unknown where it stands, or the keys that a value is made of. It
    is the same one where nothing of it is known."""
    network = next((one for one in NETWORKS if complaint.wrong == repr(one.id) and one.mode), None)
    if network is not None and complaint.path.endswith("network.cni"):
        return replace(complaint, did_you_mean="", instead=f"cni: {network.cni}, mode: {network.mode}")
    found = _UNKNOWN.match(complaint.wrong)
    home = home_of(found[1], complaint.path) if found else ""
    if not home:
        return complaint
    return replace(complaint, expected="", did_you_mean="", instead=home)


def home_of(name: str, path: str = "") -> str:
    """Where a key belongs that stands at `path`: `kubelet.config.maxPods`, or one of two places; empty where no key is
    called so, or more are."""
    form = re.sub(r"[^a-z0-9]", "", name.lower())
    sections = path.split(".")
    if path == name and form in _OF_FILES:
        return _OF_FILES[form]
    if path == name and name in Profile.model_fields:
        return "an inventory here (defaults, groups): this is a key of a profile"
    if form in _OF_OTHERS:
        return _OF_OTHERS[form]
    if _of_a_machine(sections) and f"connection.{form}" in keys():
        return f"connection.{form}"
    own = [one for one in keys() if re.sub(r"[^a-z0-9]", "", one.rpartition(".")[2].lower()) == form]
    if len(own) == 1:
        return own[0]
    below = [one for one in own if one.partition(".")[0] in sections]
    if len(below) == 1:
        return below[0]
    if len(own) == 2:
        return " or ".join(own)
    return "" if own else _of_kubernetes(form, sections)


def _of_a_machine(sections: Sequence[str]) -> bool:
    """Whether a key is where those of a group, of a host or of all hosts do, and in no section of a profile."""
    return sections[0] in ("groups", "defaults") and not Profile.model_fields.keys() & set(sections[1:-1])


def _of_kubernetes(form: str, sections: Sequence[str]) -> str:
    """A field or a flag of kubelet or kube-proxy."""
    facts = load()
    parts = [("kubelet", "kubelet"), ("kube_proxy", "kube_proxy")]
    if "kube_proxy" in sections:
        parts.reverse()
    for key, data in parts:
        for kind, where in (("fields", "config"), ("flags", "flags")):
            for name in facts.section(f"{data}_{kind}"):
                if re.sub(r"[^a-z0-9]", "", name.lower()) == form:
                    return f"{key}.{where}.{name}"
    return ""


def _keys(model: type[Model], prefix: str, file: str) -> Iterator[Key]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        default = (
            "none: it is needed"
            if info.is_required()
            else _default(info.get_default(call_default_factory=True))
        )
        below = model_at(model, (name,))
        if below is not None and not issubclass(below, Reference):
            yield Key(path, file, info.description or "", default, tuple(below.model_fields))
            yield from _keys(below, f"{path}.", file)
        else:
            yield Key(path, file, info.description or "", default)


def _default(value: Any) -> str:
    if value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    return json.dumps(value) if isinstance(value, bool | int | tuple) else str(value)
