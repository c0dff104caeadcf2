"""What a shell offers behind TAB: hosts and groups of the inventory, steps, names that can be explained, earlier runs.

A completion says nothing and fails at nothing: what cannot be read offers nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from winboot.base.errors import WinbootError


def hosts(context: typer.Context, incomplete: str) -> list[str]:
    """Hosts and groups; behind a comma or a colon the next one."""
    from winboot.config.inventory import load_inventory

    named = context.params.get("inventory") or os.environ.get("WINBOOT_INVENTORY") or "inventory.yaml"
    try:
        machines = list(load_inventory(Path(str(named)))) if Path(str(named)).is_file() else []
    except WinbootError:
        machines = []
    names = [
        *(one.name for one in machines),
        *(group for one in machines for group in one.groups),
        *(["all"] if machines else []),
    ]
    return _after(incomplete, names)


def steps(incomplete: str) -> list[str]:
    """The steps of the catalogue."""
    from winboot.script.steps import STEPS

    return _after(incomplete, [step.name for step in STEPS])


def checks(incomplete: str) -> list[str]:
    """The ids of preflight's checks."""
    from winboot.node.preflight import CHECKS

    return _after(incomplete, [check.id for check in CHECKS])


def explained(incomplete: str) -> list[str]:
    """Kinds, and every name that can be explained."""
    from winboot.cli.vocabulary import names

    return _after(incomplete, names())


def networks(incomplete: str) -> list[str]:
    """The solutions that `init` offers."""
    from winboot.config.networks import written_forms

    return [one for one in written_forms().replace(" or ", ", ").split(", ") if one.startswith(incomplete)]


def manifests(incomplete: str) -> list[str]:
    """The manifests that there are."""
    from winboot.remote.manifests import MANIFESTS

    return _after(incomplete, [one.name for one in MANIFESTS])


def runs(incomplete: str) -> list[str]:
    """Earlier runs, the newest first."""
    from winboot.report.archive import Archive

    try:
        known = Archive().runs()[:20]
    except WinbootError:
        known = []
    return _after(incomplete, ["last", *(run.run for run in known)])


def _after(incomplete: str, names: list[str]) -> list[str]:
    """The names that continue what was typed; what stands before the last comma or colon stays."""
    cut = max(incomplete.rfind(one) for one in ",:!&") + 1
    before, begun = incomplete[:cut], incomplete[cut:]
    return [before + name for name in dict.fromkeys(names) if name.startswith(begun)]
