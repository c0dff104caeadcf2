"""`winboot check`: everything that is wrong with the files, before anything is contacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.base import exits
from winboot.cli.colour import say
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile, Lines, LinesForm, renew_command
from winboot.cli.own_steps import own_step_complaints
from winboot.report import shape
from winboot.report.line import json_line

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.config.profile import Profile, Reference
    from winboot.config.source import Complaint


def check(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Inventories and profiles; default: the inventory.")
    ] = None,
    inventory: InventoryFile = DEFAULT_INVENTORY,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail if own steps cannot be checked because winboot-lab is missing."),
    ] = False,
    output: LinesForm = Lines.table,
) -> None:
    """Check inventories and profiles, and the scripts from them. Each error has its place and the expected value."""
    from winboot.base.errors import UsageError

    wrong = False
    told: set[Complaint] = set()
    for file in files or [inventory]:
        if not file.exists():
            raise UsageError(f"the file {file} does not exist", hint="Give an inventory or a profile.")
        complaints = [one for one in [*_complaints(file, strict=strict), *_demands(file)] if one not in told]
        told.update(one for one in complaints if one.place is None)
        complaints = list(dict.fromkeys(complaints))
        wrong = wrong or any(one.level == "error" for one in complaints)
        _show(file, complaints, output)
    raise typer.Exit(exits.USAGE if wrong else exits.DONE)


def _complaints(file: Path, *, strict: bool) -> list[Complaint]:
    from winboot.config.inventory import check_inventory
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.config.profile import check_profile

    if provider_of(file) is not None and not is_profile(file):
        return _cloud_complaints(file)
    if not is_inventory(file):
        return check_profile(file) + _unversioned_complaints(file)
    found = check_inventory(file)
    if any(one.level == "error" for one in found):
        return found
    return found + _rendered_complaints(file, strict=strict)


def _demands(file: Path) -> list[Complaint]:
    """What the files make this computer run and read. That is not an error, but another person may have written the files."""
    from winboot.config.demands import demands, files_of

    # An Ansible variable of a group has one place and applies to each host.
    once = {(one.place, one.says): one.complaint() for one in reversed(demands(files_of(file)))}
    return list(reversed(once.values()))


def _unversioned_complaints(file: Path) -> list[Complaint]:
    """Hashes of a profile that could be of any version. Only an inventory shows what its nodes download."""
    from winboot.base.errors import InvalidInput
    from winboot.config.node_spec import unversioned
    from winboot.config.source import Table, read

    try:
        top = read(file)
    except InvalidInput:
        return []  # said already
    section = top.get("artifacts")
    table = section.get("sha256") if isinstance(section, Table) else None
    keys = table.entries if isinstance(table, Table) else ()
    return list(unversioned(keys, top, renew_command(Path("INVENTORY"))))


def _cloud_complaints(file: Path) -> list[Complaint]:
    """What is wrong with the file itself: the machines are the cloud's, and nothing is contacted."""
    from winboot.base.errors import InvalidInput
    from winboot.base.extras import how_to_install, lacking
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.config.source import Complaint
    from winboot.remote.cloud.pool import Pool

    try:
        Pool.read(file)
    except InvalidInput as error:
        return [one for one in error.problems if isinstance(one, Complaint)]
    provider = provider_of(file)
    if provider is None or not (missing := lacking(provider)):
        return []
    wrong = f"the cloud {provider} needs the Python packages {', '.join(missing)}, which are not installed"
    return [Complaint(None, "", wrong, f"the extra {provider}, {how_to_install(provider)}", level="warning")]


def is_inventory(file: Path) -> bool:
    """Whether each command reads a file as an inventory; one that is neither is judged by what it is called."""
    from winboot.base.errors import InvalidInput
    from winboot.config.ansible import is_ansibles, open_inventory
    from winboot.config.profile import Profile

    try:
        content = open_inventory(file)
    except InvalidInput:
        return "profile" not in file.name
    if isinstance(content, str) or is_ansibles(content):
        return True
    keys = set(content.entries)
    return "groups" in keys or (not keys & set(Profile.model_fields) and "profile" not in file.name)


def is_profile(file: Path) -> bool:
    """A profile says `kubernetes`, which no inventory has: profiles/azure.yaml is called as a cloud's inventory is."""
    return "kubernetes" in _keys(file)


def _keys(file: Path) -> set[str]:
    """The keys at the top of a file; none where it is not YAML."""
    from winboot.base.errors import InvalidInput
    from winboot.config.source import read

    try:
        return set(read(file).entries)
    except InvalidInput:
        return set()


def _rendered_complaints(file: Path, *, strict: bool) -> list[Complaint]:
    """Complaints about what winboot makes of the files: downloads, certificates, and the script of every kind of node.

    Hosts that share profile and Windows version differ in names and addresses alone, which cannot leave their quotes:
    winboot checks one of them.
    """
    from winboot.base.errors import InvalidInput
    from winboot.config.inventory import load_inventory
    from winboot.config.node_spec import resolve

    found: list[Complaint] = []
    seen: set[tuple[int, str]] = set()
    specs: dict[Path, list[NodeSpec]] = {}
    machines = load_inventory(file)
    for machine in machines:
        if (id(machine.profile), machine.os) in seen:
            continue
        seen.add((id(machine.profile), machine.os))
        try:
            spec = resolve(_without_commands(machine.profile), machine)
        except InvalidInput as error:
            found.append(_placed(machine.profile_file, error.problem))
        else:
            specs.setdefault(machine.profile_file, []).append(spec)
    by_command = {one.profile_file for one in machines if _comes_from_a_command(one.profile.cluster.ca)}
    for profile, resolved in specs.items():
        if profile not in by_command:
            found.extend(_ca_complaints(profile, resolved[0]))
        pins = {
            key: value
            for one in machines
            if one.profile_file == profile
            for key, value in one.profile.artifacts.sha256.items()
        }
        found.extend(_hash_complaints(profile, pins, resolved, renew_command(file)))
        found.extend(_kubeconfig_complaints(profile, resolved[0]))
        found.extend(_root_complaints(profile, resolved[0]))
    resolved_specs = [spec for resolved in specs.values() for spec in resolved]
    found.extend(own_step_complaints(machines, resolved_specs, strict=strict))
    return list(dict.fromkeys(found))


def _without_commands(profile: Profile) -> Profile:
    """The profile without the certificates that a command gives: a check starts no program."""
    cluster, windows = profile.cluster, profile.windows
    if _comes_from_a_command(cluster.ca):
        cluster = cluster.model_copy(update={"ca": None})
    roots = tuple(one for one in windows.trust_roots if not _comes_from_a_command(one))
    windows = windows.model_copy(update={"trust_roots": roots})
    return profile.model_copy(update={"cluster": cluster, "windows": windows})


def _comes_from_a_command(reference: Reference | None) -> bool:
    return reference is not None and reference.command is not None


def _placed(profile: Path, problem: str) -> Complaint:
    """A problem that begins with the key it is about (`cluster.ca: …`), at the place of that key in the profile."""
    from winboot.config.source import Complaint, locate, read

    key, colon, rest = problem.partition(": ")
    path = key.partition("[")[0].split(".") if colon else []
    return Complaint(locate(read(profile), path, key=True), key if colon else "", rest if colon else problem)


def _ca_complaints(profile: Path, spec: NodeSpec) -> Iterator[Complaint]:
    """A CA that is not there yet. It is not needed to render, so a missing one is a warning."""
    from winboot.config.source import Complaint, locate, read

    if not spec.cluster.ca_pem:
        expected = "a PEM file; `winboot init -i INVENTORY` fetches it. plan and join need it"
        yield Complaint(
            locate(read(profile), ("cluster", "ca")),
            "cluster.ca",
            "the certificate file does not exist yet",
            expected,
            level="warning",
        )


def _root_complaints(profile: Path, spec: NodeSpec) -> Iterator[Complaint]:
    """Certificates that a machine would not trust, although they are in its stores."""
    from datetime import UTC, datetime

    from winboot.config.authority import doubts
    from winboot.config.source import Complaint, locate, read

    path = ("windows", "trust_roots")
    for wrong in doubts(spec.trust_roots, datetime.now(UTC)):
        yield Complaint(locate(read(profile), path, key=True), ".".join(path), wrong, level="warning")


def _hash_complaints(
    profile: Path, pins: Mapping[str, str | None], specs: Sequence[NodeSpec], renew: str
) -> Iterator[Complaint]:
    """Downloads without a hash, which join refuses, and hashes that belong to no download of these nodes."""
    from winboot.config.node_spec import pin_complaints
    from winboot.config.source import Complaint, locate, read

    artifacts = [artifact for spec in specs for artifact in spec.artifacts]
    top = read(profile)
    path = ("artifacts", "sha256")
    missing = sorted({one.key for one in artifacts if one.sha256 is None})
    if missing:
        wrong = f"no hash is pinned or known for {', '.join(missing)}"
        expected = "hashes; `winboot init -i INVENTORY` fetches the files once and fills them in"
        yield Complaint(locate(top, path, key=True), ".".join(path), wrong, expected, level="warning")
    yield from pin_complaints(pins, artifacts, top, renew)


def _kubeconfig_complaints(profile: Path, spec: NodeSpec) -> Iterator[Complaint]:
    """A kubeconfig that is missing, has no such context, or means what winboot does not do. It is not needed to render, so a
    missing one is a warning."""
    from winboot.base.errors import InvalidInput
    from winboot.config.model import is_file
    from winboot.config.source import Complaint, locate, read
    from winboot.remote.cluster.kubeconfig import Kubeconfig

    reference = spec.cluster.kubeconfig
    if reference is None or reference.file is None:
        return
    place = locate(read(profile), ("cluster", "kubeconfig"))
    if not reference.file.exists():
        wrong = f"there is no file {reference.file}; plan and join need it"
        yield Complaint(place, "cluster.kubeconfig", wrong, "a kubeconfig", level="warning")
    elif not is_file(reference.file):
        yield Complaint(place, "cluster.kubeconfig", f"{reference.file} is not a file", "a kubeconfig")
    else:
        try:
            found = Kubeconfig.from_file(reference.file)
            found.judge(spec.cluster.context)
        except InvalidInput as error:
            yield Complaint(place, "cluster.kubeconfig", error.problem, instead=error.hint)
            return
        if found.is_insecure(spec.cluster.context):
            wrong = "insecure-skip-tls-verify: any server on the path may answer as this cluster"
            yield Complaint(place, "cluster.kubeconfig", wrong, "certificate-authority-data", level="warning")


def _show(file: Path, complaints: list[Complaint], output: Lines) -> None:
    from winboot.config.keys import housed

    complaints = [housed(one) for one in complaints]
    errors = sum(one.level == "error" for one in complaints)
    warnings = sum(one.level == "warning" for one in complaints)
    if output is Lines.json:
        _show_lines(file, complaints, errors, warnings)
        return
    for one in complaints:
        say(str(one), "red" if one.level == "error" else "yellow", err=True)
    plural = "" if warnings == 1 else "s"
    typer.echo(f"{file}: {'good' if not errors else f'{errors} to correct'}, {warnings} warning{plural}")


def _show_lines(file: Path, complaints: Sequence[Complaint], errors: int, warnings: int) -> None:
    for one in complaints:
        place = one.place
        data = shape.Complaint(
            file=place.file if place else str(file),
            line=place.line if place else None,
            column=place.column if place else None,
            level=one.level,
            path=one.path,
            wrong=one.wrong,
            expected=one.expected,
            did_you_mean=one.did_you_mean,
            instead=one.instead,
            source=one.source,
        )
        typer.echo(json_line(data), nl=False)
    typer.echo(json_line(shape.Checked(file=str(file), errors=errors, warnings=warnings)), nl=False)
