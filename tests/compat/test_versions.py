"""Versions compare as numbers, as people mean them."""

from __future__ import annotations

import pytest

from winboot.config.compat.version import Version

IN_ORDER = ["1.9.11", "1.10.0", "1.27.0-alpha.1", "1.27.0-rc.2", "1.27.0-rc.10", "1.27.0", "1.27.1", "2.0.0"]


def test_versions_sort_by_number_and_not_by_letter() -> None:
    """1.9 comes before 1.10, a pre-release before its release."""
    versions = [Version.parse(text) for text in IN_ORDER]

    assert versions != sorted(versions, key=str)
    assert sorted(versions) == versions


@pytest.mark.parametrize("text", ["1.34.2", "1.34", "1.36.0-rc.1"])
def test_a_version_prints_as_it_was_written(text: str) -> None:
    """`v` is dropped, the rest stays."""
    assert str(Version.parse("v" + text)) == text


def test_a_minor_alone_is_its_first_patch_in_comparisons() -> None:
    """`at_least("1.33")` holds for every 1.33."""
    assert Version.parse("1.33.0").at_least("1.33")
    assert not Version.parse("1.32.13").at_least("1.33")
    assert Version.parse("1.34") == Version.parse("1.34.0")
    assert Version.parse("1.34.2").minor == "1.34"


@pytest.mark.parametrize("text", ["", "1", "one.two", "1.34.2.1", "1..2", "latest"])
def test_what_is_no_version_is_refused(text: str) -> None:
    """ValueError, and nothing is guessed."""
    with pytest.raises(ValueError, match="not a version"):
        Version.parse(text)
