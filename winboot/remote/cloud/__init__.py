"""The clouds behind one small protocol (`base`): which machines there are, their identity, and what winboot may do to
them.

    aws = connect("aws", region="eu-west-1")
    for host in aws.hosts(Query(filters={"tag:pool": ("windows",)})): ...

A cloud's SDK is imported only by the modules of its own name (`aws*.py`, `azure*.py`), and those only by `connect`: the
machine that renders a script needs neither.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

from winboot.base.extras import require
from winboot.config.inventory.cloud_name import ProviderName
from winboot.remote.cloud.base import (
    CloudHost,
    Forwarding,
    Lifecycle,
    NodeIdentity,
    PodRoute,
    Provider,
    Query,
)


def connect(name: ProviderName, **settings: Any) -> Provider:
    """The cloud of that name. `settings` are its own: `region` and `profile` for AWS, `subscription` for Azure.

    Raises UsageError where its SDK is not installed, CloudError where it cannot be reached with these settings.
    """
    require(name, f"the cloud {name}")
    module = importlib.import_module(f"winboot.remote.cloud.{name}")
    return cast("Provider", module.connect(**settings))


__all__ = [
    "CloudHost",
    "Forwarding",
    "Lifecycle",
    "NodeIdentity",
    "PodRoute",
    "Provider",
    "ProviderName",
    "Query",
    "connect",
]
