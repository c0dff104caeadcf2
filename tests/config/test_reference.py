"""Secrets that references name: text of any form is read or refused without a byte of it."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from winboot.base.errors import InvalidInput
from winboot.config.profile.reference import LoginReference

PASSWORD = "pässwörd CANARY"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_password_file_is_read_as_windows_and_editors_write_it(
    encoding: str, end: str, tmp_path: Path
) -> None:
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    (tmp_path / "p").write_bytes((mark + PASSWORD + end).encode(encoding))

    assert LoginReference(file=tmp_path / "p").read("win-1: password").reveal() == PASSWORD


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"CANARY\xff\xe9", "not UTF-8 text"),
        (b"\xff\xfeC\x00A\x00N\x00A\x00R", "not UTF-8 text"),
        (b"CANARY\nsecond\n", "2 lines"),
        (b"CANARY\r\n\r\nthird", "3 lines"),
    ],
)
def test_another_file_is_refused_without_a_byte_of_it(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(data)

    with pytest.raises(InvalidInput) as refused:
        LoginReference(file=tmp_path / "p").read("win-1: password")

    text = "".join(traceback.format_exception(refused.value)) + refused.value.hint
    assert why in refused.value.problem
    assert not any(word in text for word in ("0xff", "0xe9", "0x52", "codec"))
    assert "CANARY" not in refused.value.problem
