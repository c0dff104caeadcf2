"""Twenty machines, five of which lie, each in its own way: fifteen are done, five are named, and memory stays flat."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.config.scene import an_inventory
from tests.join.fakes import QUICK, FakeCluster, FakeMachine, Found, Silent, a_node, completed
from tests.test_limits import Liar, endless_noise, endless_runs, endless_steps, many_differences
from winboot.base.secret import Secret
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve
from winboot.node.run import Stop
from winboot.operations.join import Options, RunContext, join
from winboot.report.results import Report
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

STORIES: Final = (endless_steps, endless_runs, endless_noise, many_differences)
HONEST: Final = [f"win-{n}" for n in range(15)]
LIARS: Final = [f"liar-{n}" for n in range(5)]


class Thief(FakeMachine):
    """A machine that says in the change that it has the API server's address."""

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, Secret]) -> Iterator[str]:
        self.then = {"node_ip": "10.0.0.10"}
        return super().run(script, arguments, secrets)


def fleet(folder: Path, *names: str) -> tuple[Report, dict[str, FakeCluster]]:
    """One join of these machines, eight at a time."""
    folder.mkdir()
    hosts = ", ".join(f"{name}: {{address: 10.0.1.{n}}}" for n, name in enumerate(names, 11))
    text = f"groups: {{p: {{profile: profile.yaml, os: '2022', hosts: {{{hosts}}}}}}}\n"
    specs = [completed(resolve(one.profile, one)) for one in load_inventory(an_inventory(folder, text))]
    machines: dict[str, Any] = {}
    clusters: dict[str, FakeCluster] = {}
    for spec in specs:
        name = spec.node.name
        steps = [step.name for step in make_plan(spec, STEPS, only=(), skip=()).node_side]
        honest = {"node_ip": spec.machine.address}
        clusters[name] = FakeCluster(a_node(name=name))
        if name in LIARS[:4]:
            machines[name] = Liar(STORIES[LIARS.index(name)])
        elif name in LIARS:
            machines[name] = Thief(steps, Found("registration"), **honest)  # type: ignore[arg-type]
        else:
            machines[name] = FakeMachine(steps, Found("kubelet-config"), **honest)  # type: ignore[arg-type]
    context = RunContext(
        connect=lambda spec: machines[spec.node.name],
        cluster=lambda spec: clusters[spec.node.name],  # type: ignore[arg-type, return-value]
        listener=Silent(),
        journals=folder / "journals",
        run="r1",
        holder="me@laptop",
        stop=Stop(),
    )
    return join(specs, context, replace(Options(patience=QUICK), workers=8)), clusters


@pytest.mark.check
def test_liars_cost_themselves_alone(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        fleet(tmp_path / "honest", *HONEST)
        usual = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        report, clusters = fleet(tmp_path / "all", *HONEST, *LIARS)
        with_liars = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    ended = {node.node: node for node in report.nodes}
    assert [name for name in HONEST if ended[name].failure or not ended[name].ready] == []
    named = {name: failure.name for name in LIARS if (failure := ended[name].failure)}
    assert named == {**dict.fromkeys(LIARS[:4], "ExcessiveOutput"), LIARS[4]: "ClaimRefused"}
    # No other Node was changed, and no certificate has the claimed names.
    for name, cluster in clusters.items():
        assert {call[1] for call in cluster.calls if call[0] in ("change_node", "wait_ready")} <= {name}
        assert all("10.0.0.10" not in node.addresses for node in cluster.expected)
    # Four texts of a megabyte are under way at most, and each is held a few times.
    assert with_liars - usual < 48 << 20
    sizes = [file.stat().st_size for file in (tmp_path / "all" / "journals").rglob("*.jsonl")]
    assert max(sizes) < 8 << 20
