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

# A token of RFC 9110, 5.6.2, without the characters that only some servers take.
_HEADER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
# Windows' own folders, and those of winboot with other rules or another life (winboot.config.node_spec.node.Paths).
_NOT_FOR_IMAGES: Final = tuple(
    rf"c:\{one}" "\\"
    for one in (
        *(
            "windows",
            "users",
            "program files",
            "program files (x86)",
            "k",
            r"programdata\winboot",
            r"var\lib",
        ),
        *(r"var\log", "etc", "opt", r"programdata\containerd\state", r"programdata\containerd\certs.d"),
    )
)
_REGISTRY_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?")


def check(draft: Draft) -> Iterator[Complaint]:
    """Versions that go together, an image with a tag, registries with a name."""
    if draft.runtime is None:
        return
    if draft.version and draft.runtime.containerd and draft.runtime.name == "containerd":
        findings = compat.check_containerd(draft.facts, draft.runtime.containerd, draft.version)
        yield from draft.found(("runtime", "containerd"), findings)
    if draft.runtime.pause_image is not None:
        yield from _image(draft, ("runtime", "pause_image"), draft.runtime.pause_image)
    for index, image in enumerate(draft.runtime.images):
        path: PathParts = ("runtime", "images", index)
        yield from _image(draft, path, image)
        # containerd lists an image with its registry, so a short name would look missing after each pull.
        if not _is_registry_host(image.partition("/")[0]) or "/" not in image:
            yield draft.at(
                path, f"{image!r} names no registry", f"host/path:tag, such as docker.io/library/{image}"
            )
    if not draft.runtime.isolation:
        yield draft.at(("runtime", "isolation"), "the list is empty", "process, or process and hypervisor")
    if "hypervisor" in draft.runtime.isolation and draft.windows and "Hyper-V" not in draft.windows.features:
        yield draft.at(
            ("runtime", "isolation"), "hypervisor isolation needs Hyper-V", "Hyper-V in windows.features"
        )
    yield from _root(draft, draft.runtime)
    for host, registry in draft.runtime.registries.items():
        if registry is not None:
            yield from _registry(draft, host, registry)


def _root(draft: Draft, runtime: sections.Runtime) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "root")
    if runtime.root is None:
        if runtime.ephemeral:
            yield draft.at(("runtime", "ephemeral"), "this key needs runtime.root", r"root: D:\containerd")
        return
    root = f"{runtime.root.lower()}\\"
    for other in _NOT_FOR_IMAGES:
        if root.startswith(other) or other.startswith(root):
            wrong = f"{runtime.root} and {other.rstrip(chr(92))} overlap: one folder is inside the other"
            yield draft.at(path, wrong, r"a separate folder, such as D:\containerd")


def _image(draft: Draft, path: PathParts, image: str) -> Iterator[Complaint]:
    if "/" in image and has_login(image):
        yield draft.at(
            path, "the image's host contains a user or a password", "runtime.registries: {host: …}"
        )
    elif "://" in image:
        yield draft.at(path, f"{image!r} is an address, not an image", "host/path:tag, without https://")
    elif not re.fullmatch(r"[a-z0-9][\w.:/-]*[:@][\w.:-]+", image, re.ASCII):
        yield draft.at(path, f"{image!r} has no tag", "host/path:tag")


def _registry(draft: Draft, host: str, registry: sections.Registry) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "registries", host)
    if "@" in host:
        expected = "user and password: {env: NAME} under the host"
        yield draft.at(path, "the key contains a user or a password", expected, key=True)
    elif host != "_default" and not _is_registry_host(host):
        expected = "_default, for all others" if host == "*" else "host or host:port, without https://"
        yield draft.at(path, f"{host!r} is not a registry host", expected, key=True)
    if (registry.user is None) != (registry.password is None):
        missing = "password" if registry.password is None else "user"
        yield draft.at(path, f"credentials without a {missing}", "user and password together", key=True)
    if registry.password is not None and any(url.startswith("http:") for url in registry.mirrors):
        yield draft.at((*path, "mirrors"), "the password would travel unencrypted", "https:// mirrors")
    yield from _without_mirrors(draft, host, registry)
    yield from _api_paths(draft, path, registry)
    for name in registry.header:
        yield from _header(draft, (*path, "header", name), name, registry.header[name])


def _without_mirrors(draft: Draft, host: str, registry: sections.Registry) -> Iterator[Complaint]:
    path: PathParts = ("runtime", "registries", host)
    if registry.mirrors:
        return
    if registry.override_path:
        wrong = "override_path applies only to mirrors, and this registry has no mirrors"
        yield draft.at((*path, "override_path"), wrong, "mirrors: [https://host/path]")
    if host == "_default" and (registry.password is not None or registry.header):
        what = "a login" if registry.password is not None else "a header"
        yield draft.at(path, f"{what} for all registries", "the registry's host, or mirrors", key=True)


def _api_paths(draft: Draft, path: PathParts, registry: sections.Registry) -> Iterator[Complaint]:
    """containerd appends /v2 to a path that does not end so (core/remotes/docker/config/hosts.go, parseHostConfig)."""
    for url in () if registry.override_path else registry.mirrors:
        before, v2, after = url.rstrip("/").partition("/v2/")
        if v2:
            wrong = f"containerd would request {url.rstrip('/')}/v2/, which contains v2 twice"
            expected = f"{before}/{after}, or {url} with override_path: true"
            yield draft.at((*path, "mirrors"), wrong, expected, warning=True)


def _header(draft: Draft, path: PathParts, name: str, value: str) -> Iterator[Complaint]:
    if name.lower() == "authorization":
        yield draft.at(
            path,
            "a login is a secret, which a profile must not contain as text",
            "user and password: {env: NAME}",
            key=True,
        )
    elif not _HEADER.fullmatch(name):
        yield draft.at(path, f"{name!r} is not the name of an HTTP header", "letters, digits and -", key=True)
    elif not value.isprintable() or not value.isascii():
        yield draft.at(path, "the value has characters that HTTP headers cannot contain", "printable ASCII")


def _is_registry_host(text: str) -> bool:
    if not _REGISTRY_HOST.fullmatch(text):
        return False
    name, _, port = text.partition(":")
    try:
        host_name(name)
    except Wrong:
        return False
    return not port or 0 < int(port) < 65536
