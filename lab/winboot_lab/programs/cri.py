"""The container runtime interface: what kubelet and crictl see of a runtime, and how they find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from winboot_lab.programs.base import GoError
from winboot_lab.windows.session import Computer


@dataclass(frozen=True, slots=True)
class PodSandbox:
    """A pod's sandbox as crictl shows it. `shim` is the process that holds it."""

    id: str
    namespace: str
    name: str
    uid: str
    address: str
    created: int
    shim: int


class CriRuntime(Protocol):
    """A runtime that answers."""

    @property
    def name(self) -> str:
        """As in the Node's containerRuntimeVersion."""

    @property
    def version(self) -> object:
        """Its version, as text."""

    @property
    def conf_dir(self) -> str:
        """The folder of CNI configurations, absolute."""

    @property
    def sandbox_image(self) -> str:
        """What each sandbox is made of."""

    @property
    def marks(self) -> tuple[object, ...]:
        """What another start of the runtime changes."""

    def require_cri(self) -> None:
        """GoError where it serves no pods."""

    def network_problem(self) -> str | None:
        """Why pods cannot be connected; None when they can."""

    def images(self) -> dict[str, dict[str, Any]]:
        """Images by reference."""

    def pull(self, reference: str) -> str:
        """Pull an image; gives its id."""

    def remove_image(self, reference: str) -> None:
        """Forget an image."""

    def sandboxes(self) -> list[PodSandbox]:
        """Every sandbox."""

    def listed(self) -> list[PodSandbox]:
        """Those that clients see."""

    def ready(self, sandbox: PodSandbox) -> bool:
        """Whether it still runs."""

    def run_sandbox(
        self, namespace: str, name: str, uid: str, dns: Mapping[str, Any], *, probe: bool = False
    ) -> PodSandbox:
        """Make a sandbox, with `probe` only to see whether it would come about."""

    def remove_sandbox(self, identity: str) -> None:
        """Stop and remove a sandbox."""


@runtime_checkable
class CriServer(Protocol):
    """A running program that answers on a pipe. The pipe is empty while it does not."""

    @property
    def cri_pipe(self) -> str:
        """Where it listens."""

    def cri(self) -> CriRuntime:
        """The runtime behind it; GoError where that does not answer."""


def dial(machine: Computer, endpoint: str) -> CriRuntime:
    """The runtime behind a CRI endpoint; GoError as gRPC words it."""
    path = address_of(endpoint)
    pipe = path.replace("/", "\\").lower()
    for process in machine.processes.all():
        served = process.served
        # A look at the attribute first: isinstance asks a Protocol's members one by one, each second.
        if getattr(served, "cri_pipe", "").lower() == pipe and isinstance(served, CriServer):
            return served.cri()
    why = "The system cannot find the file specified."
    if endpoint.startswith("tcp:"):
        why = "connectex: No connection could be made because the target machine actively refused it."
    elif not pipe.startswith("\\\\.\\pipe\\"):
        why = "The network path was not found."
    doing = f"dial tcp {path}" if endpoint.startswith("tcp:") else f"open {path}"
    raise GoError(
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: '
        f'{doing}: {why}"'
    )


def address_of(endpoint: str) -> str:
    """The pipe or address an endpoint names (kubernetes: cri-client/pkg/util/util_windows.go, parseEndpoint)."""
    url = urlsplit(endpoint.replace("\\", "/"))
    if not url.scheme:
        raise GoError(f'Using "{endpoint}" as endpoint is deprecated, please consider using full url format')
    if url.scheme not in ("npipe", "tcp"):
        raise GoError(f'protocol "{url.scheme}" not supported')
    if url.scheme == "tcp" or url.path.startswith("//./pipe"):
        return url.netloc or url.path
    return f"//{url.netloc or '.'}{url.path}"
