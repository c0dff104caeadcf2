"""The workbench over the connections of lightkube's client.

exec and port-forward go over WebSockets: `v5.channel.k8s.io` (Kubernetes 1.30 and later) or `v4.channel.k8s.io`. lightkube has
exec, but reports a refused upgrade without what the API server said. It has no port-forward.
"""

from __future__ import annotations

import base64
import os
import queue
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import msgspec
from httpx2.websockets import WebSocketDisconnect, WebSocketNetworkError, WebSocketSession
from lightkube.core.generic_client import GenericClient

from winboot.base.clean import clean
from winboot.base.errors import ClusterError, ClusterUnreachable
from winboot.base.foreign import Malformed, decoded
from winboot.remote.cluster.calls import Calls
from winboot.remote.cluster.failures import status_of
from winboot.remote.cluster.workbench import Ran, Thing

_PLURALS: Final[Mapping[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/pods",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "Service": "/api/v1/services",
    "Secret": "/api/v1/secrets",
    "Event": "/api/v1/events",
    "ResourceQuota": "/api/v1/resourcequotas",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/endpointslices",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/networkpolicies",
    # https://network-policy-api.sigs.k8s.io/api-overview/ (v1alpha2 has one kind instead of the two before it)
    "ClusterNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies",
    "AdminNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies",
    "BaselineAdminNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies",
    # https://docs.tigera.io/calico/latest/reference/resources/globalnetworkpolicy
    "GlobalNetworkPolicy": "/apis/crd.projectcalico.org/v1/globalnetworkpolicies",
}
_EXEC: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_FORWARD: Final = ("v4.channel.k8s.io",)
_STDOUT, _STDERR, _OUTCOME = 1, 2, 3
_EXIT_CODE: Final = re.compile(r"-?[0-9]{1,10}")


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct, frozen=True):
    """apimachinery, pkg/apis/meta/v1/types.go (Status)."""

    status: str = ""
    message: str = ""
    details: _Details | None = None


_STATUS: Final = msgspec.json.Decoder(_Status)
# A log or a kubelet's error may be larger than the 64 KiB at which the library gives a message up.
_LARGEST_MESSAGE: Final = 4 << 20
_MISSING, _CONFLICT = 404, 409


class LightkubeWorkbench:
    """See `winboot.remote.cluster.workbench.Workbench`."""

    def __init__(self, client: httpx2.Client, call: Calls) -> None:
        self._client = client
        self._call = call

    def make(self, thing: Thing) -> Thing:
        """Create an object."""
        metadata = thing["metadata"]
        kind, name = str(thing["kind"]), str(metadata["name"])
        path = _path(kind, str(metadata.get("namespace", "")))

        def create() -> Thing:
            try:
                return self._asked("POST", path, json=dict(thing))
            except httpx2.HTTPStatusError as e:
                if status_of(e) != _CONFLICT:
                    raise
                return self._asked("GET", f"{path}/{name}")

        return self._call(f"making the {kind} {name}", create)

    def listed(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> Sequence[Thing]:
        """All objects of a kind."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        params = {"labelSelector": selector} if selector else {}
        doing = f"listing {kind}s" + (f" of {namespace}" if namespace else "")
        found = self._call(doing, lambda: self._asked("GET", _path(kind, namespace), params=params))
        items: list[Thing] = found.get("items") or []
        return items

    def remove(self, thing: Thing) -> None:
        """Delete an object."""
        metadata = thing["metadata"]
        self._remove(str(thing["kind"]), str(metadata["name"]), str(metadata.get("namespace", "")))

    def remove_namespace(self, name: str) -> bool:
        """Delete a namespace."""
        return self._remove("Namespace", name, "")

    def _remove(self, kind: str, name: str, namespace: str) -> bool:
        """False if none has this name."""

        def delete() -> bool:
            try:
                self._asked("DELETE", f"{_path(kind, namespace)}/{name}")
            except httpx2.HTTPStatusError as e:
                # A 409 says that it is on its way already.
                if status_of(e) in (_MISSING, _CONFLICT):
                    return False
                raise
            return True

        return self._call(f"deleting the {kind} {name}", delete)

    def execute(self, namespace: str, pod: str, command: Sequence[str], *, timeout: float) -> Ran:
        """Run a command in a pod's container."""
        params: list[tuple[str, str]] = [("command", word) for word in command]
        params += [("stdout", "true"), ("stderr", "true")]
        outputs = {_STDOUT: b"", _STDERR: b""}
        doing = f"exec in {namespace}/{pod}"

        def run() -> Ran:
            with self._socket(namespace, pod, "exec", params, _EXEC) as socket:
                for channel, data in _messages(socket, timeout, doing):
                    if channel == _OUTCOME:
                        return _ended(doing, data, outputs)
                    if channel in outputs:
                        outputs[channel] += data
            raise ClusterUnreachable(f"{doing}: the connection ended before the command did")

        return self._call.once(doing, run)

    def logs(self, namespace: str, pod: str) -> str:
        """What a pod's container has written."""
        path = f"{_path('Pod', namespace)}/{pod}/log"

        def ask() -> str:
            answer = self._client.get(path, params={"tailLines": "50"})
            _raise_for_status(answer)
            return clean(answer.text)

        return self._call.once(f"reading the log of {namespace}/{pod}", ask)

    def forward(self, namespace: str, pod: str, port: int, request: bytes, *, timeout: float) -> bytes:
        """Send a request to a port of a pod."""
        doing = f"port-forward to {namespace}/{pod}"
        received = {0: b"", 1: b""}

        def ask() -> bytes:
            with self._socket(namespace, pod, "portforward", [("ports", str(port))], _FORWARD) as socket:
                socket.send_bytes(b"\0" + request)
                for channel, data in _messages(socket, timeout, doing):
                    received[channel] = received.get(channel, b"") + data
                    # Each channel begins with two bytes: the number of the port.
                    if len(received[1]) > 2:
                        raise ClusterError(f"{doing}: {clean(received[1][2:].decode('utf-8', 'replace'))}")
                    if b"\r\n\r\n" in received[0] and not received[0].endswith(b"\r\n\r\n"):
                        break
            return received[0][2:]

        return self._call.once(doing, ask)

    def _asked(self, method: str, path: str, **rest: Any) -> Thing:
        answer = self._client.request(method, path, **rest)
        _raise_for_status(answer)
        found: Thing = answer.json()
        return found

    @contextmanager
    def _socket(
        self, namespace: str, pod: str, what: str, params: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> Iterator[WebSocketSession]:
        """A WebSocket to a pod. What the API server says when it refuses is raised as for any other request."""
        headers = {
            "Connection": "upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode("ascii"),
            "Sec-WebSocket-Protocol": ", ".join(protocols),
        }
        url = f"{_path('Pod', namespace)}/{pod}/{what}"
        with self._client.stream("GET", url, params=list(params), headers=headers) as answer:
            if answer.status_code != httpx2.codes.SWITCHING_PROTOCOLS:
                answer.read()
                _raise_for_status(answer)
                raise ClusterError(f"{url} returned HTTP {answer.status_code} instead of opening a WebSocket")
            stream = answer.extensions["network_stream"]
            with WebSocketSession(
                stream,
                response=answer,
                keepalive_ping_interval_seconds=None,
                max_message_size_bytes=_LARGEST_MESSAGE,
            ) as session:
                yield session


def _raise_for_status(answer: httpx2.Response) -> None:
    """As the client library does it: what the API server says of a failure comes with it."""
    GenericClient.raise_for_status(answer)  # type: ignore[no-untyped-call]


def _path(kind: str, namespace: str) -> str:
    """`/api/v1/pods`, or `/api/v1/namespaces/x/pods`."""
    path = _PLURALS[kind]
    if not namespace:
        return path
    root, _, plural = path.rpartition("/")
    return f"{root}/namespaces/{namespace}/{plural}"


def _messages(socket: WebSocketSession, timeout: float, doing: str) -> Iterator[tuple[int, bytes]]:
    """Channel and data of each message. Raises ClusterUnreachable when the time is over or the connection breaks."""
    end = time.monotonic() + timeout
    while True:
        try:
            data = socket.receive_bytes(timeout=max(0.01, end - time.monotonic()))
        except WebSocketDisconnect:
            return
        except (queue.Empty, TimeoutError):
            raise ClusterUnreachable(f"{doing}: no answer within {timeout:.0f} seconds") from None
        except WebSocketNetworkError as error:
            raise ClusterUnreachable(f"{doing}: the connection broke") from error
        if data:
            yield data[0], data[1:]


def _ended(doing: str, data: bytes, outputs: Mapping[int, bytes]) -> Ran:
    """The outcome of a command, which comes as a Status: an exit code, or why it did not run."""
    try:
        status = decoded(_STATUS, data)
    except Malformed:
        status = _Status()
    code = 0
    if status.status != "Success":
        codes = [
            one.message for one in (status.details or _Details()).causes or () if one.reason == "ExitCode"
        ]
        if not codes or not _EXIT_CODE.fullmatch(codes[0]):
            raise ClusterError(f"{doing}: {clean(status.message or str(data[:200]))}")
        code = int(codes[0])
    out, err = (outputs[one].decode("utf-8", "replace") for one in (_STDOUT, _STDERR))
    return Ran(code, clean(out), clean(err))
