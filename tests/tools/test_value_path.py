"""A reader can follow a value from YAML to the script."""

from __future__ import annotations

from tools.value_path import passed


def test_a_value_passes_at_most_ten_modules_from_yaml_to_script() -> None:
    assert 1 < len(passed()) <= 10
