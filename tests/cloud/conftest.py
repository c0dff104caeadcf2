"""AWS on loopback, and the profile that cloud inventories name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.aws import AwsSite, aws_site

from tests.config.scene import an_inventory


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[AwsSite]:
    an_inventory(tmp_path, "{}")
    with aws_site(tmp_path) as site:
        yield site
