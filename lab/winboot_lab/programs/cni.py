"""containerd's side of CNI: which configuration counts, and running its plug-ins for one sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from winboot_lab.programs.base import GoError, Run, run_child
from winboot_lab.windows import paths
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.programs_api import Exit

NOT_INITIALISED = "cni plugin not initialized"


@dataclass(frozen=True, slots=True)
class NetworkList:
    """One CNI configuration: its name, version and plug-ins in order."""

    path: str
    name: str
    version: str
    plugins: tuple[dict[str, Any], ...]


def load(run: Run, folder: str) -> NetworkList:
    """The first configuration of the folder by name; GoError as containerd says it in its status."""
    absolute = run.path(folder)
    names: list[str] = []
    if run.machine.files.is_directory(absolute):
        names = sorted(e.name for e in run.machine.files.list(absolute))
    candidates = [n for n in names if n.lower().endswith((".conf", ".conflist", ".json"))]
    if not candidates:
        raise GoError(
            f"cni config load failed: no network config found in {folder}: {NOT_INITIALISED}: failed to load cni config"
        )
    return _parse(run, paths.join(absolute, candidates[0]))


def _parse(run: Run, path: str) -> NetworkList:
    data = decode_json(run.read(path), f"failed to load CNI config file {path}: error parsing configuration")
    plugins = data.get("plugins") if path.lower().endswith(".conflist") else [data]
    if not isinstance(plugins, list) or not plugins:
        raise GoError(f"cni config load failed: CNI config list {path} has no plugins, skipping")
    if not data.get("name"):
        raise GoError("cni config load failed: error parsing configuration list: no name")
    for plugin in plugins:
        if not isinstance(plugin, dict) or not plugin.get("type"):
            raise GoError("cni config load failed: error parsing configuration: missing 'type'")
    return NetworkList(path, str(data["name"]), str(data.get("cniVersion", "0.1.0")), tuple(plugins))


def decode_json(raw: bytes, doing: str) -> dict[str, Any]:
    """JSON as Go's decoder takes it: a byte order mark or anything before the value is an error."""
    if raw[:3] == b"\xef\xbb\xbf":
        raise GoError(f"{doing}: invalid character 'ï' looking for beginning of value")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise GoError(f"{doing}: invalid character 'ÿ' looking for beginning of value")
    try:
        data = json.loads(raw)
    except (ValueError, UnicodeDecodeError) as e:
        raise GoError(f"{doing}: {e}") from None
    if not isinstance(data, dict):
        raise GoError(
            f"{doing}: json: cannot unmarshal value into Go value of type map[string]interface {{}}"
        )
    return data


def find_plugin(run: Run, kind: str, folders: Sequence[str]) -> str:
    """The plug-in's program in the bin folders."""
    for folder in folders:
        path = paths.join(run.path(folder), f"{kind}.exe")
        if run.machine.files.exists(path):
            return path
    raise GoError(f'failed to find plugin "{kind}" in path [{" ".join(folders)}]')


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a plug-in receives about the sandbox: the container's id and its HCN namespace."""

    id: str
    namespace: str
    arguments: str = ""


def invoke(
    run: Run, command: str, conf: Mapping[str, Any], sandbox: Sandbox, folders: Sequence[str]
) -> dict[str, Any]:
    """Run one plug-in and give its result; GoError with what it said."""
    kind = str(conf["type"])
    environment = {
        **run.env,
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": sandbox.id,
        "CNI_NETNS": sandbox.namespace,
        "CNI_IFNAME": "eth0",
        "CNI_ARGS": sandbox.arguments,
        "CNI_PATH": ";".join(folders),
    }
    verb = {"ADD": "add", "DEL": "delete", "CHECK": "check", "STATUS": "status"}[command]
    path = find_plugin(run, kind, folders)
    try:
        ended = run_child(run, path, "", env=environment, stdin=json.dumps(conf).encode("utf-8"))
    except Failure as e:
        raise GoError(f'plugin type="{kind}" failed ({verb}): {e.problem.message}') from None
    return _result(ended, f'plugin type="{kind}" failed ({verb})')


def _result(ended: Exit, failed: str) -> dict[str, Any]:
    try:
        data = json.loads(ended.stdout or b"{}")
    except ValueError:
        raise GoError(f"{failed}: netplugin failed with no error message") from None
    if ended.code != 0:
        message = str(data.get("msg", "")) if isinstance(data, dict) else ""
        details = str(data.get("details", "")) if isinstance(data, dict) else ""
        raise GoError(f"{failed}: {'; '.join(t for t in (message, details) if t) or 'netplugin failed'}")
    return data if isinstance(data, dict) else {}


def run_list(
    run: Run,
    command: str,
    network: NetworkList,
    sandbox: Sandbox,
    folders: Sequence[str],
    runtime: Mapping[str, Any],
) -> dict[str, Any]:
    """Run all plug-ins of a list for a sandbox, each with the result of the one before."""
    result: dict[str, Any] = {}
    ordered = network.plugins if command == "ADD" else tuple(reversed(network.plugins))
    for plugin in ordered:
        conf: dict[str, Any] = {**plugin, "name": network.name, "cniVersion": network.version}
        capabilities = plugin.get("capabilities") or {}
        wanted = {k: v for k, v in runtime.items() if capabilities.get(k)}
        if wanted:
            conf["runtimeConfig"] = wanted
        conf.pop("capabilities", None)
        if result:
            conf["prevResult"] = result
        result = invoke(run, command, conf, sandbox, folders)
    return result
