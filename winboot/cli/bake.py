"""`winboot bake`: a template machine becomes the image of many nodes."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from winboot.base.errors import UsageError
from winboot.cli.options import DryRun, Machines, View, expanded

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec


class Builder(StrEnum):
    """A program that builds images."""

    packer = "packer"


# build.Host, build.Port and build.Password: developer.hashicorp.com/packer/docs/templates/hcl_templates/contextual-variables.
# Sysprep's options: learn.microsoft.com/windows-hardware/manufacture/desktop/sysprep-command-line-options.
_PACKER: Final = r"""  # After the provisioners of your own. winboot runs on this computer, and restarts the machine.
  provisioner "shell-local" {{
    environment_vars = ["{variable}=${{build.Password}}"]
    inline = ["winboot bake {node} -i {inventory} --address ${{build.Host}} --port ${{build.Port}}"]
  }}
  # The last provisioner: packer shuts the machine down, and each clone gets an identity of its own.
  provisioner "powershell" {{
    inline = ["& \"$env:SystemRoot\\System32\\Sysprep\\Sysprep.exe\" /generalize /oobe /quit /quiet"]
  }}
"""


@expanded()
def bake(
    machines: Machines,
    view: View,
    dry_run: DryRun = False,
    builder: Annotated[
        Builder | None,
        typer.Option("--for", help="Print the part of a packer template that runs this command."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", help="The machine's address, if it differs from the inventory."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="The machine's WinRM or SSH port.")] = None,
) -> None:
    """Apply every step that needs no identity to template machines, and leave nothing of one machine. Run sysprep after it."""
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.bake import bake as bake_machines
    from winboot.operations.join import Options

    fleet = load_fleet(machines.inventory, machines.chosen, pinned=True, trust=machines.trust)
    if builder is not None:
        typer.echo(_packer(fleet.specs, machines), nl=False)
        return
    specs = [_at(spec, address, port) for spec in fleet.specs]
    if address is not None and len(specs) != 1:
        raise UsageError(
            f"--address is of one machine, not of {len(specs)}", hint="Select one machine: winboot bake NODE."
        )
    reporting = Reporting(view.report, view.output)
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        result = bake_machines(specs, context, tuned(Options()), dry_run=dry_run)
    raise typer.Exit(reporting.end(result, context.stop, differences=dry_run))


def _at(spec: NodeSpec, address: str | None, port: int | None) -> NodeSpec:
    """The node's machine at another address."""
    connection = spec.machine.connection
    changed = {"host": address or connection.host, "port": port or connection.port}
    return replace(spec, machine=replace(spec.machine, connection=connection.model_copy(update=changed)))


def _packer(specs: list[NodeSpec], machines: Machines) -> str:
    spec = specs[0]
    password = spec.machine.connection.password
    variable = (password.env if password is not None else None) or "WINBOOT_PASSWORD"
    return _PACKER.format(node=spec.node.name, inventory=machines.inventory, variable=variable)
