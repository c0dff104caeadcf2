"""`winboot manifests`: what the cluster needs for these nodes, as YAML to read and to apply."""

from __future__ import annotations

from typing import Annotated

import typer

from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Limit, words


def manifests(
    name: Annotated[str, typer.Argument(help="Which one; without a name they are listed.")] = "",
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
) -> None:
    """Print RBAC, RuntimeClasses, the flannel ConfigMap and more, made from what the inventory's nodes are."""
    from winboot.manifests import MANIFESTS, manifest

    if not name:
        width = max(len(one.name) for one in MANIFESTS)
        for one in MANIFESTS:
            typer.echo(f"{one.name.ljust(width)}  {one.why}")
        return
    from winboot.cli.targets import load_targets

    typer.echo(manifest(name, load_targets(inventory, words(limit))), nl=False)
