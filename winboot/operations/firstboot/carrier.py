"""What brings the text of first boot to a machine."""

from __future__ import annotations

from enum import StrEnum


class Carrier(StrEnum):
    """EC2's user data, which Karpenter takes, too; cloudbase-init's; Cluster API's template; or a file for Packer, vSphere, an
    ISO, a person."""

    EC2 = "ec2"
    CLOUDBASE = "cloudbase"
    CAPI = "capi"
    FILE = "file"
