"""containerd: its version, the pause image, isolation and registries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from winboot.config import compat
from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.values import has_login, host_name
from winboot.config.source import Complaint, PathParts, Wrong

_REGISTRY_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?")


def check(draft: Draft) -> Iterator[Complaint]:
    """Versions that go together, an image with a tag, registries with a name."""
    if draft.runtime is None:
        return
    if draft.version and draft.runtime.containerd:
        findings = compat.check_containerd(draft.facts, draft.runtime.containerd, draft.version)
        yield from draft.found(("runtime", "containerd"), findings)
    yield from _pause_image(draft, draft.runtime.pause_image)
    if not draft.runtime.isolation:
        yield draft.at(("runtime", "isolation"), "no handler is left", "process, or process and hypervisor")
    if "hypervisor" in draft.runtime.isolation and draft.windows and "Hyper-V" not in draft.windows.features:
        yield draft.at(
            ("runtime", "isolation"), "hypervisor isolation without its role", "Hyper-V in windows.features"
        )
    for host, registry in draft.runtime.registries.items():
        if registry is not None:
            yield from _registry(draft, host, registry)


def _pause_image(draft: Draft, image: str | None) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "pause_image")
    if image is None:
        return
    if "/" in image and has_login(image):
        yield draft.at(
            path, "the image's host contains a user or a password", "runtime.registries: {host: …}"
        )
    elif "://" in image:
        yield draft.at(path, f"{image!r} is an address, no image", "host/path:tag, without https://")
    elif not re.fullmatch(r"[a-z0-9][\w.:/-]*[:@][\w.:-]+", image, re.ASCII):
        yield draft.at(path, f"{image!r} has no tag", "host/path:tag")


def _registry(draft: Draft, host: str, registry: sections.Registry) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "registries", host)
    if "@" in host:
        expected = "user and password: {env: NAME} under the host"
        yield draft.at(path, "the key contains a user or a password", expected, key=True)
    elif host != "_default" and not _is_registry_host(host):
        yield draft.at(
            path, f"{host!r} is not a registry host", "host or host:port, without https://", key=True
        )
    if (registry.user is None) != (registry.password is None):
        missing = "password" if registry.password is None else "user"
        yield draft.at(path, f"credentials without a {missing}", "user and password together", key=True)
    if registry.password is not None and any(url.startswith("http:") for url in registry.mirrors):
        yield draft.at((*path, "mirrors"), "a password would go to a mirror in the clear", "https:// mirrors")


def _is_registry_host(text: str) -> bool:
    if not _REGISTRY_HOST.fullmatch(text):
        return False
    name, _, port = text.partition(":")
    try:
        host_name(name)
    except Wrong:
        return False
    return not port or 0 < int(port) < 65536
