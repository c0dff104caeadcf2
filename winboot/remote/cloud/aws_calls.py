"""Calls to AWS: sessions, clients and failures. Nothing above it sees botocore."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from winboot.base.errors import CloudError, CloudRefused, CloudUnreachable, InvalidInput, NoSuchHost

# Adaptive: the SDK slows itself down when it is throttled. A long poll of SQS answers after 20 s at the latest.
CONFIG: Final = Config(
    retries={"mode": "adaptive", "max_attempts": 6},
    connect_timeout=5,
    read_timeout=40,
    user_agent_extra="winboot",
)
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html; RequestLimitExceeded is EC2's throttling.
_REFUSED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "MissingAuthenticationToken",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
        "AWS.SimpleQueueService.AccessDenied",
    }
)
_SLOWER: Final = frozenset(
    {
        "EC2ThrottledException",
        "InternalError",
        "InternalFailure",
        "RequestLimitExceeded",
        "RequestThrottled",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "Unavailable",
    }
)
_NO_HOST: Final = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})
_NO_CREDENTIALS: Final = (NoCredentialsError, PartialCredentialsError, SSOError, TokenRetrievalError)


class Calls:
    """One session with its clients, one for each service and region. May be used from any thread."""

    def __init__(self, *, profile: str | None = None) -> None:
        try:
            self._session: Final = boto3.session.Session(profile_name=profile)
        except ProfileNotFound as error:
            raise InvalidInput(
                f"AWS has no profile {profile!r}", hint="`aws configure list-profiles` shows those there are."
            ) from error
        self._clients: dict[tuple[str, str, str | None], Any] = {}
        self._lock = threading.Lock()

    @property
    def region(self) -> str:
        """The session's own region; empty where it has none."""
        return self._session.region_name or ""

    def identity(self) -> str:
        """What distinguishes this account from others without a call: the profile, or the id of the access key."""
        with translated("reading credentials"):
            credentials = self._session.get_credentials()
            key = credentials.access_key if credentials is not None else ""
        return f"{self._session.profile_name}:{key}"

    def client(self, service: str, region: str, *, endpoint: str | None = None) -> Any:
        """The client of a service; making one is not safe from several threads, using it is (boto3's guide on threads).

        `endpoint` is its address where it is not the region's own.
        """
        key = (service, region, endpoint)
        with self._lock, translated(f"opening {service}"):
            if key not in self._clients:
                given: dict[str, Any] = {} if endpoint is None else {"endpoint_url": endpoint}
                self._clients[key] = self._session.client(service, region_name=region, config=CONFIG, **given)
            return self._clients[key]

    def events(self) -> Any:
        """The session's hooks, for tests that record calls."""
        return self._session.events


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn botocore's errors into ours; `doing` describes the call, in words."""
    try:
        yield
    except ClientError as error:
        raise _said(doing, error) from error
    except _NO_CREDENTIALS as error:
        raise CloudRefused(
            f"AWS: {doing}: {error}", hint="Give credentials by the environment, a profile or a role."
        ) from error
    except NoRegionError as error:
        raise CloudError(f"AWS: {doing}: no region is given", hint="Set `regions` or AWS_REGION.") from error
    except HTTPClientError as error:
        raise CloudUnreachable(
            f"AWS: {doing}: {error}", hint="Check the way to AWS's endpoints (proxy, DNS, VPC endpoint)."
        ) from error
    except BotoCoreError as error:
        raise CloudError(f"AWS: {doing}: {error}", hint="Check region, endpoint and credentials.") from error


def error_code(error: CloudError) -> str:
    """AWS' own code of an error that `translated` has raised; empty where AWS gave no answer."""
    cause = error.__cause__
    return str(cause.response.get("Error", {}).get("Code", "")) if isinstance(cause, ClientError) else ""


def _said(doing: str, error: ClientError) -> CloudError:
    """The error of an answer, by its code."""
    details = error.response.get("Error", {})
    code, message = details.get("Code", ""), details.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"AWS: {doing} ({error.operation_name}): {code}: {message}"
    if code in _NO_HOST:
        return NoSuchHost(said, hint="The instance was terminated, or belongs to another region or account.")
    if code in _REFUSED or status in (401, 403):
        return CloudRefused(
            said, hint="`winboot cloud policy aws --cluster NAME` prints the rights that winboot needs."
        )
    if code in _SLOWER or status >= 500:
        return CloudUnreachable(said, hint="AWS is busy or throttles this account; try again.")
    return CloudError(said, hint="The message is AWS's own.")
