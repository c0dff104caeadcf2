"""Let Windows load test-signed drivers, where the profile accepts that."""

from __future__ import annotations

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.test_signed


TEST_SIGNING = Step(
    name="test-signing",
    why="the network's driver is test-signed: Windows loads the driver only with test signing on, which weakens the machine",
    leaves=lambda spec: {"boot options": ["TESTSIGNING ON"]},
    needs=("node-preflight",),
    wanted=_wanted,
    identity=False,
)
