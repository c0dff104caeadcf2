"""Volumes: csi-proxy for CSI drivers that need it, what Windows needs for SMB and iSCSI, and FlexVolume drivers."""

from __future__ import annotations

from pydantic import Field

from winboot.config.model import Model
from winboot.config.profile.user_file import UserFile
from winboot.config.profile.values import AnyVersion


class CsiProxy(UserFile):
    """csi-proxy as a service; `url` is the program, or an archive with it."""

    version: AnyVersion = Field(description="of the program, such as 1.3.0; its flags depend on it")
    member: str = Field(default="bin/csi-proxy.exe", description="where the program is in an archive")
    require_privacy: bool = Field(
        default=True,
        description="from 1.2.0 on: mount SMB shares with encryption only; false also takes servers that cannot encrypt",
    )


class Storage(Model):
    """What volumes need on the node."""

    csi_proxy: CsiProxy | None = Field(
        default=None, description="csi-proxy as a service, for CSI drivers that are not HostProcess pods"
    )
    smb: bool = Field(default=False, description="keep the SMB client of Windows running, for SMB volumes")
    iscsi: bool = Field(
        default=False, description="keep the iSCSI initiator of Windows running and its firewall rules on"
    )
    flex_volumes: dict[str, dict[str, UserFile | None]] = Field(
        default={},
        description="FlexVolume driver as its folder is named (microsoft.com~smb.cmd) → file → your address and hash of it",
    )
