"""An Azure on loopback: the stand-in behind TLS, and winboot's client for it with nothing changed but addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azure.identity import ClientSecretCredential

from tests.cloud.azure_arm import (
    CLIENT_SECRET,
    SUBSCRIPTION,
    TENANT,
    Arm,
    handler_for,
    serving,
    write_certificate,
)
from winboot.remote.cloud.azure import Azure


@contextmanager
def an_arm(folder: Path) -> Iterator[tuple[Arm, Path]]:
    """The stand-in, and the certificate to trust."""
    certificate, arm = write_certificate(folder), Arm()
    with serving(handler_for(arm), certificate) as port:
        arm.url = f"https://localhost:{port}"
        yield arm, certificate


def an_azure(arm: Arm, certificate: Path, *, secret: str = CLIENT_SECRET) -> Azure:
    """A client that logs in as a service principal."""
    credential = ClientSecretCredential(
        TENANT,
        "a-client-id",
        secret,
        authority=arm.url,
        disable_instance_discovery=True,
        connection_verify=str(certificate),
    )
    return Azure(
        SUBSCRIPTION, credential=credential, endpoint=arm.url, poll=0.01, connection_verify=str(certificate)
    )
