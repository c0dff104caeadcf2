"""Where an instance is in Azure, and the names that follow from it. No SDK here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from winboot.base.errors import UsageError

PREFIX: Final = "azure://"
# Azure compares the words of a resource id without regard to case.
_RESOURCE: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Compute"
    r"(/virtualMachineScaleSets/(?P<scale_set>[^/]+))?/virtualMachines/(?P<name>[^/]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ResourceId:
    """Where an instance is in Azure. `scale_set` is set for an instance of a Uniform scale set, whose `name` is a number;
    an instance of a Flexible one is an ordinary virtual machine.
    """

    subscription: str
    group: str
    name: str
    scale_set: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From an ARM id or a provider id; UsageError for anything else."""
        match = _RESOURCE.fullmatch(text.removeprefix(PREFIX))
        if match is None:
            raise UsageError(
                f"{text!r} is not the id of an Azure virtual machine",
                hint="azure:///subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/N is the form.",
            )
        return cls(match["subscription"], match["group"], match["name"], match["scale_set"])

    @property
    def path(self) -> str:
        """The ARM id. The resource group is in lower case, as in provider ids: Azure's lists give it in any case
        (cloud-provider-azure pkg/provider/azure_wrap.go, ConvertResourceGroupNameToLower)."""
        scale_set = f"/virtualMachineScaleSets/{self.scale_set}" if self.scale_set else ""
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.group.lower()}"
            f"/providers/Microsoft.Compute{scale_set}/virtualMachines/{self.name}"
        )

    @property
    def provider_id(self) -> str:
        """What the Node's spec.providerID has: the provider's name, "://" and the ARM id (cloud-provider-azure
        pkg/node/node.go GetProviderID; pkg/provider/azure_wrap.go azureNodeProviderIDRE)."""
        return PREFIX + self.path

    @property
    def machine_name(self) -> str:
        """The name that Azure's metadata service and its scheduled events use: `{scale-set}_{instance}` for an instance of
        a Uniform scale set (azure-compute-docs: virtual-machine-scale-sets-terminate-notification.md)."""
        return f"{self.scale_set}_{self.name}" if self.scale_set else self.name


def node_name(computer_name: str) -> str:
    """The name of the Node: the computer name in lower case (cloud-provider-azure pkg/provider/azure_vmss_cache.go and
    azure_vmssflex.go: `strings.ToLower(*vm.Properties.OSProfile.ComputerName)`)."""
    return computer_name.lower()
