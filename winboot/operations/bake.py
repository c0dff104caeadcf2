"""An image for many nodes: on a template machine, every step that needs no identity, and nothing of that machine left.

    look for a node's traces → look → change, over restarts → delete the traces of the runs, note what the image holds

Sysprep comes after it: it gives each clone its own security identifier, and deletes the event logs
(learn.microsoft.com/windows-hardware/manufacture/desktop/sysprep--generalize--a-windows-installation).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

import winboot
from winboot.base.errors import NodeFailed, ProtocolError
from winboot.base.foreign import Malformed, converted, ready
from winboot.config.node_spec import NodeSpec
from winboot.node.facts import said
from winboot.node.fleet import NodeRun, Options, RunContext, run_nodes
from winboot.operations.join.secrets import change_secrets
from winboot.operations.join.story import refuse_unresolved
from winboot.report.results import Report, collect
from winboot.script.plan import make_plan
from winboot.script.rendering import bake_script
from winboot.script.steps import STEPS


class _Answer(msgspec.Struct, frozen=True):
    """What `_bake.ps1.j2` found of a node."""

    traces: tuple[str, ...]


ready(_Answer)


def bake(specs: Sequence[NodeSpec], context: RunContext, options: Options, *, dry_run: bool) -> Report:
    """Prepare template machines. No cluster is called: a template has no Node.

    Raises InvalidInput while a hash is missing: winboot downloads nothing that is not pinned.
    """
    refuse_unresolved(specs)
    alone = replace(context, cluster=lambda spec: None, claims=None)
    chosen = replace(options, only=free_steps(specs), versions="released")
    return run_nodes("bake", _look if dry_run else _bake, specs, alone, chosen)


def free_steps(specs: Sequence[NodeSpec]) -> tuple[str, ...]:
    """The names of the steps that take nothing which distinguishes nodes. Steps of a profile may, and are left to the join."""
    return tuple(
        step.name
        for step in STEPS
        if not step.identity and any(step in make_plan(one, STEPS).steps for one in specs)
    )


def _look(run: NodeRun) -> None:
    _ask(run, seal=False)
    run.look(None)


def _bake(run: NodeRun) -> None:
    _ask(run, seal=False)
    look = run.look(None)
    if look.to_change:
        with change_secrets(run.spec, run.plan, look.to_change, None, run.notes.append) as secrets:
            run.runner.change(run.facts(None), secrets.values)
    if all(step.state in ("ok", "changed") for step in collect(run.record.steps)):
        _ask(run, seal=True)
        run.notes.append("the image is ready for sysprep; docs/baked-images.md has the order")


def _ask(run: NodeRun, *, seal: bool) -> None:
    """Run the script of the image. Raises NodeFailed on a machine that is a node, ProtocolError without an answer."""
    spec = run.spec
    script = bake_script(spec, note=_note(spec))
    with run.context.connect(spec) as transport:
        traces = _traces(list(said(transport.run(script, {"Seal": seal}, {}), "traces")))
    if traces is None:
        raise ProtocolError(
            f"{run.name}: the machine sent no answer about its image",
            hint="Check for other programs in the sessions of winboot's account, such as a profile script.",
            node=run.name,
        )
    if traces:
        raise NodeFailed(
            f"{run.name}: the machine is or was a node: {', '.join(traces)}",
            hint="Bake a machine that never joined a cluster, or run `winboot remove` on it first.",
            node=run.name,
        )


def _traces(answers: Iterable[Mapping[str, Any]]) -> tuple[str, ...] | None:
    """The traces in the first answer that has the form; None without one."""
    for one in answers:
        with suppress(Malformed):
            return converted(one, _Answer).traces
    return None


def _note(spec: NodeSpec) -> dict[str, object]:
    """What the image holds, as the machine keeps it; the machine adds the time."""
    return {
        "winboot": winboot.__version__,
        "profile": spec.profile.name,
        "artifacts": {one.name: one.version for one in spec.artifacts},
        "images": list(spec.runtime.images),
    }
