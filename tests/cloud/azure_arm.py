"""Azure Resource Manager as far as winboot speaks with it, on loopback, for the real SDK.

It serves TLS with a certificate of its own, pages its lists, answers 429 on demand and runs long operations. It issues
tokens like Entra ID (service principals) and like a machine's metadata service (managed identity). The SDK's own models
read the bodies. An unknown request gets 404 and is kept in `unknown`, so that the test fails. It models neither eventual
consistency nor quotas nor real durations.
"""

from __future__ import annotations

import datetime
import json
import re
import secrets
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.mgmt.compute import models
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
TENANT = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
CLIENT_SECRET = "a-client-secret"
COMPUTE = "Microsoft.Compute"
PAGE = 2


def write_certificate(folder: Path) -> Path:
    """A self-signed certificate for localhost with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "arm.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return file


@dataclass
class Answer:
    """A status, a body and headers."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def failed(status: int, code: str, message: str) -> Answer:
    """An error as ARM words it."""
    return Answer(status, {"error": {"code": code, "message": message}})


@dataclass
class Operation:
    """A long operation: how often it is still running when asked, and the error it ends with."""

    looks: int = 1
    error: dict[str, str] | None = None


class Arm:
    """The state: resources by their ids in lower case, as ARM's JSON; and the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.resources: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, Operation] = {}
        self.tokens: set[str] = set()
        self.actions: set[str] = set()
        self.requests: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.throttled = 0
        self.refused: set[str] = set()
        self.next_error: dict[str, str] | None = None
        self.bodies: list[tuple[str, Any]] = []
        self.lock = threading.Lock()
        # Scheduled events, as each machine of a placement group sees them, and those that were approved.
        self.events: list[dict[str, Any]] = []
        self.approved: list[str] = []

    # Building a world.

    def path(self, kind: str, name: str, *, group: str = "RG-Pool", provider: str = COMPUTE) -> str:
        """An id. Lists of Azure give the resource group in another case than people write it."""
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{provider}/{kind}/{name}"

    def put(self, identifier: str, body: dict[str, Any]) -> str:
        self.resources[identifier.lower()] = {"id": identifier, "name": identifier.rpartition("/")[2], **body}
        return identifier

    def add_machine(
        self,
        name: str,
        *,
        address: str = "",
        computer_name: str = "",
        scale_set: str = "",
        group: str = "RG-Pool",
        power: str = "running",
        forwarding: bool = True,
        subnet: str = "",
        os: str = "Windows",
        **more: Any,
    ) -> str:
        """A virtual machine with one interface."""
        identifier = self.path("virtualMachines", name, group=group)
        properties = self._machine(computer_name or name, os)
        if scale_set:
            properties["virtualMachineScaleSet"] = {
                "id": self.path("virtualMachineScaleSets", scale_set, group=group)
            }
        body = {
            "location": "westeurope",
            "zones": ["2"],
            "tags": {},
            "properties": properties,
            "power": power,
            **more,
        }
        self.put(identifier, body)
        nic = self.path("networkInterfaces", f"{name}-nic", group=group, provider="Microsoft.Network")
        self.put(nic, {"properties": self._nic(identifier, address, subnet, forwarding=forwarding)})
        return identifier

    def add_set(
        self,
        name: str,
        capacity: int = 0,
        *,
        mode: str = "Uniform",
        group: str = "RG-Pool",
        **properties: Any,
    ) -> str:
        """A scale set with so many instances."""
        identifier = self.path("virtualMachineScaleSets", name, group=group)
        self.put(
            identifier,
            {
                "location": "westeurope",
                "sku": {"name": "Standard_D4s_v5", "capacity": 0},
                "etag": '"1"',
                "next": 0,
                "tags": {},
                "properties": {"orchestrationMode": mode, **properties},
            },
        )
        self.scale(identifier, capacity)
        return identifier

    def scale(self, identifier: str, capacity: int) -> None:
        """Start instances until there are so many, or delete the newest."""
        scale_set = self.resources[identifier.lower()]
        while len(self.children(identifier)) < capacity:
            self._start(scale_set)
        while len(self.children(identifier)) > capacity:
            self.delete_instance(identifier, self.children(identifier)[-1]["name"])
        self._settle(scale_set)

    def scale_in(self, identifier: str, capacity: int) -> None:
        """Ask for fewer instances of a set that gives notice: the newest wait for an approval of their events."""
        children = self.children(identifier)
        for one in children[capacity:]:
            self.plan(f"{self.resources[identifier.lower()]['name']}_{one['name']}", "Terminate")

    def plan(self, machine: str, kind: str, not_before: str = "Mon, 19 Sep 2016 18:29:47 GMT") -> None:
        """Schedule an event about a machine, by its name in events."""
        self.events.append(
            {
                "EventId": secrets.token_hex(8).upper(),
                "EventType": kind,
                "ResourceType": "VirtualMachine",
                "Resources": [machine],
                "EventStatus": "Scheduled",
                "NotBefore": not_before,
            }
        )

    def metadata(self, method: str, content: str) -> tuple[int, str]:
        """What a machine's metadata service answers about scheduled events: status and body."""
        if method == "GET":
            return 200, json.dumps({"DocumentIncarnation": len(self.events), "Events": self.events})
        for wanted in json.loads(content)["StartRequests"]:
            event = next((one for one in self.events if one["EventId"] == wanted["EventId"]), None)
            if event is None:
                return 400, "{}"
            self.approved.append(event["EventId"])
            self.events.remove(event)
            # The others come back.
            for name in event["Resources"] if event["EventType"] in ("Terminate", "Preempt") else ():
                scale_set, _, number = name.rpartition("_")
                self.delete_instance(self.path("virtualMachineScaleSets", scale_set), number)
        return 200, ""

    def _start(self, scale_set: dict[str, Any]) -> None:
        number, name = scale_set["next"], scale_set["name"]
        scale_set["next"] += 1
        instance = f"{scale_set['id']}/virtualMachines/{number}"
        self.put(
            instance,
            {
                "instanceId": str(number),
                "location": "westeurope",
                "zones": ["1"],
                "sku": scale_set["sku"],
                "tags": dict(scale_set["tags"]),
                "properties": self._machine(f"{name}{number:06}".upper(), "Windows"),
                "power": "running",
            },
        )
        nic = f"{instance}/networkInterfaces/nic"
        self.put(nic, {"properties": self._nic(instance, f"10.2.0.{10 + number}", "", forwarding=True)})

    def delete_instance(self, scale_set: str, name: str) -> None:
        prefix = f"{scale_set}/virtualMachines/{name}".lower()
        for key in [key for key in self.resources if key == prefix or key.startswith(prefix + "/")]:
            del self.resources[key]

    def _settle(self, scale_set: dict[str, Any]) -> None:
        scale_set["sku"] = {**scale_set["sku"], "capacity": len(self.children(scale_set["id"]))}
        scale_set["etag"] = f'"{int(scale_set["etag"].strip(chr(34))) + 1}"'

    def children(self, scale_set: str) -> list[dict[str, Any]]:
        """The instances of a Uniform scale set."""
        found = re.compile(re.escape(scale_set.lower()) + "/virtualmachines/[^/]+")
        return [one for key, one in self.resources.items() if found.fullmatch(key)]

    @staticmethod
    def _machine(computer_name: str, os: str) -> dict[str, Any]:
        return {
            "vmId": secrets.token_hex(8),
            "osProfile": {"computerName": computer_name},
            "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
            "storageProfile": {
                "osDisk": {"osType": os},
                "imageReference": {
                    "publisher": "MicrosoftWindowsServer",
                    "offer": "WindowsServer",
                    "sku": "2022-datacenter-core",
                    "version": "latest",
                },
            },
            "provisioningState": "Succeeded",
            "timeCreated": "2026-08-01T08:00:00Z",
        }

    @staticmethod
    def _nic(machine: str, address: str, subnet: str, *, forwarding: bool) -> dict[str, Any]:
        configuration = {
            "properties": {
                "primary": True,
                "privateIPAddress": address or None,
                "subnet": {"id": subnet} if subnet else None,
            }
        }
        return {
            "virtualMachine": {"id": machine},
            "primary": True,
            "enableIPForwarding": forwarding,
            "ipConfigurations": [configuration],
        }

    # Answering.

    def answer(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> Answer:
        """One request to the management endpoint."""
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return failed(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if "api-version" not in query:
            return failed(400, "MissingApiVersionParameter", "The api-version query parameter is required.")
        if self.throttled:
            self.throttled -= 1
            answer = failed(429, "TooManyRequests", "Slow down.")
            answer.headers["Retry-After"] = "1"
            return answer
        action = action_of(method, parts.path)
        self.requests.append((method, parts.path))
        self.actions.add(action)
        if action in self.refused:
            return failed(403, "AuthorizationFailed", f"The client may not perform {action!r}.")
        body = json.loads(raw) if raw else {}
        found = self._dispatch(method, parts.path, query, headers, body)
        if found is None:
            self.unknown.append(f"{method} {target}")
            return failed(404, "NotFound", "The stand-in does not know this.")
        return found

    def _dispatch(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any
    ) -> Answer | None:
        if "/locations/" in path:
            return self._operation(path.rpartition("/")[2])
        listed = _LISTS.get(
            re.sub(r"[^/]+(?=/virtualMachines$|/networkInterfaces$)", "*", _below(path), count=0)
        )
        if method == "GET" and listed:
            return self._list(path, listed, query)
        if method == "POST":
            return self._post(path, body)
        resource = self.resources.get(path.lower())
        if resource is None:
            return failed(404, "ResourceNotFound", f"The resource {path} was not found.")
        if method == "GET":
            return Answer(200, self._shown(resource, {}))
        if method == "PATCH" and _below(path).startswith("virtualMachineScaleSets/"):
            return self._patch_set(resource, headers, body)
        if method == "PUT" and "/virtualMachineScaleSets/" in path:
            policy = models.VirtualMachineScaleSetVM(body).properties.protection_policy
            assert policy is not None
            resource["properties"]["protectionPolicy"] = body["properties"]["protectionPolicy"]
            resource["tags"] = dict(body.get("tags") or {})
            self.bodies.append((path, body))
            return self._long(path, {"status": 200, "body": self._shown(resource, {})})
        return None

    def _patch_set(self, scale_set: dict[str, Any], headers: dict[str, str], body: Any) -> Answer:
        if headers.get("if-match", "*") not in ("*", scale_set["etag"]):
            return failed(412, "ConditionNotMet", "The resource has been changed.")
        sku = models.VirtualMachineScaleSetUpdate(body).sku
        assert sku is not None
        assert sku.capacity is not None
        self.scale(scale_set["id"], sku.capacity)
        return self._long(scale_set["id"], {"status": 200, "body": self._shown(scale_set, {})})

    def _post(self, path: str, body: Any) -> Answer | None:
        target, _, verb = path.rpartition("/")
        self.bodies.append((path, body))
        if self.resources.get(target.lower()) is None:
            return failed(404, "ResourceNotFound", f"The resource {target} was not found.")
        resource = self.resources[target.lower()]
        if verb == "reimage":
            if self.next_error is None:
                resource["reimaged"] = resource.get("reimaged", 0) + 1
            return self._long(path, {"status": 202})
        if verb == "delete":
            ids = models.VirtualMachineScaleSetVMInstanceRequiredIDs(body).instance_ids
            for one in ids if self.next_error is None else ():
                self.delete_instance(resource["id"], one)
            self._settle(resource)
            return self._long(path, {"status": 202})
        return None

    def _long(self, path: str, answer: dict[str, Any]) -> Answer:
        """Start a long operation: where to ask how it goes."""
        name = secrets.token_hex(6)
        self.operations[name] = Operation(error=self.next_error)
        self.next_error = None
        place = f"/subscriptions/{SUBSCRIPTION}/providers/{COMPUTE}/locations/westeurope"
        link = f"{self.url}{place}/operations/{name}?api-version=1"
        headers = {"Azure-AsyncOperation": link, "Retry-After": "0"}
        if answer["status"] == 202:
            headers["Location"] = link
        return Answer(answer["status"], answer.get("body"), headers)

    def _operation(self, name: str) -> Answer:
        operation = self.operations[name]
        if operation.looks:
            operation.looks -= 1
            return Answer(200, {"status": "InProgress"}, {"Retry-After": "0"})
        if operation.error:
            return Answer(200, {"status": "Failed", "error": operation.error})
        return Answer(200, {"status": "Succeeded"})

    def _list(self, path: str, pattern: str, query: dict[str, str]) -> Answer:
        prefix = re.escape(path.lower())
        if "/resourcegroups/" not in path.lower():
            kind = path.partition("/providers/")[2].lower()
            prefix = rf"/subscriptions/[^/]+/resourcegroups/[^/]+/providers/{re.escape(kind)}"
        whole = re.compile(prefix + "/[^/]+") if pattern == "children" else re.compile(_nics_of(path))
        found = [one for key, one in self.resources.items() if whole.fullmatch(key)]
        start = int(query.get("$skiptoken", "0"))
        body: dict[str, Any] = {"value": [self._shown(one, query) for one in found[start : start + PAGE]]}
        if len(found) > start + PAGE:
            more = "".join(f"&{key}={value}" for key, value in query.items() if key != "$skiptoken")
            body["nextLink"] = f"{self.url}{path}?$skiptoken={start + PAGE}{more}"
        return Answer(200, body)

    @staticmethod
    def _shown(resource: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        """A resource as it is sent, with its running state only if the request wants it."""
        shown = {key: value for key, value in resource.items() if key not in ("power", "next", "reimaged")}
        if query.get("statusOnly") == "true" or query.get("$expand") == "instanceView":
            statuses = [
                {"code": "ProvisioningState/succeeded"},
                {"code": f"PowerState/{resource.get('power')}"},
            ]
            shown["properties"] = {**resource["properties"], "instanceView": {"statuses": statuses}}
        return shown


# What can be listed, by the path below the provider; names are stars.
_LISTS = {
    "virtualMachines": "children",
    "virtualMachineScaleSets": "children",
    "networkInterfaces": "children",
    "virtualMachineScaleSets/*/virtualMachines": "children",
    "virtualMachineScaleSets/*/networkInterfaces": "nics",
}


def _below(path: str) -> str:
    """`virtualMachineScaleSets/pool/virtualMachines/0`: what comes after the provider's name."""
    return path.partition("/providers/")[2].partition("/")[2]


def _nics_of(path: str) -> str:
    scale_set = path.lower().removesuffix("/networkinterfaces")
    return re.escape(scale_set) + "/virtualmachines/[^/]+/networkinterfaces/[^/]+"


def action_of(method: str, path: str) -> str:
    """The right that ARM asks for: the types of the path, and `read`, `write`, `delete`, or a POST's own word
    (learn.microsoft.com/azure/role-based-access-control/role-definitions, "Actions")."""
    provider, _, below = path.partition("/providers/")[2].partition("/")
    words = below.split("/")
    if method == "POST":
        return f"{provider}/{'/'.join(words[:-1:2])}/{words[-1]}/action"
    verb = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}[method]
    return f"{provider}/{'/'.join(words[::2])}/{verb}"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Iterator[int]:
    """A server on loopback while the block runs; gives its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def handler_for(arm: Arm) -> type[BaseHTTPRequestHandler]:
    """Management, Entra ID's token endpoint and the metadata service, distinguished by their paths."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two writes: the second would wait 40 ms for the acknowledgement of the first.
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length) if length else b""
            headers = {key.lower(): value for key, value in self.headers.items()}
            with arm.lock:
                answer = token_answer(arm, self.command, self.path, headers, raw) or arm.answer(
                    self.command, self.path, headers, raw
                )
            payload = b"" if answer.body is None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the standard library

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test says what went wrong."""

    return Handler


def token_answer(arm: Arm, method: str, target: str, headers: dict[str, str], raw: bytes) -> Answer | None:
    """Tokens, for a service principal and for a managed identity; None for any other request."""
    parts = urlsplit(target)
    if parts.path == "/metadata/identity/oauth2/token":
        if headers.get("metadata") != "true":
            return Answer(
                400,
                {"error": "invalid_request", "error_description": "Required metadata header not specified"},
            )
        return Answer(
            200, {"resource": "https://management.azure.com", **_token(arm), "expires_on": "4000000000"}
        )
    base = f"{arm.url}/{TENANT}"
    if parts.path.endswith("/.well-known/openid-configuration"):
        return Answer(
            200,
            {
                "issuer": f"{base}/v2.0",
                "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                "token_endpoint": f"{base}/oauth2/v2.0/token",
            },
        )
    if parts.path == f"/{TENANT}/oauth2/v2.0/token":
        form = {key: values[0] for key, values in parse_qs(raw.decode()).items()}
        if form.get("client_secret") != CLIENT_SECRET:
            return Answer(
                401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret"}
            )
        return Answer(200, _token(arm))
    return None


def _token(arm: Arm) -> dict[str, Any]:
    token = secrets.token_urlsafe(16)
    arm.tokens.add(token)
    return {"token_type": "Bearer", "access_token": token, "expires_in": 3600}
