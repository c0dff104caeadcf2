"""Texts and messages of a machine that no reader of pypsrp expects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pypsrp.powershell import Fragment
from pypsrp.serializer import Serializer

from winboot.base.clean import clean
from winboot.base.errors import ExcessiveOutput
from winboot.base.limits import LARGEST_MESSAGE
from winboot.remote.transport.psrp import _Pool, decoded, encoded

TEXTS = {
    "plain": ("a_b", "a_b"),
    "nothing": (None, ""),
    "a line end": ("a_x000A_b", "a\nb"),
    "an escaped escape": ("_x005F_x000A_", "_x000A_"),
    "a pair": ("_xD83D__xDE00_", "\U0001f600"),
    "half a pair": ("file_xD800_.txt", "file\ud800.txt"),
    "the other half": ("_xdc00_", "\udc00"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_decoded_as_it_was_meant(name: str) -> None:
    written, meant = TEXTS[name]

    assert decoded(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "Get-Item\n\tC:\\x_y\r\n",
        "_x000A_ _X000a_ __x _",
        "".join(map(chr, range(0xA1))),
        "é\u2028\U0001f600_x\U0010ffff\n",
        "",
        None,
    ],
)
def test_a_text_is_encoded_as_pypsrp_does_it(text: str | None) -> None:
    assert encoded(text) == Serializer()._serialize_string(text)
    assert decoded(encoded(text)) == (text or "")


def test_half_a_pair_is_shown() -> None:
    assert clean(decoded("file_xD800_.txt")) == r"file\ud800.txt"


def test_a_message_without_an_end_is_ended() -> None:
    """pypsrp would keep its pieces without a bound; small messages start the count again."""
    pool: Any = SimpleNamespace(_unfinished=0, _name="n1")
    piece = b"x" * (1 << 20)
    for number in range(40):
        _Pool._bound(pool, Fragment(number, 0, piece, True, True))
    whole = LARGEST_MESSAGE >> 20
    for part in range(whole):
        _Pool._bound(pool, Fragment(41, part, piece, part == 0, False))

    with pytest.raises(ExcessiveOutput, match="one message of more than 16 MiB"):
        _Pool._bound(pool, Fragment(41, whole, piece, False, False))
