"""The lab's kube-log-runner does what kube-log-runner.exe does, row by row of its contract."""

from __future__ import annotations

import pytest
from lab_programs.conftest import Node

from lab_contracts.contract import Row, compared
from lab_contracts.test_kubelet import prepared, start

RUNNER = r"C:\k\kube-log-runner.exe"


def _child_failed(row: Row) -> None:
    """The kubelet ended with 2."""
    node = start(prepared(row.when))
    ended = {one.name: one.exit_code for one in node.machine.processes._known.values()}

    assert (ended["kubelet"], ended["kube-log-runner"]) == (2, row.expect)


def _message(row: Row) -> None:
    node = Node()
    node.binaries()
    ended = node.run(RUNNER, *row.when)

    assert (ended.code, row.expect["says"] in ended.stderr.decode()) == (row.expect["code"], True)


COMPARE = {"child-failed": _child_failed, "message": _message}


@pytest.mark.parametrize("row", compared("kube-log-runner"), ids=lambda row: row.id)
def test_the_runner_of_the_lab_follows(row: Row) -> None:
    """A KeyError is a row without a comparison."""
    COMPARE[row.id if row.id in COMPARE else row.kind](row)
