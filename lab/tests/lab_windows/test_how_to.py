"""The cmdlet of docs/how-to-add-a-lab-cmdlet.md, taken from the page and added as it says."""

from __future__ import annotations

from pathlib import Path

from tests import howto

PAGE = "how-to-add-a-lab-cmdlet.md"


def test_the_pages_own_tests_pass_with_the_cmdlet_and_fail_without_it(tmp_path: Path) -> None:
    cmdlets, test = howto.apply(PAGE, tmp_path)

    assert "2 passed" in howto.tested(tmp_path, test)

    (tmp_path / cmdlets).write_bytes((howto.ROOT / cmdlets).read_bytes())
    assert "failed" in howto.tested(tmp_path, test)
