"""The programs of a node as its script knows them: what is downloaded, by which hash, and where each file goes."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from winboot.config.node_spec import NodeSpec


def artifact_tables(spec: NodeSpec) -> list[dict[str, object]]:
    """Each download, in the order of their use. A proxy is there where not all have the same."""
    common = common_proxy(spec)
    users, takes = _users(spec), _takes(spec)
    return [
        _present(
            name=artifact.name,
            version=artifact.version,
            url=artifact.url,
            sha256=artifact.sha256,
            proxy=None if common else proxy_for(spec, artifact.url),
            members=[
                _present(
                    path=member.path,
                    to=member.destination,
                    sha256=member.sha256,
                    asks=list(member.asks),
                    services=users.get(member.destination.lower()),
                    takes=takes.get(member.destination.lower()),
                )
                for member in artifact.members
            ],
        )
        for artifact in spec.artifacts
    ]


def common_proxy(spec: NodeSpec) -> str | None:
    """The usual case: one proxy for all downloads; None where they have none, or not the same."""
    proxies = {proxy_for(spec, artifact.url) for artifact in spec.artifacts}
    return next(iter(proxies)) if len(proxies) == 1 else None


def _present(**values: object) -> dict[str, object]:
    """Those that say something: an absent key reads as null on the node."""
    return {name: value for name, value in values.items() if value}


def _users(spec: NodeSpec) -> dict[str, list[str]]:
    """Which services run a program, by its path in lower case: they have to be restarted when it is replaced."""
    users: dict[str, list[str]] = {}
    for service in spec.services.all:
        programs = [service.runs or service.program]
        if service.log_runner:
            programs.append(spec.paths.kube_log_runner)
        if service.manager == "nssm":
            programs.append(spec.paths.nssm)
        for program in programs:
            users.setdefault(program.lower(), []).append(service.name)
    return users


def _takes(spec: NodeSpec) -> dict[str, dict[str, object]]:
    """What kubelet and kube-proxy must take, by their paths in lower case: the arguments of their services and the gates of
    their configurations. What only the node knows is left out: it is text (addresses), which may be empty for a question.
    """
    configs = {"kubelet": spec.kubelet.config, "kube-proxy": spec.kube_proxy.config}
    found = {}
    for service in spec.services.all:
        if service.name not in configs:
            continue
        gates = configs[service.name].get("featureGates")
        found[(service.runs or service.program).lower()] = _present(
            arguments=[one if isinstance(one, str) else one.prefix for one in service.arguments],
            gates=_gates(gates) if isinstance(gates, Mapping) else None,
        )
    return found


def _gates(gates: Mapping[str, object]) -> list[str]:
    return [f"{name}={'true' if on else 'false'}" for name, on in sorted(gates.items())]


def proxy_for(spec: NodeSpec, url: str) -> str | None:
    """The proxy for a download, by the same rules that Go's programs follow."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if any(_matches(host, entry) for entry in spec.proxy.no_proxy):
        return None
    return spec.proxy.https if parts.scheme == "https" else spec.proxy.http


@functools.lru_cache(maxsize=4096)
def _matches(host: str, entry: str) -> bool:
    """Whether one entry of NO_PROXY covers a host: a name, a `.suffix`, an address or a CIDR. The nodes of a fleet ask the
    same."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        # One of the two is a name.
        return host == entry.lstrip(".") or host.endswith(f".{entry.lstrip('.')}")
