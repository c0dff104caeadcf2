"""The addresses of a machine that its controller sends to it."""

from __future__ import annotations

from typing import Any

import pytest

from winboot.config.inventory import Connection
from winboot.remote.transport.dialled import dialled_addresses


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"host": "10.0.1.11"}, ("10.0.1.11",)),
        ({"host": "fd00:1::11"}, ("fd00:1::11",)),
        ({"host": "10.0.1.11", "tunnel": "x {local_port} {host} {port}"}, ("10.0.1.11",)),
        ({"host": "127.0.0.1"}, ("127.0.0.1",)),
        ({"host": "win-a1.invalid"}, ()),
        # Only the far end of the tunnel, or the jump host, knows the name; sshd says where the connection came in.
        ({"host": "localhost", "tunnel": "x {local_port} {host} {port}"}, ()),
        ({"host": "localhost", "transport": "ssh"}, ()),
        ({"host": "localhost", "transport": "local"}, ()),
    ],
)
def test_the_addresses_that_this_host_dials_are_reported(
    given: dict[str, Any], told: tuple[str, ...]
) -> None:
    assert dialled_addresses(Connection(**given)) == told


def test_a_name_is_sent_as_its_addresses() -> None:
    assert "127.0.0.1" in dialled_addresses(Connection(host="localhost"))
