"""First boot from the command line: `winboot userdata`, `winboot why NODE`, `winboot hook voucher`,
`winboot hook approve NODE UUID`,
and the endpoint of `winboot hook serve --bootstrap ADDRESS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import typer

from winboot.base.errors import UsageError
from winboot.base.state import state_folder
from winboot.cli.options import DEFAULT_INVENTORY, DryRun, InventoryFile
from winboot.operations.firstboot.carrier import Carrier

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.node.fleet import RunContext
    from winboot.operations.firstboot.endpoint import Endpoint
    from winboot.operations.firstboot.proof import Proof
    from winboot.operations.firstboot.store import Store
    from winboot.operations.hook.metrics import Log
    from winboot.remote.cloud.pool import Pool

PORT: Final = 9443
_NO_CLUSTER: Final = (
    "the key `cluster` is missing: the NAME in the tag kubernetes.io/cluster/NAME of instances that may join"
)
Hosts = Callable[[], Sequence[tuple["NodeSpec", tuple[str, ...]]]]
Group = Annotated[str, typer.Option("--group", help="For each machine of this group.")]
Host = Annotated[str, typer.Option("--host", help="For this host only.")]
Key = Annotated[
    Path | None,
    typer.Option(
        "--bootstrap-key",
        help="The endpoint's key; winboot makes a missing one. Default: in winboot's state folder.",
    ),
]


Certificates = Annotated[
    Path | None,
    typer.Option(
        "--aws-certificates",
        help="AWS' certificates of regions that winboot does not know, from regions-certs.html of the EC2 user guide.",
    ),
]


def store() -> Store:
    """What first boot remembers on this computer."""
    from winboot.operations.firstboot.store import Store

    return Store(state_folder() / "first-boot.json")


def key_file(given: Path | None) -> Path:
    """Where the endpoint's key is."""
    return given or state_folder() / "first-boot.key"


def voucher(
    group: Group = "",
    host: Host = "",
    revoke: Annotated[str, typer.Option("--revoke", metavar="ID", help="Revoke this voucher.")] = "",
    inventory: InventoryFile = DEFAULT_INVENTORY,
    dry_run: DryRun = False,
) -> None:
    """Print a new voucher for machines that become nodes by themselves. It is a secret: any machine with it may join.

    A host's voucher is good for an hour and one machine, a group's until --revoke. Without options: list the vouchers.
    """
    if revoke and dry_run:
        typer.echo(f"{revoke}: would be revoked; this voucher is for {store().read().voucher(revoke).scope}")
        return
    if revoke:
        store().revoke(revoke)
        typer.echo(f"{revoke}: the endpoint accepts no machine with this voucher any more", err=True)
        return
    if not group and not host:
        _list()
        return
    kind, scope = _scope(inventory, group, host)
    if dry_run:
        typer.echo(f"a voucher would be made, good for {_good_for(kind, scope)}")
        return
    made = store().voucher(kind, scope)
    typer.echo(f"good for {_good_for(kind, scope)}; winboot shows the voucher only now", err=True)
    typer.echo(made.reveal())


def approve(
    node: Annotated[str, typer.Argument(help="The node that a waiting machine asks to become.")],
    uuid: Annotated[
        str,
        typer.Argument(
            help="The machine's SMBIOS UUID. Compare it with its hypervisor or firmware, because a caller can "
            "report any UUID."
        ),
    ],
    dry_run: DryRun = False,
) -> None:
    """Accept one machine without a voucher. `winboot why NODE` lists the machines that wait, with UUID and address."""
    seen = store().read().waiting(node, uuid) if dry_run else store().approve(node, uuid)
    called = f"called last from {seen.address}" if seen is not None else "has not called yet"
    effect = "would be approved" if dry_run else "is approved"
    typer.echo(f"{node}: the machine {uuid} {effect} when it calls; it {called}")


def why(
    machine: Annotated[
        str,
        typer.Argument(help="The machine's node name, address, SMBIOS UUID or EC2 instance."),
    ],
    inventory: InventoryFile = DEFAULT_INVENTORY,
) -> None:
    """Report in one sentence how far a machine's first boot has come.

    If an EC2 instance of the inventory never reached the endpoint, winboot reads its serial console.
    """
    known = store().read()
    found = known.about(machine)
    for seen in found:
        typer.echo(f"{machine}: {seen.why} (machine {seen.uuid} at {seen.address})")
    if found:
        return
    from winboot.config.inventory.cloud_name import provider_of

    if inventory.exists() and provider_of(inventory) == "aws":
        typer.echo(f"{machine}: {_on_console(inventory, machine)}")
        return
    listed = ", ".join(sorted(known.machines)) or "none"
    raise UsageError(
        f"no machine has called as {machine}",
        hint=f"These machines have called: {listed}. See the machine's serial console and event log; for an EC2 instance "
        "give the inventory with -i.",
    )


def _on_console(inventory: Path, machine: str) -> str:
    """The last word on an instance's serial console. Raises UsageError where the inventory has no such machine."""
    from winboot.operations.firstboot.console import last_word
    from winboot.remote.cloud.pool import ANY_LIVE, Pool

    pool = Pool.read(inventory)
    found = pool.asked(states=ANY_LIVE)
    host = next(
        (one for one, identity in found if machine in (one.id, one.private_ip, identity.node_name)), None
    )
    if host is None:
        listed = ", ".join(sorted(identity.node_name for _, identity in found)) or "none"
        raise UsageError(f"the inventory has no machine {machine}", hint=f"Known names: {listed}.")
    return last_word(cast("Any", pool.provider).console(host), host.id)


def userdata(
    carrier: Annotated[
        Carrier,
        typer.Option(
            "--for",
            help="The form of the output: ec2 (also for Karpenter), cloudbase, capi (a KubeadmConfigTemplate), or a file.",
        ),
    ],
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint",
            metavar="HOST[:PORT]",
            help="The address at which machines reach `winboot hook serve --bootstrap ADDRESS`.",
        ),
    ] = "",
    group: Group = "",
    host: Host = "",
    voucher_file: Annotated[
        Path | None, typer.Option("--voucher-file", help="The voucher, as `winboot hook voucher` printed it.")
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option(
            "--by-hand",
            help="Use no voucher: each machine waits for `winboot hook approve NODE UUID`, unless its cloud's proof "
            "counts (--attested).",
        ),
    ] = False,
    attested: Annotated[
        bool,
        typer.Option(
            "--attested",
            help="Use no voucher: each EC2 instance presents the identity document that AWS signed. The text is that "
            "of --by-hand: `hook serve -i *.aws.yaml` with `cluster` accepts the document, any other endpoint waits "
            "for approval.",
        ),
    ] = False,
    inline: Annotated[
        Path | None,
        typer.Option(
            "--inline",
            metavar="FILE.ps1",
            help="For a file and one host, without an endpoint: write its script and its secrets to this folder.",
        ),
    ] = None,
    token_hours: Annotated[
        int,
        typer.Option("--token-hours", min=1, max=720, help="--inline: the lifetime of the bootstrap token."),
    ] = 24,
    pin: Annotated[
        str, typer.Option("--pin", help="SHA-256 of the endpoint's key, if the key is not on this computer.")
    ] = "",
    bootstrap_key: Key = None,
    inventory: InventoryFile = DEFAULT_INVENTORY,
) -> None:
    """Print the data by which a machine becomes a node by itself; contact nothing.

    It holds the endpoint and its key, but nothing of the profile, so it stays valid if the profile changes.
    """
    from winboot.base.secret import Secret
    from winboot.operations.firstboot.capi import template
    from winboot.operations.firstboot.endpoint import endpoint_key, pin_of
    from winboot.operations.firstboot.userdata import user_data

    kind, scope = _scope(inventory, group, host)
    if inline is not None:
        without = {
            "--endpoint": endpoint,
            "--voucher-file": voucher_file,
            "--by-hand": by_hand,
            "--attested": attested,
            "--pin": pin,
            "--bootstrap-key": bootstrap_key,
        }
        _alone_without([name for name, given in without.items() if given])
        _inline(inventory, carrier, scope if kind == "host" else "", inline, token_hours)
        return
    if not endpoint:
        raise UsageError(
            "the endpoint's address is missing", hint="Give --endpoint HOST[:PORT], or --inline FILE.ps1."
        )
    _one_way(inventory, [voucher_file is not None, by_hand, attested], attested=attested)
    address, port = _address(endpoint)
    made = user_data(
        carrier,
        address=address,
        port=port,
        pin=pin or pin_of(endpoint_key(key_file(bootstrap_key))),
        host=scope if kind == "host" else "",
        voucher=Secret(_voucher_text(voucher_file)) if voucher_file is not None else None,
    )
    if carrier is Carrier.CAPI:
        _refuse_unfit(inventory, scope)
    typer.echo(template(scope, made.text) if carrier is Carrier.CAPI else made.text, nl=False)
    typer.echo(f"{made.budget}; for {_good_for(kind, scope)}", err=True)
    if voucher_file is not None:
        typer.echo("the voucher is a secret: any machine with this voucher may join", err=True)
    if carrier is Carrier.EC2 or attested:
        typer.echo(
            "pods read user data and identity document, too, unless the launch template has HttpTokens: required and "
            "HttpPutResponseHopLimit: 1",
            err=True,
        )


def _alone_without(given: Sequence[str]) -> None:
    """Raises UsageError for options of an endpoint when no endpoint is used."""
    if given:
        raise UsageError(
            f"--inline asks no endpoint, and takes no {', '.join(given)}", hint="Leave out one of them."
        )


def _inline(inventory: Path, carrier: Carrier, host: str, path: Path, hours: int) -> None:
    """Write one host's script, and its secrets in a file next to it. Raises UsageError, InvalidInput, ClusterError."""
    import json
    from datetime import timedelta

    from winboot.base.private import replace_privately
    from winboot.cli.targets import load_targets, run_context
    from winboot.node.run import Quiet
    from winboot.operations.join.secrets import own_secrets
    from winboot.operations.join.story import refuse_unresolved
    from winboot.script.first_boot import alone

    if carrier is not Carrier.FILE or not host:
        raise UsageError("--inline is for a file and one host", hint="Use --for file --host NAME.")
    specs = load_targets(inventory, (host,), pinned=True)
    refuse_unresolved(specs)
    beside = path.with_suffix(".secrets.json")
    with run_context(specs, Quiet()) as (context, _):
        secrets = own_secrets(specs[0], context.cluster(specs[0]), timedelta(hours=hours))
    text = alone(specs[0], secrets=beside.name if secrets else "")
    try:
        path.write_text(text, encoding="utf-8")
        if secrets:
            replace_privately(
                beside, json.dumps({name: one.reveal() for name, one in secrets.items()}) + "\n"
            )
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}", hint="Give another file.") from error
    typer.echo(f"{path}: {len(text.encode()):,} bytes; an administrator runs it once on {host}", err=True)
    if secrets:
        typer.echo(
            f"{beside}: its secrets, the token for {hours} h; put it into the script's folder, readable only by administrators",
            err=True,
        )


@contextmanager
def endpoint(
    address: str,
    key: Path | None,
    proxies: Sequence[str],
    hosts: Hosts,
    context: RunContext,
    log: Log,
    *,
    workers: int,
    join_timeout: float,
    proof: Proof | None = None,
) -> Iterator[Endpoint]:
    """The endpoint while the context lasts. At its end winboot waits for joins under way, unless the run must stop."""
    from winboot.operations.firstboot.balancers import balancers, refuse_hosts_among
    from winboot.operations.firstboot.door import Door, Names, Shared
    from winboot.operations.firstboot.endpoint import Calls, Endpoint, endpoint_key, pin_of
    from winboot.operations.firstboot.machines import Machines
    from winboot.operations.join import Options

    host, port = _address(address)
    secret = endpoint_key(key_file(key))
    remembered = store()
    remembered.begin()
    networks, names = balancers(proxies), Names()

    def meant() -> Sequence[tuple[NodeSpec, tuple[str, ...]]]:
        found = hosts()
        refuse_hosts_among(networks, found, names)
        return found

    shared = Shared(meant)
    if networks:
        shared()
    machines = Machines(remembered, context, Options(), log, workers=workers, join_timeout=join_timeout)
    calls = Calls(Door(machines.store, shared, context.cluster, proof, names), machines, log)
    with Endpoint(calls, secret, address=host, port=port, proxies=networks) as served:
        log("first boot: listening", address=host, port=served.port, pin=pin_of(secret))
        try:
            yield served
        finally:
            machines.finish()


def serve_alone(
    inventory: Path,
    address: str,
    key: Path | None,
    proxies: Sequence[str],
    *,
    workers: int,
    join_timeout: float,
    idle_exit: float | None,
    listen: str,
    port: int,
    certificates: Path | None = None,
) -> None:
    """The endpoint alone, with /healthz and /readyz at `listen` and `port`: there is no queue to watch, as for a file
    of hosts, or for Karpenter, which has no groups."""
    from winboot.cli.targets import run_context
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.node.run import Quiet
    from winboot.operations.hook.metrics import Log, Metrics, MetricsServer

    log = Log()
    with run_context([], Quiet(), in_cluster=True) as (context, _):
        proof = None
        if provider_of(inventory) is None:
            hosts = hosts_of(inventory)
            hosts()
        else:
            hosts, proof = _of_cloud(inventory, context, log, certificates)
        served = endpoint(
            address,
            key,
            proxies,
            hosts,
            context,
            log,
            workers=workers,
            join_timeout=join_timeout,
            proof=proof,
        )
        seen = MetricsServer(Metrics(), lambda: True, address=listen, port=port)
        with seen, served:
            context.stop.wait(idle_exit if idle_exit is not None else float(1 << 31))


def _of_cloud(
    inventory: Path, context: RunContext, log: Log, certificates: Path | None
) -> tuple[Hosts, Proof | None]:
    """Reads a cloud's inventory for each request, and says how its machines prove their identity."""
    from winboot.cli.trust import settle_files
    from winboot.config.demands import files_of
    from winboot.operations.hook.work import NodeWork
    from winboot.operations.join import Options
    from winboot.remote.cloud.pool import Pool

    settle_files(files_of(inventory))
    pool = Pool.read(inventory, settle_files)
    work = NodeWork(pool, context, Options())
    work.unresolved = lambda instance, problem: log(
        "the settings of a machine are not valid", instance=instance, problem=problem
    )
    return lambda: [(one.spec, one.member.groups) for one in work.targets()], proof_of(
        pool, certificates, log
    )


def proof_of(pool: Pool, certificates: Path | None, log: Log) -> Proof | None:
    """What its machines show in place of a voucher; None for a cloud without it, and for an inventory that does not say by
    `cluster` which instances may be nodes. Raises InvalidInput."""
    from winboot.operations.firstboot.proof import AwsProof
    from winboot.remote.cloud.aws_identity import Certificates

    if pool.name != "aws":
        return None
    if not pool.file.cluster:
        log(
            "first boot: only vouchers and approvals count, identity documents do not",
            why=f"{pool.path}: {_NO_CLUSTER}",
        )
        return None
    return AwsProof(cast("Any", pool.provider), pool.file.owns, Certificates.read(certificates))


def hosts_of(inventory: Path) -> Hosts:
    """Reads a file of hosts for each request: a changed profile applies to the next machine."""

    def hosts() -> list[tuple[NodeSpec, tuple[str, ...]]]:
        from winboot.cli.trust import settle
        from winboot.config.demands import demands
        from winboot.config.inventory import load_inventory
        from winboot.config.node_spec import resolve

        loaded = load_inventory(inventory)
        # No person can answer here: winboot refuses what another account's file would make it run.
        settle(demands(loaded.tables), trust=False, may_ask=False)
        return [(resolve(machine.profile, machine), machine.groups) for machine in loaded]

    return hosts


def _one_way(inventory: Path, ways: Sequence[bool], *, attested: bool) -> None:
    """Raises UsageError unless exactly one option says how machines are let in, and the inventory supports that way."""
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.remote.cloud.pool import Pool

    if sum(ways) != 1:
        raise UsageError(
            "choose exactly one way to let the machine in",
            hint="Give --voucher-file FILE with the output of `winboot hook voucher`, --by-hand, or (EC2) --attested.",
        )
    if attested and provider_of(inventory) != "aws":
        raise UsageError(
            f"{inventory}: --attested is only for EC2 instances of an inventory *.aws.yaml",
            hint="For other machines, use --voucher-file FILE.",
        )
    if attested and not Pool.read(inventory).file.cluster:
        raise UsageError(
            f"{inventory}: {_NO_CLUSTER}", hint="Set `cluster: NAME`, or use --voucher-file FILE."
        )


def _scope(path: Path, group: str, host: str) -> tuple[Literal["host", "group"], str]:
    """Compares the options with the inventory. A cloud's groups come and go with its machines, and are taken as they
    are named. Raises UsageError."""
    from winboot.config.inventory import load_inventory
    from winboot.config.inventory.cloud_name import provider_of

    if not path.exists():
        raise UsageError(f"there is no inventory {path}", hint="Name one with --inventory.")
    if bool(group) == bool(host):
        raise UsageError("choose exactly one host or group", hint="Give --group NAME or --host NAME.")
    if provider_of(path) is not None:
        return ("host", host) if host else ("group", group)
    inventory = load_inventory(path)
    names = {machine.name for machine in inventory}
    groups = {name for machine in inventory for name in machine.groups}
    if host:
        if host not in names:
            raise UsageError(f"--host {host}: no such host", hint=f"There are: {', '.join(sorted(names))}.")
        return "host", host
    if group not in groups:
        raise UsageError(f"--group {group}: no such group", hint=f"There are: {', '.join(sorted(groups))}.")
    return "group", group


def _refuse_unfit(path: Path, scope: str) -> None:
    """Raises InvalidInput where Cluster API would not find the Node of a machine of this host or group. Machines of a cloud's
    inventory appear later; their profiles are not read here."""
    from winboot.base.errors import InvalidInput
    from winboot.config.inventory import load_inventory
    from winboot.config.inventory.cloud_name import provider_of
    from winboot.operations.firstboot.capi import complaints

    if provider_of(path) is not None:
        return
    meant = [one for one in load_inventory(path) if scope in (one.name, *one.groups)]
    found = dict.fromkeys(f"{one.name}: {text}" for one in meant for text in complaints(one))
    if found:
        raise InvalidInput(
            f"{path}: Cluster API would wait for these machines without end",
            problems=tuple(found),
            hint="docs/first-boot.md has the keys of the profile for Cluster API.",
        )


def _good_for(kind: str, scope: str) -> str:
    return f"the host {scope}, for an hour" if kind == "host" else f"each machine of the group {scope}"


def _address(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 address is in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(PORT)
    if not host or not port.isdecimal() or int(port) > 65535 or not _is_host(host):
        raise UsageError(f"{text!r} is not HOST:PORT", hint=f"For example boot.example.com:{PORT}.")
    return host.strip("[]"), int(port)


def _is_host(text: str) -> bool:
    return all(letter.isalnum() or letter in "-._[]:" for letter in text) and text.isascii()


def _voucher_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", hint="Make the file with `winboot hook voucher`."
        ) from error
    id_, dot, secret = text.partition(".")
    if not dot or not id_.isalnum() or not secret or len(text) > 128 or any(one.isspace() for one in text):
        raise UsageError(
            f"{path} holds no voucher",
            hint="The file must have exactly one line: the voucher that `winboot hook voucher` prints.",
        )
    return text


def _list() -> None:
    from winboot.cli.output import columns

    found = store().read()
    rows = [
        {"id": one.id, one.kind: one.scope, "machines": str(len(one.used))} for one in found.vouchers.values()
    ]
    columns(
        [
            {"id": row["id"], "for": row.get("group") or row["host"], "machines": row["machines"]}
            for row in rows
        ]
    )
    if not rows:
        typer.echo("the endpoint knows no voucher", err=True)
