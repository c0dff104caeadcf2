"""Lab machines at a genuine API server: every request of their programs goes there, with its own credential, over TLS."""

from __future__ import annotations

import itertools
import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from winboot_lab.cluster import Answer, ApiFailure, ClusterPlan, Credentials, Identity, LabCluster
from winboot_lab.cluster.kinds import Kind

from tests.genuine.conftest import Genuine

VERSION = "1.36.2"


class Forwarded(LabCluster):
    """What a lab's machines take for their cluster. Nothing of it is answered here."""

    def __init__(self, genuine: Genuine, folder: Path) -> None:
        super().__init__(ClusterPlan(version=VERSION))
        self.authority = genuine.authority
        self.api_certificate = self._api_certificate()
        self._url = genuine.url
        self._folder = folder
        self._clients: dict[Credentials, httpx2.Client] = {}
        self._clients_lock = threading.Lock()
        # What the lab's network knows of the cluster, it reads as its administrator.
        self._reader = Credentials(certificate=(pair := self.admin()).certificate, key=pair.key)
        self._closed = False
        self._asked = itertools.count(1)
        # Methods and paths with the status, of each kind of client.
        self.seen: list[tuple[str, str, int]] = []

    def request(
        self,
        identity: Identity | Credentials,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        assert isinstance(identity, Credentials)  # the wire has checked it
        if self._closed:
            raise ApiFailure(503, "the test is over")
        content = None if body is None else json.dumps(body).encode()
        try:
            answer = self._client(identity).request(
                method,
                path,
                content=content,
                params=dict(query or {}),
                headers={"Content-Type": content_type},
            )
        except httpx2.TransportError as error:
            raise ApiFailure(503, f"the genuine server does not answer: {error}") from error
        except (
            RuntimeError
        ) as error:  # closed meanwhile: programs of a lab machine outlive their test by a moment
            raise ApiFailure(503, "the test is over") from error
        self.seen.append((method, path, answer.status_code))
        found = answer.json()
        if answer.status_code >= 400:
            raise ApiFailure(
                answer.status_code,
                found["message"],
                reason=found.get("reason", ""),
                details=found.get("details"),
            )
        return Answer(answer.status_code, found)

    def latest(self, kind: Kind) -> int:
        """Something may always have changed: the programs look each time."""
        return next(self._asked)

    def objects(self, kind: Kind) -> list[dict[str, Any]]:
        """All objects of a kind, as the genuine server has them."""
        group = f"/apis/{kind.group}" if kind.group else "/api"
        items: list[dict[str, Any]] = self.request(
            self._reader, "GET", f"{group}/{kind.version}/{kind.plural}"
        ).body["items"]
        return items

    def _client(self, shown: Credentials) -> httpx2.Client:
        with self._clients_lock:
            if shown not in self._clients:
                self._clients[shown] = self._connect(shown)
            return self._clients[shown]

    def _connect(self, shown: Credentials) -> httpx2.Client:
        context = ssl.create_default_context(cadata=self.authority.pem)
        if shown.certificate is not None:
            file = self._folder / f"client-{len(self._clients)}.pem"
            file.write_text(f"{shown.certificate}\n{shown.key}")
            context.load_cert_chain(file)
        headers = {"Authorization": f"Bearer {shown.token}"} if shown.token else {}
        return httpx2.Client(verify=context, base_url=self._url, headers=headers, timeout=20)

    def close(self) -> None:
        """Give the connections back."""
        self._closed = True
        for client in self._clients.values():
            client.close()
