"""Whatever a machine or a file reports ends no verdict: the neighbours have theirs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.doctor.documents import documents
from tests.lab.site import Site
from tests.node.test_facts import VALUES, whole
from winboot.base.errors import UsageError
from winboot.node.facts import facts_of
from winboot.operations.doctor import judge, load, save
from winboot.operations.doctor.document import rows_of


def test_no_fact_of_a_machine_ends_a_verdict(joined_site: Callable[[str], Site]) -> None:
    """Each key of each subject with each value, as far as the form of the subject lets it pass."""
    (document,) = documents(joined_site("plain"))
    for subject, rows in whole().items():
        for key in rows[0]:
            for value in VALUES:
                lie = copy.deepcopy(rows)
                lie[0][key] = value
                told, _ = facts_of(subject, lie)
                machine = {**document.machine, subject: rows_of(told)}

                assert judge([msgspec.structs.replace(document, machine=machine)])


NODES: tuple[dict[str, Any], ...] = (
    {"kubelet": "what I want"},
    {"kubelet": "v9" * 500},
    {"pod_cidrs": ("x", "::/0")},
    {"addresses": (("InternalIP", ""),)},
    {"taints": ("",), "labels": {}, "vtep": "x"},
    {"silent_since": "yesterday", "ready": False},
)


@pytest.mark.parametrize("change", NODES, ids=lambda one: next(iter(one)))
def test_no_node_object_ends_a_verdict(change: dict[str, Any], joined_site: Callable[[str], Site]) -> None:
    (document,) = documents(joined_site("plain"))
    assert document.api is not None
    assert document.api.node is not None
    node = msgspec.structs.replace(document.api.node, **change)

    assert judge([msgspec.structs.replace(document, api=msgspec.structs.replace(document.api, node=node))])


def test_a_file_shows_no_control_characters(joined_site: Callable[[str], Site], tmp_path: Path) -> None:
    (document,) = documents(joined_site("plain"))
    file = tmp_path / "facts.jsonl"
    file.write_bytes(
        save([msgspec.structs.replace(document, login_problem="\x1b]0;owned\x07", node="\x1b[2Jwin-1")])
    )

    (found,) = judge(load(file))

    assert "\x1b" not in found.node + "".join(found.unread)


@pytest.mark.parametrize("taken", ["never", ""])
def test_a_file_without_a_time_is_refused(
    taken: str, joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    (document,) = documents(joined_site("plain"))
    file = tmp_path / "facts.jsonl"
    file.write_bytes(save([msgspec.structs.replace(document, taken=taken)]))

    with pytest.raises(UsageError, match=r"facts\.jsonl:1"):
        load(file)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_bytes(b"")

    with pytest.raises(UsageError, match="no document"):
        load(file)
