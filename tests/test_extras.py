"""Parts of winboot that are not installed: named with a command that works from a checkout."""

from __future__ import annotations

import pytest

from winboot.base.errors import UsageError
from winboot.base.extras import ExtraName, how_to_install, require
from winboot.config.inventory import Connection
from winboot.remote.transport.connect import connect, show_host_key


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winboot.base.extras.find_spec", lambda name: None)


def test_a_transport_whose_library_is_missing_is_wrong_use_and_no_bug(nothing_installed: None) -> None:
    connection = Connection(transport="ssh", host="10.0.0.1", user="a", agent=True)

    for ask in (connect, show_host_key):
        with pytest.raises(UsageError) as caught:
            ask(connection, name="win-1")
        assert str(caught.value).startswith("win-1: transport: ssh needs the Python package paramiko")
        assert "pip install '.[ssh]'" in caught.value.hint


@pytest.mark.parametrize("extra", ["ssh", "aws", "azure", "kerberos"])
def test_each_extra_is_named_where_it_is_asked_for(nothing_installed: None, extra: ExtraName) -> None:
    with pytest.raises(UsageError, match="not installed") as caught:
        require(extra, "this")
    assert f"pip install '.[{extra}]'" in caught.value.hint


@pytest.mark.parametrize(
    ("words", "lab", "command"),
    [
        ((), True, "`pip install . ./lab`"),
        (("aws",), True, "`pip install '.[aws]' './lab[aws]'`"),
        (
            ("ssh", "azure"),
            False,
            "`pip install '.[ssh,azure]'` (with pipx: `pipx install --force '.[ssh,azure]'`)",
        ),
    ],
)
def test_the_command_names_folders_of_the_checkout_alone(
    words: tuple[ExtraName, ...], lab: bool, command: str
) -> None:
    assert how_to_install(*words, lab=lab) == f"in winboot's checkout: {command}"
