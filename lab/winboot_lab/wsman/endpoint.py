"""The WinRM service of one lab machine: its listeners, its shells, and the faults planned for it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import uuid
from collections.abc import Mapping
from concurrent.futures import Executor as Threads
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, assert_never
from xml.etree import ElementTree

from spnego.channel_bindings import GssChannelBindings

from winboot_lab.wsman import faults as plan
from winboot_lab.wsman import soap
from winboot_lab.wsman.auth import SPNEGO_PROTOCOL, Accounts, CannotUnseal, Login, LoginExpired, Refused
from winboot_lab.wsman.certificates import ServerCertificate
from winboot_lab.wsman.executor import Executor
from winboot_lab.wsman.http import Connection, Request, Response
from winboot_lab.wsman.psrp import BrokenMessage, decode
from winboot_lab.wsman.shell import Shell

_SOAP: Final = ("Content-Type", "application/soap+xml;charset=UTF-8")
_SEALED: Final = (
    "Content-Type",
    f'multipart/encrypted;protocol="{SPNEGO_PROTOCOL}";boundary="Encrypted Boundary"',
)
# Listening; off the network, with everything that runs going on; off, as in a restart, with every shell
# killed; off for good.
State = Literal["up", "cut", "down", "gone"]
_DEFAULT_IDLE: Final = "PT7200.000S"


@dataclass(frozen=True, slots=True)
class Settings:
    """One machine's WinRM service. A port of 0 takes a free one, None leaves the listener out.

    `users` are names and passwords. `denied` users may log on but not open a shell. The quotas are those of
    Windows Server; `max_envelope_kb` bounds a request. `keytab` has the Kerberos keys of a domain's member.
    """

    users: Mapping[str, str]
    computer_name: str = "WIN-LAB"
    address: str = "127.0.0.1"
    http_port: int | None = 0
    https_port: int | None = None
    negotiate: bool = True
    basic: bool = False
    allow_unencrypted: bool = False
    denied: frozenset[str] = frozenset()
    max_envelope_kb: int = 500
    max_shells: int = 30
    max_commands: int = 1000
    idle_s: float = 120.0
    gather_s: float = 0.02
    ps_version: str = "5.1.20348.2227"
    keytab: Path | None = None


@dataclass(slots=True)
class Seen:
    """One request that came in. `action` stays empty for those that only log in; `status` None was never answered."""

    number: int
    connection: int
    received: int
    action: str = ""
    status: int | None = None


@dataclass(slots=True)
class _Guest:
    """What the endpoint knows of one connection."""

    number: int
    login: Login


@dataclass(slots=True)
class _Held:
    """A shell with its clock."""

    shell: Shell
    resource: str
    client: str
    idle_timeout: str
    expiry: asyncio.TimerHandle | None = field(default=None)


class Endpoint:
    """One machine's WinRM service. Its coroutines belong to the farm's loop; `Farm` wraps them for other threads."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        executor: Executor,
        threads: Threads,
        accounts: Accounts,
        certificate: ServerCertificate | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.accounts = accounts
        self.certificate = certificate
        self.faults = plan.Faults()
        self.requests: list[Seen] = []
        self.crashes: list[BaseException] = []
        self.http_port = settings.http_port
        self.https_port = settings.https_port
        self._executor = executor
        self._threads = threads
        self._tls = tls
        # pyspnego's NTLM acceptor with a binding refuses a client without one; Windows does not.
        self._bindings = (
            GssChannelBindings(application_data=certificate.binding)
            if certificate and settings.keytab
            else None
        )
        self._turn = asyncio.Lock()
        self._servers: list[asyncio.Server] = []
        self._kept_ports: list[socket.socket] = []
        self._guests: dict[Connection, _Guest] = {}
        self._connections = 0
        self._shells: dict[str, _Held] = {}
        offers = ["Negotiate"] if settings.negotiate else []
        self._offers = (*offers, 'Basic realm="WSMAN"') if settings.basic else tuple(offers)

    @property
    def is_up(self) -> bool:
        """Whether connections are accepted."""
        return bool(self._servers)

    @property
    def shells(self) -> tuple[str, ...]:
        """The ids of the shells that are open now."""
        return tuple(self._shells)

    @property
    def logins(self) -> tuple[Login, ...]:
        """The logins of the connections that are open now."""
        return tuple(guest.login for guest in list(self._guests.values()))

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        return len(self._guests)

    def recount(self) -> None:
        """Forget the requests seen so far; the next one has number 1."""
        self.requests.clear()

    async def become(self, state: State) -> None:
        """Change to `state`; changes come one after the other, in the order of their requests."""
        async with self._turn:
            if state == "up":
                await self._start()
            else:
                await self._stop(kill=state != "cut")
                if state == "gone":
                    self._let_ports_go()

    async def _start(self) -> None:
        """Listen. Ports found at the first start are kept: a machine has the same after a restart."""
        if self._servers:
            return
        self._let_ports_go()
        if self.http_port is not None:
            self.http_port = await self._listen(self.http_port, None)
        if self.https_port is not None:
            self.https_port = await self._listen(self.https_port, self._tls)

    async def _stop(self, *, kill: bool) -> None:
        servers, self._servers = self._servers, []
        for server in servers:
            listened = [(each.family, each.getsockname()) for each in server.sockets]
            server.close()
            for family, address in listened:
                self._keep_port(family, address)
        for connection in list(self._guests):
            connection.cut()
        for shell_id in list(self._shells) if kill else ():
            self._remove(shell_id)
        for server in servers:
            await server.wait_closed()

    async def _listen(self, port: int, tls: ssl.SSLContext | None) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connection, self.settings.address, port, ssl=tls)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _keep_port(self, family: int, address: tuple[str, int]) -> None:
        """Keep the port of a machine that is down from other programs on this host; it refuses connections."""
        kept = socket.socket(family, socket.SOCK_STREAM)
        # Connections that have just ended hold the port for a while.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            kept.bind(address)
        self._kept_ports.append(kept)

    def _let_ports_go(self) -> None:
        kept, self._kept_ports = self._kept_ports, []
        for each in kept:
            each.close()

    def _connection(self) -> Connection:
        return Connection(
            self._handle,
            opened=self._welcome,
            closed=self._farewell,
            largest_body=16 * 1024 * 1024,
            idle_s=self.settings.idle_s,
        )

    def _welcome(self, connection: Connection) -> None:
        self._connections += 1
        bindings = self._bindings if connection.secure else None
        self._guests[connection] = _Guest(self._connections, Login(self.accounts, self._offers, bindings))

    def _farewell(self, connection: Connection) -> None:
        self._guests.pop(connection, None)

    async def _handle(self, request: Request, connection: Connection) -> None:
        guest = self._guests[connection]
        seen = Seen(len(self.requests) + 1, guest.number, len(request.body))
        self.requests.append(seen)
        misfortune = self.faults.take_number(seen.number)
        if isinstance(misfortune, plan.Answer):
            response = Response(misfortune.status)
        elif misfortune == plan.Drop() or isinstance(misfortune, plan.Silence):
            await _vanish(misfortune, connection)
            return
        else:
            visit = _Visit(self, request, connection, guest.login, seen, misfortune)
            try:
                response = await visit.answer()
            except LoginExpired:
                connection.cut()
                return
            misfortune = visit.misfortune
        if not isinstance(misfortune, plan.Drop):
            seen.status = response.status
        await _deliver(response, misfortune, connection)

    def create_shell(self, request: soap.Envelope, user: str, client: str) -> str:
        """Open a shell; gives the answer's body. Raises soap.Fault or BrokenMessage."""
        if user in self.settings.denied:
            raise soap.Fault(soap.ACCESS_DENIED)
        if len(self._shells) >= self.settings.max_shells:
            raise soap.Fault(soap.TOO_MANY_SHELLS)
        element = request.find("rsp:Shell")
        if element is None or not request.resource.startswith(soap.POWERSHELL):
            raise soap.Fault(soap.INVALID_REQUEST)
        shell_id = element.get("ShellId") or str(uuid.uuid4()).upper()
        if shell_id in self._shells:
            raise soap.Fault(soap.INVALID_REQUEST, "The shell id is in use.")
        shell = Shell(
            shell_id,
            user,
            self._executor,
            self._threads,
            ps_version=self.settings.ps_version,
            computer_name=self.settings.computer_name,
            crashed=self.crashes.append,
            max_commands=self.settings.max_commands,
            gather_s=self.settings.gather_s,
        )
        shell.open(decode(request.text("rsp:Shell/pwsh:creationXml")))
        idle = request.text("rsp:Shell/rsp:IdleTimeOut") or _DEFAULT_IDLE
        held = self._shells[shell_id] = _Held(shell, request.resource, client, idle)
        self._touch(held)
        state = soap.shell_state(shell.describe(request.resource, client, idle))
        return soap.created(f"http://{self.name}/wsman", request.resource, shell_id, state)

    def shell(self, shell_id: str | None) -> Shell:
        """The shell with this id, which is then not idle. Raises soap.Fault."""
        return self._find(shell_id).shell

    def delete_shell(self, shell_id: str | None) -> None:
        """Close a shell. Raises soap.Fault."""
        self._remove(self._find(shell_id).shell.id)

    def describe_shell(self, shell_id: str | None) -> str:
        """The rsp:Shell element of a shell. Raises soap.Fault."""
        held = self._find(shell_id)
        return soap.shell_state(held.shell.describe(held.resource, held.client, held.idle_timeout))

    def _find(self, shell_id: str | None) -> _Held:
        held = self._shells.get(shell_id or "")
        if held is None:
            raise soap.Fault(soap.NO_SUCH_SHELL)
        self._touch(held)
        return held

    def _remove(self, shell_id: str) -> None:
        held = self._shells.pop(shell_id)
        if held.expiry is not None:
            held.expiry.cancel()
        held.shell.kill()

    def _touch(self, held: _Held) -> None:
        if held.expiry is not None:
            held.expiry.cancel()
        seconds = soap.seconds(held.idle_timeout)
        held.expiry = asyncio.get_running_loop().call_later(seconds, self._remove, held.shell.id)


class _Visit:
    """One request on its way to an answer."""

    def __init__(
        self,
        endpoint: Endpoint,
        request: Request,
        connection: Connection,
        login: Login,
        seen: Seen,
        misfortune: plan.Misfortune | None,
    ) -> None:
        self.misfortune = misfortune
        self._endpoint = endpoint
        self._request = request
        self._connection = connection
        self._login = login
        self._seen = seen

    async def answer(self) -> Response:
        """Log in, read, carry out; in that order, and with the status that http.sys gives where it stops."""
        request, settings = self._request, self._endpoint.settings
        if request.method != "POST":
            return Response(405)
        if request.target != "/wsman":
            return Response(404)
        verdict = self._login.step(request.headers.get("authorization"))
        if isinstance(verdict, Refused):
            return Response(401, tuple(("WWW-Authenticate", offer) for offer in verdict.challenges))
        headers = (("WWW-Authenticate", verdict.token),) if verdict.token is not None else ()
        if not request.body:
            return Response(200, headers)
        sealed = request.headers.get("content-type", "").startswith("multipart/encrypted")
        if not sealed and not self._connection.secure and not settings.allow_unencrypted:
            return Response(401, tuple(("WWW-Authenticate", offer) for offer in ("Negotiate",)))
        try:
            body = self._login.unseal(request.body) if sealed else request.body
        except CannotUnseal:
            return Response(400)
        if len(body) > settings.max_envelope_kb * 1024:
            return Response(413)
        status, reply = await self._reply(body, verdict.user)
        if sealed and not isinstance(self.misfortune, plan.Unsealed):
            return Response(status, (*headers, _SEALED), self._login.seal(reply))
        return Response(status, (*headers, _SOAP), reply)

    async def _reply(self, body: bytes, user: str) -> tuple[int, bytes]:
        try:
            request = soap.parse(body)
        except soap.NotSoap as error:
            return 500, soap.fault("", soap.INVALID_REQUEST, str(error))
        self._seen.action = request.action
        self.misfortune = self.misfortune or self._endpoint.faults.take_action(request.action)
        try:
            if self.misfortune is not None:
                await self._suffer(self.misfortune)
            return 200, soap.answer(request, await self._carry_out(request, user))
        except soap.Fault as fault:
            return 500, soap.fault(request.message_id, fault.code, fault.detail)
        except BrokenMessage as error:
            return 500, soap.fault(request.message_id, soap.INVALID_REQUEST, str(error))

    async def _suffer(self, misfortune: plan.Misfortune) -> None:
        match misfortune:
            case plan.Fault():
                raise soap.Fault(misfortune.code)
            case plan.Delay():
                await asyncio.sleep(misfortune.seconds)
            case plan.Drop(handled=False) | plan.Silence():
                await _vanish(misfortune, self._connection)
            case plan.Drop() | plan.Half() | plan.Answer() | plan.Trickle() | plan.Unsealed():
                pass  # they come after the request has been carried out
            case _:
                assert_never(misfortune)

    async def _carry_out(self, request: soap.Envelope, user: str) -> str:
        endpoint = self._endpoint
        match request.action:
            case "Create":
                return endpoint.create_shell(request, user, self._connection.peer)
            case "Delete":
                endpoint.delete_shell(request.shell_id)
                return ""
            case "Get":
                return endpoint.describe_shell(request.shell_id)
        shell = endpoint.shell(request.shell_id)
        match request.action:
            case "Receive":
                return await self._receive(request, shell)
            case "Command":
                command_id = _id(request.find("rsp:CommandLine"))
                shell.create_command(command_id, decode(request.text("rsp:CommandLine/rsp:Arguments")))
                return soap.command_created(str(command_id).upper())
            case "Send":
                stream = request.find("rsp:Send/rsp:Stream")
                command = _id(stream) if stream is not None and stream.get("CommandId") else None
                shell.send(decode(request.text("rsp:Send/rsp:Stream")), command)
                return "<rsp:SendResponse/>"
            case "Signal":
                shell.signal(_id(request.find("rsp:Signal")), request.text("rsp:Signal/rsp:Code"))
                return "<rsp:SignalResponse/>"
            case "Disconnect":
                shell.connected = False
                return ""
            case "Reconnect":
                shell.connected = True
                return ""
            case "Connect":
                return soap.connected(shell.connect(decode(request.text("rsp:Connect/pwsh:connectXml"))))
        raise soap.Fault(soap.INVALID_REQUEST, f"{request.action} is not known here.")

    async def _receive(self, request: soap.Envelope, shell: Shell) -> str:
        wanted = request.find("rsp:Receive/rsp:DesiredStream")
        command_id = _id(wanted) if wanted is not None and wanted.get("CommandId") else None
        output = shell.output if command_id is None else shell.command(command_id).output
        batch = await output.take(request.message_id, request.timeout_s)
        name = str(command_id).upper() if command_id is not None else None
        return soap.received(batch.fragments, name, done=batch.done and command_id is not None)


def _id(element: ElementTree.Element | None) -> uuid.UUID:
    try:
        return uuid.UUID(element.get("CommandId") if element is not None else None)
    except (TypeError, ValueError):
        raise soap.Fault(soap.INVALID_REQUEST, "The command id is missing or no GUID.") from None


async def _vanish(misfortune: plan.Misfortune, connection: Connection) -> None:
    """Cut the connection, or keep it open without a word. Ends by the connection's end, which cancels us."""
    if not isinstance(misfortune, plan.Silence):
        connection.cut()
    await asyncio.get_running_loop().create_future()


async def _deliver(response: Response, misfortune: plan.Misfortune | None, connection: Connection) -> None:
    match misfortune:
        case plan.Drop():
            connection.cut()
        case plan.Half():
            data = response.encode()
            connection.write(data[: len(data) // 2])
            connection.hang_up()
        case plan.Trickle():
            data = response.encode()
            for start in range(0, len(data), misfortune.size):
                connection.write(data[start : start + misfortune.size])
                await asyncio.sleep(misfortune.seconds)
        case _:
            connection.send(response)
