"""Look whether the machine can become this node at all, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.networks import AGENTS
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

# Images and containers; and without them programs of 1 GiB and the logs of services and pods.
_IMAGES_GIB: Final = 20
_REST_GIB: Final = 5


def _free_gib(spec: NodeSpec) -> dict[str, int]:
    """What must be free on each drive."""
    return {"C": _REST_GIB} | {spec.runtime.folders.root[0].upper(): _IMAGES_GIB}


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "build": spec.machine.build,
        "free_gib": _free_gib(spec),
        "leaves_docker": spec.runtime.name != "docker",
        "root": spec.runtime.folders.root,
        "layers": spec.runtime.folders.layers,
        "lasting": not spec.runtime.ephemeral,
        "updates": [{"revision": one.revision, "kb": one.kb, "why": one.why} for one in spec.updates],
        "bad_updates": [
            {"first": one.first, "fixed": one.fixed, "kb": one.kb, "fixed_kb": one.fixed_kb, "what": one.what}
            for one in spec.bad_updates
        ],
        # How a service that winboot has made is known when its notes are lost.
        "services": {one.name: one.description for one in spec.services.all},
        "server": spec.cluster.server,
        # What must not share the adapter with a network that needs its adapter alone.
        "alone": spec.network.network_name if spec.network.solution.alone else "",
        "other_services": [one for one in (*AGENTS, "kube-proxy") if one not in spec.services],
        "own_macs": spec.network.solution.pods_own_macs,
    }


NODE_PREFLIGHT = Step(
    name="node-preflight",
    why="winboot finds a wrong build, a missing right or an unreachable API server before it changes anything",
    inputs=_inputs,
    essential=True,
    identity=False,
)
