"""AWS on loopback, and the profile that cloud inventories name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from winboot_lab.aws import AwsSite

from tests.config.scene import an_inventory


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """One server for all tests of a process: each begins with an empty account, and stopping one takes half a second.

    So do botocore's models: its sessions share one loader here, as the clients of a session do.
    """
    import botocore.session
    from botocore.loaders import create_loader
    from winboot_lab.moto_gaps import serving

    with pytest.MonkeyPatch.context() as patched, serving() as endpoint:
        loader = create_loader()
        patched.setattr(botocore.session, "create_loader", lambda path: loader)
        yield endpoint


@pytest.fixture
def aws(tmp_path: Path, moto: str) -> Iterator[AwsSite]:
    from winboot_lab.moto_gaps import aws_site

    an_inventory(tmp_path, "{}")
    with aws_site(tmp_path, moto) as site:
        yield site
