"""`winboot explain`: what is known about a flag, field, gate, build, version or network, or about a problem."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    kind: Annotated[
        str, typer.Argument(help="flag, field, gate, build, version, network, problem, or a problem's name")
    ],
    name: Annotated[str, typer.Argument(help="What to explain; `explain network` alone compares them.")] = "",
) -> None:
    """Explain a name: what it is, what it does on Windows, since when, what to write or to do instead."""
    from winboot.base.errors import UsageError
    from winboot.config.compat.explain import KINDS

    if kind == "network":
        typer.echo(_network(name))
        return
    if kind not in (*KINDS, "problem") and not name and _is_problem(kind):
        # As a report shows it, copied without a thought of what kind of thing it is.
        kind, name = "problem", kind
    if not name and kind in (*KINDS, "problem"):
        raise UsageError(
            f"explain {kind} needs a name",
            hint=f"For example: winboot explain {kind} {_EXAMPLES.get(kind, 'NAME')}",
        )
    if kind == "problem":
        from winboot.script.problems import explain_problem

        typer.echo(explain_problem(name))
        return
    from winboot.config.compat.explain import explain as text
    from winboot.config.compat.facts import load

    typer.echo(text(load(), kind, name))


def _is_problem(name: str) -> bool:
    from winboot.script.problems import failures, problems

    names = [one.id for one in problems()] + [one.__name__ for one in failures()]
    return name.lower() in (one.lower() for one in names)


_EXAMPLES = {
    "flag": "node-ip",
    "field": "cgroupsPerQOS",
    "gate": "WinDSR",
    "build": "20348",
    "version": "1.36",
    "problem": "NeedsDrain",
}


def _network(name: str) -> str:
    """One solution, one of Windows' kinds of network, or both compared."""
    from winboot.config import networks
    from winboot.config.networks.kinds import kind_named, kinds_text

    if not name:
        return f"{kinds_text()}\n\nThe solutions winboot knows (winboot explain network NAME):\n\n{networks.comparison()}"
    kind = kind_named(name)
    if kind is None:
        return networks.explain(name)
    return (
        f"{kind.name}\n  attached  {kind.attached}\n  packets   {kind.packets}\n  used by   {kind.used_by}\n"
        f"  choose    {kind.choose}"
    )
