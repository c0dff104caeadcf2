"""What all nodes of an overlay must agree on: one value, from the profile to the node's files and the cluster's."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator, WithJsonSchema

from winboot.config.model import Model
from winboot.config.source import Wrong, text_of

_MAC_PREFIX: Final = re.compile(r"[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}")


def _mac_prefix(value: Any) -> str:
    text = text_of(value, "two bytes, such as 0E-2A")
    if not _MAC_PREFIX.fullmatch(text):
        raise Wrong(repr(text), expected="two bytes, such as 0E-2A")
    if int(text[:2], 16) & 1:
        # The lowest bit of the first byte marks a group address (IEEE 802); no adapter may have one.
        meant = f"{int(text[:2], 16) & ~1:02X}{text[2:].upper()}"
        raise Wrong(f"{text!r} begins a multicast address", expected="an even first byte", did_you_mean=meant)
    return text.upper()


MacPrefix = Annotated[str, PlainValidator(_mac_prefix), WithJsonSchema({"type": "string"})]


class Vxlan(Model):
    """What an overlay must agree on in the whole cluster."""

    vni: int = Field(default=4096, description="the VXLAN network identifier; Windows supports 4096 or more")
    port: int = Field(default=4789, description="the UDP port; Windows supports only 4789")
    mac_prefix: MacPrefix = Field(
        default="0E-2A", description="the first two bytes of every pod's MAC address"
    )
