"""`winboot manifests`: what the cluster needs for these nodes, as YAML to read and to apply."""

from __future__ import annotations

from typing import Annotated

import typer

from winboot.base.errors import UsageError
from winboot.cli import completion
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Limit, Nodes, chosen


def manifests(
    name: Annotated[
        str,
        typer.Argument(autocompletion=completion.manifests, help="The manifest; without a name, list all."),
    ] = "",
    nodes: Nodes = None,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    image: Annotated[
        str, typer.Option("--image", help="hook: the image made from docs/examples/hook/Containerfile.")
    ] = "",
    queue: Annotated[str, typer.Option("--queue", help="hook on AWS: URL of the SQS queue.")] = "",
    identity: Annotated[
        str,
        typer.Option("--identity", help="hook: ARN of an IAM role, or client id of a managed identity."),
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", help="hook: the namespace of its pods and claims.")
    ] = "winboot-system",
    self_registering: Annotated[
        bool, typer.Option("--self-registering", help="hook: for machines that join by themselves.")
    ] = False,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="hook: add the first-boot endpoint with its Service and volume."),
    ] = False,
) -> None:
    """Print RBAC, RuntimeClasses, the flannel ConfigMap, the hook and more, for the inventory's nodes."""
    from winboot.cli.output import listed
    from winboot.operations.hook_manifest import WHY, HookPod, hook_manifest
    from winboot.remote.manifests import MANIFESTS, manifest

    if not name:
        listed([*((one.name, one.why) for one in MANIFESTS), ("hook", WHY)])
        return
    if name == "hook":
        if not image:
            raise UsageError("--image is missing", hint="Build one from docs/examples/hook/Containerfile.")
        pod = HookPod(inventory, image, queue, identity, namespace, self_registering, bootstrap=bootstrap)
        typer.echo(hook_manifest(pod), nl=False)
        return
    from winboot.cli.targets import load_targets

    typer.echo(manifest(name, load_targets(inventory, chosen(nodes, limit))), nl=False)
