"""The one reader of kubeconfigs: which server, CA and user a context names.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/. No text of the file is quoted in a complaint: it may be
a key.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.config.source import MOST_BYTES

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "`kubectl config view --minify --flatten --raw` makes one; `--context` or `cluster.context` names a context."


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One kubeconfig. `origin` names it in complaints; `path` is its file, from which relative paths are meant."""

    data: Mapping[str, Any]
    origin: str
    path: Path | None = None

    @classmethod
    def from_file(cls, path: Path, seen: Callable[[str], None] | None = None) -> Kubeconfig:
        """Read a file. Raises InvalidInput. `seen` gets the text that was read before anything of it is used, and may raise."""
        try:
            text = _text(path.expanduser())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise InvalidInput(
                f"the kubeconfig {path} cannot be read: {reason}", hint="Check the path."
            ) from error
        if seen is not None:
            seen(text)
        return cls(_mapping(text, str(path)), str(path), path)

    @classmethod
    def from_text(cls, text: Secret, origin: str) -> Kubeconfig:
        """Read a text that came from somewhere else. Raises InvalidInput."""
        return cls(_mapping(text.reveal(), origin), origin)

    @classmethod
    def of_pod(cls) -> Kubeconfig | None:
        """The service account of the pod that this runs in; None outside of a cluster. Raises InvalidInput.

        The token is read again when it is refused: the kubelet rotates it.
        https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/#directly-accessing-the-rest-api
        """
        host, port = (
            os.environ.get("KUBERNETES_SERVICE_HOST"),
            os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
        )
        if not host:
            return None
        token, ca = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
        for file in (token, ca):
            if not file.is_file():
                raise InvalidInput(
                    f"this pod has no {file}",
                    hint="Give the pod a service account (automountServiceAccountToken), or name a kubeconfig.",
                )
        name = "service account"
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        data = {
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority": str(ca)}}],
            "users": [{"name": name, "user": {"tokenFile": str(token)}}],
        }
        return cls(data, "the service account of this pod")

    def context(self, name: str | None) -> str:
        """The name of the context that is meant: the one asked for, or the current one."""
        chosen = name or self.data.get("current-context")
        if not isinstance(chosen, str) or not chosen:
            raise InvalidInput(f"{self.origin}: it is no kubeconfig with a current context", hint=_HINT)
        return chosen

    def cluster(self, context: str | None) -> Mapping[str, Any]:
        """The cluster entry of a context."""
        return self._entry("cluster", self._linked(context, "cluster"))

    def user(self, context: str | None) -> Mapping[str, Any]:
        """The user entry of a context."""
        return self._entry("user", self._linked(context, "user"))

    def server(self, context: str | None) -> str:
        """The address of the API server."""
        server = self.cluster(context).get("server")
        if not isinstance(server, str):
            raise InvalidInput(f"{self.origin}: the cluster of its context has no server", hint=_HINT)
        return server

    def proxy(self, context: str | None) -> str | None:
        """The proxy before the API server, where the cluster entry names one. Raises InvalidInput for one that winboot
        does not speak to; it may hold a password and is not quoted.
        """
        url = self.cluster(context).get("proxy-url")
        if url is None or (isinstance(url, str) and url.startswith(("http://", "https://"))):
            return url
        hint = "Give the address of an HTTP proxy (http://host:port), or of an HTTP port of this one."
        raise InvalidInput(
            f"{self.origin}: the proxy-url of its cluster is no http:// or https:// URL", hint=hint
        )

    def plugin(self, context: str | None) -> Mapping[str, Any] | None:
        """The exec entry of the user, a program that gives its credential; None where a token goes before it."""
        user = self.user(context)
        found = user.get("exec")
        return found if isinstance(found, dict) and not (user.get("token") or user.get("tokenFile")) else None

    def ca_pem(self, context: str | None) -> str:
        """The cluster's CA: inline, or the file that is named."""
        return self._ca_pem(self.cluster(context))

    def first_ca_pem(self) -> str:
        """The CA of the first cluster: kubeadm's cluster-info has a cluster without a name, and no context."""
        entries = self.data.get("clusters")
        first = entries[0] if isinstance(entries, list) and entries else None
        cluster = first.get("cluster") if isinstance(first, dict) else None
        return self._ca_pem(cluster if isinstance(cluster, dict) else {})

    def _ca_pem(self, cluster: Mapping[str, Any]) -> str:
        inline, file = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
        try:
            if inline is not None:
                return base64.b64decode(str(inline), validate=True).decode("ascii")
            if file is not None and (self.path is not None or Path(str(file)).is_absolute()):
                folder = self.path.parent if self.path is not None else Path()
                return (folder / str(file)).read_text(encoding="ascii")
        except (binascii.Error, UnicodeDecodeError, OSError) as error:
            raise InvalidInput(
                f"{self.origin}: the CA of its context cannot be read ({type(error).__name__})", hint=_HINT
            ) from error
        raise InvalidInput(f"{self.origin}: the cluster of its context has no CA", hint=_HINT)

    def _linked(self, context: str | None, kind: str) -> str:
        name = self.context(context)
        linked = self._entry("context", name).get(kind)
        if not isinstance(linked, str) or not linked:
            raise InvalidInput(f"{self.origin}: its context {name} has no {kind}", hint=_HINT)
        return linked

    def _entry(self, kind: str, name: str) -> Mapping[str, Any]:
        """`contexts: [{name: …, context: {…}}]`, and the same for clusters and users."""
        entries = self.data.get(f"{kind}s")
        for one in entries if isinstance(entries, list) else ():
            if isinstance(one, dict) and one.get("name") == name and isinstance(one.get(kind), dict):
                found: Mapping[str, Any] = one[kind]
                return found
        raise InvalidInput(f"{self.origin}: it is no kubeconfig with the {kind} {name}", hint=_HINT)


def _text(path: Path) -> str:
    """The file's text. A device or a pipe might never end, and no kubeconfig is as large as that. Raises OSError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES // 2**20} MiB")
    return data.decode("utf-8")


def _mapping(text: str, origin: str) -> Mapping[str, Any]:
    try:
        data = yaml.safe_load(text)
    # Brackets within brackets, thousands of them; a date that there is not.
    except (yaml.YAMLError, RecursionError, ValueError):
        data = None
    if not isinstance(data, dict):
        raise InvalidInput(f"{origin}: it is no kubeconfig", hint=_HINT) from None
    return data
