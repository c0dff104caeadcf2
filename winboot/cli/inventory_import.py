"""`winboot inventory import`: what Ansible makes of its scripts, plug-ins and vaults, as a winboot inventory."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from winboot.base.errors import InvalidInput, UsageError
from winboot.cli.approval import at_terminal, confirm

if TYPE_CHECKING:
    from winboot.config.demands import Demand
    from winboot.config.inventory import Inventory
    from winboot.config.source import Table

PROGRAM: Final = "ansible-inventory"
PATIENCE_S: Final = 300.0
# docs.ansible.com/ansible/latest/reference_appendices/config.html: a source that nothing can parse is an error.
_STRICT: Final = {
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    "ANSIBLE_NOCOLOR": "true",
}
# The same page, VARIABLE_PLUGINS_ENABLED: without the variables of group_vars and host_vars.
_BARE: Final = {"ANSIBLE_VARS_ENABLED": ""}


def import_inventory(
    source: Path, out: Path | None, password_env: str, *, trust: bool, yes: bool, dry_run: bool
) -> None:
    """Run ansible-inventory behind the trust gate, show the machines, and write an inventory next to the source after a yes;
    with `dry_run` print it."""
    from winboot.base.private import replace_privately
    from winboot.cli.trust import settle
    from winboot.config.ansible import read_listing
    from winboot.config.inventory import inventory_of
    from winboot.config.source import compose

    target = _target(source, out)
    settle(_demands(source), trust=trust, may_ask=True)
    _refuse_vault(source)
    table, complaints = read_listing(source, _listing(source), _readable(source), password_env)
    for one in complaints:
        typer.echo(str(one), err=True)
    text = _text(table, source)
    inventory = inventory_of(target, compose(text, str(target)))
    if dry_run:
        typer.echo(text, nl=False)
        return
    _approve(inventory, yes=yes)
    replace_privately(target, text)
    typer.echo(f"{target}: {len(inventory)} host{'s' if len(inventory) != 1 else ''}")
    typer.echo(f"next: winboot check {target}; winboot ping -i {target}")


def _target(source: Path, out: Path | None) -> Path:
    """Where the inventory goes: its relative paths are meant from the source's folder."""
    if not source.exists():
        raise UsageError(
            f"there is no file {source}", hint="Name an inventory of Ansible: a file or a folder."
        )
    target = out or source.parent / "inventory.yaml"
    if target.exists():
        raise UsageError(f"{target} exists", hint="Name another file with --out.")
    if target.resolve().parent != source.resolve().parent:
        hint = f"Relative paths start at that folder: --out {source.parent / target.name}"
        raise UsageError(f"{target} is not in the folder of {source}", hint=hint)
    return target


def _demands(source: Path) -> list[Demand]:
    """Every file that decides what ansible-inventory runs here."""
    from winboot.config.demands import Demand
    from winboot.config.source import Place

    base = source if source.is_dir() else source.parent
    files = dict.fromkeys((source, Path("ansible.cfg"), base / "group_vars", base / "host_vars"))
    inside = [one for file in files if file.is_dir() for one in sorted(file.rglob("*"))]
    what = f"{PROGRAM} -i {source}"
    return [
        Demand(Place(str(one), 1, 1), "import", "run", what)
        for one in dict.fromkeys((*files, *inside))
        if one.exists()
    ]


def _readable(source: Path) -> dict[str, set[str]]:
    """The values of each variable that are in unencrypted files: in the inventory and in files next to it."""
    from winboot.config.ansible import readable_values, text_of

    found = readable_values(source)
    for variables in _listing(source, _BARE)["_meta"]["hostvars"].values():
        for name, value in variables.items():
            plain = (
                value["__ansible_unsafe"]
                if isinstance(value, dict) and "__ansible_unsafe" in value
                else value
            )
            found.setdefault(name, set()).add(text_of(plain))
    return found


def _refuse_vault(source: Path) -> None:
    """No answer of Ansible has the values of an encrypted inventory apart from others."""
    from winboot.config.ansible_host import VAULT

    for one in source.iterdir() if source.is_dir() else [source]:
        if one.is_file() and one.read_bytes().startswith(VAULT.encode("ascii")):
            hint = "Keep passwords in an encrypted group_vars file, and the inventory itself readable."
            raise InvalidInput(f"{one}: the inventory itself is encrypted by Ansible Vault", hint=hint)


def _listing(source: Path, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What ansible-inventory answers. It may hold values of a vault: no error quotes it."""
    try:
        done = subprocess.run(
            [PROGRAM, "-i", str(source), "--list"],
            env={**os.environ, **_STRICT, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError as error:
        hint = "Install ansible-core, and put it on PATH."
        raise InvalidInput(f"{PROGRAM} is not installed on this computer", hint=hint) from error
    except subprocess.TimeoutExpired as error:
        hint = f"Run `{PROGRAM} -i {source} --list` yourself: a plug-in may wait for a login."
        raise InvalidInput(f"{PROGRAM} has not ended within {PATIENCE_S:.0f} s", hint=hint) from error
    if done.returncode:
        said = "; ".join(_errors(done.stderr)) or "the program gave no reason"
        hint = f"`{PROGRAM} -i {source} --list` shows its whole output."
        raise InvalidInput(f"{source}: {PROGRAM} ended with exit code {done.returncode}: {said}", hint=hint)
    try:
        listing: dict[str, Any] = json.loads(done.stdout)
        listing["_meta"]["hostvars"].items()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{source}: the answer of {PROGRAM} is not an inventory", hint="Update Ansible."
        ) from error
    return listing


def _errors(text: str) -> Iterator[str]:
    """The lines of errors alone: the rest may quote the files."""
    from winboot.base.clean import clean

    for line in text.splitlines():
        if line.startswith(("[ERROR]", "ERROR!")):
            yield clean(line.partition(" ")[2].strip())


def _text(table: Table, source: Path) -> str:
    import yaml

    from winboot.cli.schema import Which, remark
    from winboot.config.source import raw

    body = yaml.safe_dump(_plain(raw(table)), sort_keys=False, allow_unicode=True, width=120)
    return f"{remark(Which.inventory)}\n# Made of {source.name} by `winboot inventory import FILE`.\n{body}"


def _plain(value: Any) -> Any:
    """The same without marks and without what is empty."""
    if isinstance(value, dict):
        return {key: made for key, one in value.items() if (made := _plain(one)) != []}
    return [_plain(one) for one in value] if isinstance(value, list) else str(value)


def _approve(inventory: Inventory, *, yes: bool) -> None:
    for one in inventory:
        way = one.connection
        user = f"  {way.user}" if way.user else ""
        typer.echo(f"  {one.name}  {way.transport} {way.host}:{way.port_number}{user}  {one.os}", err=True)
    if not yes and not at_terminal():
        raise UsageError(
            "the machines above are not approved, and standard input is not a terminal",
            hint="Check the machines, then repeat the command with --yes.",
        )
    if not yes:
        confirm(f"Write {inventory.path}?")
