"""Data grows old: ends of life are judged today, and data without the newest minor says so."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from winboot.cli import run
from winboot.config.compat import Version, age, check_containerd, check_kubernetes, load

MADE = date.fromisoformat(load().as_of)


def on(monkeypatch: pytest.MonkeyPatch, day: date) -> None:
    """From here on it is this day."""
    monkeypatch.setattr(age, "today", lambda: day)


@pytest.mark.parametrize(("days", "old"), [(-30, False), (0, False), (120, False), (121, True)])
def test_data_is_old_after_120_days(monkeypatch: pytest.MonkeyPatch, days: int, old: bool) -> None:
    """A minor comes every four months; a clock before the data's date is not counted."""
    on(monkeypatch, MADE + timedelta(days=days))
    assert (age.said(load()) is not None) is old


def test_old_data_says_its_date_its_age_and_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, MADE + timedelta(days=200))
    told = age.said(load())
    assert told is not None
    assert load().as_of in told and "200 days" in told and "1.37" in told


def test_the_date_of_an_overlay_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlay = tmp_path / "newer.yaml"
    overlay.write_text(f"about: {{as_of: {MADE + timedelta(days=150)}}}\n", encoding="utf-8")
    on(monkeypatch, MADE + timedelta(days=200))

    assert age.said(load()) is not None
    assert age.said(load(overlay)) is None


def test_check_says_it_once_however_many_profiles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two groups, two profiles, three files: one sentence, and still good."""
    root = Path(__file__).parents[2]
    files = [
        str(root / name) for name in ("inventories/mixed.yaml", "profiles/minimal.yaml", "profiles/none.yaml")
    ]
    assert run(["check", *files]) == 0
    assert "days old" not in capsys.readouterr().err

    on(monkeypatch, MADE + timedelta(days=130))
    assert run(["check", *files]) == 0
    told = capsys.readouterr().err
    assert told.count("130 days old") == 1
    assert "kubernetes.overlay" in told


def test_the_version_says_the_age_of_the_data_with_v_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(monkeypatch, MADE + timedelta(days=121))
    assert run(["--version", "-v"]) == 0
    told = capsys.readouterr().out
    assert f"data of {load().as_of}, 121 days old, up to Kubernetes 1.37" in told
    assert "older than 120 days" in told

    assert run(["--version"]) == 0
    assert "data" not in capsys.readouterr().out


def test_an_end_of_life_after_the_date_of_the_data_is_reported_when_it_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Data of November 2026 knows that 1.35 ends in February 2027."""
    version = Version.parse("1.35.9")
    assert check_kubernetes(load(), version) == []

    on(monkeypatch, date(2027, 2, 28))
    (found,) = check_kubernetes(load(), version)
    assert (found.id, found.reason) == ("end-of-life", "support of this minor ended on 2027-02-28")
    on(monkeypatch, date(2027, 4, 26))
    found_2_4 = check_containerd(load(), Version.parse("2.4.1"), Version.parse("1.37.1"))
    assert [one.id for one in found_2_4] == ["untested", "end-of-life"]
