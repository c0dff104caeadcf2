"""From the command line's files to specs, and from specs to ways: to the machines, to the cluster, to a journal."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import typer

from winboot.base.errors import UsageError
from winboot.base.state import state_folder
from winboot.cli.colour import tell
from winboot.cli.options import renew_command
from winboot.cli.seen import first_time

if TYPE_CHECKING:
    from winboot.config.demands import Demand
    from winboot.config.inventory import Inventory, Machine
    from winboot.config.node_spec import NodeSpec
    from winboot.config.profile.reference import Reference
    from winboot.node.fleet import Keep, Ownership
    from winboot.node.run import Listener, Stop
    from winboot.operations.join import Options, RunContext
    from winboot.remote.cluster import Kubeconfig
    from winboot.remote.cluster.base import Cluster
    from winboot.remote.cluster.claims import Leases
    from winboot.remote.transport.base import Transport
    from winboot.remote.transport.logins import Logins

# SIGHUP: the terminal or the SSH session was closed. Windows has none.
_HANGUP: Final = getattr(signal, "SIGHUP", None)
SIGNALS: Final = tuple(one for one in (signal.SIGINT, signal.SIGTERM, _HANGUP) if one is not None)
Tune = Callable[["Options"], "Options"]


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes of a command, in the order of the inventory, and the group that defines each host of the inventory.

    `demands` lists the commands and files that the inventory and profiles make this computer run and read. `about` describes
    the request in words: inventory, profiles with their versions, limit. `machines` are those of the nodes, by name."""

    specs: list[NodeSpec]
    groups: Mapping[str, str]
    demands: tuple[Demand, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the processes of a run, by its number from 0 on."""

    run: str
    process: int


def load_targets(
    inventory: Path,
    limit: tuple[str, ...],
    *,
    pinned: bool = False,
    trust: bool = False,
    may_ask: bool = True,
) -> list[NodeSpec]:
    """The nodes of `load_fleet`."""
    return load_fleet(inventory, limit, pinned=pinned, trust=trust, may_ask=may_ask).specs


def load_fleet(
    inventory: Path,
    limit: tuple[str, ...],
    *,
    pinned: bool = False,
    trust: bool = False,
    may_ask: bool = True,
) -> Fleet:
    """Every host of the inventory that `limit` means (see `winboot.config.pattern`), resolved. With `pinned`, hashes
    that belong to another version than the wanted one are refused. `trust` and `may_ask`: see `winboot.cli.trust`.

    Raises InvalidInput with every complaint about the files, and for files of others; UsageError for a limit that names
    nothing; Declined.
    """
    from winboot.cli.trust import settle
    from winboot.config.demands import demands
    from winboot.config.inventory import load_inventory
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.config.node_spec import resolve

    if not inventory.exists():
        raise UsageError(
            f"there is no inventory {inventory}",
            hint="Name one with --inventory, or make one with `winboot init`.",
        )
    loaded = load_inventory(inventory) if provider_of(inventory) is None else _from_cloud(inventory)
    _warn(inventory, loaded)
    # Before `resolve`: it reads certificates, and runs the commands that give some.
    wanted = demands(loaded.tables)
    settle(wanted, trust=trust, may_ask=may_ask)
    found = [(machine, resolve(machine.profile, machine)) for machine in _limited(loaded, limit)]
    if pinned:
        _refuse_other_pins(found, inventory)
    groups = {machine.name: machine.group for machine in loaded}
    machines = {machine.name: machine for machine, _ in found}
    return Fleet([spec for _, spec in found], groups, wanted, _about(inventory, limit, found), machines)


def _warn(inventory: Path, loaded: Inventory) -> None:
    """Print one warning, or how many there are: `check` names them. Once, until a file changes."""
    told = [str(warning) for warning in loaded.warnings]
    if not told or not first_time((*told, *(file.read_text(encoding="utf-8") for file in loaded.tables))):
        return
    several = f"the files have {len(told)} warnings: `winboot check {inventory}` shows them"
    tell(told[0] if len(told) == 1 else several, err=True)


def _about(
    inventory: Path, limit: tuple[str, ...], found: Sequence[tuple[Machine, NodeSpec]]
) -> dict[str, str]:
    """What a report says of its run, by names, without any folders of the user."""
    profiles = {f"{one.profile_file.name} (Kubernetes {one.profile.kubernetes.version})" for one, _ in found}
    about = {"inventory": inventory.name, "profile": ", ".join(sorted(profiles)), "limit": ",".join(limit)}
    return {name: said for name, said in about.items() if said}


def _refuse_other_pins(found: Sequence[tuple[Machine, NodeSpec]], inventory: Path) -> None:
    """Nothing is compared with the hash of another version: it would pass the old programs for the new ones."""
    from winboot.base.errors import InvalidInput
    from winboot.config.node_spec import pin_complaints
    from winboot.config.source import read

    renew = renew_command(inventory)
    wrong = [
        complaint
        for machine, spec in found
        for complaint in pin_complaints(
            machine.profile.artifacts.sha256, spec.artifacts, read(machine.profile_file), renew
        )
        if complaint.level == "error"
    ]
    if wrong:
        problems = tuple(dict.fromkeys(map(str, wrong)))
        raise InvalidInput(
            f"{len(problems)} pinned hashes belong to other versions",
            problems=problems,
            hint=f"`{renew}` fetches the artifacts once and pins their hashes.",
        )


def _from_cloud(inventory: Path) -> Inventory:
    from winboot.remote.cloud.pool import load_pool

    return load_pool(inventory, warn=lambda text: typer.echo(f"warning: {text}", err=True))


def _limited(inventory: Inventory, limit: tuple[str, ...]) -> list[Machine]:
    from winboot.config.pattern import chosen

    names = chosen({machine.name: machine.groups for machine in inventory}, limit)
    return [machine for machine in inventory if machine.name in names]


def open_transport(spec: NodeSpec, logins: Logins | None = None) -> Transport:
    """A session on the node's machine; nothing is sent before it is used. `logins` is what a run knows of accounts."""
    from winboot.remote.cloud.passwords import with_password
    from winboot.remote.transport.connect import connect

    connection, name = with_password(spec), spec.node.name
    transport = connect(connection, name=name)
    return transport if logins is None else logins.guarded(connection, transport, name=name)


class Clusters:
    """One client for each kubeconfig and context, shared by all nodes, closed together."""

    def __init__(self, wait: Callable[[float], bool], *, in_cluster: bool = False) -> None:
        """`wait` passes the time while an API server cannot answer; True ends the waiting. With `in_cluster`, the
        service account of the pod is used where no kubeconfig is named."""
        self._wait = wait
        self._in_cluster = in_cluster
        self._open: dict[tuple[str, str | None], Cluster] = {}
        self._lock = threading.Lock()

    def __call__(self, spec: NodeSpec) -> Cluster | None:
        """The cluster of a node; None when its profile names no kubeconfig. Raises ClusterError, and InvalidInput for a
        kubeconfig of others that is another one by now."""
        reference = spec.cluster.kubeconfig
        with self._lock:
            key = (str(reference), spec.cluster.context)
            if key not in self._open:
                read = self._kubeconfig(reference)
                if read is None:
                    return None
                from winboot.remote.cluster import connect

                self._open[key] = connect(read, context=spec.cluster.context, wait=self._wait)
            return self._open[key]

    def _kubeconfig(self, reference: Reference | None) -> Kubeconfig | None:
        from winboot.cli.trust import hold
        from winboot.remote.cluster import Kubeconfig

        if reference is None:
            return Kubeconfig.of_pod() if self._in_cluster else None
        if reference.file is not None:
            file = reference.file.expanduser()
            return Kubeconfig.from_file(file, lambda text: hold(file, text))
        return Kubeconfig.from_text(reference.read("cluster.kubeconfig"), f"cluster.kubeconfig ({reference})")

    def close(self) -> None:
        """Give all connections back."""
        for cluster in self._open.values():
            cluster.close()


@contextmanager
def run_context(
    specs: Sequence[NodeSpec],
    listener: Listener,
    keep: Keep | None = None,
    *,
    in_cluster: bool = False,
    fleet: Fleet | None = None,
    part: Part | None = None,
) -> Iterator[tuple[RunContext, Tune]]:
    """The context of one run. `keep` receives each node that ends; `fleet` holds the specs. Ctrl-C and SIGTERM
    ask the nodes' work to stop at its next safe point. With `in_cluster`, the service account of the pod is used where no
    kubeconfig is named. The process that started a `part` of a run stops it; signals do not.
    """
    from winboot.node.run import Stop
    from winboot.operations.join import RunContext
    from winboot.remote.transport.logins import Logins

    stop = Stop()
    clusters = Clusters(stop.wait, in_cluster=in_cluster)
    logins = Logins()
    context = RunContext(
        connect=lambda spec: open_transport(spec, logins),
        cluster=clusters,
        listener=listener,
        journals=state_folder("runs"),
        run=part.run if part is not None else uuid.uuid4().hex[:12],
        holder=_holder(),
        stop=stop,
        groups=fleet.groups if fleet is not None else {},
        about=fleet.about if fleet is not None else {},
        machines=fleet.machines if fleet is not None else {},
    )
    claims = _ownership(context, f"{part.process}-" if part is not None else "")
    context = replace(context, claims=claims)
    if keep is not None:
        context = replace(context, keep=keep)
    try:
        with _signals((lambda number: None) if part is not None else stop.request):
            yield context, lambda options: _tuned(options, specs)
    finally:
        claims.close()
        clusters.close()


def _ownership(context: RunContext, process: str) -> Ownership:
    """Claims by Lease in each node's cluster."""
    from winboot.node.fleet import Ownership
    from winboot.remote.cluster.claims import NAMESPACE

    def in_cluster(spec: NodeSpec) -> Leases | None:
        cluster = context.cluster(spec)
        return cluster.leases(NAMESPACE) if cluster is not None else None

    holder = f"{context.holder} (run {context.run})"
    return Ownership(holder, context.run, in_cluster, process=process)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM ask what runs in this context to stop at its next safe point."""
    from winboot.node.run import Stop

    stop = Stop()
    with _signals(stop.request):
        yield stop


def _holder() -> str:
    """The holder of a lock: user, host and process of this run. A container's user may have no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@contextmanager
def _signals(request: Callable[[int], None]) -> Iterator[None]:
    def handle(number: int, frame: FrameType | None) -> None:
        request(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # `nohup` has SIGHUP ignored, so that a closed terminal does not end the command: that stays so.
    heeded = [one for one in SIGNALS if one != _HANGUP or signal.getsignal(one) != signal.SIG_IGN]
    former = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _tuned(options: Options, specs: Sequence[NodeSpec]) -> Options:
    """How often to ask again is the inventory's to say: the lab's time runs faster than ours."""
    poll = min((spec.machine.connection.poll_s for spec in specs), default=options.patience.poll)
    return replace(options, patience=replace(options.patience, poll=poll))
