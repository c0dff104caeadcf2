"""A machine that winboot knows by a name, or by an address that is not the node's own, becomes a Ready node."""

from __future__ import annotations

from pathlib import Path

import pytest
from winboot_lab.windows.snapshot import diff

from tests.lab.site import Site, only, problems

# Each is where the inventory reaches the machine; its own address, 10.0.1.11, stands under certificate_names.
NAT = "NAT, or a management adapter"
KNOWN_AS = {"a name (users of Kerberos have nothing else)": "localhost", NAT: "127.0.0.1"}


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(one, id=name, marks=pytest.mark.check if name == NAT else pytest.mark.matrix)
        for name, one in KNOWN_AS.items()
    ],
)
def test_the_nodes_own_address_comes_from_the_node(address: str, tmp_path: Path) -> None:
    """Ready, with its serving certificate, and a second run changes nothing."""
    site = Site(tmp_path)
    inventory = site.files.inventory
    inventory.write_text(inventory.read_text().replace("address: 127.0.0.1", f"address: {address}"))
    assert "node_ip" not in inventory.read_text()

    first, second = site.join(), site.join()

    assert problems(first) == []
    assert only(first).ready
    assert not only(first).notes
    assert (only(second).ready, second.changed) == (True, 0)


def test_an_address_that_only_the_machine_reports_stops_the_join_before_the_first_change(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    inventory = site.files.inventory
    lines = inventory.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "certificate_names" not in line and line.strip() != "- 10.0.1.11"]
    assert len(kept) == len(lines) - 2
    inventory.write_text("".join(kept))
    before = site.machine.snapshot()

    failure = only(site.join()).failure

    assert failure is not None
    assert failure.name == "ClaimRefused"
    assert "10.0.1.11, which is not the machine's address in the inventory (127.0.0.1)" in failure.message
    assert "`node_ip: ADDRESS`" in failure.hint
    assert diff(before, site.machine.snapshot()) == []
