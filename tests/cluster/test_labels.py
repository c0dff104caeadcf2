"""What a Node's annotation lists as ours: a kubelet may write anything there."""

from __future__ import annotations

import json

import pytest

from winboot.config.annotations import OWNED
from winboot.remote.cluster.base import NodeFacts
from winboot.remote.cluster.labels import Owned, owned


def noted(text: str) -> Owned:
    """What is ours by this annotation."""
    return owned(NodeFacts("n", "1", True, "", "", "", (), {}, {OWNED: text}, (), (), "v", "windows"))


def test_a_note_lists_labels_and_taints() -> None:
    text = json.dumps({"labels": ["tier"], "taints": ["os:NoSchedule"]})
    assert noted(text) == Owned(frozenset({"tier"}), frozenset({"os:NoSchedule"}))


@pytest.mark.parametrize(
    "text",
    ["", "5", "[]", "[" * 100_000, '{"labels":' + "[" * 100_000, '{"labels":5}', '{"labels":[5]}', "\ud800"],
)
def test_a_note_of_another_form_counts_as_empty(text: str) -> None:
    assert noted(text) == Owned()
