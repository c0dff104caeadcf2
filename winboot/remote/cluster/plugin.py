"""Credentials from a program that a kubeconfig names: the exec plug-ins of EKS, AKS, GKE, Pinniped and Teleport.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import httpx2
import msgspec

from winboot.base.errors import ClusterRefused, InvalidInput
from winboot.base.foreign import Malformed, decoded
from winboot.remote.cluster.way import Certificate

VERSIONS: Final = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1"))
# Programs ask their cloud for a token; one that waits for a person waits in vain here.
PATIENCE_S: Final = 60.0
# A credential that ends within this time is not used for another request.
_MARGIN: Final = timedelta(seconds=10)
_TRY: Final = "`kubectl get nodes` with this kubeconfig starts the same program and shows what it says."
_LINES: Final = 3  # of what it wrote on standard error


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    """kubernetes.io, "client-go credential plugins", output format."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True):
    status: _Status


_CREDENTIAL: Final = msgspec.json.Decoder(_ExecCredential)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a plug-in gave: a token (or none), a client certificate (or none), or both. `expires` is None where it did not
    say."""

    token: str
    certificate: Certificate | None
    expires: datetime | None

    @property
    def over(self) -> bool:
        """Whether it is not worth showing any more."""
        return self.expires is not None and datetime.now(UTC) + _MARGIN >= self.expires


class PluginAuth(httpx2.Auth):
    """Runs the program when a credential is needed: at first, when the last one is over, and when it was refused.

    Errors are ClusterRefused with the program's name, what it said and what to do. Used by any number of threads.
    """

    def __init__(
        self,
        entry: Mapping[str, Any],
        origin: str,
        folder: Path | None,
        *,
        cluster: Callable[[], Mapping[str, Any]],
        present: Callable[[Certificate], None],
    ) -> None:
        """`entry` is the user's `exec`; a relative path with a separator is meant from `folder`. `cluster` is what a program
        with provideClusterInfo receives about the cluster; `present` uses a client certificate from then on. Raises
        InvalidInput.
        """
        command = entry.get("command")
        if not isinstance(command, str) or not command:
            raise InvalidInput(f"{origin}: the exec entry of its user has no command", hint="Set `command`.")
        self.name: Final = Path(command).name
        version = entry.get("apiVersion")
        if version not in VERSIONS:
            raise InvalidInput(
                f"{origin}: the exec plug-in {self.name} uses {version}; winboot supports {' and '.join(VERSIONS)}",
                hint="Renew the kubeconfig with a current version of the cloud's command line.",
            )
        if entry.get("interactiveMode") == "Always":
            raise InvalidInput(
                f"{origin}: the exec plug-in {self.name} needs a user at a terminal (interactiveMode: Always)",
                hint="Log in with the cloud's command line first, and use a login mode without questions.",
            )
        relative = folder is not None and os.sep in command and not Path(command).is_absolute()
        self._command = str(folder / command) if relative and folder is not None else command
        arguments, variables = entry.get("args") or [], entry.get("env") or []
        pairs = [one for one in variables if isinstance(one, dict) and {"name", "value"} <= one.keys()]
        if not isinstance(arguments, list) or not isinstance(variables, list) or len(pairs) < len(variables):
            raise InvalidInput(
                f"{origin}: the exec of its user is not well-formed",
                hint="`args` is a list of texts, `env` a list of {name: …, value: …}.",
            )
        self._arguments = [str(one) for one in arguments]
        self._given = {str(one["name"]): str(one["value"]) for one in pairs}
        spec = {"interactive": False, **({"cluster": cluster()} if entry.get("provideClusterInfo") else {})}
        self._asked = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        self._present = present
        self._hint = str(entry.get("installHint") or "").strip()
        self._last: Credential | None = None
        self._lock = threading.Lock()

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """With the credential that is there; once more with a new one when it is refused."""
        first = self._current(None)
        response = yield _shown(request, first)
        if response.status_code == 401:
            yield _shown(request, self._current(first))

    def _current(self, refused: Credential | None) -> Credential:
        with self._lock:
            # Another thread may have got a new one meanwhile.
            if self._last is None or self._last is refused or self._last.over:
                self._last = self._renewed(self._last)
            return self._last

    def _renewed(self, former: Credential | None) -> Credential:
        found = self._read(self._run())
        if found.certificate is not None and (former is None or found.certificate != former.certificate):
            try:
                self._present(found.certificate)
            except (ssl.SSLError, ValueError) as error:
                raise ClusterRefused(
                    f"{self._it} gave a client certificate and a key that cannot be used together", hint=_TRY
                ) from error
        return found

    def _run(self) -> str:
        environment = {**os.environ, **self._given, "KUBERNETES_EXEC_INFO": json.dumps(self._asked)}
        try:
            done = subprocess.run(
                [self._command, *self._arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
            )
        except FileNotFoundError as error:
            hint = self._hint or f"Install {self.name} and put it on PATH, or use another kubeconfig."
            raise ClusterRefused(f"{self._it} is not installed on this computer", hint=hint) from error
        except OSError as error:
            raise ClusterRefused(f"{self._it} cannot be started: {error.strerror}", hint=_TRY) from error
        except subprocess.TimeoutExpired as error:
            hint = f"The plug-in may wait for a login: log in with the cloud's command line first. {_TRY}"
            raise ClusterRefused(
                f"{self._it} has not answered within {PATIENCE_S:.0f} s", hint=hint
            ) from error
        if done.returncode:
            said = "; ".join(done.stderr.split("\n")[-_LINES - 1 :]).strip("; ") or "nothing"
            raise ClusterRefused(f"{self._it} ended with exit code {done.returncode}: {said}", hint=_TRY)
        return done.stdout

    @property
    def _it(self) -> str:
        return f"the kubeconfig's exec plug-in {self.name}"

    def _read(self, answer: str) -> Credential:
        """Its output is a credential: no word of it is quoted."""
        try:
            status = decoded(_CREDENTIAL, answer).status
        except Malformed:
            # The cause would quote the output.
            raise ClusterRefused(f"{self._it} gave no ExecCredential with a status", hint=_TRY) from None
        token = status.token or ""
        pair = (status.client_certificate_data or "", status.client_key_data or "")
        if bool(pair[0]) != bool(pair[1]) or not (token or pair[0]):
            raise ClusterRefused(
                f"{self._it} gave no token and no client certificate with its key", hint=_TRY
            )
        return Credential(token, pair if pair[0] else None, status.expiration_timestamp)


def _shown(request: httpx2.Request, credential: Credential) -> httpx2.Request:
    if credential.token:
        request.headers["Authorization"] = f"Bearer {credential.token}"
    return request
