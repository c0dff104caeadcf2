"""Specs for tests: the shipped profiles, resolved, with a CA that stands in this repository."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from winboot.inventory import load_inventory
from winboot.spec import NodeSpec, resolve

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def a_spec(host: str = "win-a1", *, inventory: str = "canonical", **replace: str) -> NodeSpec:
    """A node of a shipped inventory. `replace` changes texts of its profiles: old="new"."""
    return _spec(host, inventory, tuple(replace.items()))


@cache
def _spec(host: str, inventory: str, replace: tuple[tuple[str, str], ...]) -> NodeSpec:
    folder = Path(mkdtemp())
    try:
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        shutil.copytree(ROOT / "inventories", folder / "inventories")
        shutil.copy(GOLDEN / "ca.crt", folder / "profiles" / "ca.crt")
        for path in (folder / "profiles").glob("*.yaml"):
            text = path.read_text(encoding="utf-8")
            for old, new in replace:
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
        machine = load_inventory(folder / "inventories" / f"{inventory}.yaml")[host]
        return resolve(machine.profile, machine)
    finally:
        shutil.rmtree(folder)
