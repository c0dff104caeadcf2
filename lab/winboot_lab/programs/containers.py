"""What runs in the containers of the lab's pods: the two servers that answer, and the few programs for exec.

A server is known by its image and command; a command that no stand-in knows is refused by name, as everything is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from winboot_lab.cluster.kinds import PODS, kind_of
from winboot_lab.engine.refusal import Refusal
from winboot_lab.programs.traffic import Arrival, Closed, End, Lost, Traffic
from winboot_lab.windows.sockets import Request, World

Object = dict[str, Any]
SERVICES: Final = kind_of("services")
DNS_PORT: Final = 53
_CONTAINER: Final = re.compile(r"winboot-server (\d+)")
PLUGINS: Final = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\CCG\COMClasses"
_CLIENT_PORT: Final = 49752


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command in a container has ended."""

    code: int
    output: str = ""
    errors: str = ""


class Objects(Protocol):
    """Where the cluster's objects are read."""

    def objects(self, kind: Any) -> list[Object]:
        """All of a kind."""


class Containers:
    """Servers and commands in the containers of one lab."""

    def __init__(
        self, traffic: Traffic, cluster: Objects, world: World, domain: str = "cluster.local"
    ) -> None:
        self.traffic = traffic
        self._cluster = cluster
        self._world = world
        self._domain = domain
        # What each pod has written to its output, by its uid.
        self.logs: dict[str, list[str]] = {}
        # What is around the pods: domains that answer, shares, and files of volumes by namespace and claim.
        self.domains: set[str] = set()
        self.shares: set[str] = set()
        self.volumes: dict[tuple[str, str], dict[str, str]] = {}

    # ---- servers ---------------------------------------------------------------------------------------

    def started(self, pod: Object) -> None:
        """A pod's containers run."""
        port = server_port(pod)
        if port:
            self.logs.setdefault(pod["metadata"]["uid"], [f"winboot-server {port}"])

    def answer(self, arrival: Arrival, path: str) -> tuple[int, str]:
        """What the server at the end of a connection says to a GET: status and body. Raises Closed where none listens."""
        pod = self._pod_at(arrival.end.address)
        if pod is None:
            return 200, "ok"
        if server_port(pod) != arrival.port or pod.get("status", {}).get("phase") != "Running":
            raise Closed
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if _is_agnhost(pod):
            return self._agnhost(arrival, path, name)
        self.logs.setdefault(uid, []).append(f"GET {path} HTTP/1.1")
        return 200, f"{name} {arrival.source} GET {path} HTTP/1.1"

    def _agnhost(self, arrival: Arrival, path: str, name: str) -> tuple[int, str]:
        """netexec of agnhost (kubernetes test/images/agnhost/netexec): the few paths that tests request."""
        parts = urlsplit(path)
        match parts.path:
            case "/clientip":
                return 200, f"{arrival.source}:{_CLIENT_PORT}"
            case "/hostname":
                return 200, name
            case "/echo":
                return 200, parse_qs(parts.query).get("msg", [""])[0]
        return 200, f"NOW: {name}"

    def _pod_at(self, address: str) -> Object | None:
        for pod in self._cluster.objects(PODS):
            status = pod.get("status", {})
            if status.get("podIP") == address and not pod["spec"].get("hostNetwork"):
                return pod
        return None

    # ---- commands --------------------------------------------------------------------------------------

    def execute(self, pod: Object, start: End, command: Sequence[str]) -> Ended:
        """Run a command in a pod's container."""
        name = command[0].rpartition("\\")[2].rpartition("/")[2].lower().removesuffix(".exe")
        match name:
            case "curl":
                return self._curl(pod, start, command[1:])
            case "nltest":
                return self._nltest(pod, start, command[1:])
            case "cmd" if command[1:2] == ["/c"]:
                return self._cmd(pod, start, command[2])
        raise Refusal("program", f"{command[0]} in a container")

    def _nltest(self, pod: Object, start: End, words: Sequence[str]) -> Ended:
        """A pod's secure channel, as learn.microsoft.com ("Troubleshoot gMSAs for Windows containers") shows it."""
        verb, _, domain = words[0].partition(":")
        if verb != "/sc_verify":
            raise Refusal("parameter", f"nltest {verb}")
        if _account(pod, start) and domain in self.domains:
            status = "Status = 0 0x0 NERR_Success"
            return Ended(0, f"Trusted DC Connection {status}\nTrust Verification {status}\n")
        return Ended(1, "", "I_NetLogonControl failed: Status = 1355 0x54b ERROR_NO_SUCH_DOMAIN\n")

    def _cmd(self, pod: Object, start: End, line: str) -> Ended:
        """dir of a share, and one file of a volume: written by echo, read by type."""
        verb, _, rest = line.partition(" ")
        if verb == "dir":
            there = _account(pod, start) and rest in self.shares
            return Ended(0, " Directory of the share\n") if there else Ended(1, "", "Access is denied.\n")
        if verb not in ("echo", "type"):
            raise Refusal("program", f"cmd /c {verb} in a container")
        claim = _claim(pod)
        if not claim[1]:
            raise Refusal("program", f"cmd /c {verb} in a container without a claim")
        files = self.volumes.setdefault(claim, {})
        if verb == "echo":
            text, _, file = rest.partition(">")
            files[file] = text
            return Ended(0)
        if rest in files:
            return Ended(0, files[rest] + "\n")
        return Ended(1, "", "The system cannot find the file specified.\n")

    def _curl(self, pod: Object, start: End, words: Sequence[str]) -> Ended:
        """curl, as far as scripts use it. Codes: https://everything.curl.dev/cmdline/exitcode.html"""
        if list(words) == ["--version"]:
            return Ended(0, "curl 8.13.0 (Windows) libcurl/8.13.0 Schannel\n")
        options, url = _curl_options(words)
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = urlsplit(options.get("proxy", ""))
        report = {"http_code": "000", "http_connect": "000", "time_connect": "0.000000"}
        body, code, error = "", 0, ""
        try:
            if proxy.hostname:
                code, error = self._proxied(
                    pod, start, proxy.hostname, proxy.port or 80, (host, port), report
                )
            else:
                arrival = self._reach(pod, start, host, port, 64 + len(path))
                report["time_connect"] = "0.001000"
                status, body = self._spoken(arrival, host, path)
                report["http_code"] = str(status)
        except Unresolved:
            code, error = (5 if proxy.hostname else 6), f"Could not resolve host: {proxy.hostname or host}"
        except Closed:
            code, error = 7, f"Failed to connect to {host} port {port}: Connection refused"
        except Lost:
            code, error = 28, f"Connection timed out after {options.get('max-time', '5')}000 milliseconds"
        said = "" if options.get("output") else body
        said += _filled(options.get("write-out", ""), report)
        return Ended(code, said, f"curl: ({code}) {error}\n" if code else "")

    def _proxied(
        self, pod: Object, start: End, host: str, port: int, wanted: tuple[str, int], report: dict[str, str]
    ) -> tuple[int, str]:
        arrival = self._reach(pod, start, host, port, 64)
        report["time_connect"] = "0.001000"
        server = self._world.servers.get((arrival.end.address, port))
        target = self._world.address(wanted[0])
        if (
            server is None
            or not server.proxy
            or target is None
            or (target, wanted[1]) not in self._world.servers
        ):
            report["http_connect"] = "502"
            return 56, "CONNECT tunnel failed, response 502"
        report["http_connect"], report["http_code"] = "200", "401"
        return 0, ""

    def _spoken(self, arrival: Arrival, host: str, path: str) -> tuple[int, str]:
        if arrival.end.kind == "outside":
            server = self._world.servers[arrival.end.address, arrival.port]
            if server.handler is not None:
                return server.handler(Request("GET", f"http://{host}{path}", path, {})).status, ""
            return 200, ""
        return self.answer(arrival, path)

    def _reach(self, pod: Object, start: End, host: str, port: int, size: int) -> Arrival:
        return self.traffic.connect(start, self.resolve(pod, start, host), port, size=size)

    # ---- names -----------------------------------------------------------------------------------------

    def resolve(self, pod: Object, start: End, name: str) -> str:
        """The address of a name as a pod's resolver finds it. Raises Unresolved, also where no server answers."""
        if re.fullmatch(r"[0-9.]+", name):
            return name
        servers, suffixes = self._resolver(pod, start)
        for server in servers[:1]:
            try:
                self.traffic.connect(start, server, DNS_PORT, protocol="udp")
            except (Lost, Closed):
                raise Unresolved from None
        if not servers:
            raise Unresolved
        for candidate in self._candidates(name, suffixes, windows=start.kind == "pod"):
            found = self._zone().get(candidate) or self._world.address(candidate)
            if found is not None:
                return found
        raise Unresolved

    def _resolver(self, pod: Object, start: End) -> tuple[list[str], list[str]]:
        if start.endpoint is not None:
            return (
                [one for one in str(start.endpoint["DNSServerList"]).split(",") if one],
                [one for one in str(start.endpoint["DNSSuffix"]).split(",") if one],
            )
        namespace = pod["metadata"]["namespace"]
        dns = [
            s["spec"]["clusterIP"]
            for s in self._cluster.objects(SERVICES)
            if s["metadata"]["name"] == "kube-dns"
        ]
        return dns, [f"{namespace}.svc.{self._domain}", f"svc.{self._domain}", self._domain]

    def _candidates(self, name: str, suffixes: Sequence[str], *, windows: bool) -> Iterator[str]:
        """Windows appends its one suffix to a name without a dot, and to no other (seeds: DNS limitations)."""
        lower = name.lower().rstrip(".")
        if "." in lower:
            yield lower
            if not windows and not name.endswith("."):
                yield from (f"{lower}.{one}" for one in suffixes)
            return
        yield from (f"{lower}.{one}" for one in (suffixes[:1] if windows else suffixes))

    def _zone(self) -> Mapping[str, str]:
        return {
            f"{s['metadata']['name']}.{s['metadata']['namespace']}.svc.{self._domain}": str(
                s["spec"]["clusterIP"]
            )
            for s in self._cluster.objects(SERVICES)
            if s["spec"].get("clusterIP") not in (None, "", "None")
        }


class Unresolved(Exception):
    """No server knows the name, or none answers."""


def server_port(pod: Object) -> int:
    """The port on which a pod's first container serves HTTP; 0 where it does not."""
    for container in pod["spec"].get("containers") or []:
        words = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
        found = _CONTAINER.search(words) or re.search(r"netexec.*--http-port=(\d+)", words)
        if found:
            return int(found[1])
    return 0


def _is_agnhost(pod: Object) -> bool:
    return "agnhost" in str(pod["spec"]["containers"][0].get("image", ""))


_VALUED: Final = ("max-time", "output", "write-out", "proxy", "noproxy", "connect-timeout")
_PLAIN: Final = ("silent", "show-error", "insecure")


def _account(pod: Object, start: End) -> str:
    """The CredentialSpec at pod level. Refused where Windows could not ask for the account. A member of the domain asks by
    itself, any other machine by a plug-in (learn.microsoft.com, "Create gMSAs for Windows containers")."""
    options = pod["spec"].get("securityContext", {}).get("windowsOptions", {})
    account, machine = str(options.get("gmsaCredentialSpecName", "")), start.machine
    if account and machine is not None and not machine.power.domain and not machine.registry.subkeys(PLUGINS):
        raise Refusal("program", f"the account {account} on a machine in no domain and without a plug-in")
    return account


def _claim(pod: Object) -> tuple[str, str]:
    claims = [one.get("persistentVolumeClaim", {}).get("claimName") for one in pod["spec"].get("volumes", [])]
    return pod["metadata"]["namespace"], next(filter(None, claims), "")


def _curl_options(words: Sequence[str]) -> tuple[dict[str, str], str]:
    options: dict[str, str] = {}
    urls, rest = [], iter(words)
    for word in rest:
        name = word.removeprefix("--")
        if not word.startswith("-"):
            urls.append(word)
        elif name in _VALUED:
            options[name] = next(rest)
        elif name not in _PLAIN:
            raise Refusal("parameter", f"curl {word}")
    if len(urls) != 1:
        raise Refusal("parameter", "curl", "one URL is known")
    return options, urls[0]


def _filled(form: str, report: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in report:
            raise Refusal("value", f"curl --write-out {found[0]}")
        return report[found[1]]

    return re.sub(r"%\{(\w+)\}", value, form.replace("\\n", "\n"))
