"""The kubelet's certificates: bootstrap, rotation, and the one it serves with."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import yaml
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
from winboot_lab.windows.session import Computer

CSRS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
# client-go, util/certificate/certificate_manager.go: pauses in seconds after one, two ... failures (wait.Backoff, then
# wait.PollInfinite), and how long an unsigned request is waited for (certificateWaitTimeout). A certificate is rotated
# between 0.7 and 0.9 of its life, by chance (jitteryDuration). The lab takes the middle.
PAUSES: Final = (2.0, 4.0, 8.0, 16.0, 32.0)
WAIT_TIMEOUT: Final = 15 * 60.0
ROTATE_AT: Final = 0.8
DEFAULT_PKI: Final = "/var/lib/kubelet/pki"
# pkg/kubelet/certificate/transport.go, addCertRotation: how long without a certificate, and how often it looks.
EXIT_AFTER: Final = 5 * 60.0
EXIT_LOOK: Final = 10.0
# csr.go lists and watches its request; where the watch breaks, the lab looks again so many seconds later.
LOOK_AGAIN: Final = 5.0


@dataclass(slots=True)
class Pending:
    """A certificate asked for and not yet there. `until`, in lab seconds: then the kubelet gives it up."""

    name: str
    key: ec.EllipticCurvePrivateKey
    until: float


@dataclass(slots=True)
class Manager:
    """What client-go's certificate manager remembers of one certificate: `client` or `server`."""

    pending: Pending | None = None
    next: float = 0.0
    failures: int = 0
    watched: tuple[int, ...] = ()
    # Whether the server was found to work when it refused us last.
    healthy: bool = False

    def fail(self, now: float, code: int | None) -> None:
        """A try has failed: with an answer of this HTTP code, or None without an answer (updateServerError)."""
        self.pending = None
        self.next = now + PAUSES[min(self.failures, len(PAUSES) - 1)]
        self.failures += 1
        self.healthy = code in (401, 403, 404)


_REQUEST: Final = "cannot create certificate signing request: "


class Identity:
    """This kubelet's identity in the cluster. `client` is None until there is a certificate to act with."""

    def __init__(self, kubelet: Daemon, outside: Outside, settings: Settings, node: str) -> None:
        self._kubelet = kubelet
        self._outside = outside
        self._settings = settings
        self.node = node
        self.client: KubeClient | None = None
        self._bootstrap: KubeClient | None = None
        self._managers = {"client": Manager(), "server": Manager()}
        self._certified = kubelet.machine.time.seconds
        self._next_exit_look = 0.0
        # What the serving certificate must name; known when the Node has its addresses.
        self.serving_names: Subject | None = None
        # Read once, when the kubelet starts: a later deletion of the file does not change the kubelet that runs.
        path = self.current("server")
        self._serving = self._kubelet.run.read(path).decode("ascii") if self._kubelet.run.exists(path) else ""

    @property
    def _machine(self) -> Computer:
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
        self._write_kubeconfig(kubeconfig, self._bootstrap.config)

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

    def tick(self) -> str | None:
        """Ask for what is missing or old; take what was signed. Gives the words that the kubelet ends with, or None."""
        if self._bootstrap is not None and self.client is None:
            self._work("client", self._bootstrap, self._client_request(), self._take_client)
        elif self.client is not None:
            self._renew_client(self.client)
            if self._settings.get("serverTLSBootstrap") and self.serving_names is not None:
                self._renew_serving(self.client, self.serving_names)
        return self._end()

    def _end(self) -> str | None:
        now = self._machine.time.seconds
        if self._settings.get("rotateCertificates") is not True or now < self._next_exit_look:
            return None
        self._next_exit_look = now + EXIT_LOOK
        healthy = self._managers["client"].healthy
        certificate = self.client.config.certificate if self.client is not None else None
        if certificate is None:
            lacks = self.client is None and now > self._certified + EXIT_AFTER
            return (
                "No valid client certificate is found and the server is responsive, exiting."
                if lacks and healthy
                else None
            )
        self._certified = now
        expired = load_certificate(certificate).not_valid_after_utc < self._machine.now()
        words = "The currently active client certificate has expired and the server is responsive, exiting."
        return words if expired and healthy else None

    def _renew_client(self, client: KubeClient) -> None:
        if client.config.certificate is None or self._settings.get("rotateCertificates") is not True:
            return
        if self._managers["client"].pending or is_old(client.config.certificate, self._machine.now()):
            self._work("client", client, self._client_request(), self._take_client)

    def _renew_serving(self, client: KubeClient, names: Subject) -> None:
        pem = self._serving
        wanted = (
            not pem
            or is_old(pem, self._machine.now())
            or not _satisfies(subject_of(load_certificate(pem)), names)
        )
        if wanted or self._managers["server"].pending:
            usages = ["digital signature", "server auth"]
            self._work("server", client, (names, SERVING_SIGNER, usages), self._take_serving)

    def _client_request(self) -> tuple[Subject, str, list[str]]:
        subject = Subject(f"system:node:{self.node}", ("system:nodes",))
        return subject, CLIENT_SIGNER, ["digital signature", "client auth"]

    def _work(
        self,
        kind: str,
        client: KubeClient,
        wanted: tuple[Subject, str, list[str]],
        take: Callable[[str, str], None],
    ) -> None:
        """One step towards a certificate (rotateCerts): ask, or look whether it is there."""
        now = self._machine.time.seconds
        manager = self._managers[kind]
        if now < manager.next and not _has_changed(manager, client):
            return
        try:
            if manager.pending is None:
                manager.pending = self._ask(client, wanted)
        except (GoError, ApiFailure) as e:
            self._log(
                "Failed while requesting a signed certificate from the control plane", _REQUEST + _words(e)
            )
            manager.fail(now, e.code if isinstance(e, ApiFailure) else None)
            return
        try:
            manager.next = now + LOOK_AGAIN
            signed = self._look(client, manager.pending)
        except (GoError, ApiFailure) as e:
            self._log("Certificate request was not signed", _words(e))
            manager.fail(now, None)
            return
        if signed is not None:
            self._take(manager, take, signed, key_pem(manager.pending.key))

    def _take(self, manager: Manager, take: Callable[[str, str], None], certificate: str, key: str) -> None:
        try:
            take(certificate, key)
        except GoError as e:
            self._log("Unable to store the new cert/key pair", str(e))
            manager.fail(self._machine.time.seconds, None)
            return
        manager.pending, manager.failures, manager.healthy = None, 0, True

    def _log(self, what: str, problem: str) -> None:
        self._kubelet.klog_error(what, problem, "certificate_manager.go:596")

    def _ask(self, client: KubeClient, wanted: tuple[Subject, str, list[str]]) -> Pending:
        subject, signer, usages = wanted
        key = new_key()
        request = base64.b64encode(request_pem(key, subject).encode("ascii")).decode("ascii")
        body: dict[str, Any] = {
            "metadata": {"generateName": "csr-"},
            "spec": {"request": request, "signerName": signer, "usages": usages},
        }
        name = str(client.ask("POST", CSRS, body)["metadata"]["name"])
        self._kubelet.klog(f'"Certificate signing request created" csr="{name}"', "I", "csr.go:86")
        return Pending(name, key, self._machine.time.seconds + WAIT_TIMEOUT)

    def _look(self, client: KubeClient, pending: Pending) -> str | None:
        """The signed certificate, or None while it is missing; GoError where it will never come (WaitForCertificate)."""
        found = client.find(f"{CSRS}/{pending.name}")
        if found is None:
            raise GoError(f'csr "{pending.name}" was deleted')
        status = found.get("status", {})
        types = {c["type"]: c for c in status.get("conditions") or []}
        for bad in ("Denied", "Failed"):
            if bad in types:
                why = types[bad]
                raise GoError(
                    f"certificate signing request is {bad.lower()}, reason: {why.get('reason', '')}, "
                    f"message: {why.get('message', '')}"
                )
        if status.get("certificate"):
            return base64.b64decode(status["certificate"]).decode("ascii")
        if self._machine.time.seconds >= pending.until:
            raise GoError("timed out waiting for the condition")
        return None

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
        self._bootstrap = None
        self.client = self._client(self._settings.flags.text("kubeconfig"))
        self._kubelet.klog('"Rotating certificates"', "I", "certificate_manager.go:1")

    def _take_serving(self, certificate: str, key: str) -> None:
        self._store("server", certificate, key)
        self._serving = certificate

    def _write_kubeconfig(self, path: str, source: Kubeconfig) -> None:
        """The kubelet's own kubeconfig, before there is a certificate (bootstrap.go, writeKubeconfigFromBootstrapping)."""
        pem = self.current("client")
        cluster = {"server": source.server}
        if source.ca_file:
            cluster["certificate-authority"] = source.ca_file
        else:
            cluster["certificate-authority-data"] = base64.b64encode(source.ca.encode("utf-8")).decode(
                "ascii"
            )
        context = {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"}
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default-cluster", "cluster": cluster}],
            "users": [{"name": "default-auth", "user": {"client-certificate": pem, "client-key": pem}}],
            "contexts": [{"name": "default-context", "context": context}],
            "current-context": "default-context",
        }
        self._kubelet.run.write(path, yaml.safe_dump(data).encode("utf-8"))


def is_old(pem: str, now: datetime) -> bool:
    """Whether it is time to rotate a certificate."""
    certificate = load_certificate(pem)
    life: timedelta = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    turn: datetime = certificate.not_valid_before_utc + ROTATE_AT * life
    return now >= turn


def _satisfies(has: Subject, wanted: Subject) -> bool:
    """Whether a certificate has all names that are wanted; more do not matter (certSatisfiesTemplateLocked)."""
    return (
        has.common_name == wanted.common_name
        and set(has.organizations) >= set(wanted.organizations)
        and set(has.dns_names) >= set(wanted.dns_names)
        and set(has.addresses) >= set(wanted.addresses)
    )


def _has_changed(manager: Manager, client: KubeClient) -> bool:
    """What a watch on the pending request would report."""
    if manager.pending is None:
        return False
    try:
        latest = client.latest(REQUESTS)
    except GoError:
        return False  # the watch is broken; the next look is due by the clock
    changed = manager.watched != latest
    manager.watched = latest
    return changed


def _words(error: GoError | ApiFailure) -> str:
    return error.message if isinstance(error, ApiFailure) else str(error)
