"""The one reader of kubeconfigs: which server, CA and user a context names.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/. No text of the file is quoted in a complaint: it may be
a key.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from winboot.base.errors import InvalidInput
from winboot.base.foreign import Malformed, yaml_of
from winboot.base.secret import Secret
from winboot.config.source import MOST_BYTES, decoded
from winboot.remote.cluster.proxies import Proxy, from_environment, proxy_of

# RFC 9110, "tchar", without %.
_HEADER_LETTERS = frozenset(string.ascii_letters + string.digits + "!#$&'*+-.^_`|~")
_SERVER = re.compile(r"(?i)https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]+)?(/.*)?")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# client-go, tools/clientcmd/api/types.go, `Cluster.Extensions` and plugin/pkg/client/auth/exec.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_LOGINS = ("token", "tokenFile", "exec", "client-certificate", "client-certificate-data")
# client-go, plugin/pkg/client/auth/{azure,gcp}: what took the place of each. kubectl still speaks oidc itself.
_SUCCESSORS = {
    "gcp": "Install gke-gcloud-auth-plugin, and renew the kubeconfig: gcloud container clusters get-credentials CLUSTER",
    "azure": "Install kubelogin (https://github.com/Azure/kubelogin), and run kubelogin convert-kubeconfig",
    "oidc": "Log in by an exec plug-in such as kubelogin (https://github.com/int128/kubelogin).",
}
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
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        cluster = {"server": server, "certificate-authority": str(ca)}
        return cls.of_one("the service account of this pod", cluster, {"tokenFile": str(token)})

    @classmethod
    def of_token(cls, server: str, ca_pem: str, token: Secret, origin: str) -> Kubeconfig:
        """The user of a token, at a server below this CA."""
        pem = base64.b64encode(ca_pem.encode()).decode()
        cluster = {"server": server, "certificate-authority-data": pem}
        return cls.of_one(origin, cluster, {"token": token.reveal()})

    @classmethod
    def of_one(cls, origin: str, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Kubeconfig:
        """A kubeconfig of one cluster and one user."""
        data = {
            "current-context": origin,
            "contexts": [{"name": origin, "context": {"cluster": origin, "user": origin}}],
            "clusters": [{"name": origin, "cluster": cluster}],
            "users": [{"name": origin, "user": user}],
        }
        return cls(data, origin)

    def context(self, name: str | None) -> str:
        """The name of the context that is meant: the one asked for, or the current one."""
        chosen = name or self.data.get("current-context")
        if not isinstance(chosen, str) or not chosen:
            raise InvalidInput(f"{self.origin}: it is not a kubeconfig with a current context", hint=_HINT)
        return chosen

    def cluster(self, context: str | None) -> Mapping[str, Any]:
        """The cluster entry of a context."""
        return self._entry("cluster", self._linked(context, "cluster"))

    def user(self, context: str | None) -> Mapping[str, Any]:
        """The user entry of a context."""
        return self._entry("user", self._linked(context, "user"))

    def server(self, context: str | None) -> str:
        """The address of the API server, which may be HOST:PORT alone (client-go, rest/url_utils.go, `DefaultServerURL`)."""
        server = self.cluster(context).get("server")
        if not isinstance(server, str):
            raise InvalidInput(f"{self.origin}: the cluster of its context has no server", hint=_HINT)
        scheme = "https://" if self._has_tls(context) else "http://"
        server = server if "://" in server else f"{scheme}{server}"
        if not _SERVER.fullmatch(server):
            raise InvalidInput(f"{self.origin}: the server of its cluster is not a URL", hint=_HINT)
        return server

    def proxy(self, context: str | None) -> Proxy | None:
        """The proxy before the API server: the cluster entry's, or else the environment's. Raises InvalidInput for one that
        winboot does not speak to.
        """
        url = self.cluster(context).get("proxy-url")
        if url:
            return proxy_of(str(url), f"{self.origin}: the proxy-url of its cluster")
        try:
            server = urlsplit(self.server(context))
            return from_environment(server.scheme, server.hostname or "", server.port, os.environ)
        except ValueError as error:
            raise InvalidInput(
                f"{self.origin}: the server of its cluster is not a URL", hint=_HINT
            ) from error

    def server_name(self, context: str | None) -> str | None:
        """The name that the server's certificate must have; None for the one in the server's address."""
        return str(self.cluster(context).get("tls-server-name") or "") or None

    def is_insecure(self, context: str | None) -> bool:
        """Whether the server's certificate is not judged. With a CA it is."""
        return self.cluster(context).get("insecure-skip-tls-verify") is True and not self._has_ca(context)

    def _has_tls(self, context: str | None) -> bool:
        cluster, user = self.cluster(context), self.user(context)
        certified = user.get("client-certificate") or user.get("client-certificate-data")
        return bool(self._has_ca(context) or certified or cluster.get("insecure-skip-tls-verify"))

    def _has_ca(self, context: str | None) -> bool:
        cluster = self.cluster(context)
        return bool(cluster.get("certificate-authority") or cluster.get("certificate-authority-data"))

    def impersonation(self, context: str | None) -> tuple[tuple[bytes, bytes], ...]:
        """The headers of `as`, `as-uid`, `as-groups` and `as-user-extra`, as client-go writes them. Raises InvalidInput.

        transport/round_trippers.go, `impersonatingRoundTripper`; tools/clientcmd/validation.go, `validateAuthInfo`.
        """
        user = self.user(context)
        extra = user.get("as-user-extra") or {}
        groups = user.get("as-groups") or []
        lists = [groups, *(extra.values() if isinstance(extra, dict) else [extra])]
        if not all(isinstance(one, list) for one in lists):
            raise InvalidInput(
                f"{self.origin}: as-groups or as-user-extra of its user is not a list", hint=_HINT
            )
        if not user.get("as"):
            if user.get("as-uid") or groups or extra:
                raise InvalidInput(
                    f"{self.origin}: its user has as-uid, as-groups or as-user-extra without as", hint=_HINT
                )
            return ()
        pairs = [("Impersonate-User", user["as"]), ("Impersonate-Uid", user.get("as-uid") or "")]
        pairs += [("Impersonate-Group", one) for one in groups]
        pairs += [
            (f"Impersonate-Extra-{_header_key(key)}", one) for key, values in extra.items() for one in values
        ]
        return tuple((name.encode("ascii"), str(value).encode()) for name, value in pairs if value)

    def judge(self, context: str | None) -> None:
        """Raises InvalidInput for what is wrong, and for what winboot does not do as kubectl does."""
        self.proxy(context)
        if self._has_ca(context):
            self.ca_pem(context)
        self.impersonation(context)
        provider = self.user(context).get("auth-provider")
        if isinstance(provider, dict) and not any(self.user(context).get(one) for one in _LOGINS):
            name = str(provider.get("name"))
            raise InvalidInput(
                f"{self.origin}: its user logs in by auth-provider {name}, which winboot does not do",
                hint=_SUCCESSORS.get(
                    name, "Use a kubeconfig with an exec plug-in, a token or a certificate."
                ),
            )

    def cluster_info(self, context: str | None) -> dict[str, Any]:
        """What an exec plug-in with provideClusterInfo gets as spec.cluster.

        https://kubernetes.io/docs/reference/config-api/client-authentication.v1/#client-authentication-k8s-io-v1-Cluster
        """
        cluster = self.cluster(context)
        names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
        found = {name: cluster[name] for name in names if cluster.get(name)}
        if self._has_ca(context):
            found["certificate-authority-data"] = base64.b64encode(self.ca_pem(context).encode()).decode(
                "ascii"
            )
        extensions = cluster.get("extensions")
        for one in extensions if isinstance(extensions, list) else ():
            if isinstance(one, dict) and one.get("name") == _EXEC_EXTENSION:
                found["config"] = one.get("extension")
        return found

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
                # Go's decoder ignores line breaks, which a block of YAML ends with (encoding/base64, `Encoding.Decode`).
                text = "".join(str(inline).splitlines())
                return _certificates(base64.b64decode(text, validate=True))
            if file is not None and (self.path is not None or Path(str(file)).is_absolute()):
                folder = self.path.parent if self.path is not None else Path()
                return _certificates((folder / str(file)).read_bytes())
        except (ValueError, OSError) as error:
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
        raise InvalidInput(f"{self.origin}: it is not a kubeconfig with the {kind} {name}", hint=_HINT)


def _text(path: Path) -> str:
    """The file's text. A device or a pipe might never end, and no kubeconfig is as large as that. Raises OSError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES // 2**20} MiB")
    return decoded(data)


def _certificates(data: bytes) -> str:
    """PEM text. Its remarks may be in any language (crypto/x509, `AppendCertsFromPEM`). Raises ValueError."""
    return data.decode("utf-8").encode("ascii", "ignore").decode("ascii")


def _header_key(key: str) -> str:
    """A key as the name of a header may have it (client-go, transport/round_trippers.go, `headerKeyEscape`)."""
    letters = (chr(byte) for byte in str(key).encode())
    return "".join(one if one in _HEADER_LETTERS else f"%{ord(one):02X}" for one in letters)


def _mapping(text: str, origin: str) -> Mapping[str, Any]:
    try:
        data = yaml_of(text)
    except Malformed:
        data = None
    if not isinstance(data, dict):
        raise InvalidInput(f"{origin}: it is not a kubeconfig", hint=_HINT) from None
    return data
