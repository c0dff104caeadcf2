"""A CNI configuration in the form of HNS version 1, which Docker's containers need.

dockershim and cri-dockerd give the plug-ins no namespace but the id of a container, and that only the first version of the
API takes (containernetworking/plugins pkg/hns/netconf_windows.go, NetConf.ApiVersion). Results are forced down to 0.2.0
(dockershim/network/cni/cni_windows.go), from versions up to 0.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from winboot.config.networks.base import Data

CNI_VERSION: Final = "0.3.0"
_TYPES: Final = {"SDNRoute": "ROUTE", "ProviderAddress": "PA"}
_MEMBERS: Final = {"Exceptions": "ExceptionList", "ProviderAddress": "PA"}


def in_form(form: Literal[1, 2], conf: Mapping[str, Data]) -> Mapping[str, Data]:
    """The configuration, which is in form 2, in the form wanted."""
    if form == 2:
        return conf
    plugins = conf["plugins"]
    assert isinstance(plugins, list)
    return {**conf, "cniVersion": CNI_VERSION, "plugins": [_plugin(one) for one in plugins]}


def _plugin(plugin: Mapping[str, Data]) -> dict[str, Data]:
    """A plug-in, or the one that it hands on to."""
    kept = {key: value for key, value in plugin.items() if key != "apiVersion"}
    if isinstance(delegate := kept.get("delegate"), Mapping):
        kept["delegate"] = _plugin(delegate)
    if isinstance(policies := kept.get("policies"), list):
        kept["policies"] = [_policy(one) for one in policies]
    return kept


def _policy(policy: Mapping[str, Mapping[str, Data]]) -> dict[str, Data]:
    """An endpoint policy whose members are on the level of its type."""
    value = policy["value"]
    kind, settings = str(value["Type"]), value["Settings"]
    assert isinstance(settings, Mapping)
    flat = {_MEMBERS.get(key, key): one for key, one in settings.items()}
    return {**policy, "value": {"Type": _TYPES.get(kind, kind), **flat}}
