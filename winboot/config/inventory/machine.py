"""A machine of an inventory: what the file may say of it, and what is made of that."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from winboot.config.compat.platform import BUILDS
from winboot.config.inventory.connection import Connection
from winboot.config.model import Model
from winboot.config.networks.base import Known, Text
from winboot.config.profile import Profile
from winboot.config.profile.values import (
    Host,
    Ip,
    NameOrAddress,
    ProviderId,
)

Os = Literal["2019", "2022", "2025"]


SECTIONS: Final = tuple(name for name in Profile.model_fields if name != "name")
MACHINE_KEYS: Final = ("os", "connection")
HOST_KEYS: Final = ("address", "computer_name", "node_ip", "certificate_names", "provider_id")


class HostKeys(Model):
    """What an inventory may say of a machine, in addition to the sections of its profile."""

    address: Host | None = Field(
        default=None, description="name or address to connect to; default: the host key"
    )
    os: Os | None = Field(
        default=None, description="2019 | 2022 | 2025; preflight fails if the machine has another release"
    )
    computer_name: str | None = Field(
        default=None,
        description="at most 15 characters; default: the first label of the node name in upper case",
    )
    node_ip: Ip | None = Field(default=None, description="default: the address that reaches the API server")
    certificate_names: tuple[NameOrAddress, ...] = Field(
        default=(), description="further names and addresses for the serving certificate"
    )
    provider_id: ProviderId | None = Field(
        default=None, description="the machine's id in its cloud: aws:///ZONE/INSTANCE, azure:///…"
    )
    connection: Connection = Field(default=Connection(), description="the connection to the machine")


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """The machine behind a node. `node_ip` is None where the node finds it out (`Known("node_ip")`).
    `certificate_names` are further names and addresses for the serving certificate;
    `provider_id` is its id in a cloud."""

    name: str
    address: str
    os: Os
    computer_name: str
    node_ip: str | None
    connection: Connection
    group: str = ""
    certificate_names: tuple[str, ...] = ()
    provider_id: str | None = None

    @property
    def build(self) -> int:
        """The Windows build of its `os`."""
        return BUILDS[self.os]

    @property
    def ip(self) -> Text:
        """The node's address, or its placeholder until the join."""
        return self.node_ip if self.node_ip is not None else Known("node_ip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(MachineSpec):
    """One machine of the inventory with its own merged profile, and the file that one starts from. `name` is the name
    of its Node.
    """

    profile: Profile
    groups: tuple[str, ...] = ()
    profile_file: Path = Path()

    @property
    def alone(self) -> MachineSpec:
        """The machine without its profile."""
        return MachineSpec(**{one.name: getattr(self, one.name) for one in fields(MachineSpec)})
