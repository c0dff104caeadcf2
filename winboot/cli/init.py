"""`winboot init`: from a kubeconfig and a few answers to a profile and an inventory that can be joined."""

from __future__ import annotations

import ipaddress
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from winboot.cli import answer_checks, completion
from winboot.cli.detect import Found as Detected
from winboot.cli.detect import detect, dns_of, doubts, within
from winboot.cli.join_command import TOKEN_FILE
from winboot.cli.options import DryRun, Yes
from winboot.cli.schema import Which, remark, write_beside
from winboot.config import networks
from winboot.remote.cluster import rights

if TYPE_CHECKING:
    from winboot.config.join_command import JoinCommand

NETWORKS = networks.written_forms()
# kubeadm's own default (kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs, "Enabling signed kubelet serving
# certificates"): without a kubeconfig winboot approves no request for one, and `kubectl logs` would wait for another approver.
_SELF_SIGNED = (
    "",
    "kubelet:",
    "  config:",
    "    serverTLSBootstrap: false            # as kubeadm has it; true needs an approver of serving certificates",
)


@dataclass(frozen=True, slots=True)
class Found:
    """The server and its CA, and `reach`: what the profile says of how to reach the cluster, by answers. `where` names the
    file that it is from."""

    server: str
    ca_pem: str
    where: str
    reach: Mapping[str, str]


def init(
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="The cluster's kubeconfig, which winboot also uses later."),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="The context in the kubeconfig.")] = None,
    join_line: Annotated[
        str | None,
        typer.Option(
            "--join-command",
            metavar="-",
            help="Read the line of `kubeadm token create --print-join-command` from standard input.",
        ),
    ] = None,
    join_file: Annotated[
        Path | None,
        typer.Option(
            "--join-file", metavar="FILE", help="Read this line, or kubeadm's JoinConfiguration, from a file."
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", help="The API server's address for nodes; default: the kubeconfig's."),
    ] = None,
    kubernetes: Annotated[
        str | None, typer.Option("--kubernetes", help="The version of the nodes; default: the cluster's.")
    ] = None,
    network: Annotated[
        str | None, typer.Option("--network", autocompletion=completion.networks, help=f"{NETWORKS}.")
    ] = None,
    pod_cidr: Annotated[str | None, typer.Option("--pod-cidr", help="The cluster's pod network.")] = None,
    service_cidr: Annotated[
        str | None,
        typer.Option(
            "--service-cidr", help="The cluster's service network; default: the cluster's, else 10.96.0.0/12."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="NAME=ADDRESS,OS with OS 2019, 2022 or 2025 (repeat for each machine)."),
    ] = None,
    hosts_file: Annotated[
        Path | None,
        typer.Option(
            "--hosts-file",
            metavar="FILE",
            help="Many machines: lines NAME ADDRESS OS, or JSON of terraform, az, aws, gcloud, kubectl or govc; - "
            "reads from standard input.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help=r"The login: .\Administrator or DOMAIN\name.")
    ] = None,
    password_env: Annotated[
        str, typer.Option("--password-env", help="The environment variable with the password.")
    ] = "WINBOOT_PASSWORD",
    mirror: Annotated[
        str | None, typer.Option("--mirror", help="Download artifacts from this mirror instead of upstream.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="The folder for profile.yaml and inventory.yaml.")
    ] = Path(),
    hashes: Annotated[
        bool, typer.Option("--hashes/--no-hashes", help="Download the artifacts once to pin their hashes.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    inventory: Annotated[
        Path | None,
        typer.Option("--inventory", "-i", help="Only fill in missing values of this inventory's profiles."),
    ] = None,
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Download every artifact, and replace hashes that differ."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Write profile.yaml, inventory.yaml and ca.crt, and ask for missing options. If the files exist, add only missing values
    (the CA, hashes of downloads)."""
    from winboot.base.errors import UsageError
    from winboot.cli import join_command

    targets = [folder / name for name in ("profile.yaml", "inventory.yaml", "ca.crt")]
    there = [str(path) for path in targets if path.exists()]
    if not (kubeconfig is None and context is None) and not (join_line is None and join_file is None):
        raise UsageError(
            "--kubeconfig and --context do not go together with --join-command and --join-file",
            hint="Give the kubeconfig or the join command, but not both.",
        )
    command = join_command.read(join_line, join_file)
    if command is not None and targets[0].exists() and not force:
        join_command.renew(command, folder, dry_run=dry_run)
        return
    answered = any(
        (command, kubeconfig, context, server, kubernetes, network, pod_cidr, host, hosts_file, user, mirror)
    )
    if inventory is not None or (targets[1].exists() and not force and not answered):
        _complete(inventory or targets[1], renew=renew, dry_run=dry_run)
        return
    if there and not force:
        raise UsageError(
            f"{', '.join(there)} already exist{'s' if len(there) == 1 else ''}",
            hint="Use --force to overwrite them, or another --folder; without options init fills in missing values.",
        )
    if command is None:
        path = kubeconfig or Path(_ask("kubeconfig", "~/.kube/config", answer_checks.kubeconfig)).expanduser()
        found = read_kubeconfig(path, context)
        detected = detect(path, found.reach["context"])
    else:
        found, detected = _of_command(command, server)
    told = _Told()
    answers: dict[str, Any] = {
        "server": told("server", server or found.server, "--server" if server else found.where),
        **found.reach,
        "kubernetes": told("version", *_chosen(kubernetes, detected, "version"))
        or _ask("Kubernetes version of the nodes", "", answer_checks.version),
        "network": network
        or _ask(
            f"network ({NETWORKS})",
            told("network", *detected.get("network", ("flannel:host-gw", ""))),
            answer_checks.network,
        ),
        "pod_cidr": told("pod CIDR", *_chosen(pod_cidr, detected, "pod_cidr"))
        or _ask(
            "pod CIDR",
            told("pod CIDR", *detected.get("pod_cidr_guess", ("10.244.0.0/16", ""))),
            answer_checks.cidr,
        ),
        "service_cidr": told("service CIDR", *_chosen(service_cidr, detected, "service_cidr"))
        or _ask("service CIDR", "10.96.0.0/12", answer_checks.cidr),
        "dns_domain": told("domain of services", *detected.get("dns_domain", ("", ""))),
        "mirror": mirror,
    }
    dns, where = detected.get("dns_service_ip", ("", ""))
    answers["dns_service_ip"] = told("address of the cluster's DNS", dns, where)
    for doubt in doubts(answers, detected):
        typer.echo(f"warning: {doubt}", err=True)
    hosts = [*(host or []), *_of_file(hosts_file, folder, yes=yes)] or _ask_machines()
    login = user or _ask("user for the login", r".\Administrator")
    machines = inventory_text(hosts, login, password_env)
    if _is_here_alone(answers["server"]):
        typer.echo(
            f"warning: nodes cannot reach {answers['server']}, which is this machine; give --server", err=True
        )
    texts = {"ca.crt": found.ca_pem, "inventory.yaml": machines, "profile.yaml": profile_text(answers)}
    _refuse_wrong(texts)
    if dry_run:
        typer.echo("\n".join(f"{folder / name} would have:\n{text}" for name, text in texts.items()))
        if command is not None:
            typer.echo(f"{folder / join_command.TOKEN_FILE} would have the token, readable only by you")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        if command is not None:
            join_command.write_token(command, folder / join_command.TOKEN_FILE)
        write_beside(folder)
    except OSError as error:
        raise UsageError(
            f"--folder {folder} cannot be written: {error.strerror}", hint="Give another folder."
        ) from error
    hosts_file, profile = folder / "inventory.yaml", folder / "profile.yaml"
    typer.echo(f"wrote {profile}, {hosts_file} and {folder / 'ca.crt'}")
    if command is not None:
        typer.echo(
            f"wrote {folder / join_command.TOKEN_FILE}: the token, readable only by you\n{rights.WITHOUT_KUBECONFIG}"
        )
    if hashes:
        _complete(hosts_file, renew=renew)
    typer.echo(
        f"next: export {password_env}=…; winboot check {hosts_file}; winboot ping -i {hosts_file}; winboot plan -i {hosts_file}"
    )


def _refuse_wrong(texts: Mapping[str, str]) -> None:
    """What init writes, `check` accepts: the files are read in a folder of their own before any is put in its place."""
    from winboot.base.errors import InvalidInput
    from winboot.config.inventory import check_inventory

    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        found = check_inventory(Path(folder) / "inventory.yaml")
    errors = [
        f"{Path(one.place.file).name if one.place else ''}: {replace(one, place=None)}"
        for one in found
        if one.level == "error"
    ]
    if errors:
        raise InvalidInput(
            "winboot wrote no files, because these answers are not valid",
            problems=tuple(errors),
            hint="Correct the option or the answer that each line is about.",
        )


def _is_here_alone(server: str) -> bool:
    """Is this an address of this machine alone, as kind, tunnels and port forwards write it into a kubeconfig?"""
    host = urlsplit(server).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _complete(inventory: Path, *, renew: bool, dry_run: bool = False) -> None:
    from winboot.cli.fill import fill

    filled = fill(inventory, renew=renew, dry_run=dry_run)
    for line in filled.lines:
        typer.echo(line)
    complete = "would be complete" if dry_run else "complete"
    typer.echo(f"{inventory}: {complete}" if filled.lines else f"{inventory}: no value is missing")


class _Told:
    """Says once where each value is from."""

    def __call__(self, what: str, value: str, where: str) -> str:
        """The value; said where it was found and not given."""
        if value and where and not where.startswith("--"):
            typer.echo(f"{what}: {value} (from {where})", err=True)
        return value


def _chosen(given: str | None, detected: Mapping[str, tuple[str, str]], key: str) -> tuple[str, str]:
    """What was given, else what the cluster says, and where."""
    return (given, f"--{key}") if given else detected.get(key, ("", ""))


def _ask_machines() -> list[str]:
    """A machine at a time, each judged when it is given; an empty answer ends."""
    from winboot.base.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError(
            "init needs an answer: machines, as NAME=ADDRESS,OS", hint="Give --host or --hosts-file."
        )
    machines: list[str] = []
    while True:
        typer.echo(
            "a machine, as NAME ADDRESS OS (2019, 2022 or 2025)" + ("; Enter ends" if machines else "")
        )
        answer = str(typer.prompt("machine", default="", show_default=False)).strip()
        if not answer and machines:
            return machines
        wrong = answer_checks.machine(answer, machines)
        if wrong:
            typer.echo(f"  {wrong}", err=True)
        else:
            machines.append(answer_checks.as_option(answer))


def _ask(what: str, default: str, judge: answer_checks.Judge = answer_checks.anything) -> str:
    """Ask on a terminal until the judge has nothing to say; elsewhere a missing answer is wrong use."""
    from winboot.base.errors import UsageError

    if not sys.stdin.isatty():
        if default:
            return default
        raise UsageError(
            f"init needs an answer: {what}", hint="Give the answer as an option; see winboot init --help."
        )
    while True:
        answer = str(typer.prompt(what, default=default or None)).strip()
        wrong = judge(answer)
        if not wrong:
            return answer
        typer.echo(f"  {wrong}", err=True)


def _of_file(file: Path | None, folder: Path, *, yes: bool) -> list[str]:
    """The machines of --hosts-file, as --host has them, after a question. Raises InvalidInput; UsageError for one without its
    release."""
    from winboot.base.errors import UsageError
    from winboot.cli.host import approve, listed

    if file is None:
        return []
    machines = listed(file)
    for one in machines:
        if not (one.os and one.address):
            raise UsageError(
                f"--hosts-file {file}: {one.name} has no {'address' if one.os else 'release of Windows'}",
                hint="Write a line NAME ADDRESS OS for each machine, with OS 2019, 2022 or 2025.",
            )
    approve(machines, str(folder / "inventory.yaml"), yes=yes)
    return [f"{one.name}={one.address},{one.os}" for one in machines]


def read_kubeconfig(path: Path, context: str | None) -> Found:
    """Server and CA of a context. Raises InvalidInput where the file does not say them."""
    from winboot.remote.cluster.kubeconfig import Kubeconfig

    read = Kubeconfig.from_file(path)
    name = read.context(context)
    reach = {"kubeconfig": str(path.resolve()), "context": name}
    return Found(read.server(name), read.ca_pem(name), str(path), reach)


def _of_command(command: JoinCommand, server: str | None) -> tuple[Found, Detected]:
    """What a join command leads to. Raises ClusterUnreachable, and ClusterError for a CA of another key."""
    from winboot.cli import join_command

    place = server or command.server
    ca_pem, ca_hash = join_command.authority(command, place)
    found = Found(command.server, ca_pem, "the join command", {"ca_hash": ca_hash})
    return found, join_command.detected(command, place, ca_pem)


def profile_text(answers: Mapping[str, Any]) -> str:
    """The profile as a person would write it. A JSON string is a YAML string, so no value can break out."""
    cni, _, mode = str(answers["network"]).partition(":")
    quoted = json.dumps
    # A network that is not known gets its complaint, with its place, when the profile is read.
    solution = next((one for one in networks.NETWORKS if one.cni == cni and mode in ("", one.mode)), None)
    downloads = solution.downloads if solution is not None else ()
    lines = [
        remark(Which.profile),
        "# What every node of this pool should be. docs/profile.md says what else can be set here, and for example",
        "# `winboot explain field maxPods` what a field of kubelet does.",
        "kubernetes:",
        f"  version: {quoted(answers['kubernetes'])}",
        "",
        "cluster:",
        f"  server: {quoted(answers['server'])}",
        "  ca: {file: ./ca.crt}",
        *_reach_lines(answers),
        f"  pod_cidr: {quoted(answers['pod_cidr'])}",
        f"  service_cidr: {quoted(answers['service_cidr'])}",
        *_dns_lines(answers),
        "",
        "network:",
        f"  cni: {quoted(cni)}",
        *([f"  mode: {quoted(mode)}"] if mode else []),
        *(_more_of_network(solution) if solution is not None else []),
        "",
        "node:",
        '  taints: ["os=windows:NoSchedule"]',
        *(_SELF_SIGNED if "ca_hash" in answers else ()),
        "",
        "artifacts:",
        f"  source: {quoted(answers['mirror'] or 'upstream')}",
        *(f"  {one.key}: {quoted(one.proposed)}" for one in downloads if one.proposed),
        "  sha256: {}                           # filled in by `winboot init`",
    ]
    return "\n".join(lines) + "\n"


def _reach_lines(answers: Mapping[str, Any]) -> Iterator[str]:
    """How winboot reaches the cluster: with a kubeconfig, or with the token of a join command alone."""
    if "ca_hash" in answers:
        yield f"  ca_hash: sha256:{answers['ca_hash']}"
        yield f"  bootstrap_token: {{file: ./{TOKEN_FILE}}}  # from the join command; kubeadm's tokens expire after 24 hours"
    else:
        yield f"  kubeconfig: {{file: {json.dumps(answers['kubeconfig'])}}}"
        yield f"  context: {json.dumps(answers['context'])}"


def _dns_lines(answers: Mapping[str, Any]) -> Iterator[str]:
    """The cluster's DNS, where it is otherwise than most clusters have it."""
    address, domain = str(answers.get("dns_service_ip") or ""), str(answers.get("dns_domain") or "")
    cidr = str(answers["service_cidr"])
    if address and address != dns_of(cidr) and within(address, cidr):
        yield f"  dns_service_ip: {json.dumps(address)}"
    if domain and domain != "cluster.local":
        yield f"  dns_domain: {json.dumps(domain)}"


def _more_of_network(solution: networks.Network) -> Iterator[str]:
    """What a network cannot do without and init does not ask for: kube-proxy must know the name of an HNS network."""
    if solution.owners.kube_proxy == "winboot" and not solution.default_name:
        yield ""
        yield "kube_proxy:"
        yield "  managed_by: operator                 # or name the HNS network (network.network_name) and drop this"


def inventory_text(hosts: list[str], user: str, password_env: str) -> str:
    """The inventory: one group for each Windows release. Raises UsageError for a host that is not NAME=ADDRESS,OS."""
    groups: dict[str, list[str]] = {}
    for name, address, release in map(_host, hosts):
        groups.setdefault(release, []).append(f"      {json.dumps(name)}: {{address: {json.dumps(address)}}}")
    return "\n".join([*_inventory_lines(groups, user, password_env), ""])


def _inventory_lines(groups: Mapping[str, list[str]], user: str, password_env: str) -> Iterator[str]:
    yield remark(Which.inventory)
    yield "# Which machines, and how to reach them. HTTPS on 5986 needs a CA (tls: {ca: {file: …}}) or a fingerprint."
    yield "defaults:"
    yield "  connection:"
    yield "    port: 5985                         # HTTP; the login seals every message"
    yield f"    user: {json.dumps(user)}"
    yield f"    password: {{env: {json.dumps(password_env)}}}"
    yield ""
    yield "groups:"
    for release, hosts in sorted(groups.items()):
        yield f"  windows-{release}:"
        yield "    profile: ./profile.yaml"
        yield f'    os: "{release}"'
        yield "    hosts:"
        yield from hosts


def _host(text: str) -> tuple[str, str, str]:
    from winboot.base.errors import UsageError

    name, equals, rest = text.partition("=")
    address, comma, release = rest.rpartition(",")
    if not (name and equals and address and comma and release):
        raise UsageError(
            f"--host {text}: the form is NAME=ADDRESS,OS", hint="For example --host win-1=10.0.1.11,2022"
        )
    return name, address, release
