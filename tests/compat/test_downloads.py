"""Downloads: how each minor of Calico is run, and where each hash comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import a_spec, complaints
from tests.every import assert_none_wrong, untrue
from winboot.config.compat import load

CALICO = "network: {{cni: calico, managed_by: winboot}}\nartifacts: {{calico: {}}}\n"
PARTS = ("calico-node.exe", "cni/calico.exe", "cni/calico-ipam.exe")
MERGED = ("calico.exe", "cni/calico.exe", "cni/calico.exe")

# Version, what check finds, the agent's words, the members below CalicoWindows of agent, plug-in and IPAM.
MINORS = [
    ("3.31.0", [], "-startup -complete-startup", "-felix", PARTS),
    ("3.31.7", [], "-startup -complete-startup", "-felix", PARTS),
    ("3.32.1", [], "-startup -complete-startup", "-felix", PARTS),
    ("3.33.0", ["warning"], "component node startup --complete-startup", "component felix", MERGED),
]


@pytest.mark.parametrize(("version", "levels", "startup", "felix", "members"), MINORS)
def test_each_minor_of_calico_is_run_as_its_program_wants(
    version: str, levels: list[str], startup: str, felix: str, members: tuple[str, ...], tmp_path: Path
) -> None:
    """v3.32.1 node/cmd/calico-node/main.go; cmd/calico-windows/main.go and node/Makefile of 3.34-dev."""
    profile = CALICO.format(version)
    assert [one.level for one in complaints(profile) if one.path == "artifacts.calico"] == levels

    spec = a_spec(tmp_path, profile=profile)
    program = rf"C:\k\versions\calico-{version}\calico-node.exe"
    assert spec.network.agent is not None
    assert spec.network.agent.words == ("/c", f"{program} {startup} && {program} {felix}")
    (download,) = [one for one in spec.artifacts if one.name == "calico"]
    assert [one.path for one in download.members] == [f"CalicoWindows/{path}" for path in members]


@pytest.mark.parametrize("version", ["3.29.7", "3.30.7", "3.34.0", "4.0.0"])
def test_another_minor_of_calico_is_refused_with_the_range(version: str) -> None:
    """Up to 3.30 an unknown switch ends the agent with 1, and NSSM would restart it without end."""
    (found,) = [one for one in complaints(CALICO.format(version)) if one.path == "artifacts.calico"]

    assert found.level == "error"
    assert "winboot can use Calico 3.31 to 3.33" in str(found)


def test_an_overlay_makes_a_newer_calico_known(tmp_path: Path) -> None:
    overlay = tmp_path / "newer.yaml"
    overlay.write_text(
        "artifacts: {calico: {lines: {'3.34': {calls: {startup: [up], felix: [stay]}, source: calico-merged}}}}\n",
        encoding="utf-8",
    )
    profile = CALICO.format("3.34.0") + f"kubernetes: {{version: 1.36.5, overlay: {overlay}}}\n"

    assert [str(one) for one in complaints(profile) if one.path == "artifacts.calico"] == []


def test_each_download_names_where_its_hash_comes_from() -> None:
    """A checksum file of the publisher, a recorded hash with its source, or the first download."""
    facts = load()

    assert_none_wrong(
        {
            name: untrue(
                origin=entry["hash_from"].startswith(("checksum file", "recorded", "the first download")),
                checksum_file=entry["hash_from"].startswith("checksum file") is bool(entry["checksum"]),
                recorded=entry["hash_from"].startswith("recorded") is ("sha256" in entry),
                source=facts.source(entry["source"]).startswith("https://"),
                digests=set(entry["checksum"]) <= {"sha256", "sha512"},
            )
            for name, entry in facts.section("artifacts").items()
        }
    )


def test_a_download_that_its_publisher_replaced_is_named_with_both_hashes_and_dates(tmp_path: Path) -> None:
    """A hash by version alone is not enough: Docker's zip of 25.0.3 was replaced three weeks after its release."""
    before, after = "5" * 64, "4" * 64
    overlay = tmp_path / "newer.yaml"
    overlay.write_text(
        f"artifacts: {{nssm: {{replaced: {{'2.24': {{before: '{before}', after: '{after}', "
        "released: '2024-02-06', replaced: '2024-02-27', source: nssm-hash}}}}\n",
        encoding="utf-8",
    )
    profile = (
        f"kubernetes: {{version: 1.36.5, overlay: {overlay}}}\n"
        "artifacts: {sha256: {nssm/2.24/nssm-2.24.zip: '%s'}}\n"
    )

    (found,) = [one for one in complaints(profile % before) if "replaced" in str(one)]
    assert found.level == "warning"
    for said in (before, after, "2024-02-06", "2024-02-27"):
        assert said in str(found)
    assert "replaced" not in str(complaints(profile % after))
