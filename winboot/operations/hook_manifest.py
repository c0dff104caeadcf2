"""`winboot manifests hook`: what `winboot hook serve` needs to run as a pod of the cluster.

Namespace, ServiceAccount with the cloud's identity, roles for exactly the calls that the hook makes, and a Deployment.
Made from a cloud inventory's file; neither cloud nor cluster is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from winboot.base.errors import UsageError
from winboot.config.profile import load_profile
from winboot.remote.cloud.base import ProviderName
from winboot.remote.cloud.settings import provider_of, read_cloud_file
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Need
from winboot.remote.manifests import yaml_text

Object = dict[str, Any]
NAME: Final = "winboot-hook"
NAMESPACE: Final = "winboot-system"
PORT: Final = 9345
# distroless' and our Containerfile's user.
USER: Final = 65532
_RBAC: Final = "rbac.authorization.k8s.io"
_CONFIG: Final = "/etc/winboot"
_SECRETS: Final = "/etc/winboot-secrets"
_STATE: Final = "/var/lib/winboot"
WHY: Final = "What `winboot hook serve` needs to run in the cluster: account, rights, Deployment."


@dataclass(frozen=True, slots=True)
class HookPod:
    """What differs from cluster to cluster. `identity` is the ARN of an IAM role (AWS) or the client id of a managed
    identity (Azure); empty leaves the annotation out, for nodes whose own identity has the rights."""

    inventory: Path
    image: str
    queue: str = ""
    identity: str = ""
    namespace: str = NAMESPACE
    self_registering: bool = False
    join_timeout: int = 2400


def hooked_cloud(inventory: Path, queue: str) -> ProviderName:
    """Whose groups a hook works on. UsageError for a static inventory, or where the queue does not fit the cloud."""
    found = provider_of(inventory)
    if found is None:
        raise UsageError(
            f"{inventory}: a static inventory has no groups that start machines",
            hint="Name a *.aws.yaml or a *.azure.yaml with --inventory.",
        )
    if found == "aws" and not queue:
        raise UsageError(
            "--queue is missing", hint="It is the URL of the queue that the lifecycle hooks write to."
        )
    if found == "azure" and queue:
        raise UsageError("--queue is for AWS alone", hint="Azure has scheduled events; leave the option out.")
    return found


def hook_manifest(pod: HookPod) -> str:
    """The YAML text. Raises InvalidInput where the inventory is wrong, UsageError where an option is."""
    provider, files = hooked_cloud(pod.inventory, pod.queue), _files(pod.inventory)
    objects = [
        _object("v1", "Namespace", pod.namespace, ""),
        _account(pod, provider),
        *_roles(pod),
        _deployment(pod, provider),
    ]
    given = " ".join(f"--from-file={name}" for name in files)
    note = (
        f"Its files: kubectl -n {pod.namespace} create configmap {NAME} {given}",
        f"and, where the inventory names them, passwords (variables) and ec2_key (a file below {_SECRETS}) as:",
        f"kubectl -n {pod.namespace} create secret generic {NAME} --from-literal=NAME=value --from-file=pair.pem",
        "The profile has no cluster.kubeconfig: in its pod the hook uses its service account.",
        f"One image for all workers: docs/examples/hook/Containerfile. /metrics and /healthz are on the pod's port {PORT}.",
    )
    return "\n".join(f"# {line}" for line in (WHY, *note)) + "\n" + yaml_text(objects)


def _files(inventory: Path) -> list[str]:
    """The inventory and the files that it and its profile name beside it."""
    file, _ = read_cloud_file(inventory)
    names = [inventory.name]
    if file.profile is not None:
        names.append(file.profile)
        ca = load_profile(inventory.parent / file.profile).cluster.ca
        names += [ca.file.name] if ca is not None and ca.file is not None else []
    return names


def _account(pod: HookPod, provider: ProviderName) -> Object:
    """IRSA: https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html; workload identity:
    https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html."""
    account = _object("v1", "ServiceAccount", NAME, pod.namespace)
    if pod.identity:
        key = {"aws": "eks.amazonaws.com/role-arn", "azure": "azure.workload.identity/client-id"}[provider]
        account["metadata"]["annotations"] = {key: pod.identity}
    return account


def hook_needs(*, mints: bool, self_registering: bool) -> tuple[tuple[str, tuple[Need, ...]], ...]:
    """The rights by the namespace that they hold in; empty for those of the whole cluster."""
    everywhere: tuple[Need, ...] = (*rights.JOIN, *rights.HOOK, *rights.DRAIN)
    if self_registering:
        return (("", everywhere), ("claims", rights.CLAIMS))
    everywhere = (*everywhere, *rights.PREFLIGHT)
    tokens = (("kube-system", (*rights.TOKENS, *rights.HOUSEKEEPING)),) if mints else ()
    return (("", everywhere), *tokens, ("claims", rights.CLAIMS))


def _roles(pod: HookPod) -> list[Object]:
    file, _ = read_cloud_file(pod.inventory)
    mints = file.profile is None or (
        load_profile(pod.inventory.parent / file.profile).cluster.bootstrap_token == "mint"
    )
    objects = []
    for where, needs in hook_needs(mints=mints, self_registering=pod.self_registering):
        namespace = pod.namespace if where == "claims" else where
        kind = "Role" if namespace else "ClusterRole"
        name = NAME if namespace else "winboot:hook"
        objects.append({**_object(f"{_RBAC}/v1", kind, name, namespace), "rules": _rules(needs)})
        objects.append(
            {
                **_object(f"{_RBAC}/v1", f"{kind}Binding", name, namespace),
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": pod.namespace}],
            }
        )
    return objects


def _rules(needs: Sequence[Need]) -> list[Object]:
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for need in needs:
        verbs.setdefault((need.group, need.resource, need.name), []).append(need.verb)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": [which]} if which else {}),
            "verbs": list(dict.fromkeys(several)),
        }
        for (group, resource, which), several in verbs.items()
    ]


def _deployment(pod: HookPod, provider: ProviderName) -> Object:
    labels = {"app.kubernetes.io/name": NAME}
    identity = {"azure.workload.identity/use": "true"} if provider == "azure" and pod.identity else {}
    template = {
        "metadata": {"labels": {**labels, **identity}},
        "spec": {
            "serviceAccountName": NAME,
            # SIGTERM finishes what is held: the longest join, and what comes after it.
            "terminationGracePeriodSeconds": pod.join_timeout + 300,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(pod)],
            "volumes": [
                {"name": "config", "configMap": {"name": NAME}},
                {"name": "secrets", "secret": {"secretName": NAME, "optional": True, "defaultMode": 0o440}},
                {"name": "state", "emptyDir": {}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }
    # Secrets are readable by the group alone.
    template["spec"]["securityContext"]["fsGroup"] = USER  # type: ignore[index]
    return {
        **_object("apps/v1", "Deployment", NAME, pod.namespace, labels),
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _container(pod: HookPod) -> Object:
    def probe(path: str, seconds: int) -> Object:
        return {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": seconds}

    return {
        "name": "hook",
        "image": pod.image,
        "args": [
            *("hook", "serve", "--inventory", f"{_CONFIG}/{pod.inventory.name}"),
            *(("--queue", pod.queue) if pod.queue else ()),
            *("--namespace", pod.namespace, "--join-timeout", str(pod.join_timeout)),
            *(("--self-registering",) if pod.self_registering else ()),
            # Loopback is the default; in a pod its own address is what kubelet and Prometheus reach.
            *("--listen", "$(POD_IP)", "--port", str(PORT)),
        ],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "WINBOOT_STATE", "value": _STATE},
            {"name": "HOME", "value": "/tmp"},
        ],
        "envFrom": [{"secretRef": {"name": NAME, "optional": True}}],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": probe("/healthz", 30),
        "readinessProbe": probe("/readyz", 10),
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "secrets", "mountPath": _SECRETS, "readOnly": True},
            {"name": "state", "mountPath": _STATE},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _object(
    version: str, kind: str, name: str, namespace: str, labels: Mapping[str, str] | None = None
) -> Object:
    metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
