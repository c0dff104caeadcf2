"""A machine that winboot knows by a name, or by an address that is not the node's own, becomes a Ready node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.site import Site, only, problems

# Each is what the inventory knows of the machine; its own address, 10.0.1.11, is in none of them.
KNOWN_AS = {
    "a name (users of Kerberos have nothing else)": "localhost",
    "NAT, or a management adapter": "127.0.0.1",
}


@pytest.mark.parametrize("address", KNOWN_AS.values(), ids=list(KNOWN_AS))
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
