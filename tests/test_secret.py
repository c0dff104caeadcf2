"""Few modules reveal a secret's value, each with its reason."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from winboot.base.secret import Secret

ROOT = Path(__file__).parents[1] / "winboot"
# A reference counts the lines of a password file. Transports send it. A CA is public. A kubeconfig is parsed. The id of a
# token is not a secret. A journal looks for it to hide it. A voucher is printed by the command that makes it, and user data
# contains it. A join command is parsed, and its token goes to a private file.
READERS = {
    "config/profile/reference.py",
    "remote/transport/console.py",
    "remote/transport/connect.py",
    "remote/transport/psrp.py",
    "remote/transport/ssh.py",
    "remote/transport/wire.py",
    "config/node_spec/resolve.py",
    "remote/cluster/kubeconfig.py",
    "operations/join/secrets.py",
    "operations/verify/objects.py",
    "operations/firstboot/userdata.py",
    "cli/first_boot.py",
    "cli/join_command.py",
    "config/join_command.py",
    "report/journal.py",
}


def test_a_value_is_revealed_in_the_listed_modules_alone() -> None:
    """The comment above gives the reason for each."""
    found = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "reveal"
    }

    assert found == READERS


@pytest.mark.parametrize("shown", [repr, str, "{}".format, "{:s}".format, "%s".__mod__])
def test_no_way_of_showing_a_secret_shows_it(shown: Callable[[Secret], str]) -> None:
    assert "hunter2" not in shown(Secret("hunter2"))


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_secret_is_neither_copied_nor_pickled(way: Callable[[Secret], object]) -> None:
    with pytest.raises(TypeError):
        way(Secret("hunter2"))
