"""The objects that a verification makes: a namespace with restricted rights, two pods a node, services, one pod on Linux."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from winboot.base.secret import Secret
from winboot.config.node_spec import NodeSpec
from winboot.remote.cluster.rights import PULL_SECRET

Object = dict[str, Any]
OURS: Final = "winboot.io/verify"
KEPT: Final = "winboot.io/verify-kept"
HOLDER: Final = "winboot.io/verify-holder"
UNTIL: Final = "winboot.io/verify-until"
ROLE: Final = "winboot.io/role"
NODE: Final = "winboot.io/node"
PORT: Final = 80
LINUX_PORT: Final = 8080
PULL: Final = PULL_SECRET
# For every release the image that fits its build; ltsc2019 and later have curl.exe.
IMAGES: Final[Mapping[str, str]] = {
    release: f"mcr.microsoft.com/windows/servercore:ltsc{release}" for release in ("2019", "2022", "2025")
}
LINUX_IMAGE: Final = "registry.k8s.io/e2e-test-images/agnhost:2.53"
READY: Final = f"winboot-server {PORT}"


def namespace(name: str, run: str, holder: str, until: str, *, kept: bool) -> Object:
    """Marked as ours, with the rules of the Pod Security level `restricted`."""
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    labels = {
        "app.kubernetes.io/managed-by": "winboot",
        OURS: run,
        **({KEPT: "true"} if kept else {}),
        **level,
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels, "annotations": {HOLDER: holder, UNTIL: until}},
    }


def _script() -> str:
    """PowerShell that answers HTTP over a plain socket and names the caller: HttpListener would want an
    administrator. It has no double quotation marks, which a command line on Windows would swallow."""
    return "\n".join(
        [
            f"$listener = New-Object Net.Sockets.TcpListener ([Net.IPAddress]::Any, {PORT})",
            "$listener.Start()",
            f"'{READY}'",
            "while ($true) {",
            "    $client = $listener.AcceptTcpClient()",
            "    try {",
            "        $stream = $client.GetStream()",
            "        $stream.ReadTimeout = 5000",
            "        $reader = New-Object IO.StreamReader $stream",
            "        $request = $reader.ReadLine()",
            "        while ($reader.ReadLine()) { }",
            "        $body = '{0} {1} {2}' -f $env:WINBOOT_POD, $client.Client.RemoteEndPoint.Address, $request",
            "        $head = 'HTTP/1.1 200 OK', 'Content-Type: text/plain', 'Connection: close',",
            "            ('Content-Length: {0}' -f $body.Length)",
            "        $end = [Environment]::NewLine",
            "        $bytes = [Text.Encoding]::ASCII.GetBytes(($head -join $end) + $end + $end + $body)",
            "        $stream.Write($bytes, 0, $bytes.Length)",
            "    }",
            "    catch { 'a request broke off' }",
            "    finally { $client.Close() }",
            "}",
        ]
    )


def windows_pod(spec: NodeSpec, space: str, role: str, image: str, *, pull: bool) -> Object:
    """A server on one node, as an ordinary user. The node is named, not chosen: a cordoned one is looked at, too."""
    name = spec.node.name
    container = {
        "name": "server",
        "image": image,
        "command": ["powershell.exe", "-NoProfile", "-Command", _script()],
        "env": [{"name": "WINBOOT_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"containerPort": PORT}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "50m", "memory": "100Mi"}, "limits": {"memory": "400Mi"}},
    }
    # A Linux security context has no place in a pod that names its os as windows.
    del container["securityContext"]
    pod = {
        "os": {"name": "windows"},
        "nodeName": name,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "windowsOptions": {"runAsUserName": "ContainerUser"}},
        "containers": [container],
        **({"imagePullSecrets": [{"name": PULL}]} if pull else {}),
    }
    labels = {"app": "winboot-verify", ROLE: role, NODE: name}
    return _object("Pod", f"{role}-{name}", space, labels, spec=pod)


def account_pod(pod: Object, account: str, spec: str) -> Object:
    """A Windows pod that runs as a group managed service account: LocalSystem and Network Service have it, an ordinary user
    has not (learn.microsoft.com, gMSA for Windows containers). The spec is at pod level."""
    security = {"windowsOptions": {"gmsaCredentialSpecName": spec}}
    return {**pod, "spec": {**pod["spec"], "serviceAccountName": account, "securityContext": security}}


def volume_pod(pod: Object, claim: str) -> Object:
    """A Windows pod with the volume of a claim at C:\\data."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    containers = [
        {**one, "volumeMounts": [{"name": "data", "mountPath": "C:\\data"}]}
        for one in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "volumes": [volume], "containers": containers}}


def claim(space: str, name: str, storage_class: str) -> Object:
    """A claim of one gibibyte of a StorageClass."""
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return _object("PersistentVolumeClaim", name, space, {}, spec=spec)


def linux_pod(node: str, space: str, image: str, *, pull: bool) -> Object:
    """agnhost on one Linux node: it answers, and it has curl."""
    container = {
        "name": "server",
        "image": image,
        "args": ["netexec", f"--http-port={LINUX_PORT}", "--udp-port=-1"],
        "ports": [{"containerPort": LINUX_PORT}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}, "limits": {"memory": "200Mi"}},
    }
    pod = {
        "os": {"name": "linux"},
        "nodeName": node,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        **({"imagePullSecrets": [{"name": PULL}]} if pull else {}),
    }
    return _object("Pod", "linux", space, {"app": "winboot-verify-linux", ROLE: "linux"}, spec=pod)


def service(space: str, name: str, selector: Mapping[str, str], *, node_port: bool = False) -> Object:
    """A service of our servers."""
    spec: Object = {
        "type": "NodePort" if node_port else "ClusterIP",
        "selector": {"app": "winboot-verify", ROLE: "server", **selector},
        "ports": [{"name": "http", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
    }
    return _object("Service", name, space, {}, spec=spec)


def pull_secret(space: str, logins: Sequence[tuple[str, str, Secret]]) -> Object:
    """What the profile's registries want, for images that a kubelet pulls with it: host, user, password."""
    auths = {
        host: {"auth": base64.b64encode(f"{user}:{password.reveal()}".encode()).decode("ascii")}
        for host, user, password in logins
    }
    text = base64.b64encode(json.dumps({"auths": auths}).encode()).decode("ascii")
    made = _object("Secret", PULL, space, {})
    return {**made, "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": text}}


def _object(kind: str, name: str, space: str, labels: Mapping[str, str], **rest: Any) -> Object:
    metadata = {"name": name, "namespace": space, "labels": {OURS: "true", **labels}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **rest}
