"""The kubelet's certificates: bootstrap, rotation, and the one it serves with."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.authority import (
    NotTrusted,
    Subject,
    check_validity,
    key_pem,
    load_certificate,
    new_key,
    request_pem,
    subject_of,
)
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER
from winboot_lab.cluster.kinds import CSRS as REQUESTS
from winboot_lab.programs.base import Daemon, GoError
from winboot_lab.programs.kubeclient import KubeClient, Kubeconfig, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.programs.settings import Settings
from winboot_lab.windows import paths
from winboot_lab.windows.failure import Failure

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine

CSRS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
# client-go, util/certificate/certificate_manager.go: after a failure come pauses of 2, 4, 8, 16 and 32 s, then of 32 s
# each. The lab takes one length for all, in lab seconds. A certificate is rotated between 0.7 and 0.9 of its life, by
# chance (jitteryDuration). The lab takes the middle.
ASK_AGAIN: Final = 5.0
ROTATE_AT: Final = 0.8
DEFAULT_PKI: Final = "/var/lib/kubelet/pki"


@dataclass(slots=True)
class Pending:
    """A certificate asked for and not yet there."""

    name: str
    key: ec.EllipticCurvePrivateKey


class Identity:
    """Who this kubelet is to the cluster. `client` is None until there is a certificate to act with."""

    def __init__(self, kubelet: Daemon, outside: Outside, settings: Settings, node: str) -> None:
        self._kubelet = kubelet
        self._outside = outside
        self._settings = settings
        self.node = node
        self.client: KubeClient | None = None
        self._bootstrap: KubeClient | None = None
        self._pending: dict[str, Pending] = {}
        self._next: dict[str, float] = {}
        self._watched: dict[str, tuple[int, ...]] = {}
        # What the serving certificate must name; known when the Node has its addresses.
        self.serving_names: Subject | None = None
        # Read once, when the kubelet starts: whoever deletes the file later takes nothing from the one that runs.
        path = self.current("server")
        self._serving = self._kubelet.run.read(path).decode("ascii") if self._kubelet.run.exists(path) else ""

    @property
    def _machine(self) -> Machine:
        return self._kubelet.machine

    @property
    def _pki(self) -> str:
        return self._kubelet.run.path(self._settings.flags.text("cert-dir", DEFAULT_PKI))

    def current(self, kind: str) -> str:
        """The path of the certificate in use: `client` or `server`."""
        return paths.join(self._pki, f"kubelet-{kind}-current.pem")

    def prepare(self) -> None:
        """Find credentials at start; GoError when there is nothing to begin with."""
        kubeconfig = self._settings.flags.text("kubeconfig")
        bootstrap = self._settings.flags.text("bootstrap-kubeconfig")
        self._machine.files.make_directory(self._pki)
        if kubeconfig and self._still_valid(kubeconfig):
            self.client = self._client(kubeconfig)
            return
        if not bootstrap:
            if kubeconfig:
                self.client = self._client(kubeconfig)
            return
        if not self._kubelet.run.exists(bootstrap):
            try:
                self._kubelet.run.read(bootstrap, "GetFileAttributesEx")
            except GoError as e:
                raise GoError(f"unable to load bootstrap kubeconfig: {e}") from None
        try:
            self._bootstrap = self._client(bootstrap)
        except GoError as e:
            raise GoError(f"unable to load bootstrap kubeconfig: {e}") from None

    def _client(self, path: str) -> KubeClient:
        run = self._kubelet.run
        return KubeClient(run, self._outside, load_kubeconfig(run, path))

    def _still_valid(self, path: str) -> bool:
        if not self._kubelet.run.exists(path):
            return False
        try:
            config = load_kubeconfig(self._kubelet.run, path)
            if config.certificate is None:
                return config.token is not None
            check_validity(load_certificate(config.certificate), self._machine.now())
        except (GoError, NotTrusted) as e:
            self._kubelet.klog_error(
                "Unable to use the existing client configuration", str(e), "bootstrap.go:1"
            )
            return False
        return True

    # Each second

    def tick(self) -> None:
        """Ask for what is missing or old; take what was signed."""
        if self._bootstrap is not None and self.client is None:
            self._work("client", self._bootstrap, self._client_request(), self._take_client)
        elif self.client is not None:
            self._renew_client(self.client)
            if self._settings.get("serverTLSBootstrap") and self.serving_names is not None:
                self._renew_serving(self.client, self.serving_names)

    def _renew_client(self, client: KubeClient) -> None:
        if client.config.certificate is None or self._settings.get("rotateCertificates") is not True:
            return
        if "client" in self._pending or self._is_old(client.config.certificate):
            self._work("client", client, self._client_request(), self._take_client)

    def _renew_serving(self, client: KubeClient, names: Subject) -> None:
        pem = self._serving
        wanted = not pem or self._is_old(pem) or subject_of(load_certificate(pem)) != names
        if wanted or "server" in self._pending:
            usages = ["digital signature", "server auth"]
            self._work("server", client, (names, SERVING_SIGNER, usages), self._take_serving)

    def _client_request(self) -> tuple[Subject, str, list[str]]:
        subject = Subject(f"system:node:{self.node}", ("system:nodes",))
        return subject, CLIENT_SIGNER, ["digital signature", "client auth"]

    def _is_old(self, pem: str) -> bool:
        certificate = load_certificate(pem)
        life: timedelta = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        turn: datetime = certificate.not_valid_before_utc + ROTATE_AT * life
        return self._machine.now() >= turn

    def _work(
        self,
        kind: str,
        client: KubeClient,
        wanted: tuple[Subject, str, list[str]],
        take: Callable[[str, str], None],
    ) -> None:
        """One step towards a certificate: ask, or look whether it is there.

        It watches its request (client-go, util/certificate/csr/csr.go, WaitForCertificate), so it looks whenever one has
        changed; else, and after a failure, every few seconds.
        """
        now = self._machine.time.seconds
        if now < self._next.get(kind, 0.0) and not self._has_changed(kind, client):
            return
        self._next[kind] = now + ASK_AGAIN
        try:
            pending = self._pending.get(kind)
            if pending is None:
                pending = self._pending[kind] = self._ask(client, wanted)
            self._look(kind, client, pending, take)
        except GoError as e:
            self._failed(str(e))
        except ApiFailure as e:
            if e.code == 404:
                self._pending.pop(kind, None)
            self._failed(e.message)

    def _has_changed(self, kind: str, client: KubeClient) -> bool:
        """What a watch on the pending request would tell."""
        if kind not in self._pending:
            return False
        try:
            latest = client.latest(REQUESTS)
        except GoError:
            return False  # the watch is broken; the next look is due by the clock
        changed = self._watched.get(kind) != latest
        self._watched[kind] = latest
        return changed

    def _failed(self, problem: str) -> None:
        text = "Failed while requesting a signed certificate from the control plane"
        self._kubelet.klog_error(
            text, f"cannot create certificate signing request: {problem}", "certificate_manager.go:596"
        )

    def _ask(self, client: KubeClient, wanted: tuple[Subject, str, list[str]]) -> Pending:
        subject, signer, usages = wanted
        key = new_key()
        request = base64.b64encode(request_pem(key, subject).encode("ascii")).decode("ascii")
        body: dict[str, Any] = {
            "metadata": {"name": f"csr-{secrets.token_hex(3)[:5]}"},
            "spec": {"request": request, "signerName": signer, "usages": usages},
        }
        made = client.ask("POST", CSRS, body)
        return Pending(str(made["metadata"]["name"]), key)

    def _look(
        self, kind: str, client: KubeClient, pending: Pending, take: Callable[[str, str], None]
    ) -> None:
        status = client.ask("GET", f"{CSRS}/{pending.name}").get("status", {})
        types = {c["type"]: c for c in status.get("conditions") or []}
        for bad in ("Denied", "Failed"):
            if bad in types:
                del self._pending[kind]
                raise GoError(
                    f"certificate signing request is {bad.lower()}: {types[bad].get('message', '')}"
                )
        if status.get("certificate"):
            del self._pending[kind]
            take(base64.b64decode(status["certificate"]).decode("ascii"), key_pem(pending.key))

    def _store(self, kind: str, certificate: str, key: str) -> None:
        """Write certificate and key into one file, and let the link point at it (certificate_store.go, updateSymlink)."""
        now = self._machine.now()
        path = paths.join(self._pki, f"kubelet-{kind}-{now:%Y-%m-%d-%H-%M-%S}.pem")
        self._kubelet.run.write(path, (certificate + key).encode("ascii"))
        link = self.current(kind)
        there = self._machine.files.find(link, follow=False)
        if there is not None and there[1].link is None:
            raise GoError(f"expected {json.dumps(link)} to be a symlink but it is a file")
        if there is not None:
            self._machine.files.delete(link)
        try:
            self._machine.files.link(link, path, "SymbolicLink", self._kubelet.process.token)
        except Failure as e:
            raise GoError(f"symlink {path} {link}: {e.problem.message}") from None

    def _take_client(self, certificate: str, key: str) -> None:
        self._store("client", certificate, key)
        kubeconfig = self._settings.flags.text("kubeconfig")
        if self._bootstrap is not None:
            self._write_kubeconfig(kubeconfig, self._bootstrap.config)
            self._bootstrap = None
        self.client = self._client(kubeconfig)
        self._kubelet.klog('"Rotating certificates"', "I", "certificate_manager.go:1")

    def _take_serving(self, certificate: str, key: str) -> None:
        self._store("server", certificate, key)
        self._serving = certificate

    def _write_kubeconfig(self, path: str, source: Kubeconfig) -> None:
        """The kubelet's own kubeconfig: the bootstrap file's cluster, and the rotating certificate by its path."""
        pem = self.current("client")
        ca = base64.b64encode(source.ca.encode("utf-8")).decode("ascii")
        cluster = {"server": source.server, "certificate-authority-data": ca}
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default-cluster", "cluster": cluster}],
            "users": [{"name": "default-auth", "user": {"client-certificate": pem, "client-key": pem}}],
            "contexts": [
                {
                    "name": "default-context",
                    "context": {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"},
                }
            ],
            "current-context": "default-context",
        }
        self._kubelet.run.write(path, json.dumps(data, indent=2).encode("utf-8"))
