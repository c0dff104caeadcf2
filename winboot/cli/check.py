"""`winboot check`: everything that is wrong with the files, before anything is contacted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Output, OutputForm

if TYPE_CHECKING:
    from winboot.powershell.check import Finding
    from winboot.source import Complaint

EXIT_INVALID = 64


def check(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Inventories and profiles; default: the inventory.")
    ] = None,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    output: OutputForm = Output.table,
) -> None:
    """Check inventories and profiles, and the scripts they make: each complaint has its place and what was expected."""
    from winboot.errors import UsageError

    wrong = False
    for file in files or [inventory]:
        if not file.exists():
            raise UsageError(f"there is no file {file}", hint="Name an inventory or a profile.")
        complaints = _complaints(file)
        wrong = wrong or any(one.level == "error" for one in complaints)
        _show(file, complaints, output)
    raise typer.Exit(EXIT_INVALID if wrong else 0)


def _complaints(file: Path) -> list[Complaint]:
    from winboot.inventory import check_inventory
    from winboot.profile import check_profile

    if not is_inventory(file):
        return check_profile(file)
    found = check_inventory(file)
    if any(one.level == "error" for one in found):
        return found
    return found + _script_complaints(file)


def is_inventory(file: Path) -> bool:
    """An inventory has groups; a profile has none."""
    from winboot.source import Table, read

    top = read(file)
    return isinstance(top, Table) and "groups" in top.entries


def _script_complaints(file: Path) -> list[Complaint]:
    """The strict check of every script the inventory makes: users' own steps go through it like ours."""
    from winboot.inventory import load_inventory
    from winboot.join import Options, prepare
    from winboot.powershell.check import check_script
    from winboot.source import Complaint, Place
    from winboot.spec import resolve

    machines = load_inventory(file)
    specs = [resolve(machine.profile, machine) for machine in machines]
    seen: dict[str, Complaint] = {}
    for path in sorted(
        {path for machine in machines for step in machine.profile.steps for path in step.files.values()}
    ):
        for finding in silent_values(path):
            place = Place(str(path), finding.line, finding.column)
            one = Complaint(place, "", finding.message, expected=finding.instead, level="warning")
            seen.setdefault(str(one), one)
    for task in prepare(specs, Options()):
        for finding in check_script(task.script.text, origin=task.spec.node.name):
            if finding.id == "SilentValue":  # named above, in the file that a person wrote
                continue
            text = f"the rendered script, line {finding.line}: {finding.message}"
            seen.setdefault(text, Complaint(None, task.spec.node.name, text, expected=finding.instead))
    return list(seen.values())


def silent_values(path: Path) -> tuple[Finding, ...]:
    """Where a step of the user's own takes a function without output (the library's too) for a text."""
    from winboot.powershell.check import check_script
    from winboot.script import library_files

    library = "\n".join(library_files().values()) + "\n"
    above = library.count("\n")
    found = check_script(library + path.read_text(encoding="utf-8-sig"), origin=str(path))
    return tuple(
        replace(one, line=one.line - above) for one in found if one.id == "SilentValue" and one.line > above
    )


def _show(file: Path, complaints: list[Complaint], output: Output) -> None:
    if output is Output.json:
        for one in complaints:
            place = one.place
            typer.echo(
                json.dumps(
                    {
                        "file": place.file if place else str(file),
                        "line": place.line if place else None,
                        "column": place.column if place else None,
                        "level": one.level,
                        "path": one.path,
                        "wrong": one.wrong,
                        "expected": one.expected,
                        "did_you_mean": one.did_you_mean,
                        "instead": one.instead,
                        "source": one.source,
                    }
                )
            )
        return
    for one in complaints:
        typer.secho(str(one), err=True, fg="red" if one.level == "error" else "yellow")
    errors = sum(one.level == "error" for one in complaints)
    typer.echo(
        f"{file}: {'good' if not errors else f'{errors} to correct'}, {len(complaints) - errors} warnings"
    )
