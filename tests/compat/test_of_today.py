"""What `explain version` says of 1.34 to 1.38 on the day of the data, and what older lines of containerd lack.

Dates: kubernetes.io/releases, containerd's RELEASES.md at 301026e5, the lifecycle data of MicrosoftDocs.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.config.scene import a_spec
from tests.steps.builders import ROOT
from winboot.cli import run
from winboot.config.compat import Version, age, check_containerd, explain, load
from winboot.config.compat.platform import missing_defaults

FACTS = load()
V = Version.parse
MAINSTREAM_2022 = "Windows Server 2022: mainstream support ended 2026-10-13, extended until 2031-10-14"

# Minor and parts of its explanation.
STATES: list[tuple[str, list[str]]] = [
    (
        "1.34",
        [
            "newest patch    1.34.12, seen up to 2026-10-10",
            "support of this minor ended on 2026-10-27",
            "2.1.3+: ended 2026-07-03",
            "2.0.6+: until 2027-03-31; LTS, extended for one provider's Kubernetes 1.33",
            "1.7.28+: ended 2026-09-30; LTS, extended for one provider's Kubernetes 1.30 to 1.32",
            "Windows Server 2019: mainstream support ended 2024-01-09, extended until 2029-01-09",
        ],
    ),
    (
        "1.35",
        [
            "newest patch    1.35.9",
            "ends 2027-02-28 (urgent repairs only from 2026-12-28)",
            "2.2.0+: ended 2026-11-06",
            "2.1.5+: ended 2026-07-03",
            "1.7.28+: ended 2026-09-30",
            "containerd 2.2.9; its line has ended: 2.3.6, whose release line is maintained until 2028-04-30",
            MAINSTREAM_2022,
        ],
    ),
    ("1.36", ["newest patch    1.36.5", "ends 2027-06-28", "2.3.0+: until 2028-04-30", "2.4: unknown"]),
    ("1.37", ["newest patch    1.37.1", "ends 2027-10-28", "2.3.0+: until 2028-04-30", "2.4: unknown"]),
    ("1.38", ["planned         2026-12-16", "WindowsHostNetwork", "WindowsCPUAndMemoryAffinity is on"]),
]


@pytest.mark.parametrize(("minor", "says"), STATES)
def test_a_minor_is_explained_as_of_the_day_of_the_data(minor: str, says: list[str]) -> None:
    told = explain(FACTS, "version", minor)

    assert [one for one in says if one not in told] == []


def test_support_of_windows_is_judged_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of 2026 knows that 2025's mainstream support ends in 2029."""
    assert "Windows Server 2025: mainstream support until 2029-11-13" in explain(FACTS, "version", "1.37")
    monkeypatch.setattr(age, "today", lambda: date(2029, 11, 13))
    assert "Windows Server 2025: mainstream support ended 2029-11-13" in explain(FACTS, "version", "1.37")


def test_a_line_of_containerd_that_its_table_does_not_name_yet_is_unknown() -> None:
    (found,) = check_containerd(FACTS, V("2.4.1"), V("1.37.1"))

    assert (found.level, found.id) == ("warning", "untested")
    assert found.reason == "containerd's table does not list this release line for any minor yet"


# containerd, and whether winboot writes ScrubLogs: containerd 1c2b13dc9, in v2.3.4 and v2.2.7; 2.4 has it from its start.
SCRUBBED = [
    ("1.6.39", False),
    ("1.7.36", True),
    ("2.0.12", True),
    ("2.1.9", True),
    ("2.2.6", True),
    ("2.2.7", False),
    ("2.3.3", True),
    ("2.3.4", False),
    ("2.4.0", False),
]


@pytest.mark.parametrize(("containerd", "written"), SCRUBBED)
def test_environment_variables_stay_out_of_the_shims_log(
    containerd: str, written: bool, tmp_path: Path
) -> None:
    """Container environments hold secrets."""
    minor = "1.36.5" if V(containerd).at_least("2.2") else "1.34.12"
    profile = (
        f"kubernetes: {{version: {minor}}}\nruntime: {{containerd: {containerd}, isolation: [process]}}\n"
    )
    text = a_spec(tmp_path, profile=profile).runtime.config_text

    assert ("ScrubLogs = true" in text) is written


@pytest.mark.parametrize("row", FACTS.section("security_defaults"), ids=lambda row: row["id"])
def test_a_security_default_has_its_source_and_is_written_until_it_is_brought(row: dict[str, object]) -> None:
    assert FACTS.source(str(row["source"])).startswith("https://")
    brought = row["brought"]
    assert isinstance(brought, dict)
    for line, first in brought.items():
        latest = V(FACTS.section("containerd")[line]["latest"])
        assert (row["setting"] in missing_defaults(FACTS, latest)) is (first is None)


def test_each_part_of_the_data_has_an_age(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(age, "today", lambda: date(2026, 12, 10))
    assert run(["compat", "--age"]) == 0

    told = capsys.readouterr().out.splitlines()
    assert "patches         2026-10-10  61 days" in told
    assert len(told) == len(FACTS.section("seen"))
    assert all(
        date.fromisoformat(day) <= date.fromisoformat(FACTS.as_of) for day in FACTS.section("seen").values()
    )


def test_a_workflow_compares_with_upstream_each_week_and_changes_nothing() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "compat.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    commands = "\n".join(step.get("run", "") for step in job["steps"])

    # YAML 1.1 reads the key `on` as true.
    assert workflow[True]["schedule"][0]["cron"].endswith("* * 1")
    assert workflow["permissions"] == {"contents": "read"}
    assert "python -m tools.compat_upstream up" in commands
    for name, entry in FACTS.section("artifacts").items():
        assert ("proposed" not in entry and "lines" not in entry) or f"tags {name} " in commands, name
