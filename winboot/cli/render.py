"""`winboot render`: the very text that `join` runs, and every file it writes."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from winboot.base import exits
from winboot.cli.options import Lines, LinesForm, Machines, Only, Skip, expanded, words


class Part(StrEnum):
    """Which piece of a script is shown."""

    both = "both"
    node = "node"
    library = "library"


@expanded()
def render(
    machines: Machines,
    only: Only = None,
    skip: Skip = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the nodes' scripts and files into this folder.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the reason for each step and setting.")
    ] = False,
    part: Annotated[
        Part, typer.Option("--part", help="Print the whole script, the node's part, or the library.")
    ] = Part.both,
    output: LinesForm = Lines.table,
    diff: Annotated[
        Path | None,
        typer.Option(
            "--diff",
            metavar="OLD",
            help="Show the difference to a script, or to a folder that --out wrote; exit with 2 if they differ.",
        ),
    ] = None,
    digest: Annotated[
        bool, typer.Option("--digest", help="Print only the hashes of library, settings and scripts.")
    ] = False,
) -> None:
    """Show the PowerShell that would run, without contacting anything.

    The script always has every step: --only and --skip narrow only the output of --explain.
    """
    from winboot.base.errors import UsageError
    from winboot.cli.rendered import differences, digests, rendered_line
    from winboot.cli.targets import load_targets
    from winboot.operations.join import Options, prepare

    asked = {
        "--explain": explain,
        "--digest": digest,
        "--diff": diff is not None,
        "--part": part is not Part.both,
        "--out": out is not None,
        "--output": output is not Lines.table,
    }
    others = [name for name, given in asked.items() if given]
    if len(others) > 1:
        raise UsageError(f"{others[-1]} and {others[0]} do not go together", hint="Leave one of them out.")
    specs = load_targets(machines.inventory, machines.chosen, pinned=True, trust=machines.trust)
    tasks = prepare(specs, Options(only=words(only), skip=words(skip)))
    if output is Lines.json:
        for task in tasks:
            typer.echo(rendered_line(task), nl=False)
    elif digest:
        typer.echo("\n".join(digests(tasks)))
    elif diff is not None:
        lines = list(differences(tasks, diff))
        if lines:
            typer.echo("\n".join(lines))
            raise typer.Exit(exits.NOT_DONE)
    elif part is Part.library and tasks:
        _show(tasks[0].script.library.text.encode())
    elif part is Part.node and len(tasks) == 1:
        _show(tasks[0].script.node_part.encode())
    elif explain:
        from winboot.cli.explaining import explanation

        typer.echo("\n\n".join(explanation(task) for task in tasks))
    elif out is not None:
        for task in tasks:
            files = {f.path: f.text for f in task.script.files}
            try:
                _write(out / task.spec.node.name, task.script.text.encode(), files)
            except OSError as error:
                raise UsageError(
                    f"--out {out} cannot be written: {error.strerror}", hint="Give another folder."
                ) from error
            typer.echo(
                f"{out / task.spec.node.name}: {task.script.size_bytes / 1024:.0f} KiB, {len(task.script.files)} files"
            )
    elif len(tasks) == 1:
        _show(tasks[0].script.text.encode())
    else:
        raise UsageError(
            f"the command selects {len(tasks)} nodes, but can show only one script",
            hint="Select one node with --limit, or give a folder with --out.",
        )


def _show(script: bytes) -> None:
    """Without any translation of line ends: a signature is about bytes."""
    sys.stdout.flush()
    sys.stdout.buffer.write(script)
    sys.stdout.buffer.flush()


def _write(folder: Path, script: bytes, files: dict[str, str]) -> None:
    """`C:\\k\\kubelet.yaml` goes to `<folder>/files/C/k/kubelet.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "winboot.ps1").write_bytes(script)
    for path, text in files.items():
        target = folder / "files" / Path(*path.replace(":", "").split("\\"))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
