"""`winboot explain`: what the data knows about a flag, field, gate, build, version or network."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    kind: Annotated[str, typer.Argument(help="flag, field, gate, build, version or network")],
    name: Annotated[str, typer.Argument(help="What to explain; `explain network` alone compares them.")] = "",
) -> None:
    """Explain a name: since when, until when, what it does on Windows, what to write instead, and the source."""
    from winboot.errors import UsageError

    if kind == "network":
        typer.echo(_network(name))
        return
    if not name:
        raise UsageError(
            f"explain {kind} needs a name",
            hint=f"For example: winboot explain {kind} {_EXAMPLES.get(kind, 'NAME')}",
        )
    from winboot.compat.explain import explain as text
    from winboot.compat.facts import load

    typer.echo(text(load(), kind, name))


_EXAMPLES = {
    "flag": "node-ip",
    "field": "cgroupsPerQOS",
    "gate": "WinDSR",
    "build": "20348",
    "version": "1.34",
}


def _network(name: str) -> str:
    """One solution, one of Windows' kinds of network, or both compared."""
    from winboot import networks
    from winboot.networks.kinds import kind_named, kinds_text

    if not name:
        return f"{kinds_text()}\n\nThe solutions winboot knows (winboot explain network NAME):\n\n{networks.comparison()}"
    kind = kind_named(name)
    if kind is None:
        return networks.explain(name)
    return (
        f"{kind.name}\n  attached  {kind.attached}\n  packets   {kind.packets}\n  used by   {kind.used_by}\n"
        f"  choose    {kind.choose}"
    )
