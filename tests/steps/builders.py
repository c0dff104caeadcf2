"""Specs for tests: the shipped profiles, resolved, with a CA of this repository."""

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

from winboot_lab.mirror import sha256_of

from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def a_spec(host: str = "win-a1", *, inventory: str = "canonical", **texts: str) -> NodeSpec:
    """A node of a shipped inventory. `texts` changes its profiles: old="new"."""
    return _spec(host, inventory, tuple(texts.items()))


@cache
def _spec(host: str, inventory: str, texts: tuple[tuple[str, str], ...]) -> NodeSpec:
    folder = Path(mkdtemp())
    try:
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        shutil.copytree(ROOT / "inventories", folder / "inventories")
        shutil.copy(GOLDEN / "ca.crt", folder / "profiles" / "ca.crt")
        for old, new in texts:
            assert _replaced(folder / "profiles", old, new), f"in no shipped profile: {old}"
        machine = load_inventory(folder / "inventories" / f"{inventory}.yaml")[host]
        return resolve(machine.profile, machine)
    finally:
        shutil.rmtree(folder)


def _replaced(folder: Path, old: str, new: str) -> int:
    """In how many profiles of the folder a text was replaced."""
    holders = [path for path in folder.glob("*.yaml") if old in path.read_text(encoding="utf-8")]
    for path in holders:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return len(holders)


def managed(profile: str, manager: str) -> str:
    """The text of a profile whose services all run under this manager."""
    rest = re.sub(r"^services:.*\n(?:[ #].*\n|\n)*", "", profile, flags=re.MULTILINE)
    return f"{rest}services: {{manager: {manager}}}\n"


_INVENTORY = """
groups:
  pool:
    profile: ./profiles/{profile}.yaml
    os: "{release}"
    connection: {{user: Administrator, password: {{env: UNUSED}}}}
    hosts: {{win-a1: {{address: {address}}}}}
"""


@cache
def a_spec_of(
    profile: str, release: str = "2022", *, manager: str | None = None, address: str = "10.224.0.11"
) -> NodeSpec:
    """A node with a shipped profile on a Windows release; `manager` runs all its services.

    Raises InvalidInput where profile and release do not go together.
    """
    folder = Path(mkdtemp())
    try:
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        shutil.copy(GOLDEN / "ca.crt", folder / "profiles" / "ca.crt")
        if manager:
            file = folder / "profiles" / f"{profile}.yaml"
            file.write_text(managed(file.read_text(encoding="utf-8"), manager), encoding="utf-8")
        text = _INVENTORY.format(profile=profile, release=release, address=address)
        (folder / "inventory.yaml").write_text(text, encoding="utf-8")
        machine = load_inventory(folder / "inventory.yaml")["win-a1"]
        return resolve(machine.profile, machine)
    finally:
        shutil.rmtree(folder)


def with_a_mirror(spec: NodeSpec) -> NodeSpec:
    """The same node with downloads from `http://mirror.lab` and the hashes of what the lab's mirror gives."""
    return replace(
        spec,
        artifacts=tuple(
            replace(
                one,
                url=f"http://mirror.lab/{urlsplit(one.url).path.lstrip('/')}",
                sha256=sha256_of(urlsplit(one.url).path),
            )
            for one in spec.artifacts
        ),
        proxy=replace(spec.proxy, no_proxy=(*spec.proxy.no_proxy, "mirror.lab")),
    )
