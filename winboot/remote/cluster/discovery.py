"""The cluster's CA, found by the hash of its key: what kubeadm's discovery does, without its token.

The ConfigMap `cluster-info` of kube-public is readable without a login; winboot believes nothing of it but a
certificate whose key has the hash. The server must then show a certificate below it.
"""

from __future__ import annotations

import os
import re
import ssl
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlsplit

import msgspec

from winboot.base.errors import ClusterError, ClusterUnreachable, InvalidInput
from winboot.base.foreign import Malformed, decoded
from winboot.base.secret import Secret
from winboot.base.tls import even
from winboot.config.authority import key_hash
from winboot.remote.cluster.kubeconfig import Kubeconfig
from winboot.remote.cluster.proxies import from_environment

PATH: Final = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
TIMEOUT_S: Final = 20
MOST_BYTES: Final = 1 << 20
CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class _ClusterInfo(msgspec.Struct, frozen=True):
    data: dict[str, str]


_CLUSTER_INFO: Final = msgspec.json.Decoder(_ClusterInfo)


def fetch_ca(server: str, ca_hash: str) -> str:
    """The PEM certificate of the CA whose public key has this sha256 (hex).

    Raises ClusterUnreachable when the server does not answer, ClusterError when it offers another CA.
    https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-join/#token-based-discovery-with-ca-pinning
    """
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    pem = _pinned(_authority(_get(server, unverified), server), ca_hash, server)
    _get(server, even(ssl.create_default_context(cadata=pem)))
    return pem


def _get(server: str, context: ssl.SSLContext) -> bytes:
    try:
        with _opener(server, context).open(server + PATH, timeout=TIMEOUT_S) as answer:
            read: bytes = answer.read(MOST_BYTES)
            return read
    except urllib.error.HTTPError as error:
        raise ClusterError(
            f"{server} does not show cluster-info without a login: HTTP {error.code}",
            hint="Give the CA itself: cluster.ca {file: ca.crt}, or a kubeconfig with the CA.",
        ) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise ClusterUnreachable(
            f"{server} did not answer with its CA: {reason}",
            hint="Give the CA itself: cluster.ca {file: ca.crt}, or a kubeconfig with the CA.",
        ) from error


def _opener(server: str, context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """What asks the server by the proxy that kubectl would take."""
    url = urlsplit(server)
    proxy = from_environment(url.scheme, url.hostname or "", url.port, os.environ)
    proxies = urllib.request.ProxyHandler({} if proxy is None else {url.scheme: proxy.url})
    return urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))


def _authority(body: bytes, server: str) -> str:
    try:
        text = Secret(decoded(_CLUSTER_INFO, body).data["kubeconfig"])
        return Kubeconfig.from_text(text, f"cluster-info of {server}").first_ca_pem()
    except (Malformed, KeyError, InvalidInput) as error:
        raise ClusterError(
            f"{server}: cluster-info holds no CA", hint="Give the CA itself: cluster.ca {file: ca.crt}."
        ) from error


def _pinned(pem: str, ca_hash: str, server: str) -> str:
    """That one of the certificates whose key has the hash."""
    for certificate in CERTIFICATE.findall(pem):
        if key_hash(certificate) == ca_hash:
            return str(certificate) + "\n"
    raise ClusterError(
        f"{server} has a CA whose key does not match cluster.ca_hash",
        hint="Check the server's address; `kubeadm token create --print-join-command` prints the hash.",
    )
