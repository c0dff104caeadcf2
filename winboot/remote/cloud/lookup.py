"""From a provider id to the cloud and the machine it means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from winboot.base.errors import NoSuchHost, UsageError
from winboot.config.inventory.cloud_name import ProviderName
from winboot.remote import cloud
from winboot.remote.cloud.azure_names import PREFIX, ResourceId
from winboot.remote.cloud.base import CloudHost, Provider

# aws:///eu-west-1a/i-0abc; a local zone is us-west-2-lax-1a, and its region the first part up to a number
# (kubernetes/cloud-provider-aws pkg/providers/v1/instances.go, KubernetesInstanceID).
_AWS: Final = re.compile(r"aws:///(?P<region>[a-z]+(?:-[a-z]+)+-\d+)[^/]*/(?P<id>i-[0-9a-f]+)")


Connect = Callable[..., Provider]


def machine_of(provider_id: str, connect: Connect | None = None) -> tuple[Provider, CloudHost]:
    """The cloud, and the machine there. UsageError for an id of no cloud winboot knows, NoSuchHost for one that is gone.

    `connect` is `winboot.remote.cloud.connect`, or one that keeps what it has opened.
    """
    name, settings, identifier = _place(provider_id)
    provider = (connect or cloud.connect)(name, **settings)
    host = provider.host(identifier)
    if host is None:
        raise NoSuchHost(
            f"there is no machine {provider_id}", hint="It may have been deleted; delete its Node as well."
        )
    return provider, host


def _place(provider_id: str) -> tuple[ProviderName, dict[str, Any], str]:
    """The cloud's name, the settings of `connect`, and the machine's id there."""
    if provider_id.startswith(PREFIX):
        resource = ResourceId.parse(provider_id)
        return "azure", {"subscription": resource.subscription}, resource.path
    match = _AWS.fullmatch(provider_id)
    if match is not None:
        return "aws", {"regions": (match["region"],)}, match["id"]
    raise UsageError(
        f"{provider_id!r} is not a provider id of AWS or Azure",
        hint="The inventory's `provider_id` is aws:///ZONE/INSTANCE or azure:///subscriptions/….",
    )
