"""`winboot manifests`: what the cluster needs for these nodes, as YAML to read and to apply.

Nothing is sent anywhere: winboot works on nodes, and what belongs to the cluster is for its owner to apply. The texts
are made from what the nodes of the inventory are: their builds, taints, networks and runtime handlers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from winboot.base.errors import UsageError
from winboot.config.networks import cluster_settings
from winboot.config.networks.cluster import InCluster, Wanted
from winboot.config.node_spec import NodeSpec, Taint
from winboot.config.source import nearest
from winboot.remote.cluster import rights
from winboot.remote.cluster.base import Need
from winboot.remote.gmsa_manifest import credential_specs, webhook_values

Object = dict[str, Any]
NODES: Final = "system:nodes"
# The role of the user that runs winboot, and the group that it is bound to: put the kubeconfig's user into it, or
# change it.
OPERATOR: Final = "winboot:operator"
REMOVER: Final = "winboot:remover"
OPERATORS: Final = "winboot:operators"
VERIFIER: Final = "winboot:verifier"
RBAC: Final = "rbac.authorization.k8s.io"
_LOG_MONITOR: Final = r"C:\LogMonitor"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One kind of manifest: its name on the command line, what it is for, and what makes its objects."""

    name: str
    why: str
    make: Callable[[Sequence[NodeSpec]], list[Object]]
    note: str = ""


def manifest(name: str, specs: Sequence[NodeSpec]) -> str:
    """The YAML text of a kind for these nodes; UsageError where there is no such kind or nothing to say."""
    for one in MANIFESTS:
        if one.name == name:
            objects = one.make(specs)
            if not objects:
                raise UsageError(f"no node of the inventory needs {name}", hint=one.why)
            return _text(one, objects)
    names = [one.name for one in MANIFESTS]
    meant = nearest(name, names)
    raise UsageError(
        f"there is no manifest {name!r}",
        hint=f"Did you mean {meant!r}?" if meant else "One of " + ", ".join(names),
    )


def _rbac(specs: Sequence[NodeSpec]) -> list[Object]:
    """What the kubelet's certificate must be allowed in addition to what kubelets are."""
    objects = []
    if any(spec.kube_proxy.wanted and spec.kube_proxy.kubeconfig is None for spec in specs):
        objects.append(_binding("winboot:node-proxier", "system:node-proxier"))
    rights = [spec.network.solution.rights for spec in specs if spec.network.solution.rights is not None]
    for one in (one for at, one in enumerate(rights) if one not in rights[:at]):
        objects += [_binding(f"winboot:{role}", role) for role in one.bound]
        if one.name:
            role = named(f"{RBAC}/v1", "ClusterRole", one.name)
            objects += [{**role, "rules": [_plain(rule) for rule in one.rules]}, _binding(one.name, one.name)]
    if any(spec.network.routes for spec in specs):
        # A kubelet's certificate alone may read its own Node only (from 1.32 on).
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
        role = named(f"{RBAC}/v1", "ClusterRole", "winboot:routes")
        objects += [{**role, "rules": rules}, _binding("winboot:routes", "winboot:routes")]
    return objects


def _operator(specs: Sequence[NodeSpec]) -> list[Object]:
    """What the user of the kubeconfig does in a join, and no more: the table of `winboot.remote.cluster.rights`."""
    mints = any(spec.cluster.bootstrap_token == "mint" for spec in specs)
    everywhere = (*rights.JOIN, *rights.DRAIN, *rights.preflight(gmsa=any(spec.gmsa for spec in specs)))
    objects = [_role("ClusterRole", OPERATOR, everywhere), _operator_binding("ClusterRole", OPERATOR)]
    if mints:
        objects += [_role("Role", OPERATOR, rights.TOKENS), _operator_binding("Role", OPERATOR)]
        objects += token_policy("winboot-operator-tokens", f"'{OPERATORS}' in request.userInfo.groups")
    return [*objects, *_claims(OPERATOR, (*rights.CLAIMS, *rights.ORDER))]


def token_policy(name: str, who: str) -> list[Object]:
    """Holds the subject of the CEL expression `who` to bootstrap tokens in kube-system. Without it, create and delete
    read any service account's token there. The answer to a DELETE is the whole Secret while a finalizer is pending
    (apiserver, registry/generic/registry/store.go, Delete). The token controller fills a Secret of an account's
    type."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["secrets"],
    }
    admission = "admissionregistration.k8s.io/v1"
    return [
        {
            **named(admission, "ValidatingAdmissionPolicy", name),
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": rights.SYSTEM}},
                    "resourceRules": [rule],
                },
                "matchConditions": [{"name": "subject", "expression": who}],
                "validations": [
                    {
                        "expression": "(object == null ? oldObject : object).type == 'bootstrap.kubernetes.io/token'",
                        "message": "winboot makes and deletes bootstrap tokens only",
                    }
                ],
            },
        },
        {
            **named(admission, "ValidatingAdmissionPolicyBinding", name),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def _claims(name: str, needs: Sequence[Need]) -> list[Object]:
    """Where it is kept which run works on which node. Without it each computer keeps that for itself."""
    return [
        named("v1", "Namespace", rights.CLAIMED),
        _role("Role", name, needs, namespace=rights.CLAIMED),
        _operator_binding("Role", name, namespace=rights.CLAIMED),
    ]


def _remover(specs: Sequence[NodeSpec]) -> list[Object]:
    """What `remove` does in addition to that."""
    everywhere = (*rights.REMOVE, *rights.DRAIN, Need("patch", "nodes", why="to cordon the node first"))
    objects = [_role("ClusterRole", REMOVER, everywhere), _operator_binding("ClusterRole", REMOVER)]
    objects += [
        _role("Role", REMOVER, rights.REMOVE_LEASES, namespace=rights.NODE_LEASES),
        _operator_binding("Role", REMOVER, namespace=rights.NODE_LEASES),
    ]
    return [*objects, *_claims(REMOVER, rights.CLAIMS)]


def _verifier(specs: Sequence[NodeSpec]) -> list[Object]:
    """What `verify --namespace winboot-verify` does beyond a join."""
    space, there = rights.VERIFIED, rights.verify_in(rights.VERIFIED)
    needs = (*rights.VERIFY_READS, *rights.VERIFY_POLICIES)
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return [
        named("v1", "Namespace", space, **level),
        _role("Role", VERIFIER, there, namespace=space),
        _operator_binding("Role", VERIFIER, namespace=space),
        _role("ClusterRole", VERIFIER, needs),
        _operator_binding("ClusterRole", VERIFIER),
    ]


def _verifier_anywhere(specs: Sequence[NodeSpec]) -> list[Object]:
    """What verify does with namespaces of its own: their names are not known before."""
    name = f"{VERIFIER}-anywhere"
    needs = (*rights.VERIFY, *rights.VERIFY_POLICIES)
    return [_role("ClusterRole", name, needs), _operator_binding("ClusterRole", name)]


def _role(kind: str, name: str, needs: Sequence[Need], *, namespace: str = rights.SYSTEM) -> Object:
    where = namespace if kind == "Role" else ""
    return {**named(f"{RBAC}/v1", kind, name, namespace=where), "rules": rules_of(needs)}


def rules_of(needs: Sequence[Need]) -> list[Object]:
    """The rules of a role that has these needs and no more; verbs of one thing are together."""
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


def _operator_binding(kind: str, name: str, *, namespace: str = rights.SYSTEM) -> Object:
    where = namespace if kind == "Role" else ""
    return {
        **named(f"{RBAC}/v1", f"{kind}Binding", name, namespace=where),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": OPERATORS}],
    }


def _plain(rule: Mapping[str, Sequence[str]]) -> Object:
    return {key: list(values) for key, values in rule.items()}


def _binding(name: str, role: str) -> Object:
    return {
        **named(f"{RBAC}/v1", "ClusterRoleBinding", name),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": NODES}],
    }


def _runtime_classes(specs: Sequence[NodeSpec]) -> list[Object]:
    """One class for each Windows version and handler among the nodes."""
    classes: dict[str, Object] = {}
    for spec in specs:
        for handler in spec.runtime.handlers:
            suffix = "" if handler.isolation == "process" else "-hyperv"
            name = f"windows-{spec.machine.os}{suffix}"
            classes[name] = {
                **named("node.k8s.io/v1", "RuntimeClass", name),
                "handler": handler.name,
                "scheduling": {
                    "nodeSelector": _selector(spec),
                    "tolerations": _tolerations(spec.node.taints),
                },
            }
    return [classes[name] for name in sorted(classes)]


def _scheduling(specs: Sequence[NodeSpec]) -> list[Object]:
    """A pod's fields that bring it to Windows nodes, one variant for each Windows version."""
    variants = {spec.machine.os: spec for spec in specs}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-windows-{os}"},
            "spec": {
                "os": {"name": "windows"},
                "nodeSelector": _selector(spec),
                "tolerations": _tolerations(spec.node.taints),
                "containers": [{"name": "work", "image": _image(spec)}],
            },
        }
        for os, spec in sorted(variants.items())
    ]


def _of_network(own: InCluster) -> Iterator[Manifest]:
    """What the cluster gets from the solution of the nodes."""
    if own.manifest is not None:
        one = own.manifest
        yield Manifest(one.name, one.why, lambda specs: one.make(_wanting(own, specs)), one.note)


def _wanting(own: InCluster, specs: Sequence[NodeSpec]) -> list[Wanted]:
    return [spec.network_wanted for spec in specs if spec.network.solution.in_cluster is own]


def _webserver(specs: Sequence[NodeSpec]) -> list[Object]:
    """A small web server for each Windows version, behind one NodePort service."""
    return _servers(specs, {})


def _webserver_as_user(specs: Sequence[NodeSpec]) -> list[Object]:
    """The same, as the user ContainerUser: runAsUserName."""
    context = {"windowsOptions": {"runAsUserName": "ContainerUser"}}
    return _servers(specs, {"securityContext": context})


def _webserver_log_monitor(specs: Sequence[NodeSpec]) -> list[Object]:
    """The same, with LogMonitor in front, which brings event logs to `kubectl logs`."""
    settings = {
        "LogConfig": {
            "sources": [
                {
                    "type": "EventLog",
                    "startAtOldestRecord": True,
                    "eventFormatMultiLine": False,
                    "channels": [
                        {"name": "system", "level": "Error"},
                        {"name": "application", "level": "Error"},
                    ],
                }
            ]
        }
    }
    config = {
        **named("v1", "ConfigMap", "win-webserver-logs"),
        "data": {"LogMonitorConfig.json": json.dumps(settings, indent=2)},
    }
    path = _LOG_MONITOR + r"\config"
    pod = {"volumes": [{"name": "logs", "configMap": {"name": "win-webserver-logs"}}]}
    container = {
        "command": [
            rf"{_LOG_MONITOR}\LogMonitor.exe",
            "/Config",
            rf"{path}\LogMonitorConfig.json",
            *_serve(),
        ],
        "volumeMounts": [{"name": "logs", "mountPath": path}],
    }
    return [config, *_servers(specs, pod, container)]


def _servers(
    specs: Sequence[NodeSpec], pod: Mapping[str, Any], container: Mapping[str, Any] | None = None
) -> list[Object]:
    variants = {spec.machine.os: spec for spec in specs}
    service = {
        **named("v1", "Service", "win-webserver", app="win-webserver"),
        "spec": {
            "type": "NodePort",
            "selector": {"app": "win-webserver"},
            "ports": [{"port": 80, "targetPort": 80}],
        },
    }
    return [service, *(_deployment(spec, pod, container or {}) for _, spec in sorted(variants.items()))]


def _deployment(spec: NodeSpec, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Object:
    name = f"win-webserver-{spec.machine.os}"
    labels = {"app": "win-webserver", "windows": spec.machine.os}
    server = {
        "name": "server",
        "image": _image(spec),
        "command": _serve(),
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "500m", "memory": "400Mi"}},
        **container,
    }
    template = {
        "os": {"name": "windows"},
        "nodeSelector": _selector(spec),
        "tolerations": _tolerations(spec.node.taints),
        "containers": [server],
        **pod,
    }
    return {
        **named("apps/v1", "Deployment", name, **labels),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }


def _serve() -> list[str]:
    """PowerShell that answers HTTP over a plain socket: HttpListener would want an administrator. It has no
    double quotation marks, which a command line on Windows would swallow."""
    script = "\n".join(
        [
            "$end = [Environment]::NewLine",
            "$listener = New-Object Net.Sockets.TcpListener ([Net.IPAddress]::Any, 80)",
            "$listener.Start()",
            "'win-webserver listens on port 80'",
            "while ($true) {",
            "    $client = $listener.AcceptTcpClient()",
            "    $stream = $client.GetStream()",
            "    $reader = New-Object IO.StreamReader $stream",
            "    $request = $reader.ReadLine()",
            "    while ($reader.ReadLine()) { }",
            "    $body = 'win-webserver on {0}: {1}' -f $env:COMPUTERNAME, $request",
            "    $head = 'HTTP/1.1 200 OK', 'Content-Type: text/plain', ('Content-Length: {0}' -f $body.Length)",
            "    $bytes = [Text.Encoding]::ASCII.GetBytes(($head -join $end) + $end + $end + $body)",
            "    $stream.Write($bytes, 0, $bytes.Length)",
            "    $client.Close()",
            "    $request",
            "}",
        ]
    )
    return ["powershell.exe", "-NoProfile", "-Command", script]


def _selector(spec: NodeSpec) -> dict[str, str]:
    return {
        "kubernetes.io/os": "windows",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/windows-build": f"10.0.{spec.machine.build}",
    }


def _tolerations(taints: tuple[Taint, ...]) -> list[Object]:
    return [
        {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect}
        if one.value
        else {"key": one.key, "operator": "Exists", "effect": one.effect}
        for one in taints
    ]


def _image(spec: NodeSpec) -> str:
    return f"mcr.microsoft.com/windows/servercore:ltsc{spec.machine.os}"


def named(version: str, kind: str, name: str, *, namespace: str = "", **labels: str) -> Object:
    """The beginning of an object: what it is, and how it is called where."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: texts of several lines as blocks, nothing shared by anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def _text(one: Manifest, objects: list[Object]) -> str:
    lines = [f"# {line}" for line in (one.why, *one.note.splitlines())]
    return "\n".join(lines) + "\n" + yaml_text(objects)


def yaml_text(objects: Sequence[Object]) -> str:
    """Objects as one text, a document each."""
    return str(yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True))


MANIFESTS: Final[tuple[Manifest, ...]] = (
    Manifest(
        "rbac",
        "What kube-proxy and the agents of networks may read and write with the certificate of their node.",
        _rbac,
        # https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
        "system:nodes are the kubelets of all nodes, Linux nodes too. Where a rule lets them write Nodes, the admission\n"
        "plugin NodeRestriction keeps each to its own: the API server needs it (--enable-admission-plugins).",
    ),
    Manifest(
        "operator",
        "What the user of the kubeconfig may do: exactly what a join, its preflight and --drain ask for.",
        _operator,
        f"Bound to the group {OPERATORS}; change the subject where your users have no groups.",
    ),
    Manifest(
        "remover",
        "What the user of the kubeconfig may do for `winboot remove`: delete Nodes, and what belongs to them.",
        _remover,
        f"Bound to the group {OPERATORS}; bind it to accounts that may remove nodes.",
    ),
    Manifest(
        "verifier",
        f"What `winboot verify --namespace {rights.VERIFIED}` needs: pods, services and exec in that namespace alone.",
        _verifier,
        f"Bound to the group {OPERATORS}. The namespace has the Pod Security level `restricted`.",
    ),
    Manifest(
        "verifier-anywhere",
        "What `winboot verify` and `join --verify` need to make namespaces of their own. Optional: this role equals",
        _verifier_anywhere,
        f"cluster-admin, because it makes pods in every namespace and runs commands in them. Bound to the group {OPERATORS}.",
    ),
    Manifest(
        "runtimeclass",
        "One RuntimeClass for each Windows version and isolation: runtimeClassName brings a pod to a fitting node.",
        _runtime_classes,
    ),
    Manifest(
        "scheduling",
        "The fields that bring a pod to a Windows node: os, node selector and tolerations.",
        _scheduling,
        "The taint keeps pods without a nodeSelector (many charts for Linux) away from Windows nodes.",
    ),
    *(one for own in cluster_settings() for one in _of_network(own)),
    Manifest(
        "gmsa",
        "Group managed service accounts: a GMSACredentialSpec each, and the right of service accounts in Kubernetes to use it.",
        credential_specs,
        "Needs the CRD of windows-gmsa. A pod names the spec in securityContext.windowsOptions.gmsaCredentialSpecName;\n"
        "for init containers that must be at pod level, because the webhook fills no others.",
    ),
    Manifest(
        "gmsa-webhook",
        "Values for windows-gmsa's chart (helm install gmsa … -f FILE), for cert-manager or your own certificate.",
        webhook_values,
        "Its failurePolicy is Fail: with an expired certificate the cluster refuses every pod. Preflight shows the end date.",
    ),
    Manifest(
        "webserver",
        "A web server on every Windows version behind a NodePort, to try the network.",
        _webserver,
    ),
    Manifest(
        "webserver-as-user",
        "The same server as ContainerUser (runAsUserName).",
        _webserver_as_user,
    ),
    Manifest(
        "webserver-logmonitor",
        "The same server behind LogMonitor, which brings event logs to `kubectl logs`.",
        _webserver_log_monitor,
        r"The image must hold C:\LogMonitor\LogMonitor.exe: build one from servercore with that file copied in.",
    ),
)
