"""The network of docs/how-to-add-a-network.md, taken from the page and added as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import howto

PAGE = "how-to-add-a-network.md"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The repository with the page's changes, and the files that the page names."""
    folder = tmp_path_factory.mktemp("network")
    return folder, howto.apply(PAGE, folder)


def test_it_takes_at_most_five_files(copy: tuple[Path, list[str]]) -> None:
    assert 0 < len(set(copy[1])) <= 5


def test_the_pages_own_tests_pass(copy: tuple[Path, list[str]]) -> None:
    assert "2 passed" in howto.tested(copy[0], "tests/networks/test_lagoon.py")


def test_what_holds_for_all_solutions_holds_for_it(copy: tuple[Path, list[str]]) -> None:
    """Owners and functions go together; every choice of owners renders."""
    told = howto.tested(copy[0], "tests/networks/test_solutions.py")

    assert " passed" in told
    assert "failed" not in told


def test_the_command_line_knows_it(copy: tuple[Path, list[str]]) -> None:
    told = howto.run(copy[0], "-m", "winboot", "explain", "network", "lagoon")

    assert "lagoon-network" in told.stdout, told.stderr
    wrong = "network: {cni: lagono}"
    code = f"from tests.config.scene import complaints; print(*complaints({wrong!r}))"
    assert "did you mean 'lagoon'?" in howto.run(copy[0], "-c", code).stdout


def test_without_the_page_it_is_not_there() -> None:
    """Or the tests above would show nothing."""
    assert not (howto.ROOT / "winboot" / "config" / "networks" / "lagoon.py").exists()
