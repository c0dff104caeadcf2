"""Schemas, reference pages and examples: what is published is current and good."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import CA
from tools.pages import published
from winboot.config.inventory import check_inventory, load_inventory
from winboot.config.networks import NETWORKS
from winboot.config.node_spec import resolve
from winboot.config.profile import Profile, check_profile, load_profile
from winboot.config.schema import inventory_schema, profile_schema

ROOT = Path(__file__).parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.yaml"))
INVENTORIES = sorted((ROOT / "inventories").glob("*.yaml"))


@pytest.mark.parametrize("path", published())
def test_published_files_are_current(path: str) -> None:
    """`make golden` writes them."""
    assert (ROOT / "docs" / path).read_text(encoding="utf-8") == published()[path], "run make golden"


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_example_profile_is_good(path: Path) -> None:
    """No error; warnings only about versions that the data has something against, and about what a plug-in lacks."""
    found = check_profile(path)
    second_family = {"cluster.pod_cidr"} if path.stem.startswith("win-bridge") else set()

    assert [str(one) for one in found if one.level == "error"] == []
    assert {one.path for one in found} - second_family <= {"kubernetes.version", "runtime.containerd"}


def test_there_is_an_example_of_every_network() -> None:
    """Those that are offered; the tunnel is azure with another mode."""
    shown = {load_profile(path).solution.id for path in PROFILES}

    assert {network.id for network in NETWORKS if not network.later} - {"azure-tunnel"} <= shown


@pytest.mark.parametrize("path", INVENTORIES, ids=lambda path: path.stem)
def test_every_example_inventory_can_be_resolved(path: Path, tmp_path: Path) -> None:
    """With a CA next to the profiles, as `winboot init` writes it."""
    for folder in ("profiles", "inventories"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "profiles" / "ca.crt").write_text(CA, encoding="utf-8")
    copy = tmp_path / "inventories" / path.name

    assert [str(one) for one in check_inventory(copy) if one.level == "error"] == []
    specs = [resolve(machine.profile, machine) for machine in load_inventory(copy)]
    assert specs


def test_the_schemas_describe_every_key_and_allow_null() -> None:
    """For editors: descriptions are shown, unknown keys are marked."""
    schema = profile_schema()

    assert set(schema["properties"]) == set(Profile.model_fields)
    assert schema["additionalProperties"] is False
    for name, definition in schema["$defs"].items():
        for key, value in definition.get("properties", {}).items():
            assert value.get("description"), f"{name}.{key}"
            assert {"type": "null"} in value["anyOf"], f"{name}.{key}"


def _fits(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """As much of JSON Schema as these schemas use."""
    if "$ref" in schema:
        return _fits(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    if "anyOf" in schema:
        return any(_fits(one, value, root) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    kinds: dict[str, tuple[type, ...]] = {
        "object": (dict,),
        "array": (list,),
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "null": (type(None),),
    }
    kind = schema.get("type")
    if kind and not isinstance(value, kinds[kind]):
        return False
    if kind == "object":
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(
            _fits(known[key], item, root)
            if key in known
            else rest is True or (rest and _fits(rest, item, root))
            for key, item in value.items()
        )
    return all(_fits(schema.get("items", {}), item, root) for item in value) if kind == "array" else True


@pytest.mark.parametrize("path", [*PROFILES, *INVENTORIES], ids=lambda path: path.stem)
def test_every_example_fits_its_schema(path: Path) -> None:
    """An editor marks nothing in a good file; `dsr: off` is a word to winboot, so the loader here keeps words."""
    schema = profile_schema() if path.parent.name == "profiles" else inventory_schema()
    loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Words)

    assert _fits(schema, loaded, schema)
    assert not _fits(schema, {**loaded, "unknown_key": 1}, schema)


class _Words(yaml.SafeLoader):
    """YAML 1.2: on and off are words."""


_Words.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def test_the_schema_refuses_what_the_models_refuse() -> None:
    """A wrong choice is marked while it is typed."""
    schema = profile_schema()

    assert not _fits(schema, {"network": {"cni": "flanel"}}, schema)
    assert _fits(schema, {"network": {"cni": "flannel"}}, schema)
