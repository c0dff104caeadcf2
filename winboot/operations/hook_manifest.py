"""`winboot manifests hook`: what `winboot hook serve` needs to run as a pod of the cluster.

Namespace, ServiceAccount with the cloud's identity, roles for exactly the calls that the hook makes, and a
Deployment. With first boot, also its endpoint's Service and a volume for what it remembers. Made from a cloud
inventory's file; winboot asks neither cloud nor cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

from winboot.base.errors import UsageError
from winboot.config.inventory.cloud_name import ProviderName, provider_of
from winboot.config.profile import load_profile
from winboot.operations.worker_pod import (
    CLAIMS,
    CONFIG,
    NAMESPACE,
    SECRETS,
    Object,
    account_roles,
    container,
    pod_spec,
)
from winboot.remote.cloud.settings import read_cloud_file
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Need
from winboot.remote.manifests import named, yaml_text

NAME: Final = "winboot-hook"
PORT: Final = 9345
# Where machines call at their first boot (winboot.cli.first_boot).
BOOTSTRAP_PORT: Final = 9443
SERVICE: Final = "winboot-first-boot"
# The namespace of a monitoring system, by the label that each namespace has (kubernetes.io, "Well-Known Labels").
MONITORING: Final = {"kubernetes.io/metadata.name": "monitoring"}
_LABELS: Final = {"app.kubernetes.io/name": NAME}
# A load balancer inside the network that shows whose a connection is. AWS Load Balancer Controller, "Service annotations"
# (kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations): instance targets keep the client's
# address (AWS, "Edit target group attributes", client IP preservation). Azure: cloud-provider-azure, "LoadBalancer
# annotations".
_BALANCER: Final[dict[ProviderName, dict[str, str]]] = {
    "aws": {
        "service.beta.kubernetes.io/aws-load-balancer-type": "external",
        "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type": "instance",
        "service.beta.kubernetes.io/aws-load-balancer-scheme": "internal",
    },
    "azure": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
}
_BOOTSTRAP_NOTE: Final = (
    f"Machines call at port {BOOTSTRAP_PORT} of the Service {SERVICE}, which must show their own addresses. The first line",
    "of the pod's log has the pin for user data; vouchers and approvals are made in the pod:",
    f"kubectl exec --namespace NAMESPACE deploy/{NAME} -- winboot hook voucher --group GROUP -i {CONFIG}/INVENTORY",
    f"The volume {NAME} keeps the key, vouchers and how far machines are: without it all user data is worthless.",
)
_OPEN_NOTE: Final = (
    f"The NetworkPolicy does not keep pods from port {BOOTSTRAP_PORT}: they share the network of the nodes, or the inventory",
    "names no profile. A pod needs a voucher, an approval or a document there, as any caller does.",
)
WHY: Final = "What `winboot hook serve` needs to run in the cluster: account, rights, Deployment."


@dataclass(frozen=True, slots=True)
class HookPod:
    """What differs from cluster to cluster. `identity` is the ARN of an IAM role (AWS) or the client id of a managed
    identity (Azure). An empty one leaves the annotation out, for nodes whose own identity has the rights."""

    inventory: Path
    image: str
    queue: str = ""
    identity: str = ""
    namespace: str = NAMESPACE
    self_registering: bool = False
    join_timeout: int = 2400
    bootstrap: bool = False


def hooked_cloud(inventory: Path, queue: str, *, bootstrap: bool = False) -> ProviderName:
    """Whose groups a hook works on. With `bootstrap` AWS needs no queue: machines call. UsageError for a static inventory, or
    where the queue does not fit the cloud."""
    found = provider_of(inventory)
    if found is None:
        raise UsageError(
            f"{inventory}: a static inventory has no groups that start machines",
            hint="Name a *.aws.yaml or a *.azure.yaml with --inventory.",
        )
    if found == "aws" and not queue and not bootstrap:
        raise UsageError(
            "--queue is missing", hint="It is the URL of the queue that the lifecycle hooks write to."
        )
    if found == "azure" and queue:
        raise UsageError("--queue is for AWS alone", hint="Azure has scheduled events; leave the option out.")
    return found


def hook_manifest(pod: HookPod) -> str:
    """The YAML text. Raises InvalidInput where the inventory is wrong, UsageError where an option is."""
    provider = hooked_cloud(pod.inventory, pod.queue, bootstrap=pod.bootstrap)
    files = _files(pod.inventory)
    objects = [
        named("v1", "Namespace", pod.namespace),
        _account(pod, provider),
        *_roles(pod),
        _policy(pod),
        *((_state(pod), _service(pod, provider)) if pod.bootstrap else ()),
        _deployment(pod, provider),
    ]
    given = " ".join(f"--from-file={name}" for name in files)
    note = (
        f"Its files: kubectl -n {pod.namespace} create configmap {NAME} {given}",
        f"and, where the inventory names them, passwords (variables) and ec2_key (a file below {SECRETS}) as:",
        f"kubectl -n {pod.namespace} create secret generic {NAME} --from-literal=NAME=value --from-file=pair.pem",
        "The profile has no cluster.kubeconfig: in its pod the hook uses its service account.",
        f"One image for all workers: docs/examples/hook/Containerfile. /metrics and /healthz are on the pod's port {PORT}.",
        *(_BOOTSTRAP_NOTE if pod.bootstrap else ()),
        *(_OPEN_NOTE if pod.bootstrap and not _pods_apart(pod) else ()),
    )
    return "\n".join(f"# {line}" for line in (WHY, *note)) + "\n" + yaml_text(objects)


def _files(inventory: Path) -> list[str]:
    """The inventory and the files next to it that it and its profile name."""
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
    account = named("v1", "ServiceAccount", NAME, namespace=pod.namespace)
    if pod.identity:
        key = {"aws": "eks.amazonaws.com/role-arn", "azure": "azure.workload.identity/client-id"}[provider]
        account["metadata"]["annotations"] = {key: pod.identity}
    return account


def hook_needs(
    *, mints: bool, self_registering: bool, gmsa: bool, bootstrap: bool = False
) -> tuple[tuple[str, tuple[Need, ...]], ...]:
    """The rights by the namespace that they hold in; empty for those of the whole cluster. At first boot machines call, and
    are joined like any other."""
    everywhere: tuple[Need, ...] = (*rights.JOIN, *rights.HOOK, *rights.DRAIN)
    if self_registering and not bootstrap:
        return (("", everywhere), (CLAIMS, rights.CLAIMS))
    everywhere = (*everywhere, *rights.preflight(gmsa=gmsa))
    tokens = ((rights.SYSTEM, rights.TOKENS),) if mints else ()
    # Events about Nodes are in this namespace.
    events = (("default", rights.FIRST_BOOT),) if bootstrap else ()
    return (("", everywhere), *tokens, *events, (CLAIMS, rights.CLAIMS))


def _roles(pod: HookPod) -> list[Object]:
    file, _ = read_cloud_file(pod.inventory)
    profile = None if file.profile is None else load_profile(pod.inventory.parent / file.profile)
    needs = hook_needs(
        mints=profile is None or profile.cluster.bootstrap_token == "mint",
        self_registering=pod.self_registering,
        gmsa=profile is not None and profile.gmsa is not None,
        bootstrap=pod.bootstrap,
    )
    return account_roles(NAME, "winboot:hook", pod.namespace, needs)


def _policy(pod: HookPod) -> Object:
    """Metrics for monitoring and calls of first boot for machines; nothing limits what the hook calls. The kubelet's probes
    pass: "Traffic to and from the node where a Pod is running is always allowed" (kubernetes.io, "Network Policies")."""
    rules = [_opened(PORT, {"namespaceSelector": {"matchLabels": MONITORING}})]
    if pod.bootstrap:
        rules.append(_opened(BOOTSTRAP_PORT, *_machines(pod)))
    return {
        **named("networking.k8s.io/v1", "NetworkPolicy", NAME, namespace=pod.namespace),
        "spec": {"podSelector": {"matchLabels": _LABELS}, "policyTypes": ["Ingress"], "ingress": rules},
    }


def _opened(port: int, *callers: Object) -> Object:
    return {"from": list(callers), "ports": [{"protocol": "TCP", "port": port}]}


def _machines(pod: HookPod) -> Iterator[Object]:
    """Every address except those of pods. docs/threat-model.md lists what this cannot hold."""
    pods = _pods_apart(pod)
    for version, everywhere in ((4, "0.0.0.0/0"), (6, "::/0")):
        excepted = [str(one) for one in pods if one.version == version]
        yield {"ipBlock": {"cidr": everywhere, **({"except": excepted} if excepted else {})}}


def _pods_apart(pod: HookPod) -> Sequence[IPv4Network | IPv6Network]:
    """The networks that only pods have addresses of; empty if none is known."""
    file, _ = read_cloud_file(pod.inventory)
    profile = None if file.profile is None else load_profile(pod.inventory.parent / file.profile)
    return () if profile is None or profile.solution.pods_in_node_network else profile.cluster.pod_cidr


def _state(pod: HookPod) -> Object:
    """Where the endpoint keeps its key and what it remembers."""
    return {
        **named("v1", "PersistentVolumeClaim", NAME, namespace=pod.namespace),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def _service(pod: HookPod, provider: ProviderName) -> Object:
    """With the policy Local a node passes connections on as they came (kubernetes.io, "Using Source IP")."""
    service = named("v1", "Service", SERVICE, namespace=pod.namespace)
    service["metadata"]["annotations"] = _BALANCER[provider]
    return {
        **service,
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "selector": _LABELS,
            "ports": [{"name": "bootstrap", "port": BOOTSTRAP_PORT, "targetPort": "bootstrap"}],
        },
    }


def _deployment(pod: HookPod, provider: ProviderName) -> Object:
    identity = {"azure.workload.identity/use": "true"} if provider == "azure" and pod.identity else {}
    # SIGTERM finishes what is held: the longest join, and what comes after it.
    spec = pod_spec(
        NAME,
        _container(pod),
        config={"name": NAME},
        grace_s=pod.join_timeout + 300,
        state_claim=NAME if pod.bootstrap else "",
    )
    # One memory, one endpoint: the old pod ends before the new one begins.
    strategy = {"strategy": {"type": "Recreate"}} if pod.bootstrap else {}
    return {
        **named("apps/v1", "Deployment", NAME, namespace=pod.namespace, **_LABELS),
        "spec": {
            "replicas": 1,
            **strategy,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": {**_LABELS, **identity}}, "spec": spec},
        },
    }


def _container(pod: HookPod) -> Object:
    def probe(path: str, seconds: int) -> Object:
        return {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": seconds}

    return container(
        "hook",
        pod.image,
        [
            *("hook", "serve", "--inventory", f"{CONFIG}/{pod.inventory.name}"),
            *(("--queue", pod.queue) if pod.queue else ()),
            *("--namespace", pod.namespace, "--join-timeout", str(pod.join_timeout)),
            *(("--self-registering",) if pod.self_registering else ()),
            *(("--bootstrap", f"0.0.0.0:{BOOTSTRAP_PORT}") if pod.bootstrap else ()),
            # Loopback is the default; in a pod its own address is what kubelet and Prometheus reach.
            *("--listen", "$(POD_IP)", "--port", str(PORT)),
        ],
        secret=NAME,
        fields={"POD_IP": "status.podIP"},
        resources={"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        ports=[
            {"name": "metrics", "containerPort": PORT},
            *([{"name": "bootstrap", "containerPort": BOOTSTRAP_PORT}] if pod.bootstrap else ()),
        ],
        livenessProbe=probe("/healthz", 30),
        readinessProbe=probe("/readyz", 10),
    )
