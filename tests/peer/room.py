"""Many peers on loopback, and the API server that their kubelets and winboot talk to."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from winboot_lab.cluster import ClusterPlan, ClusterServer, LabCluster
from winboot_lab.wsman.endpoint import Endpoint, Settings
from winboot_lab.wsman.farm import Farm

from tests.peer.conduct import CONDUCTS, Facts, Machine
from tests.peer.kubelet import Kubelet
from tests.peer.outsider import OUTSIDERS, Outsider

USER: Final = "Administrator"
PASSWORD: Final = "Pä$$wörd 1"


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """What a room is made from. `nodes` is name → conduct; `steps` are those of every node's plan; `taint` is the one that
    a kubelet registers with."""

    version: str
    steps: tuple[str, ...]
    taint: dict[str, str]
    nodes: Mapping[str, str]


def address_of(number: int) -> str:
    """The address that the kubelet of the n-th node goes by."""
    return f"10.1.{number // 250}.{number % 250 + 1}"


class Room:
    """Machines, outsiders and one cluster. Use it as a context manager."""

    def __init__(self, plan: RoomPlan) -> None:
        _allow_files(4 * len(plan.nodes) + 256)
        self.api = LabCluster(ClusterPlan(version=plan.version))
        self.machines: dict[str, Machine] = {}
        self.ports: dict[str, int] = {}
        self._server = ClusterServer(self.api)
        self._farm = Farm()
        self._endpoints: dict[str, Endpoint] = {}
        self._outsiders: dict[str, Outsider] = {}
        for number, (name, conduct) in enumerate(plan.nodes.items()):
            if conduct in OUTSIDERS:
                self._let_in(name, conduct)
            else:
                uuid = f"4c4c4544-0042-3510-8033-{number:012x}"
                self._add(Facts(name, address_of(number), uuid, plan.steps), conduct, plan.taint)

    def _let_in(self, name: str, kind: str) -> None:
        outsider = self._outsiders[name] = OUTSIDERS[kind]()
        self.ports[name] = outsider.port

    def _add(self, facts: Facts, conduct: str, taint: dict[str, str]) -> None:
        machine = self.machines[facts.name] = Machine(facts, conduct, Kubelet(self.api, taint))
        settings = Settings(users={USER: PASSWORD}, computer_name=facts.name.upper())
        endpoint = self._endpoints[facts.name] = self._farm.add(facts.name, machine, settings)
        machine.leave = lambda: self._farm.tell(endpoint, "down")
        assert endpoint.http_port is not None
        self.ports[facts.name] = endpoint.http_port

    def write_kubeconfig(self, path: Path) -> None:
        """An administrator's."""
        self._server.write_admin_kubeconfig(path)

    @property
    def authority(self) -> str:
        """The cluster's CA."""
        return self.api.authority.pem

    def left(self) -> dict[str, Any]:
        """What winboot has left behind, and how far its nodes are."""
        things = self.api.snapshot()
        return {
            "tokens": sorted(_names(things, "Secret", "bootstrap-token-")),
            "nodes": sorted(_names(things, "Node", "")),
            "shells": {name: len(one.shells) for name, one in self._endpoints.items() if one.shells},
            "changed": sorted(name for name, one in self.machines.items() if one.changed),
            "asked": sorted(name for name, one in self._outsiders.items() if one.asked),
            "running": sorted(name for name, one in self.machines.items() if one.running),
            "modes": {name: one.modes for name, one in self.machines.items()},
            "crashes": [str(crash) for one in self._endpoints.values() for crash in one.crashes],
        }

    def close(self) -> None:
        """End everything."""
        for outsider in self._outsiders.values():
            outsider.close()
        self._farm.close()
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _names(things: Sequence[dict[str, Any]], kind: str, prefix: str) -> list[str]:
    """Names of the objects of a kind whose name begins so; nodes of the cluster itself have no Windows."""
    return [
        thing["metadata"]["name"]
        for thing in things
        if thing.get("kind") == kind and thing["metadata"]["name"].startswith(prefix)
    ]


def _allow_files(count: int) -> None:
    """A port is an open file; the soft limit is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        with suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


assert CONDUCTS.keys().isdisjoint(OUTSIDERS)
