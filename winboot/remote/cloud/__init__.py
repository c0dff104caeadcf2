"""The clouds behind one small protocol (`base`): which machines there are, who they are, and what may be done to them.

    aws = connect("aws", region="eu-west-1")
    for host in aws.hosts(Query(filters={"tag:pool": ("windows",)})): ...

A cloud's SDK is imported only by the modules of its own name (`aws*.py`, `azure*.py`), and those only by `connect`: the
machine that renders a script needs neither.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Final, cast

from winboot.base.errors import UsageError
from winboot.remote.cloud.base import (
    CloudHost,
    Forwarding,
    Lifecycle,
    NodeIdentity,
    PodRoute,
    Provider,
    ProviderName,
    Query,
)

# What must be installed: a module of the SDK, and the extra that brings it.
_NEEDS: Final[dict[ProviderName, str]] = {"aws": "boto3", "azure": "azure.mgmt.compute"}


def connect(name: ProviderName, **settings: Any) -> Provider:
    """The cloud of that name. `settings` are its own: `region` and `profile` for AWS, `subscription` for Azure.

    Raises UsageError where its SDK is not installed, CloudError where it cannot be reached with these settings.
    """
    if not _installed(_NEEDS[name]):
        raise UsageError(
            f"the {name} SDK is not installed", hint=f"Install it with `pip install 'winboot[{name}]'`."
        )
    module = importlib.import_module(f"winboot.remote.cloud.{name}")
    return cast("Provider", module.connect(**settings))


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


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
