"""What profiles that exist still miss: the cluster's CA, and the hashes of their downloads.

Found out once and written where it belongs. A profile keeps every other byte, its comments too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:
    from winboot.config.inventory import Inventory
    from winboot.config.node_spec import Artifact
    from winboot.config.profile import Profile

HASHES = ("artifacts", "sha256")


@dataclass(slots=True)
class Filled:
    """What was written into which file: sentences for people. A dry run writes nothing."""

    dry_run: bool = False
    lines: list[str] = field(default_factory=list)

    def write(self, file: Path, text: str, *what: str) -> None:
        """Write the text, and note what is new in it."""
        if not self.dry_run:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        self.lines.extend(f"{file}: {one}" for one in what)


def fill(inventory: Path, *, renew: bool, dry_run: bool = False) -> Filled:
    """Complete every profile that the inventory names; with `renew`, fetch and hash again what has a hash.

    Raises InvalidInput with every complaint about the files, and ClusterError without the cluster's CA. Raises Unreachable
    for an artifact that cannot be downloaded, and HashMismatch for one that differs from its publisher's hash.
    """
    from winboot.cli.trust import settle
    from winboot.config.demands import demands
    from winboot.config.inventory import load_inventory

    filled = Filled(dry_run)
    loaded = load_inventory(inventory)
    settle(demands(loaded.tables), trust=False, may_ask=True)
    for file, profile in _profiles(loaded):
        _fill_ca(file, profile, filled)
    if renew:
        _drop_unversioned(load_inventory(inventory), filled)
    _fill_hashes(load_inventory(inventory), filled, renew=renew)
    return filled


def _profiles(inventory: Inventory) -> Iterator[tuple[Path, Profile]]:
    """Each profile file once, with the profile that its first machine gets of it."""
    seen: set[Path] = set()
    for machine in inventory:
        if machine.profile_file not in seen:
            seen.add(machine.profile_file)
            yield machine.profile_file, machine.profile


def _fill_ca(file: Path, profile: Profile, filled: Filled) -> None:
    named = profile.cluster.ca
    if named is not None and (named.file is None or named.file.exists()):
        return
    pem = _find_ca(profile)
    target = _free_name(file) if named is None or named.file is None else named.file
    filled.write(target, pem, "the CA of the cluster")
    if named is None:
        from winboot.config.edit import put_reference

        relative = os.path.relpath(target, file.parent)
        text = put_reference(file.read_text(encoding="utf-8"), ("cluster",), "ca", f"./{relative}")
        filled.write(file, text, f"cluster.ca: ./{relative}")


def _find_ca(profile: Profile) -> str:
    """By its hash from the cluster itself, or from the kubeconfig, which contains it already."""
    from winboot.base.errors import InvalidInput
    from winboot.config.authority import check_ca_hash
    from winboot.remote.cluster.discovery import fetch_ca
    from winboot.remote.cluster.kubeconfig import Kubeconfig

    cluster = profile.cluster
    if cluster.kubeconfig is not None and cluster.kubeconfig.file is not None:
        pem = Kubeconfig.from_file(cluster.kubeconfig.file).ca_pem(cluster.context)
        if cluster.ca_hash is not None:
            check_ca_hash(pem, cluster.ca_hash)
        return pem
    if cluster.ca_hash is not None:
        return fetch_ca(cluster.server, cluster.ca_hash)
    raise InvalidInput(
        f"cluster.ca: the file {cluster.ca} does not exist, and no other key leads to the CA",
        hint="Give cluster.kubeconfig {file: …} or cluster.ca_hash, or make the file.",
    )


def _free_name(profile: Path) -> Path:
    plain = profile.parent / "ca.crt"
    return profile.parent / f"{profile.stem}-ca.crt" if plain.exists() else plain


def _drop_unversioned(inventory: Inventory, filled: Filled) -> None:
    """Hashes that name no version are refused everywhere: their place is taken by those that are fetched now."""
    from winboot.config.edit import drop
    from winboot.config.node_spec import read_pin

    for file, profile in _profiles(inventory):
        old = [key for key in profile.artifacts.sha256 if read_pin(key) is None]
        if old:
            text = drop(file.read_text(encoding="utf-8"), HASHES, old)
            filled.write(file, text, f"artifacts.sha256: winboot removed {len(old)} hashes without a version")


def _fill_hashes(inventory: Inventory, filled: Filled, *, renew: bool) -> None:
    from winboot.config import hashes
    from winboot.config.node_spec import resolve
    from winboot.config.profile import facts_of

    fetched: dict[str, dict[str, str]] = {}
    found: dict[Path, dict[str, str]] = {}
    for machine in inventory:
        for artifact in resolve(machine.profile, machine).artifacts:
            if not (renew or _is_incomplete(artifact)):
                continue
            if artifact.url not in fetched:
                typer.echo(f"hashing {artifact.url}", err=True)
                fetched[artifact.url] = hashes.resolve(artifact, facts_of(machine.profile))
            if not renew:
                _hold_against_pin(artifact, fetched[artifact.url])
            found.setdefault(machine.profile_file, {}).update(fetched[artifact.url])
    _warn_of_plain_http(fetched)
    for file, values in found.items():
        _write_hashes(file, values, filled)


def _warn_of_plain_http(urls: Iterable[str]) -> None:
    """A hash that is pinned at first sight is worth as much as the way on which the file came."""
    for host in sorted({urlsplit(one).netloc for one in urls if one.startswith("http://")}):
        typer.echo(
            f"warning: {host}: these hashes were taken over plain HTTP, where others could exchange the files;"
            " compare them with their publishers' or use an https:// mirror",
            err=True,
        )


def _is_incomplete(artifact: Artifact) -> bool:
    members = artifact.members if artifact.kind != "file" else ()
    return artifact.sha256 is None or any(member.sha256 is None for member in members)


def _hold_against_pin(artifact: Artifact, fetched: dict[str, str]) -> None:
    from winboot.config.hashes import HashMismatch

    if artifact.sha256 not in (None, fetched[artifact.key]):
        raise HashMismatch(
            f"{artifact.url} has sha256 {fetched[artifact.key]}, but {artifact.sha256} is pinned or known for it",
            hint="This is another file. If that is meant, winboot init --renew takes the hash of this one.",
        )


def _write_hashes(file: Path, values: dict[str, str], filled: Filled) -> None:
    from winboot.config.edit import put
    from winboot.config.source import Scalar, Table, read

    node = read(file)
    for key in HASHES:
        inner = node.get(key) if isinstance(node, Table) else None
        node = inner if isinstance(inner, Table) else Table(node.place)
    before = {key: entry.value.text for key, entry in node.entries.items() if isinstance(entry.value, Scalar)}
    news = {
        key: value for key, value in values.items() if before.get(key, "").removeprefix("sha256:") != value
    }
    if not news:
        return
    was = {key: f"{before[key][:12]}… -> " if before.get(key) else "" for key in news}
    what = [f"artifacts.sha256: {key}: {was[key]}{value[:12]}…" for key, value in news.items()]
    filled.write(file, put(file.read_text(encoding="utf-8"), HASHES, news), *what)
