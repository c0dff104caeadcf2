"""The helper of tests about every element."""

from __future__ import annotations

import pytest

from tests.every import assert_none_wrong, differs, failure, untrue


def test_the_message_lists_every_wrong_element() -> None:
    findings = {f"element-{at}": ["too long"] if at % 2 else [] for at in range(100)}

    with pytest.raises(AssertionError) as caught:
        assert_none_wrong(findings)

    lines = str(caught.value).splitlines()
    assert lines[0] == "50 of 100 are wrong:"
    assert lines[1:51] == [f"element-{at}: ['too long']" for at in range(1, 100, 2)]


def test_a_table_without_elements_fails() -> None:
    with pytest.raises(AssertionError, match="no element"):
        assert_none_wrong({})


def test_a_finding_names_what_is_wrong() -> None:
    assert_none_wrong({"one": untrue(long=True), "two": differs(1, 1), "three": failure(KeyError, len, "ab")})
    assert untrue(long=True, short="") == ["short"]
    assert differs(1, 2) == "1, not 2"
    assert failure(ValueError, int, "x") == "ValueError: invalid literal for int() with base 10: 'x'"
