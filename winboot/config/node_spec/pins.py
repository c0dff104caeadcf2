"""Pinned hashes: each belongs to one version of one artifact, and its key says which.

    kubernetes/1.36.5/kubernetes-node-windows-amd64.tar.gz                                  the download
    kubernetes/1.36.5/kubernetes-node-windows-amd64.tar.gz!kubernetes/node/bin/kubelet.exe  a program in it

The key is the place that a file has in a mirror. Some publishers give each version's file the same name: a hash under the
bare name would pass the programs of one version for those of the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from winboot.config.node_spec.node import Artifact
from winboot.config.source import Complaint, Node, locate, nearest

PATH: Final = ("artifacts", "sha256")
_KEY: Final = re.compile(r"(?P<name>[^/!]+)/(?P<version>[^/!]+)/(?P<file>[^/!]+)(?:!.+)?")


@dataclass(frozen=True, slots=True)
class Pin:
    """What a key says it is the hash of."""

    name: str
    version: str
    file: str


def read_pin(key: str) -> Pin | None:
    """The artifact and the version that a key names; None for a key that names no version."""
    match = _KEY.fullmatch(key)
    return Pin(match["name"], match["version"], match["file"]) if match else None


def unversioned(pins: Iterable[str], profile: Node, renew: str) -> Iterator[Complaint]:
    """Pins that could be of any version."""
    for key in pins:
        if read_pin(key) is None:
            yield Complaint(
                locate(profile, (*PATH, key), key=True),
                f"{'.'.join(PATH)}.{key}",
                "a hash belongs to one version, and this key names none",
                f"NAME/VERSION/{key}; `{renew}` writes it",
            )


def pin_complaints(
    pins: Mapping[str, str | None], artifacts: Iterable[Artifact], profile: Node, renew: str
) -> Iterator[Complaint]:
    """What is wrong with the pins of a profile whose nodes take `artifacts`; `renew` is the command that renews them.

    Refused: a key without a version, and a pin of another version where the wanted one has none. A pin without a use
    is a warning, but for those of a version other than the wanted one: a way back needs them.
    """
    wanted = list(artifacts)
    yield from unversioned(pins, profile, renew)
    keys = {key for one in wanted for key in one.pins}
    unpinned = {one.name: one.version for one in wanted if one.sha256 is None}
    named = {one.name for one in wanted}
    versions = {(one.name, one.version) for one in wanted}
    for key in pins:
        pin = read_pin(key)
        if pin is None or key in keys:
            continue
        place, path = locate(profile, (*PATH, key), key=True), f"{'.'.join(PATH)}.{key}"
        if unpinned.get(pin.name, pin.version) != pin.version:
            wrong = f"this is the hash of {pin.name} {pin.version}, and {unpinned[pin.name]} is wanted"
            yield Complaint(place, path, wrong, f"a hash of {unpinned[pin.name]}; `{renew}` finds it out")
        elif pin.name not in named or (pin.name, pin.version) in versions:
            wrong = "no download of these nodes is this file of this version, so the hash is not used"
            yield Complaint(place, path, wrong, did_you_mean=nearest(key, keys), level="warning")
