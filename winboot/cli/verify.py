"""`winboot verify`: does traffic really flow between pods, nodes and services of these machines?"""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from winboot.cli.options import (
    Machines,
    Output,
    OutputForm,
    Passed,
    expanded,
    words,
)


@expanded()
def verify(
    machines: Machines,
    flows: Annotated[
        list[str] | None,
        typer.Option("--flows", help="Only these flows (repeat, or separate by commas; see below)."),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            "--image",
            metavar="RELEASE=REF",
            help="The image for a Windows release (2022=REF), or linux=REF; with PowerShell and curl, or agnhost.",
        ),
    ] = None,
    egress: Annotated[
        str,
        typer.Option(
            "--egress",
            metavar="HOST:PORT",
            help="An address outside the cluster that pods must reach; default: the pause image's registry.",
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option("--timeout", min=1.0, help="Seconds for the pods to run.")
    ] = 600.0,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the namespace for inspection, and print the command that removes it."
        ),
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="Use this existing namespace; delete only this run's own objects in it.",
        ),
    ] = "",
    storage_class: Annotated[
        str,
        typer.Option(
            "--storage-class", metavar="NAME", help="Flow volume: use a claim of this StorageClass."
        ),
    ] = "",
    share: Annotated[
        str,
        typer.Option(
            "--share",
            metavar=r"\\HOST\NAME",
            help="For the flow smb: the share whose files a pod lists under its own account (gMSA).",
        ),
    ] = "",
    output: OutputForm = Output.table,
    passed: Passed = False,
) -> None:
    """Verify traffic: make pods and services in a new namespace, try every flow once from each node, and probe each node. Name
    the probable cause of each failure, and delete the namespace. Exits with 1 if a flow failed."""
    from winboot.cli.output import progress, show_flows
    from winboot.cli.targets import load_targets, run_context
    from winboot.operations.verify import Options
    from winboot.operations.verify import verify as verify_nodes
    from winboot.operations.verify.flows import chosen

    options = Options(
        flows=chosen(words(flows)),
        images=images(image),
        egress=place(egress),
        timeout=timeout,
        keep=keep,
        namespace=namespace,
        storage_class=storage_class,
        share=share_of(share),
    )
    specs = load_targets(machines.inventory, machines.chosen, trust=machines.trust)
    with (
        progress(output, [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener) as (context, _),
    ):
        report = verify_nodes(specs, context, options)
    show_flows(report, output, passed=passed)
    raise typer.Exit(report.exit_code)


def share_of(given: str) -> str:
    """`--share`, which is part of a Windows command line. Raises UsageError."""
    from winboot.base.errors import UsageError

    if given and not re.fullmatch(r"\\\\[A-Za-z0-9.-]+(\\[A-Za-z0-9._$-]+)+", given):
        raise UsageError(
            f"--share {given}: not a share", hint=r"Write the share as '\\HOST\NAME', in quotation marks."
        )
    return given


def images(given: list[str] | None) -> dict[str, str]:
    """`--image 2022=REF` as release and reference. Raises UsageError."""
    from winboot.base.errors import UsageError
    from winboot.operations.verify.objects import IMAGES

    found = {}
    for one in given or []:
        release, _, reference = one.partition("=")
        if release not in (*IMAGES, "linux") or not reference:
            raise UsageError(
                f"--image {one}: not RELEASE=REFERENCE", hint=f"RELEASE is one of {', '.join(IMAGES)}, linux."
            )
        found[release] = reference
    return found


def place(given: str) -> tuple[str, int] | None:
    """`--egress HOST:PORT`. Raises UsageError."""
    from winboot.base.errors import UsageError

    if not given:
        return None
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--egress {given}: the form is HOST:PORT", hint="As in --egress example.com:443.")
    return host, int(port)


def _help() -> str:
    from winboot.operations.verify.flows import LIMITATIONS, listed

    width = max(map(len, LIMITATIONS))
    never = "\n".join(f"{id.ljust(width)}  {why}" for id, why in LIMITATIONS.items())
    about = " ".join((verify.__doc__ or "").split())
    return f"{about}\n\n\b\nFlows:\n{listed()}\n\n\b\nWhat Windows does not have:\n{never}"


if "--help" in sys.argv or "-h" in sys.argv:
    verify.__doc__ = _help()
