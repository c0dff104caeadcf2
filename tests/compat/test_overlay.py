"""Newer facts come as an overlay file; the shipped data stays in its canonical form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.compat_bake import DATA, bake
from winboot.base.errors import InvalidInput
from winboot.config.compat import Version, check_flag, check_kubernetes, load
from winboot.config.compat.facts import FILES

OVERLAY = """
about: {as_of: 2027-05-01}
minors:
  "1.39":
    released: 2027-04-21
    end_of_life: 2028-06-28
    builds: [20348, 26100]
    pause: registry.k8s.io/pause:3.10.2
    containerd: ["2.2.0"]
    sources: [eol-date]
kubelet_flags:
  brand-new: {type: bool, added: "1.39"}
  v: {removed: "1.39"}
"""


def test_an_overlay_makes_a_newer_minor_known(tmp_path: Path) -> None:
    """Its flags are judged, and the warning about old data is gone."""
    path = tmp_path / "newer.yaml"
    path.write_text(OVERLAY, encoding="utf-8")
    facts = load(path)
    version = Version.parse("1.39.0")

    assert facts.newest == "1.39"
    assert check_kubernetes(facts, version) == []
    assert check_flag(facts, "kubelet", "brand-new", "true", version) == []
    assert [one.id for one in check_flag(facts, "kubelet", "v", "2", version)] == ["removed"]
    assert [one.id for one in check_flag(load(), "kubelet", "brand-new", "true", version)] == ["unknown"]


def test_a_section_that_no_overlay_has_is_refused_with_its_place(tmp_path: Path) -> None:
    """A typing mistake must not become silence."""
    path = tmp_path / "newer.yaml"
    path.write_text("about: {}\nkublet_flags: {}\n", encoding="utf-8")

    with pytest.raises(InvalidInput) as caught:
        load(path)

    assert str(caught.value.problems[0]).startswith(f"{path}:2:1: an overlay has no section of this name")


def test_an_invalid_date_is_refused_with_its_place(tmp_path: Path) -> None:
    """The age of the data and ends of life are counted from it."""
    path = tmp_path / "newer.yaml"
    path.write_text("about: {as_of: soon}\n", encoding="utf-8")

    with pytest.raises(InvalidInput) as caught:
        load(path)

    assert str(caught.value.problems[0]).startswith(f"{path}:1:16: about.as_of: 'soon' is not a date")


def test_the_shipped_files_are_in_the_form_that_bake_writes(tmp_path: Path) -> None:
    """One entry a line, so that a change of facts reads well."""
    bake(None, tmp_path)

    for path in DATA.glob("*.json"):
        assert (tmp_path / path.name).read_text() == path.read_text(), path.name


def test_bake_writes_an_overlay_into_the_data(tmp_path: Path) -> None:
    """The next release of winboot then knows it by itself."""
    overlay = tmp_path / "newer.yaml"
    overlay.write_text(OVERLAY, encoding="utf-8")

    bake(overlay, tmp_path)

    assert '"brand-new": {"type": "bool", "added": "1.39"}' in (tmp_path / "kubelet.json").read_text()


def test_the_page_about_the_data_names_every_section() -> None:
    """The author of an overlay reads docs/compat.md."""
    page = (Path(__file__).parents[2] / "docs" / "compat.md").read_text(encoding="utf-8")

    assert [name for sections in FILES.values() for name in sections if f"`{name}`" not in page] == []
