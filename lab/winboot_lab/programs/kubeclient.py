"""The Kubernetes client inside lab programs: a kubeconfig file of the machine, TLS checks, and requests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from winboot_lab.cluster import ApiFailure, Credentials, LabCluster
from winboot_lab.cluster.authority import NotTrusted, check_validity, is_address, load_certificate, subject_of
from winboot_lab.cluster.kinds import Kind
from winboot_lab.programs.base import GoError, Run
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """What a kubeconfig file's current context says."""

    server: str
    ca: str
    token: str | None
    certificate: str | None
    key: str | None = None
    ca_file: str = ""


def load_kubeconfig(run: Run, path: str) -> Kubeconfig:
    """Read a kubeconfig and the files it names; GoError as client-go words it."""
    raw = run.read(path)
    try:
        data = yaml.safe_load(raw.decode("utf-8-sig"))
        if not isinstance(data, dict):
            raise GoError(
                "invalid configuration: no configuration has been provided, "
                "try setting KUBERNETES_MASTER environment variable"
            )
        context = _named(data, "contexts", str(data.get("current-context", "")), "context")
        cluster = _named(data, "clusters", str(context.get("cluster", "")), "cluster")
        user = _named(data, "users", str(context.get("user", "")), "user")
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise GoError(f"error loading config file {path!r}: {e}") from None
    return Kubeconfig(
        server=str(cluster.get("server", "")),
        ca=_material(run, cluster, "certificate-authority"),
        token=_token(run, user),
        certificate=_material(run, user, "client-certificate") or None,
        key=_material(run, user, "client-key") or None,
        ca_file=str(cluster.get("certificate-authority") or ""),
    )


def _named(data: Mapping[str, Any], plural: str, name: str, kind: str) -> Mapping[str, Any]:
    for entry in data.get(plural) or []:
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry.get(kind) or {}
            return found
    raise GoError(f'invalid configuration: {kind} "{name}" does not exist')


def _material(run: Run, entry: Mapping[str, Any], key: str) -> str:
    if entry.get(f"{key}-data"):
        try:
            return base64.b64decode(entry[f"{key}-data"], validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            raise GoError(f"unable to decode {key}-data: illegal base64 data") from None
    if entry.get(key):
        path = str(entry[key])
        try:
            return run.read(path).decode("utf-8", "replace")
        except GoError as e:
            raise GoError(f"unable to read {key} {path}: {e}") from None
    return ""


def _token(run: Run, user: Mapping[str, Any]) -> str | None:
    if user.get("token"):
        return str(user["token"])
    if user.get("tokenFile"):
        return run.read(str(user["tokenFile"])).decode("utf-8", "replace").strip()
    return None


class KubeClient:
    """Requests to the cluster a kubeconfig names, as that kubeconfig's user."""

    def __init__(self, run: Run, outside: Outside, config: Kubeconfig) -> None:
        self._run = run
        self._outside = outside
        self.config = config
        self._shown = Credentials(config.token, config.certificate, config.key)
        # The server's certificate that was found good; its age is looked at each time, the rest once.
        self._trusted: x509.Certificate | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """One request. GoError when no connection comes about; ApiFailure when the server says no."""
        verb = {"GET": "Get", "POST": "Post", "PATCH": "Patch", "PUT": "Put", "DELETE": "Delete"}[method]
        try:
            cluster = self._connect()
        except GoError as e:
            raise GoError(f'{verb} "{self.config.server}{path}": {e}') from None
        return cluster.request(self._shown, method, path, body, query=query, content_type=content_type).body

    def find(self, path: str) -> Any | None:
        """An object, or None on 404."""
        try:
            return self.ask("GET", path)
        except ApiFailure as e:
            if e.code == 404:
                return None
            raise

    def latest(self, *kinds: Kind) -> tuple[int, ...]:
        """The last change to each kind: what an open watch would know. GoError when the cluster is out of reach."""
        cluster = self._connect()
        return tuple(cluster.latest(kind) for kind in kinds)

    def _connect(self) -> LabCluster:
        parts = urlsplit(self.config.server)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        cluster = self._dial(host, port)
        if parts.scheme != "https":
            raise GoError("net/http: HTTP/1.x transport connection broken: malformed HTTP response")
        if self._trusted is not cluster.api_certificate:
            self._check_issuer_and_name(cluster, host)
            self._trusted = cluster.api_certificate
        try:
            check_validity(cluster.api_certificate, self._run.machine.now())
        except NotTrusted as e:
            raise GoError(f"tls: failed to verify certificate: {e}") from None
        return cluster

    def _dial(self, host: str, port: int) -> LabCluster:
        """Reach the port. It does not wait: the programs ask again by themselves each few seconds."""
        machine = self._run.machine
        try:
            address = machine.sockets.resolve(host)[0]
        except Failure:
            raise GoError(f"dial tcp: lookup {host}: no such host") from None
        target = f"dial tcp {address}:{port}"
        if not machine.network.reaches(address):
            raise GoError(f"{target}: connectex: A socket operation was attempted to an unreachable network.")
        cluster = self._outside.clusters.get((address, port))
        if cluster is None and machine.world.knows(address):
            raise GoError(
                f"{target}: connectex: No connection could be made because the target machine actively refused it."
            )
        if cluster is None or cluster.faults.unreachable:
            raise GoError(f"{target}: i/o timeout")
        return cluster

    def _check_issuer_and_name(self, cluster: LabCluster, host: str) -> None:
        served = cluster.api_certificate
        try:
            self._check_issuer(served)
        except NotTrusted as e:
            raise GoError(f"tls: failed to verify certificate: {e}") from None
        subject = subject_of(served)
        if host not in (*subject.dns_names, *subject.addresses):
            kind = f"IP address {host}" if is_address(host) else host
            names = ", ".join((*subject.dns_names, *subject.addresses))
            raise GoError(
                f"tls: failed to verify certificate: x509: certificate is valid for {names}, not {kind}"
            )

    def _check_issuer(self, served: x509.Certificate) -> None:
        if not self.config.ca:
            raise NotTrusted("x509: certificate signed by unknown authority")
        issuer = load_certificate(self.config.ca)
        try:
            served.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature) as e:
            raise NotTrusted("x509: certificate signed by unknown authority") from e
