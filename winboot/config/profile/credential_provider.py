"""An image credential provider: a program that the kubelet starts, as SYSTEM, before it pulls an image."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, PlainValidator

from winboot.config.profile.user_file import UserFile
from winboot.config.source import Wrong, text_of

# What the kubelet takes as a match: a host with optional wildcards in its labels, a port, a path; no scheme
# (ParseSchemelessURL of pkg/credentialprovider/keyring.go).
_IMAGES: Final = re.compile(r"[A-Za-z0-9*]([A-Za-z0-9*.-]*[A-Za-z0-9*])?(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?")
# metav1.Duration in the form that people write; Go refuses a bare number.
_DURATION: Final = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")


def _images(value: Any) -> str:
    expected = "a registry host, such as *.dkr.ecr.*.amazonaws.com or registry.example/path"
    text = text_of(value, expected)
    if not _IMAGES.fullmatch(text):
        raise Wrong(repr(text), expected=expected)
    return text


def _duration(value: Any) -> str:
    text = text_of(value, "a duration such as 12h or 30m")
    if not _DURATION.fullmatch(text):
        raise Wrong(repr(text), expected="a duration such as 12h or 30m")
    return text


class CredentialProvider(UserFile):
    """One provider; its key in the profile is the program's name without `.exe`."""

    # kubelet.config.k8s.io/v1, CredentialProvider.
    elsewhere: ClassVar[dict[str, str]] = {
        "matchImages": "images",
        "defaultCacheDuration": "cache",
        "env": "environment, a map of names to values",
        "apiVersion": "nothing: winboot writes it",
        "name": "nothing: the name is the key",
    }

    images: tuple[Annotated[str, PlainValidator(_images)], ...] = Field(
        description="the images that the kubelet asks this provider about; * is any part of a host name"
    )
    cache: Annotated[str, PlainValidator(_duration)] = Field(
        default="12h", description="how long the kubelet keeps an answer that names no time"
    )
    args: tuple[str, ...] = Field(
        default=(), description="the program's arguments, which every account on the node can read"
    )
    environment: dict[str, str | None] = Field(
        default={},
        description="variables in addition to the kubelet's own, which every account on the node can read",
    )
