"""Let the machine trust the CAs of proxies, mirrors and registries."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from winboot.base.errors import InvalidInput
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step

_BODY: Final = re.compile(r"-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----")


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    roots = [{"thumbprint": _thumbprint(body), "body": "".join(body.split())} for body in _bodies(spec)]
    return {"roots": roots}


def _leaves(spec: NodeSpec) -> Mapping[str, Sequence[str]]:
    return {"trusted roots": [f"SHA-1 {_thumbprint(body)}" for body in _bodies(spec)]}


def _bodies(spec: NodeSpec) -> list[str]:
    return [body for pem in spec.trust_roots for body in _BODY.findall(pem)]


def _thumbprint(body: str) -> str:
    """What Windows calls a certificate by: the SHA-1 of its bytes (a name, not a proof)."""
    try:
        raw = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise InvalidInput(
            "windows.trust_roots: a certificate is not base64", hint="Each must be a PEM file."
        ) from error
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest().upper()


def _wanted(spec: NodeSpec) -> bool:
    return bool(spec.trust_roots)


TRUST_ROOTS = Step(
    name="trust-roots",
    why="downloads and image pulls through a company's own proxy or mirror fail until its CA is trusted",
    inputs=_inputs,
    leaves=_leaves,
    needs=("node-preflight", "download-sources"),
    wanted=_wanted,
    identity=False,
)
