"""docs/networks.md helps users choose: a row for each network, which agrees with what winboot knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from winboot.config.networks import CNIS, NETWORKS

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"


def rows() -> dict[str, list[str]]:
    """The cells of the table behind each network's name."""
    text = PAGE.read_text(encoding="utf-8").partition("## Choose one")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {
        name.strip().strip("`"): [cell.strip() for cell in cells]
        for name, *cells in lines
        if "network.cni" not in name
    }


def test_every_network_has_a_row() -> None:
    assert sorted(rows()) == sorted(CNIS)


@pytest.mark.parametrize("cni", [cni for cni in CNIS if cni != "cilium"])
def test_a_row_says_what_the_solution_says(cni: str) -> None:
    """Families, VXLAN and the owner of kube-proxy; seven cells in all."""
    _, _, families, between, kube_proxy, needs, seen = rows()[cni]
    solutions = [one for one in NETWORKS if one.cni == cni]

    assert (families != "no") is any(one.dual_stack for one in solutions)
    if cni not in ("antrea", "none"):
        assert ("VXLAN" in between) is any(one.hns_type == "Overlay" for one in solutions)
    assert ("winboot" in kube_proxy) is any(one.owners.kube_proxy == "winboot" for one in solutions)
    assert needs
    assert seen.startswith("lab")
