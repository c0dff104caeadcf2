"""The lab's kubelet does what kubelet.exe did, row by row of its contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from lab_programs.conftest import KUBELET, KUBELET_CONFIG, Node

from lab_contracts.contract import Row, compared

CONFIG: Final = r"C:\var\lib\kubelet\config.yaml"
PKI: Final = r"C:\var\lib\kubelet\pki"


def started(when: dict[str, Any]) -> Node:
    """A machine whose kubelet was started: `flags` are more flags, `config` is laid over its file, `files` come instead."""
    node = Node(version="1.36.2")
    node.binaries()
    node.configuration()
    node.containerd()
    changed = {**KUBELET_CONFIG, **when.get("config", {})}
    node.file(CONFIG, {key: value for key, value in changed.items() if value is not None})
    for path, content in when.get("files", {}).items():
        if content is None:
            node.machine.files.delete(path)
        else:
            node.file(path, content)
    dropped = tuple(when.get("without", ()))
    node.service(
        "kubelet", *(word for word in KUBELET if not word.startswith(dropped)), *when.get("flags", ())
    )
    node.settle(when.get("seconds", 20))
    return node


def _message(row: Row) -> None:
    """It ends with this code, or runs on where the row has none, and its log has these words."""
    node = started(row.when)

    assert row.expect.get("says", row.source.quote) in node.log("kubelet")
    running = node.machine.processes.named("kubelet.exe")
    assert bool(running) is (row.expect["code"] is None)


def _client_link(_: Row) -> None:
    node = started({})
    entry = node.machine.files.find(rf"{PKI}\kubelet-client-current.pem", follow=False)

    assert entry is not None and entry[1].link is not None
    kind, target = entry[1].link
    assert (kind, target.startswith(rf"{PKI}\kubelet-client-20")) == ("SymbolicLink", True)


COMPARE: Final[dict[str, Callable[[Row], None]]] = {
    "message": _message,
    "client-certificate-link": _client_link,
}


@pytest.mark.parametrize("row", compared("kubelet"), ids=lambda row: row.id)
def test_the_kubelet_of_the_lab_follows(row: Row) -> None:
    """A KeyError is a row without a comparison."""
    COMPARE[row.id if row.id in COMPARE else row.kind](row)
