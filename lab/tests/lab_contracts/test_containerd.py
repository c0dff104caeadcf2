"""The lab's containerd reads its file as containerd.exe did, row by row of its contract."""

from __future__ import annotations

import codecs
from typing import Any, Final

import pytest
from lab_programs.conftest import Node
from winboot_lab.mirror import program
from winboot_lab.programs.containerd import Containerd

from lab_contracts.contract import Row, compared

ROWS: Final = compared("containerd")
FOLDER: Final = r"C:\Program Files\containerd"
LOG: Final = r"C:\var\log\containerd\containerd.log"


def prepared(when: dict[str, Any]) -> Node:
    """A machine with this containerd and its files."""
    node = Node()
    for name in ("containerd", "ctr", "containerd-shim-runhcs-v1"):
        node.file(rf"{FOLDER}\bin\{name}.exe", program(name, str(when["containerd"])))
    for path, key in ((rf"{FOLDER}\config.toml", "file"), (rf"{FOLDER}\conf.d\x.toml", "conf.d")):
        if key in when:
            node.file(path, when[key])
    return node


def of(*kinds: str) -> list[Row]:
    return [row for row in ROWS if row.kind in kinds]


def effect(node: Node) -> dict[str, Any]:
    """What a containerd that has started does."""
    line = [rf"{FOLDER}\bin\containerd.exe", "--run-service", "--log-file", LOG]
    assert node.service("containerd", *line) == 0
    (process,) = node.machine.processes.named("containerd")
    assert isinstance(process.served, Containerd)
    config = process.served.config
    return {"sandbox_image": config.sandbox_image, "conf_dir": config.conf_dir}


@pytest.mark.parametrize("row", of("message", "exit"), ids=lambda row: row.id)
def test_it_takes_or_refuses_a_file_as_upstream_does(row: Row) -> None:
    node = prepared(row.when)

    dumped = node.run(rf"{FOLDER}\bin\containerd.exe", "config", "dump")

    assert dumped.code == row.expect["code"], dumped.stderr
    assert row.expect.get("says", "") in dumped.stderr.decode()
    if dumped.code == 0:
        found = effect(node)
        assert row.expect.get("logs", "") in node.read(LOG)
        assert row.expect.get("effect", {}).items() <= found.items()


@pytest.mark.parametrize("row", of("file"), ids=lambda row: row.id)
def test_a_section_or_drop_in_has_upstreams_effect(row: Row) -> None:
    assert row.expect.items() <= effect(prepared(row.when)).items()


def test_the_byte_order_mark_of_the_contract_is_one() -> None:
    (row,) = [one for one in ROWS if one.id == "byte-order-mark"]

    assert row.when["file"].encode().startswith(codecs.BOM_UTF8)
