"""An artifact mirror for the lab: real archives of tiny stand-in programs, under upstream's paths.

The mirror serves any version. The bytes depend on file name and version alone, so a profile's hashes can be
computed before anything is served (`sha256_of`). Faults: a wrong hash, a connection that breaks, a slow one.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import re
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from winboot_lab.windows.programs_api import image_bytes
from winboot_lab.windows.sockets import Request, Response

FILLER: Final = 1500  # bytes below the identity line: enough for a download to break in the middle
_NODE_PROGRAMS: Final = ("kubelet", "kube-proxy", "kubeadm", "kubectl", "kube-log-runner")


@dataclass(frozen=True, slots=True)
class Shape:
    """How one artifact looks: the pattern of its file name, and its members as (path, program)."""

    pattern: re.Pattern[str]
    members: tuple[tuple[str, str], ...]
    checksum: str = "bare"  # content of a .sha256 file: the bare hash, or the hash and the file's name


def _shape(pattern: str, *members: tuple[str, str], checksum: str = "bare") -> Shape:
    return Shape(re.compile(rf"\A{pattern}\Z"), members, checksum)


_VERSION: Final = r"v?(?P<version>\d+\.\d+[\w.+-]*?)"
SHAPES: Final[tuple[Shape, ...]] = (
    _shape(
        r"kubernetes-node-windows-amd64\.tar\.gz",
        *((f"kubernetes/node/bin/{name}.exe", name) for name in _NODE_PROGRAMS),
    ),
    _shape(r"(?P<program>kubelet|kube-proxy|kubeadm|kubectl|kube-log-runner|flanneld)\.exe"),
    # A user's own file, whose folder names its version.
    _shape(r"(?P<program>csi-proxy|hybrid-overlay-node|[a-z0-9]+-credential-provider)\.exe"),
    _shape(r"(?P<program>smb|iscsi|flexvolume)\.(?:cmd|ps1)"),
    _shape(
        rf"containerd-{_VERSION}-windows-amd64\.tar\.gz",
        ("bin/containerd.exe", "containerd"),
        ("bin/containerd-shim-runhcs-v1.exe", "containerd-shim-runhcs-v1"),
        ("bin/ctr.exe", "ctr"),
        checksum="named",
    ),
    _shape(rf"crictl-{_VERSION}-windows-amd64\.tar\.gz", ("crictl.exe", "crictl")),
    _shape(
        rf"cni-plugins-windows-amd64-{_VERSION}\.tgz",
        ("./host-local.exe", "host-local"),
        ("./win-bridge.exe", "win-bridge"),
        ("./win-overlay.exe", "win-overlay"),
        checksum="named",
    ),
    _shape(rf"flannel-{_VERSION}-windows-amd64\.tar\.gz", ("flanneld.exe", "flanneld")),
    _shape(
        rf"cni-plugin-flannel-windows-amd64-{_VERSION}\.tgz",
        ("flannel-amd64.exe", "flannel"),
        checksum="named",
    ),
    _shape(
        rf"windows-container-networking-cni-amd64-{_VERSION}\.zip",
        ("nat.exe", "nat"),
        ("sdnbridge.exe", "sdnbridge"),
        ("sdnoverlay.exe", "sdnoverlay"),
    ),
    _shape(
        rf"azure-vnet-cni(-[a-z-]+)?-windows-amd64-{_VERSION}\.zip",
        ("azure-vnet.exe", "azure-vnet"),
        ("azure-vnet-ipam.exe", "azure-vnet-ipam"),
        ("azure-vnet-telemetry.exe", "azure-vnet-telemetry"),
    ),
    # From 3.33 on one program (node/Makefile, WINDOWS_ARCHIVE_FILES at v3.34.0-0.dev).
    _shape(
        r"calico-windows-v?(?P<version>3\.(?:3[3-9]|[4-9]\d)\.[\w.+-]*?)\.zip",
        ("CalicoWindows/calico.exe", "calico-windows"),
        ("CalicoWindows/cni/calico.exe", "calico-windows"),
    ),
    _shape(
        rf"calico-windows-{_VERSION}\.zip",
        ("CalicoWindows/calico-node.exe", "calico-node"),
        ("CalicoWindows/cni/calico.exe", "calico"),
        ("CalicoWindows/cni/calico-ipam.exe", "calico-ipam"),
    ),
    _shape(
        rf"nssm-{_VERSION}\.zip",
        ("nssm-{version}/win32/nssm.exe", "nssm"),
        ("nssm-{version}/win64/nssm.exe", "nssm"),
    ),
    _shape(
        rf"docker-{_VERSION}\.zip",
        ("docker/docker.exe", "docker"),
        ("docker/dockerd.exe", "dockerd"),
    ),
    _shape(
        rf"cri-dockerd-{_VERSION}\.win\.amd64\.zip",
        ("cri-dockerd/cri-dockerd.exe", "cri-dockerd"),
    ),
    _shape(rf"csi-proxy-{_VERSION}\.tar\.gz", ("bin/csi-proxy.exe", "csi-proxy")),
)
_CHECKSUMS: Final = {".sha256": "sha256", ".sha256sum": "sha256", ".sha512": "sha512", ".sha1": "sha1"}
_PATH_VERSION: Final = re.compile(r"/v?(\d+\.\d+\.\d+[\w.+-]*)(?=/)")


def content_of(path: str) -> bytes | None:
    """The file behind a URL path (or a whole URL); None when no artifact looks like this."""
    path = unquote(urlsplit(path).path)
    name = path.rpartition("/")[2]
    for suffix, algorithm in _CHECKSUMS.items():
        if name.endswith(suffix):
            return _checksum(path.removesuffix(suffix), algorithm)
    for shape in SHAPES:
        match = shape.pattern.match(name)
        if match is None:
            continue
        found = match.groupdict()
        version = found.get("version") or _version_in(path)
        if version is None:
            return None
        if "program" in found:
            return program(found["program"], version)
        return _archive(name, version, shape)
    return None


def sha256_of(path: str) -> str:
    """The hash of the file behind a URL path; raises KeyError for an unknown path."""
    content = content_of(path)
    if content is None:
        raise KeyError(path)
    return hashlib.sha256(content).hexdigest()


def hashes_of(path: str) -> dict[str, str]:
    """The SHA-256 of the file behind a URL path (under ''), and of each member when it is an archive."""
    content = content_of(path)
    if content is None:
        raise KeyError(path)
    found = {"": hashlib.sha256(content).hexdigest()}
    name = urlsplit(path).path.rpartition("/")[2]
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(entry, archive.read(entry)) for entry in archive.namelist()]
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            opened = [(entry.name, tar.extractfile(entry)) for entry in tar]
            members = [(entry, file.read()) for entry, file in opened if file is not None]
    else:
        members = []
    return found | {entry.removeprefix("./"): hashlib.sha256(body).hexdigest() for entry, body in members}


def program(name: str, version: str) -> bytes:
    """A stand-in executable. Different programs and versions differ in every part, so a torn file shows."""
    seed = f"{name} {version} ".encode("ascii")
    return image_bytes(name, version, body=(seed * (FILLER // len(seed) + 1))[:FILLER])


def _version_in(path: str) -> str | None:
    found = _PATH_VERSION.findall(path)
    return str(found[-1]) if found else None


def _checksum(path: str, algorithm: str) -> bytes | None:
    content = content_of(path)
    if content is None:
        return None
    name = path.rpartition("/")[2]
    digest = hashlib.new(algorithm, content).hexdigest()
    named = any(s.checksum == "named" and s.pattern.match(name) for s in SHAPES)
    return (f"{digest}  {name}\n" if named else digest).encode("ascii")


@functools.lru_cache(maxsize=64)
def _archive(name: str, version: str, shape: Shape) -> bytes:
    members = [(p.format(version=version), program(n, version)) for p, n in shape.members]
    return _zip(members) if name.endswith(".zip") else _tar_gz(members)


def _zip(members: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()


def _tar_gz(members: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


@dataclass(slots=True)
class MirrorFaults:
    """The faults to serve, by file name. `breaks` lets one answer end after so many bytes, then no more."""

    wrong: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    breaks: dict[str, int] = field(default_factory=dict)
    pause: Callable[[str], None] = lambda name: None  # called before the body; a slow mirror sleeps here
    busy: int = 0  # so many requests get 503 first
    whole: set[str] = field(default_factory=set)  # sent from the beginning, for any range requested


@dataclass(frozen=True, slots=True)
class Served:
    """One HTTP answer. `complete` is False when the connection is to break after `body`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool = True


class Mirror:
    """Answers requests for artifacts; `log` keeps them in order, as (path, range)."""

    def __init__(self) -> None:
        self.faults = MirrorFaults()
        self.log: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def answer(self, path: str, range_header: str = "") -> Served:
        """The answer to one GET."""
        name = path.rpartition("/")[2]
        with self._lock:
            self.log.append((path, range_header))
            if self.faults.busy > 0:
                self.faults.busy -= 1
                return Served(503, {"Retry-After": "1"}, b"busy")
            break_at = self.faults.breaks.pop(name, None)
        self.faults.pause(name)
        content = None if name in self.faults.missing else content_of(path)
        if content is None:
            return Served(404, {}, b"404 page not found\n")
        if name in self.faults.wrong:
            content = content[:-1] + bytes([content[-1] ^ 1])
        served = _ranged(content, "" if name in self.faults.whole else range_header)
        if break_at is not None and break_at < len(served.body):
            return Served(served.status, served.headers, served.body[:break_at], complete=False)
        return served

    def handle(self, request: Request) -> Response:
        """The same as a server of the lab's world: `world.serve("dl.k8s.io", 443, mirror.handle)`."""
        wanted = next((v for k, v in request.headers.items() if k.lower() == "range"), "")
        served = self.answer(request.path.partition("?")[0], wanted)
        body = b"" if request.method == "HEAD" else served.body
        return Response(served.status, body, served.headers, complete=served.complete)


def _ranged(content: bytes, header: str) -> Served:
    headers = {"Accept-Ranges": "bytes", "Content-Length": str(len(content))}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", header.strip())
    if match is None:
        return Served(200, headers, content)
    start = int(match[1])
    if start >= len(content):
        return Served(416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"}, b"")
    end = min(int(match[2]) if match[2] else len(content) - 1, len(content) - 1)
    part = content[start : end + 1]
    headers = {
        **headers,
        "Content-Length": str(len(part)),
        "Content-Range": f"bytes {start}-{end}/{len(content)}",
    }
    return Served(206, headers, part)


class MirrorServer:
    """The mirror over real HTTP on loopback, for programs outside this process."""

    def __init__(self, mirror: Mirror | None = None, *, address: str = "127.0.0.1", port: int = 0) -> None:
        self.mirror = mirror or Mirror()
        self._http = _Server((address, port), self.mirror)
        self.address: Final[tuple[str, int]] = (address, int(self._http.server_address[1]))
        self.url: Final = f"http://{address}:{self.address[1]}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="lab-mirror", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> MirrorServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, where: tuple[str, int], mirror: Mirror) -> None:
        self.mirror = mirror
        super().__init__(where, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the lab's terminal belongs to winboot."""

    def do_GET(self) -> None:
        self._send(self.server.mirror.answer(self.path, self.headers.get("Range") or ""), with_body=True)

    def do_HEAD(self) -> None:
        self._send(self.server.mirror.answer(self.path), with_body=False)

    def _send(self, served: Served, *, with_body: bool) -> None:
        self.send_response(served.status)
        for name, value in {"Content-Length": str(len(served.body)), **served.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            with suppress(OSError):
                self.wfile.write(served.body)
        if not served.complete:
            self.close_connection = True
