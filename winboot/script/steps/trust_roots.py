"""Let the machine trust the CAs of proxies, mirrors and registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    found = spec.trust_roots
    return {"roots": [{"store": one.store, "thumbprint": one.thumbprint, "body": one.body} for one in found]}


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    places = {"Root": "trusted roots", "CA": "intermediate CAs"}
    return {
        name: found
        for store, name in places.items()
        if (found := [f"SHA-1 {one.thumbprint}" for one in spec.trust_roots if one.store == store])
    }


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.trust_roots)


TRUST_ROOTS = Step(
    name="trust-roots",
    why="downloads and image pulls through a company's own proxy or mirror fail until its CA is trusted",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)
