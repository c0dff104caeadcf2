"""windows-gmsa in a cluster: its CRD, its webhook's certificates, and a dry run of a pod that uses an account."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from lightkube import Client
from lightkube.generic_resource import create_global_resource
from lightkube.models.core_v1 import Container, PodSecurityContext, PodSpec, WindowsSecurityContextOptions
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from lightkube.resources.core_v1 import Pod

# deploy/gmsa-crd.yml and charts/gmsa/templates/mutatingwebhook.yaml of kubernetes-sigs/windows-gmsa.
SPECS: Final = create_global_resource("windows.k8s.io", "v1", "GMSACredentialSpec", "gmsacredentialspecs")
_WEBHOOK: Final = "admission-webhook.windows-gmsa.sigs.k8s.io"
Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration


def configurations(client: Client) -> list[Configuration]:
    """All configurations of admission webhooks."""
    return [*client.list(MutatingWebhookConfiguration), *client.list(ValidatingWebhookConfiguration)]


def bundles(configurations: Iterable[Configuration]) -> dict[str, str]:
    """Kind and name of each configuration of the webhook with its CA bundle as PEM, empty where none is set."""
    found: dict[str, str] = {}
    for one in configurations:
        for webhook in one.webhooks or ():
            if webhook.name == _WEBHOOK and one.metadata is not None:
                bundle = base64.b64decode(webhook.clientConfig.caBundle or "").decode("utf-8", "replace")
                found[f"{type(one).__name__} {one.metadata.name}"] = bundle
    return found


def pod_with(namespace: str, account: str, spec: str) -> Pod:
    """A pod that names the account at pod level, as a user would write it. It is never stored."""
    windows = WindowsSecurityContextOptions(gmsaCredentialSpecName=spec)
    return Pod(
        metadata=ObjectMeta(name="winboot-gmsa-dry-run", namespace=namespace),
        spec=PodSpec(
            containers=[Container(name="none", image="registry.k8s.io/pause:3.10")],
            serviceAccountName=account,
            nodeSelector={"kubernetes.io/os": "windows"},
            securityContext=PodSecurityContext(windowsOptions=windows),
        ),
    )


def is_filled(pod: Pod) -> bool:
    """Whether the webhook has put the contents of the spec into the pod."""
    context = pod.spec.securityContext if pod.spec is not None else None
    windows = context.windowsOptions if context is not None else None
    return windows is not None and bool(windows.gmsaCredentialSpec)
