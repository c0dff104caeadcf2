"""Schemas, reference pages and examples: what is published is current and good."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.scene import CA
from tests.every import assert_none_wrong, untrue
from tools.pages import published
from winboot.config.inventory import check_inventory, load_inventory
from winboot.config.networks import NETWORKS
from winboot.config.node_spec import resolve
from winboot.config.profile import Profile, check_profile, load_profile
from winboot.config.schema import inventory_schema, profile_schema

ROOT = Path(__file__).parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.yaml"))
INVENTORIES = sorted((ROOT / "inventories").glob("*.yaml"))


def test_published_files_are_current() -> None:
    """`make golden` writes them."""
    assert_none_wrong(
        {
            path: "" if (ROOT / "docs" / path).read_text(encoding="utf-8") == text else "run make golden"
            for path, text in published().items()
        }
    )


def test_every_example_profile_is_good() -> None:
    """No error; warnings only about versions that the data has something against, and about what a plug-in lacks."""
    assert_none_wrong({path.stem: unexpected(path) for path in PROFILES})


def unexpected(profile: Path) -> list[str]:
    warned = {"kubernetes.version", "runtime.containerd"}
    if profile.stem.startswith("win-bridge"):
        warned.add("cluster.pod_cidr")  # the second family
    return [str(one) for one in check_profile(profile) if one.level == "error" or one.path not in warned]


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


def test_every_example_fits_its_schema() -> None:
    """An editor marks nothing in a good file; `dsr: off` is a word to winboot, so the loader here keeps words."""
    schemas = [(profile_schema(), PROFILES), (inventory_schema(), INVENTORIES)]

    assert_none_wrong(
        {
            f"{path.parent.name}/{path.name}": untrue(
                fits=_fits(schema, loaded, schema),
                refuses_unknown_keys=not _fits(schema, {**loaded, "unknown_key": 1}, schema),
            )
            for schema, paths in schemas
            for path in paths
            for loaded in [yaml.load(path.read_text(encoding="utf-8"), Loader=_Words)]
        }
    )


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
