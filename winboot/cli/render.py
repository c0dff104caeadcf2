"""`winboot render`: the very text that `join` runs, and every file it writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Limit, Only, Skip, words


def render(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    only: Only = None,
    skip: Skip = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for one script a node and the files it writes.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each step and setting is there.")
    ] = False,
) -> None:
    """Show the PowerShell that would run, without contacting anything.

    The script always has every step: --only and --skip narrow what --explain shows, nothing else.
    """
    from winboot.cli.targets import load_targets
    from winboot.errors import UsageError
    from winboot.join import Options, prepare

    specs = load_targets(inventory, words(limit))
    tasks = prepare(specs, Options(only=words(only), skip=words(skip)))
    if explain:
        from winboot.cli.explaining import explanation

        typer.echo("\n\n".join(explanation(task) for task in tasks))
    elif out is not None:
        for task in tasks:
            files = {f.path: f.text for f in task.script.files}
            try:
                _write(out / task.spec.node.name, task.script.text, files)
            except OSError as error:
                raise UsageError(
                    f"--out {out} cannot be written: {error.strerror}", hint="Name another folder."
                ) from error
            typer.echo(
                f"{out / task.spec.node.name}: {task.script.size_bytes / 1024:.0f} KiB, {len(task.script.files)} files"
            )
    elif len(tasks) == 1:
        sys.stdout.write(tasks[0].script.text)
    else:
        raise UsageError(
            f"{len(tasks)} nodes would be rendered, one text at a time is shown",
            hint="Name one with --limit, or a folder with --out.",
        )


def _write(folder: Path, script: str, files: dict[str, str]) -> None:
    """`C:\\k\\kubelet.yaml` goes to `<folder>/files/C/k/kubelet.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "winboot.ps1").write_text(script, encoding="utf-8", newline="\n")
    for path, text in files.items():
        target = folder / "files" / Path(*path.replace(":", "").split("\\"))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
