"""containerd's configuration, as the text of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.config import compat
from winboot.config.compat import Compat, Version
from winboot.config.compat.platform import missing_defaults, uses_bin_dirs
from winboot.config.node_spec.merged import over
from winboot.config.node_spec.node import (
    Folders,
    HandlerSpec,
    Manager,
    Paths,
    ProxySpec,
    RegistrySpec,
    RuntimeSpec,
    ServiceSpec,
)
from winboot.config.node_spec.toml import quoted, toml
from winboot.config.profile import Profile, sections

PROCESS: Final = HandlerSpec("runhcs-wcow-process", "process", None)
HYPERVISOR: Final = HandlerSpec("runhcs-wcow-hypervisor", "hypervisor", None)
# Docker's registry answers under another name than images are called by.
_SERVERS: Final = {"docker.io": "https://registry-1.docker.io"}


def containerd_version(profile: Profile, facts: Compat) -> Version:
    """The profile's, or the one that goes with its Kubernetes."""
    return profile.runtime.containerd or Version.parse(
        compat.default_containerd(facts, profile.kubernetes.version)
    )


def runtime(
    profile: Profile, facts: Compat, build: int, paths: Paths, proxy: ProxySpec, manager: Manager
) -> RuntimeSpec:
    """Everything about containerd on a machine of this build; `manager` is that of its service."""
    section, version = profile.runtime, profile.kubernetes.version
    containerd = containerd_version(profile, facts)
    image = section.pause_image or compat.default_pause_image(facts, version, build)
    handlers = tuple(one for one in (PROCESS, HYPERVISOR) if one.isolation in section.isolation)
    config_version = compat.containerd_config_version(containerd)
    scrub = "options.ScrubLogs" in missing_defaults(facts, containerd)
    tables = {one.name: _handler(one, scrub=scrub) for one in handlers}
    layers = _layers(facts, containerd, section.config)
    own = (
        _form_3(facts, containerd, image, tables, layers, paths)
        if config_version == 3
        else _form_2(image, tables, layers, paths)
    )
    names = ("containerd", "ctr", "containerd-shim-runhcs-v1")
    return RuntimeSpec(
        name="containerd",
        version=containerd,
        endpoint=paths.containerd_endpoint,
        service="containerd",
        answers="containerd",
        programs={"containerd": {one: rf"{paths.containerd_bin}\{one}.exe" for one in names}},
        services=(_service(manager, proxy, paths),),
        # Up to 1.23 the default is dockershim (pkg/kubelet/config/flags.go, --container-runtime).
        kubelet_flags={} if version.at_least("1.24") else {"container-runtime": "remote"},
        cni_form=2,
        folders=_folders(containerd, paths),
        config_version=config_version,
        config_text="\n".join(toml(over(own, section.config))) + "\n",
        pause_image=image,
        images=tuple(dict.fromkeys((image, *section.images))),
        registries=tuple(_registry(host, one) for host, one in section.registries.items() if one is not None),
        registry_urls=_registry_urls(section.registries, image),
        log=section.log,
        handlers=handlers,
        ephemeral=section.ephemeral,
        discards_unasked=DISCARD not in _asked_of_layers(section.config),
    )


def _service(manager: Manager, proxy: ProxySpec, paths: Paths) -> ServiceSpec:
    log = rf"{paths.logs}\containerd\containerd.log"
    arguments = ["--config", paths.containerd_config, "--log-level", "info"]
    if manager == "sc":
        # containerd answers the service manager itself, and then writes its log itself.
        arguments += ["--log-file", log, "--run-service"]
    return ServiceSpec(
        name="containerd",
        display_name="containerd",
        description="Runs containers for Kubernetes. Managed by winboot.",
        manager=manager,
        program=paths.containerd,
        arguments=tuple(arguments),
        log_file=log,
        log_runner=False,
        depends_on=(),
        environment=proxy.environment,
    )


def _folders(containerd: Version, paths: Paths) -> Folders:
    """containerd makes its root for SYSTEM and Administrators alone when it is not there yet: the environment of every pod,
    all layers (pkg/sys/filesys_windows.go, SddlAdministratorsLocalSystem). As SYSTEM it lays drop-ins over its
    configuration, plug-ins' programs included."""
    data, pattern = _parent(paths.containerd_state), drop_ins(containerd)
    images = (paths.containerd_root, *([paths.containerd_temp] if paths.containerd_temp else []))
    folders = [_parent(pattern)] if pattern else []
    return Folders(
        private=(data, paths.containerd_certs, *images, paths.containerd_state),
        # The configuration's is made before the step that writes it, so that an undo ends with it.
        readable=(paths.containerd_bin, _parent(paths.containerd_config), *folders),
        ours=(data, *images),
        opaque=(rf"{paths.containerd_root}\*\snapshots\*",),
        watched=(paths.containerd_certs, paths.containerd_bin, *folders),
        root=paths.containerd_root,
        layers=rf"{paths.containerd_root}\io.containerd.snapshotter.v1.windows\snapshots",
    )


def _parent(path: str) -> str:
    return path.rpartition("\\")[0]


DISCARD: Final = "discard_unpacked_layers"
_PROGRESS: Final = "image_pull_progress_timeout"


def _asked_of_layers(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the profile itself wants of pulls and layers, wherever its form of the file has it."""
    plugins = config.get("plugins") or {}
    old = (plugins.get("io.containerd.grpc.v1.cri") or {}).get("containerd") or {}
    new = plugins.get("io.containerd.cri.v1.images") or {}
    return {**old, **new}


def _layers(facts: Compat, containerd: Version, config: Mapping[str, Any]) -> dict[str, Any]:
    """Without this, every layer stays twice on the disk: as it was pulled and as it was unpacked. A base image of Windows has
    gigabytes (kubernetes-sigs/image-builder#640, awslabs/amazon-eks-ami#1360). It makes 2.1 and later pull as 1.7 does
    (internal/cri/config/config.go, CheckLocalImagePullConfigs). If the profile wants them kept, these lines pull by the
    transfer service, which ends a pull while it unpacks (containerd/containerd#13909): its limit then covers the unpacking."""
    asked = _asked_of_layers(config)
    if asked.get(DISCARD, True):
        return {DISCARD: True}
    limit = compat.pull_limit(facts, containerd)
    return {_PROGRESS: limit} if limit and not asked.get("use_local_image_pull") else {}


def _form_2(
    image: str, handlers: Mapping[str, Any], layers: Mapping[str, Any], paths: Paths
) -> dict[str, Any]:
    """For containerd 1.x: one CRI plug-in holds everything."""
    cri = {
        "sandbox_image": image,
        "cni": {"bin_dir": paths.cni_bin, "conf_dir": paths.cni_conf},
        "containerd": {
            "default_runtime_name": next(iter(handlers)),
            "snapshotter": "windows",
            **layers,
            "runtimes": handlers,
        },
        "registry": {"config_path": paths.containerd_certs},
    }
    return {"version": 2, **_head(paths), "plugins": {"io.containerd.grpc.v1.cri": cri}}


def _form_3(
    facts: Compat,
    containerd: Version,
    image: str,
    handlers: Mapping[str, Any],
    layers: Mapping[str, Any],
    paths: Paths,
) -> dict[str, Any]:
    """For containerd 2.x: images and runtime are separate plug-ins."""
    plug_ins = (
        {"bin_dirs": [paths.cni_bin]} if uses_bin_dirs(facts, containerd) else {"bin_dir": paths.cni_bin}
    )
    pattern = drop_ins(containerd)
    imports = {"imports": [pattern]} if pattern else {}
    images = {
        "snapshotter": "windows",
        **layers,
        "pinned_images": {"sandbox": image},
        "registry": {"config_path": paths.containerd_certs},
    }
    runtime = {
        "cni": {**plug_ins, "conf_dir": paths.cni_conf},
        "containerd": {"default_runtime_name": next(iter(handlers)), "runtimes": handlers},
    }
    plugins = {"io.containerd.cri.v1.images": images, "io.containerd.cri.v1.runtime": runtime}
    return {"version": 3, **imports, **_head(paths), "plugins": plugins}


def drop_ins(containerd: Version) -> str:
    """The files that containerd's own default file imports; empty before 2.2 (defaults_windows.go,
    DefaultConfigIncludePattern). A file that does not name them imports none (config.go, LoadConfig)."""
    return r"C:\Program Files\containerd\conf.d\*.toml" if containerd.at_least("2.2") else ""


def _head(paths: Paths) -> dict[str, Any]:
    return {
        "root": paths.containerd_root,
        "state": paths.containerd_state,
        **({"temp": paths.containerd_temp} if paths.containerd_temp else {}),
        "grpc": {"address": paths.containerd_pipe},
    }


def _handler(handler: HandlerSpec, *, scrub: bool) -> dict[str, Any]:
    """`scrub`: the shim leaves environment variables of containers out of its log, where that is not the default."""
    options: dict[str, Any] = {"ScrubLogs": True} if scrub else {}
    annotations = {}
    if handler.isolation == "hypervisor":
        annotations = {
            "pod_annotations": ["io.microsoft.virtualmachine.*"],
            "container_annotations": ["io.microsoft.container.*"],
        }
        options |= {
            "SandboxPlatform": "windows/amd64",
            "SandboxIsolation": 1,
            "ScaleCPULimitsToSandbox": True,
        }
    return {
        "runtime_type": "io.containerd.runhcs.v1",
        **annotations,
        **({"options": options} if options else {}),
    }


def _registry(host: str, registry: sections.Registry) -> RegistrySpec:
    """One hosts.toml. Settings at its root are those of `server`, or without one of the registry that containerd asks
    (containerd core/remotes/docker/config/hosts.go, parseHostsFile and ConfigureHosts)."""
    server = "" if host == "_default" else _SERVERS.get(host, f"https://{host}")
    # A login is in a table of its own also for the registry itself.
    urls = registry.mirrors or ((server,) if server and registry.password else ())
    settings = list(_settings(registry))
    lines = [f"server = {quoted(server)}"] if server else []
    lines += [] if urls else settings
    for url in urls:
        lines += ["", f"[host.{quoted(url)}]", "  capabilities = ['pull', 'resolve']"]
        lines += [f"  {one}" for one in settings]
    tables = [f'host."{url}".header' for url in urls] or ["header"]
    if registry.header and not registry.password:
        for table in tables:
            lines += ["", f"[{table}]", *_headers(registry)]
    return RegistrySpec(
        host=host,
        folder=_folder(host),
        hosts_toml="\n".join(lines) + "\n",
        authorize=urls if registry.password else (),
        headers=tuple(_headers(registry)),
        files=tuple(_files(registry)),
        secret=f"registry/{host}" if registry.password else None,
        credential=registry.password,
        user=registry.user,
    )


def _settings(registry: sections.Registry) -> Iterator[str]:
    if registry.ca:
        yield f"ca = {quoted(registry.ca)}"
    if registry.client:
        yield f"client = [[{quoted(registry.client.cert)}, {quoted(registry.client.key)}]]"
    if registry.skip_verify:
        yield "skip_verify = true"
    if registry.override_path:
        yield "override_path = true"


def _headers(registry: sections.Registry) -> Iterator[str]:
    for name, value in registry.header.items():
        yield f"  {quoted(name)} = {quoted(value)}"


def _files(registry: sections.Registry) -> Iterator[str]:
    if registry.ca:
        yield registry.ca
    if registry.client:
        yield from (registry.client.cert, registry.client.key)


def _registry_urls(
    registries: Mapping[str, sections.Registry | None], image: str
) -> Mapping[str, tuple[str, ...]]:
    """What containerd asks of each registry first: at its mirrors (or those of _default), then at the registry itself."""
    named = {host: one for host, one in registries.items() if one is not None}
    first, slash, _ = image.partition("/")
    of_image = first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"
    default = named.pop("_default", None) or sections.Registry()
    urls = {}
    for host in dict.fromkeys((of_image, *named)):
        registry = named.get(host, default)
        itself = (
            _SERVERS.get(host, f"https://{host}"),
            sections.Registry() if registry.mirrors else registry,
        )
        asked = [*((url, registry) for url in registry.mirrors), itself]
        urls[host] = tuple(dict.fromkeys(_asked(url, one) for url, one in asked))
    return urls


def _asked(url: str, registry: sections.Registry) -> str:
    """The address of the registry's API as containerd makes it (hosts.go, parseHostConfig): /v2/ at its end.

    Without /v2/ any answer will do there: a path of another kind has no such address, and this question sends no headers.
    """
    url = url.rstrip("/")
    if registry.override_path or registry.header:
        return f"{url}/"
    return f"{url}/" if url.endswith("/v2") else f"{url}/v2/"


def _folder(host: str) -> str:
    """The folder of a host under certs.d; a file name on Windows cannot contain a colon."""
    name, colon, port = host.partition(":")
    return f"{name}_{port}_" if colon else host
