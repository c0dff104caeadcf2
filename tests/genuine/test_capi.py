"""The printed KubeadmConfigTemplate against the CRDs of a release of Cluster API: `make genuine CAPI=folder`.

The folder holds bootstrap-components.yaml of that release (github.com/kubernetes-sigs/cluster-api/releases).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from winboot.operations.firstboot.capi import API, template

pytestmark = pytest.mark.genuine


def _schema() -> dict[str, Any]:
    folder = os.environ.get("CAPI", "")
    if not folder:
        pytest.skip("CAPI names no folder with bootstrap-components.yaml of Cluster API")
    version = API.partition("/")[2]
    for file in sorted(Path(folder).glob("*.yaml")):
        for one in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if (
                one
                and one["kind"] == "CustomResourceDefinition"
                and one["spec"]["names"]["kind"] == "KubeadmConfigTemplate"
            ):
                schemas = {
                    each["name"]: each["schema"]["openAPIV3Schema"] for each in one["spec"]["versions"]
                }
                return dict(_strict(schemas[version]))
    raise AssertionError(f"{folder} has no CRD of KubeadmConfigTemplate")


def _strict(schema: Any) -> Any:
    """An API server prunes what a structural schema does not name; here it is an error."""
    if not isinstance(schema, dict):
        return [_strict(one) for one in schema] if isinstance(schema, list) else schema
    found = {key: _strict(value) for key, value in schema.items()}
    if (
        isinstance(found.get("properties"), dict)
        and "additionalProperties" not in found
        and found["properties"].get("apiVersion") is None
    ):
        found["additionalProperties"] = False
    return found


def test_the_template_is_one_of_cluster_api() -> None:
    _, config = yaml.safe_load_all(template("pool", "exit"))

    found = jsonschema.Draft202012Validator(_schema()).iter_errors(config)

    assert [f"{error.json_path}: {error.message}" for error in found] == []
