"""Volumes: csi-proxy for CSI drivers that need it, what Windows needs for SMB and iSCSI, and FlexVolume drivers."""

from __future__ import annotations

from pydantic import Field

from winboot.config.model import Model
from winboot.config.profile.user_file import UserFile
from winboot.config.profile.values import AnyVersion


class CsiProxy(UserFile):
    """csi-proxy as a service; `url` is the program, or an archive with it."""

    version: AnyVersion = Field(description="the program's version, such as 1.3.0; it decides the flags")
    member: str = Field(default="bin/csi-proxy.exe", description="the program's path in an archive")
    require_privacy: bool = Field(
        default=True,
        description="from 1.2.0 on: mount SMB shares only with encryption; false allows servers that cannot encrypt",
    )


class Storage(Model):
    """What volumes need on the node."""

    csi_proxy: CsiProxy | None = Field(
        default=None, description="run csi-proxy as a service, for CSI drivers that are not HostProcess pods"
    )
    smb: bool = Field(default=False, description="keep Windows' SMB client running, for SMB volumes")
    iscsi: bool = Field(
        default=False, description="keep Windows' iSCSI initiator running and its firewall rules on"
    )
    flex_volumes: dict[str, dict[str, UserFile | None]] = Field(
        default={},
        description="the folder name of a FlexVolume driver (microsoft.com~smb.cmd) → file → the file's address and hash",
    )
