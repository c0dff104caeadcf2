"""Volumes: a csi-proxy of a version that has its pipes, and drivers that the kubelet finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.storage import CsiProxy
from winboot.config.profile.user_file import UserFile
from winboot.config.source import Complaint, PathParts

# vendor~driver, with the ending of the program in it: the kubelet starts the file that has the name after the ~
# (pkg/volume/flexvolume/plugin.go of kubernetes, getExecutable).
_DRIVER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*~([A-Za-z0-9][A-Za-z0-9_-]*\.(?:exe|cmd|bat))")
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_MEMBER: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._+-]*/)*csi-proxy\.exe")


def check(draft: Draft) -> Iterator[Complaint]:
    """What the section says alone; the cluster's DaemonSets are for the preflight."""
    storage = draft.storage
    if storage is None:
        return
    if storage.csi_proxy is not None:
        yield from _csi_proxy(draft, storage.csi_proxy)
    for driver, files in storage.flex_volumes.items():
        yield from _driver(draft, driver, files)
    config = draft.kubelet.config if draft.kubelet else {}
    if storage.flex_volumes and "volumePluginDir" in config:
        yield from _folder(draft, config["volumePluginDir"])


def _folder(draft: Draft, given: object) -> Iterator[Complaint]:
    """The drivers lie where the user's own field has the kubelet look."""
    if not re.fullmatch(r"[A-Za-z]:\\[^/]+", str(given)):
        wrong = f"{given!r} is no folder of Windows for storage.flex_volumes"
        yield draft.at(
            ("kubelet", "config", "volumePluginDir"), wrong, "such as C:\\k\\volumeplugins, or drop it"
        )


def _csi_proxy(draft: Draft, wanted: CsiProxy) -> Iterator[Complaint]:
    path: PathParts = ("storage", "csi_proxy")
    version = wanted.version
    if not version.at_least("1.0") or version.at_least("2.0"):
        wrong = f"csi-proxy {version} does not fit: versions below 1 have other flags, and 2 is a library"
        yield draft.at((*path, "version"), wrong, "1.0.0 or later, such as 1.3.0")
    if not wanted.require_privacy and not version.at_least("1.2"):
        wrong = f"csi-proxy {version} does not have this flag and mounts without encryption"
        yield draft.at((*path, "require_privacy"), wrong, "no such key", key=True)
    if not wanted.file.endswith((".exe", ".zip", ".tar.gz")):
        yield draft.at((*path, "url"), wanted.file, "a file that ends with .exe, .zip or .tar.gz")
    if not _MEMBER.fullmatch(wanted.member):
        yield draft.at(
            (*path, "member"), repr(wanted.member), "a path in the archive that ends with csi-proxy.exe"
        )


def _driver(draft: Draft, driver: str, files: Mapping[str, UserFile | None]) -> Iterator[Complaint]:
    path: PathParts = ("storage", "flex_volumes", driver)
    match = _DRIVER.fullmatch(driver)
    if match is None:
        yield draft.at(path, repr(driver), "vendor~program, such as microsoft.com~smb.cmd", key=True)
    elif files.get(match[1]) is None:
        wrong = f"the driver's folder has no file {match[1]}, which the kubelet starts"
        yield draft.at(path, wrong, f"a file {match[1]} in the driver's folder", key=True)
    for name in files:
        if not _FILE.fullmatch(name):
            yield draft.at(
                (*path, name), f"{name!r} is not a plain file name", "the name of the driver's file", key=True
            )
