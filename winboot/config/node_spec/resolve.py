"""From a profile and a machine to a NodeSpec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from winboot.base.errors import InvalidInput
from winboot.config import compat
from winboot.config.authority import TrustedCertificate, certificate, check_ca_hash, trusted_certificates
from winboot.config.compat import Compat
from winboot.config.compat.downloads import line_of
from winboot.config.compat.platform import bad_updates
from winboot.config.inventory import Machine
from winboot.config.networks.base import Choices, Known, Network, PortRule, Text
from winboot.config.networks.first_form import in_form
from winboot.config.networks.first_switch import first_switch_range
from winboot.config.networks.vxlan import Vxlan
from winboot.config.node_spec import artifacts as downloads
from winboot.config.node_spec import components
from winboot.config.node_spec.docker import docker, docker_versions
from winboot.config.node_spec.merged import without_nones
from winboot.config.node_spec.node import (
    BootSpec,
    ClusterSpec,
    GmsaAccount,
    GmsaSpec,
    KubeletSpec,
    KubeProxySpec,
    KubernetesSpec,
    Manager,
    NetworkSpec,
    NodeObjectSpec,
    NodeSpec,
    Paths,
    ProfileSource,
    ProxySpec,
    RegistryFix,
    RuntimeSpec,
    ServiceSpec,
    ServicesSpec,
    StepSource,
    StorageSpec,
    Taint,
)
from winboot.config.node_spec.places import Places, places
from winboot.config.node_spec.runtime import containerd_version, runtime
from winboot.config.profile import Profile, facts_of
from winboot.config.profile.sections import LOG_RUNNER_SINCE, LOGGED_BY_RUNNER, NSSM_ALONE, Cluster, Windows

METADATA = "169.254.169.254"
NODE_PORTS = "30000-32767"


def resolve(profile: Profile, machine: Machine) -> NodeSpec:
    """Decide everything about one node. Raises InvalidInput where a file the profile names cannot be used."""
    facts = facts_of(profile)
    where = places(profile, facts, runtime_versions(profile, facts))
    paths = where.paths
    node, boot = _node(profile, machine), _boot(profile)
    cluster = _cluster(profile)
    node_ip: Text = machine.node_ip or Known("node_ip")
    dsr = components.wants_dsr(profile, machine.build)
    proxy = _proxy(profile, machine, cluster)
    runs = _runtime(profile, facts, machine.build, paths, proxy)
    network = _network(profile, machine, facts, node_ip, cluster, where, runs, dsr=dsr)
    kube_proxy = _kube_proxy(profile, facts, node.name, network.network_name, paths, dsr=dsr)
    kubelet = KubeletSpec(
        config=components.kubelet_config(
            profile,
            facts,
            # With a token alone no call could remove the startup taint.
            (*node.taints, *boot.taints, *(() if cluster.token_alone else (node.startup_taint,))),
            cluster.dns_service_ips,
            paths,
            endpoint=runs.endpoint,
            provider_id=machine.provider_id,
        ),
        arguments=components.kubelet_arguments(
            profile, facts, node.name, node_ip, manager_of(profile, "kubelet"), paths, runs
        ),
        credentials=components.credential_config(profile),
    )
    services = _services(profile, network, runs, kubelet, kube_proxy, proxy, paths)
    return NodeSpec(
        profile=ProfileSource(profile.name),
        kubernetes=KubernetesSpec(profile.kubernetes.version, profile.kubernetes.keep_versions),
        cluster=cluster,
        network=network,
        runtime=runs,
        services=services,
        kubelet=kubelet,
        kube_proxy=kube_proxy,
        node=node,
        proxy=proxy,
        windows=_windows(profile),
        fixes=tuple(_fixes(profile, facts, network.solution)),
        firewall=tuple(_firewall(profile, network.solution, kube_proxy)),
        trust_roots=tuple(dict.fromkeys(_trust_roots(profile))),
        artifacts=_artifacts(profile, facts, services, kube_proxy, where, runs, kubelet),
        machine=machine.alone,
        steps=tuple(_steps(profile)),
        paths=paths,
        updates=compat.updates_needed(facts, _features(profile, network.solution, dsr=dsr), machine.build),
        bad_updates=bad_updates(facts, machine.build),
        boot=boot,
        storage=_storage(profile, kubelet),
        gmsa=_gmsa(profile),
    )


def _windows(profile: Profile) -> Windows:
    """The section with the features that the network needs."""
    features = (*profile.windows.features, *profile.solution.roles)
    return profile.windows.model_copy(update={"features": tuple(dict.fromkeys(features))})


def unresolved(spec: NodeSpec) -> tuple[str, ...]:
    """What `winboot init` still has to find out before this node can be made: the CA, and hashes of downloads."""
    missing = [f"artifacts.sha256: {one.key}" for one in spec.artifacts if one.sha256 is None]
    return tuple(missing if spec.cluster.ca_pem else ["cluster.ca", *missing])


def manager_of(profile: Profile, service: str) -> Manager:
    """What manages a service. A program that never answers the Service Control Manager takes NSSM."""
    chosen = profile.services.overrides.get(service)
    if chosen is not None:
        return chosen
    unlogged = service in LOGGED_BY_RUNNER and not profile.kubernetes.version.at_least(LOG_RUNNER_SINCE)
    return "nssm" if unlogged or service in NSSM_ALONE else profile.services.manager


def _runtime(profile: Profile, facts: Compat, build: int, paths: Paths, proxy: ProxySpec) -> RuntimeSpec:
    if profile.runtime.name == "docker":
        return docker(profile, facts, build, paths, proxy)
    return runtime(profile, facts, build, paths, proxy, manager_of(profile, "containerd"))


def runtime_versions(profile: Profile, facts: Compat) -> dict[str, str]:
    """The versions of the runtime's downloads."""
    if profile.runtime.name == "docker":
        return docker_versions(profile, facts)
    return {"containerd": str(containerd_version(profile, facts))}


def _node(profile: Profile, machine: Machine) -> NodeObjectSpec:
    labels = {key: value for key, value in profile.node.labels.items() if value is not None}
    taints = tuple(_taint(text) for text in profile.node.taints)
    return NodeObjectSpec(machine.name, labels, taints, scheduled_events=profile.node.scheduled_events)


def _boot(profile: Profile) -> BootSpec:
    boot = profile.boot
    return BootSpec(tuple(_taint(text) for text in boot.taints), boot.ready_file or "", boot.check_machine)


def _taint(text: str) -> Taint:
    named, _, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    return Taint(key, value, effect)


def _ca_pem(section: Cluster) -> str:
    """The CA's certificate; empty while it is not here: `render` does without it, `plan` and `join` do not (`unresolved`)."""
    if section.ca is None or (section.ca.file is not None and not section.ca.file.exists()):
        return ""
    return certificate(section.ca.read("cluster.ca").reveal(), str(section.ca))


def _cluster(profile: Profile) -> ClusterSpec:
    section = profile.cluster
    url = urlsplit(section.server)
    pem = _ca_pem(section)
    if pem and section.ca_hash is not None:
        check_ca_hash(pem, section.ca_hash)
    return ClusterSpec(
        server=section.server,
        server_host=url.hostname or "",
        server_port=url.port or 443,
        ca_pem=pem,
        ca_sha256=hashlib.sha256(pem.encode()).hexdigest() if pem else "",
        pod_cidrs=tuple(map(str, section.pod_cidr)),
        service_cidrs=tuple(map(str, section.service_cidr)),
        dns_service_ips=tuple(map(str, section.dns_addresses)),
        dns_domain=section.dns_domain,
        bootstrap_token=section.bootstrap_token,
        kubeconfig=section.kubeconfig,
        context=section.context,
    )


def _network(
    profile: Profile,
    machine: Machine,
    facts: Compat,
    node_ip: Text,
    cluster: ClusterSpec,
    where: Places,
    runs: RuntimeSpec,
    *,
    dsr: bool,
) -> NetworkSpec:
    solution, section, paths = profile.solution, profile.network, where.paths
    vxlan = section.vxlan or Vxlan()
    network_name = section.name_of(solution)
    choices = Choices(
        network_name=network_name,
        pod_cidrs=cluster.pod_cidrs,
        service_cidrs=cluster.service_cidrs,
        dns_service_ips=cluster.dns_service_ips,
        dns_domain=cluster.dns_domain,
        vxlan=vxlan,
        node_ip=node_ip,
        dsr=dsr,
        node_name=machine.name,
        paths={**asdict(paths), **solution.paths, **where.programs},
        node_cidrs=tuple(map(str, profile.cluster.node_cidr)),
        build=machine.build,
        calls=_calls(facts, solution, where),
        server=cluster.server,
        ipam=section.ipam,
        nat_add=tuple(map(str, section.nat_exceptions.add)),
        nat_remove=section.nat_exceptions.remove,
    )
    return NetworkSpec(
        solution=solution,
        network_name=network_name,
        vxlan=vxlan,
        cni_conf=in_form(runs.cni_form, solution.cni_conf(choices)) if solution.cni_conf else None,
        cni_conf_path=rf"{paths.cni_conf}\{solution.conf_file}" if solution.conf_file else "",
        net_conf=solution.net_conf(choices) if solution.net_conf else None,
        ipam_store=rf"{paths.ipam_store}\{network_name}" if solution.owners.ipam_store == "winboot" else "",
        reservations=tuple(
            one
            for one in solution.reservations
            if len(cluster.pod_cidrs) > 1 or not one.address.name.endswith("_v6")
        ),
        agent=solution.agent(choices) if solution.agent else None,
        host_endpoint=solution.host_endpoint_name(network_name),
        first_range=str(
            first_switch_range((*choices.pod_cidrs, *choices.service_cidrs, *choices.node_cidrs))
        ),
        routes=section.routes == "winboot",
    )


def _calls(facts: Compat, solution: Network, where: Places) -> dict[str, tuple[str, ...]]:
    return {
        part: tuple(words)
        for one in solution.downloads
        for part, words in line_of(facts, one.name, where.versions[one.name]).get("calls", {}).items()
    }


def _proxy(profile: Profile, machine: Machine, cluster: ClusterSpec) -> ProxySpec:
    """NO_PROXY holds all that must be reached directly; without a proxy it is empty."""
    section = profile.proxy
    if not (section.http or section.https):
        return ProxySpec(None, None, ())
    own = [
        "localhost",
        "127.0.0.1",
        cluster.server_host,
        *([machine.node_ip] if machine.node_ip else []),
        *cluster.pod_cidrs,
        *cluster.service_cidrs,
        *map(str, profile.cluster.node_cidr),
        ".svc",
        f".{cluster.dns_domain}",
        METADATA,
        *profile.solution.no_proxy,
    ]
    return ProxySpec(section.http, section.https, tuple(dict.fromkeys([*own, *section.no_proxy])))


def _kube_proxy(
    profile: Profile, facts: Compat, name: str, network_name: str, paths: Paths, *, dsr: bool
) -> KubeProxySpec:
    manager = manager_of(profile, "kube-proxy")
    managed_by = profile.kube_proxy.managed_by or profile.solution.owners.kube_proxy
    return KubeProxySpec(
        wanted=managed_by == "winboot",
        config=components.kube_proxy_config(profile, facts, name, network_name, dsr=dsr, paths=paths),
        arguments=components.kube_proxy_arguments(profile, facts, manager, paths),
        dsr=dsr,
        kubeconfig=profile.kube_proxy.kubeconfig,
    )


def _services(
    profile: Profile,
    network: NetworkSpec,
    runs: RuntimeSpec,
    kubelet: KubeletSpec,
    kube_proxy: KubeProxySpec,
    proxy: ProxySpec,
    paths: Paths,
) -> ServicesSpec:
    """In the order they start: the runtime, csi-proxy, kubelet, the network's agent, kube-proxy."""
    agent = network.agent
    services = [
        *runs.services,
        *_csi_proxy(profile, paths),
        _service(
            "kubelet",
            "Kubernetes kubelet",
            manager_of(profile, "kubelet"),
            paths.kubelet,
            _words(kubelet.arguments),
            paths,
            depends_on=(runs.service,),
            environment=dict(proxy.environment),
        ),
    ]
    if agent is not None:
        services.append(
            _service(
                agent.service,
                agent.display,
                manager_of(profile, agent.service),
                agent.program,
                (*_words(agent.arguments), *agent.words),
                paths,
                depends_on=("kubelet",),
                environment=dict(agent.environment),
                runs=agent.runs,
            )
        )
    if kube_proxy.wanted:
        services.append(
            _service(
                "kube-proxy",
                "Kubernetes kube-proxy",
                manager_of(profile, "kube-proxy"),
                paths.kube_proxy,
                _words(kube_proxy.arguments),
                paths,
                depends_on=("kubelet", *([agent.service] if agent else [])),
                environment={},
            )
        )
    return ServicesSpec(tuple(_as_wished(profile, service) for service in services))


def _as_wished(profile: Profile, service: ServiceSpec) -> ServiceSpec:
    """The service with the profile's variables over winboot's, and its priority."""
    own = profile.services.environment.get(service.name, {})
    environment = without_nones({**service.environment, **own})
    return replace(
        service, environment=environment, priority_class=profile.services.priority.get(service.name)
    )


def _csi_proxy(profile: Profile, paths: Paths) -> Iterator[ServiceSpec]:
    """csi-proxy, which answers the control manager and writes its log itself: cmd/csi-proxy/main.go and klog have its flags."""
    wanted = profile.storage.csi_proxy
    if wanted is None:
        return
    manager = manager_of(profile, "csi-proxy")
    flags = [rf"-kubelet-path={paths.kubelet_root}"]
    if wanted.version.at_least("1.2"):
        flags.append(f"-require-privacy={'true' if wanted.require_privacy else 'false'}")
    own = _service(
        "csi-proxy",
        "Kubernetes CSI proxy",
        manager,
        paths.csi_proxy,
        tuple(flags),
        paths,
        depends_on=(),
        environment={},
    )
    if manager == "sc":
        flags += ["-windows-service", f"-log_file={own.log_file}", "-logtostderr=false"]
    yield replace(own, arguments=tuple(flags), log_runner=False)


def _storage(profile: Profile, kubelet: KubeletSpec) -> StorageSpec:
    wanted, root = profile.storage, str(kubelet.config.get("volumePluginDir"))
    return StorageSpec(wanted.smb, wanted.iscsi, tuple(rf"{root}\{one}" for one in wanted.flex_volumes))


def _gmsa(profile: Profile) -> GmsaSpec | None:
    wanted = profile.gmsa
    if wanted is None:
        return None
    domain, owner, bundle = wanted.domain, "gmsa.webhook.ca_bundle", wanted.webhook.ca_bundle
    own = wanted.webhook.certificates == "own" and bundle is not None
    return GmsaSpec(
        dns_name=domain.dns_name,
        netbios_name=domain.netbios_name,
        forest=domain.forest or domain.dns_name,
        sid=domain.sid,
        guid=domain.guid,
        accounts=tuple(
            GmsaAccount(key, one.name, tuple(one.service_accounts), one.plugin_input)
            for key, one in wanted.accounts.items()
            if one is not None
        ),
        plugin_guid=wanted.plugin_guid,
        ca_bundle=certificate(bundle.read(owner).reveal(), str(bundle), owner) if own and bundle else "",
        secret=wanted.webhook.secret,
        app_id=wanted.plugin.app_id if wanted.plugin else None,
        provider=wanted.plugin.events.provider if wanted.plugin and wanted.plugin.events else None,
    )


def _service(
    name: str,
    display_name: str,
    manager: Manager,
    program: str,
    arguments: tuple[Text, ...],
    paths: Paths,
    *,
    depends_on: tuple[str, ...],
    environment: dict[str, str],
    runs: str = "",
) -> ServiceSpec:
    return ServiceSpec(
        name=name,
        display_name=display_name,
        description=f"{display_name}. Managed by winboot.",
        manager=manager,
        program=program,
        arguments=arguments,
        log_file=rf"{paths.logs}\{name}\{name}.log",
        # Under the service manager what a program prints is lost, unless a program writes it down.
        log_runner=manager == "sc",
        depends_on=depends_on,
        environment=environment,
        runs=runs,
    )


def _words(arguments: Any) -> tuple[Text, ...]:
    """Flags as words of a command line."""
    return tuple(_word(name, value) for name, value in arguments.items())


def _word(name: str, value: Text) -> Text:
    if isinstance(value, Known):
        return Known(value.name, f"--{name}={value.prefix}", value.suffix)
    return f"--{name}={value}"


def _trust_roots(profile: Profile) -> Iterator[TrustedCertificate]:
    owner = "windows.trust_roots"
    for one in profile.windows.trust_roots:
        pem = certificate(one.read(owner).reveal(), str(one), owner)
        yield from trusted_certificates(pem, str(one), owner)


def _fixes(profile: Profile, facts: Compat, solution: Network) -> list[RegistryFix]:
    """The packs that the network cannot do without, and those that the profile names."""
    names = dict.fromkeys([*solution.fixes, *profile.windows.known_fixes])
    packs = facts.section("fixes")
    return [
        RegistryFix(pack=name, source=packs[name]["source"], **value)
        for name in names
        for value in packs[name]["values"]
    ]


def _firewall(profile: Profile, solution: Network, kube_proxy: KubeProxySpec) -> list[PortRule]:
    section = profile.windows.firewall
    rules = [PortRule("winboot-kubelet", "10250", "TCP", "logs, exec and metrics through the kubelet")]
    if kube_proxy.wanted and section.kube_proxy_health:
        rules.append(PortRule("winboot-kube-proxy-health", "10256", "TCP", "health checks of load balancers"))
    if section.node_ports:
        rules.append(PortRule("winboot-node-ports-tcp", NODE_PORTS, "TCP", "NodePort services"))
        rules.append(PortRule("winboot-node-ports-udp", NODE_PORTS, "UDP", "NodePort services"))
    return [*rules, *solution.ports]


def _features(profile: Profile, solution: Network, *, dsr: bool) -> tuple[str, ...]:
    """What Windows must be able to do for this node."""
    dual = ("dual-stack",) if len(profile.cluster.pod_cidr) > 1 else ()
    return (*solution.features, *(("dsr",) if dsr else ()), *dual)


def _artifacts(
    profile: Profile,
    facts: Compat,
    services: ServicesSpec,
    kube_proxy: KubeProxySpec,
    where: Places,
    runs: RuntimeSpec,
    kubelet: KubeletSpec,
) -> tuple[Any, ...]:
    return downloads.artifacts(
        profile,
        facts,
        where,
        runs.programs,
        nssm=any(service.manager == "nssm" for service in services.all),
        log_runner=any(service.log_runner for service in services.all),
        kube_proxy=kube_proxy.wanted,
        flex_volumes=str(kubelet.config.get("volumePluginDir")),
    )


def _steps(profile: Profile) -> list[StepSource]:
    steps = []
    for step in profile.steps:
        texts = {block: _script(step.name, path) for block, path in step.files.items()}
        steps.append(
            StepSource(
                name=step.name,
                why=step.why,
                needs=step.needs,
                look=texts["look"],
                change=texts["change"],
                undo=texts.get("undo", ""),
            )
        )
    return steps


def _script(step: str, path: Any) -> str:
    try:
        return str(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"step {step}: {path} cannot be read ({error})", hint="It must be UTF-8 text."
        ) from error
