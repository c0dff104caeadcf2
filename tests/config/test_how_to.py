"""The key of docs/how-to-add-a-profile-key.md, taken from the page and added as it says."""

from __future__ import annotations

from pathlib import Path

from tests import howto

PAGE = "how-to-add-a-profile-key.md"


def test_the_pages_own_tests_pass_with_the_key_and_fail_without_it(tmp_path: Path) -> None:
    paths = howto.apply(PAGE, tmp_path)
    assert paths == [
        "winboot/config/profile/sections.py",
        "winboot/script/steps/system_settings.py",
        "tests/config/test_event_log.py",
    ]

    assert "2 passed" in howto.tested(tmp_path, paths[-1])

    for path in paths[:-1]:
        (tmp_path / path).write_bytes((howto.ROOT / path).read_bytes())
    assert "2 failed" in howto.tested(tmp_path, paths[-1])
