"""From a credential to an identity: client certificates, bootstrap tokens, service account tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from winboot_lab.cluster.authority import Authority, NotTrusted
from winboot_lab.cluster.failure import ApiFailure
from winboot_lab.cluster.identity import ANONYMOUS, BOOTSTRAPPERS, Identity, service_account, user
from winboot_lab.cluster.kinds import SECRETS, SERVICEACCOUNTS
from winboot_lab.cluster.store import Store

_BOOTSTRAP_TOKEN: Final = re.compile(r"\A([a-z0-9]{6})\.([a-z0-9]{16})\Z")
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows. Neither means anonymous."""

    token: str | None = None
    certificate: str | None = None  # PEM; that the client holds the key is the TLS layer's business
    key: str | None = field(default=None, repr=False, compare=False)  # PEM, for a client that speaks TLS.
    # The headers Impersonate-…, in lower case.
    impersonation: tuple[tuple[str, str], ...] = ()


class Authenticator:
    """Knows the cluster's CA and its token keys."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self._store = store
        self._authority = authority
        self._key = secrets.token_bytes(32)

    def identify(self, shown: Credentials, now: datetime) -> Identity:
        """The user behind the credential; 401 when it is not accepted."""
        if shown.certificate is not None:
            try:
                subject = self._authority.check(shown.certificate, now)
            except NotTrusted:
                raise _unauthorized() from None
            return user(subject.common_name, *subject.organizations)
        if shown.token is None:
            return ANONYMOUS
        if match := _BOOTSTRAP_TOKEN.match(shown.token):
            return self._bootstrap(match[1], match[2], now)
        return self._service_account(shown.token, now)

    def _bootstrap(self, token_id: str, token_secret: str, now: datetime) -> Identity:
        secret = self._store.find(SECRETS, "kube-system", f"bootstrap-token-{token_id}")
        if secret is None or secret.get("type") != "bootstrap.kubernetes.io/token":
            raise _unauthorized()
        data = {k: base64.b64decode(v).decode("utf-8") for k, v in (secret.get("data") or {}).items()}
        if data.get("token-id") != token_id or not hmac.compare_digest(
            data.get("token-secret", ""), token_secret
        ):
            raise _unauthorized()
        if data.get("usage-bootstrap-authentication") != "true":
            raise _unauthorized()
        if "expiration" in data and now >= datetime.fromisoformat(data["expiration"].replace("Z", "+00:00")):
            raise _unauthorized()
        groups = [g.strip() for g in data.get("auth-extra-groups", "").split(",") if g.strip()]
        return user(f"system:bootstrap:{token_id}", BOOTSTRAPPERS, *groups)

    def issue_token(
        self, namespace: str, name: str, lifetime: timedelta, now: datetime
    ) -> tuple[str, datetime]:
        """A token for a service account, and when it ends."""
        end = now + lifetime
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "iat": int(now.timestamp()),
            "exp": int(end.timestamp()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name}},
        }
        body = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{body}.{self._signature(body)}", end

    def _service_account(self, token: str, now: datetime) -> Identity:
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(self._signature(body), signature):
            raise _unauthorized()
        claims = json.loads(_decode(body.partition(".")[2]))
        account = claims["kubernetes.io"]
        namespace, name = account["namespace"], account["serviceaccount"]["name"]
        if now.timestamp() >= claims["exp"] or self._store.find(SERVICEACCOUNTS, namespace, name) is None:
            raise _unauthorized()
        return service_account(namespace, name)

    def _signature(self, body: str) -> str:
        digest = hmac.new(self._key, body.encode("utf-8"), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _unauthorized() -> ApiFailure:
    return ApiFailure(401, "Unauthorized")


def _encode(value: dict[str, Any]) -> str:
    raw = json.dumps(value, separators=(",", ":")).encode("utf-8")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
