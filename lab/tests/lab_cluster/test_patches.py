"""Patches join lists the way each patch type says."""

from __future__ import annotations

from typing import Any

import pytest
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply_patch


def node() -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "labels": {"a": "1", "b": "2"}},
        "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "r"}]},
    }


def test_a_merge_patch_removes_with_null_and_replaces_lists() -> None:
    patched = apply_patch(
        "nodes", node(), {"metadata": {"labels": {"a": None}}, "spec": {"taints": []}}, MERGE_PATCH
    )

    assert patched["metadata"]["labels"] == {"b": "2"}
    assert patched["spec"]["taints"] == []


def test_a_strategic_patch_joins_conditions_by_type_but_replaces_taints() -> None:
    patch = {
        "spec": {"taints": [{"key": "y", "effect": "NoExecute"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
        },
    }

    patched = apply_patch("nodes", node(), patch, STRATEGIC_PATCH)

    assert [t["key"] for t in patched["spec"]["taints"]] == ["y"]
    assert [c["type"] for c in patched["status"]["conditions"]] == ["Ready", "DiskPressure"]
    assert patched["status"]["conditions"][0] == {"type": "Ready", "status": "True", "reason": "r"}


def test_a_strategic_patch_deletes_an_entry_of_a_joined_list() -> None:
    patch = {"status": {"conditions": [{"$patch": "delete", "type": "Ready"}]}}

    assert apply_patch("nodes", node(), patch, STRATEGIC_PATCH)["status"]["conditions"] == []


def test_a_json_patch_with_a_failing_test_changes_nothing() -> None:
    operations = [
        {"op": "test", "path": "/spec/taints/0/key", "value": "other"},
        {"op": "remove", "path": "/spec/taints/0"},
    ]

    with pytest.raises(ApiFailure) as caught:
        apply_patch("nodes", node(), operations, JSON_PATCH)

    assert caught.value.code == 422


def test_a_json_patch_reaches_keys_with_slashes() -> None:
    operations = [{"op": "add", "path": "/metadata/labels/winboot.io~1pool", "value": "w"}]

    assert (
        apply_patch("nodes", node(), operations, JSON_PATCH)["metadata"]["labels"]["winboot.io/pool"] == "w"
    )
