"""Kubeconfig files for a lab cluster. They are written as JSON, which every YAML reader understands."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from winboot_lab.cluster.authority import KeyPair


def kubeconfig(server: str, ca_pem: str, user: dict[str, Any], *, name: str = "lab") -> dict[str, Any]:
    """A kubeconfig with one cluster, one user, one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": encode(ca_pem)}}
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def certificate_user(pair: KeyPair) -> dict[str, Any]:
    """The user entry for a client certificate held inside the file."""
    return {"client-certificate-data": encode(pair.certificate), "client-key-data": encode(pair.key)}


def write_kubeconfig(path: Path, server: str, ca_pem: str, pair: KeyPair) -> None:
    """Write an administrator's kubeconfig, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(
        json.dumps(kubeconfig(server, ca_pem, certificate_user(pair)), indent=2) + "\n", encoding="utf-8"
    )


def encode(text: str) -> str:
    """Base64 of a text, for the `-data` keys."""
    return base64.b64encode(text.encode("utf-8")).decode("ascii")
