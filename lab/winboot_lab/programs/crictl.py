"""crictl.exe and ctr.exe: asking and feeding containerd by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from winboot_lab.programs.base import GoError, Run, go_text
from winboot_lab.programs.containerd import Containerd
from winboot_lab.programs.cri import CriRuntime, dial
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.session import Computer

_CRICTL: Final = {
    "config": "text",
    "c": "text",
    "runtime-endpoint": "text",
    "r": "text",
    "image-endpoint": "text",
    "i": "text",
    "timeout": "text",
    "t": "text",
    "debug": "bool",
    "version": "bool",
    "output": "text",
    "o": "text",
    "quiet": "bool",
    "name": "text",
    "q": "bool",
    "no-trunc": "bool",
    "all": "bool",
    "a": "bool",
    "force": "bool",
    "f": "bool",
    "prune": "bool",
}
DEFAULT: Final = "npipe:////./pipe/containerd-containerd"


class Crictl:
    """crictl: version, info, images, pull, rmi, pods, stopp, rmp."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = pflags(argv[1:], _CRICTL.get)
            if flags.flag("version"):
                return Exit(0, go_text(f"crictl version v{run.version}"))
            return Exit(0, self._answer(run, flags))
        except GoError as e:
            now = machine.now()
            return Exit(
                1, b"", go_text(f'time="{now:%Y-%m-%dT%H:%M:%S}Z" level=fatal msg={json.dumps(str(e))}')
            )

    def _answer(self, run: Run, flags: Flags) -> bytes:
        endpoint = self._endpoint(run, flags)
        verb, *names = flags.words or [""]
        what = f"validate service connection: validate CRI v1 runtime API for endpoint {endpoint!r}"
        try:
            runtime = dial(run.machine, endpoint)
            runtime.require_cri()
        except GoError as e:
            raise GoError(f"{what}: {e}") from None
        match verb:
            case "version":
                return go_text(
                    "Version:  0.1.0",
                    f"RuntimeName:  {runtime.name}",
                    f"RuntimeVersion:  {'v' if runtime.name == 'containerd' else ''}{runtime.version}",
                    "RuntimeApiVersion:  v1",
                )
            case "info":
                return _json(_info(runtime))
            case "images" | "image" | "img":
                return _images(runtime, flags)
            case "pull":
                return go_text(f"Image is up to date for {runtime.pull(names[0])}")
            case "pods":
                return _pods(runtime, flags)
            case "rmi":
                known = sorted(runtime.images())
                chosen = known if flags.flag("all") or flags.flag("a") else [i for i in names if i in known]
                for image in chosen:
                    runtime.remove_image(image)
                return go_text(*(f"Deleted: {image}" for image in chosen))
            case "stopp" | "rmp":
                return self._remove(runtime, verb, names, everything=flags.flag("all") or flags.flag("a"))
        raise run.refuse(verb or "without a command")

    def _remove(self, runtime: CriRuntime, verb: str, names: list[str], *, everything: bool) -> bytes:
        known = [s.id for s in runtime.listed()]
        chosen = known if everything else [i for n in names for i in known if i.startswith(n)]
        for identity in chosen:
            runtime.remove_sandbox(identity)
        word = "Stopped" if verb == "stopp" else "Removed"
        return go_text(*(f"{word} sandbox {i}" for i in chosen))

    def _endpoint(self, run: Run, flags: Flags) -> str:
        given = flags.text("runtime-endpoint", flags.text("r"))
        if given:
            return given
        path = flags.text("config", flags.text("c", run.env.get("CRI_CONFIG_FILE", "")))
        if not path:
            path = run.env.get("USERPROFILE", "C:") + r"\.crictl\crictl.yaml"
            if not run.exists(path):
                return DEFAULT
        if not run.exists(path):
            raise GoError(f"load config file: {run.path(path)}: The system cannot find the file specified.")
        try:
            data = yaml.safe_load(run.read(path).decode("utf-8-sig")) or {}
            return str(data.get("runtime-endpoint") or DEFAULT)
        except (yaml.YAMLError, UnicodeDecodeError, AttributeError) as e:
            raise GoError(f"load config file: {e}") from None


def _json(value: Any) -> bytes:
    return go_text(json.dumps(value, indent=2))


def _info(runtime: CriRuntime) -> dict[str, Any]:
    problem = runtime.network_problem()
    network = {"type": "NetworkReady", "status": problem is None, "reason": "", "message": ""}
    if problem is not None:
        network = {**network, "reason": "NetworkPluginNotReady", "message": problem}
    ready = {"type": "RuntimeReady", "status": True, "reason": "", "message": ""}
    return {
        "status": {"conditions": [ready, network]},
        "config": {"sandboxImage": runtime.sandbox_image},
    }


def _images(runtime: CriRuntime, flags: Flags) -> bytes:
    found = runtime.images()
    if flags.flag("quiet") or flags.flag("q"):
        return go_text(*(str(i["id"]) for i in found.values()))
    if flags.text("output", flags.text("o")) == "json":
        images = [
            {"id": i["id"], "repoTags": [r], "repoDigests": [], "size": "104857600"}
            for r, i in sorted(found.items())
        ]
        return _json({"images": images})
    lines = ["IMAGE                          TAG       IMAGE ID        SIZE"]
    for reference, image in sorted(found.items()):
        name, _, tag = reference.rpartition(":")
        lines.append(f"{name:<30} {tag:<9} {image['id'][7:20]}   105MB")
    return go_text(*lines)


def _pods(runtime: CriRuntime, flags: Flags) -> bytes:
    found = [s for s in runtime.listed() if re.search(flags.text("name"), s.name)]
    if flags.flag("quiet") or flags.flag("q"):
        return go_text(*(s.id if flags.flag("no-trunc") else s.id[:13] for s in found)) if found else b""
    if flags.text("output", flags.text("o")) == "json":
        items = [
            {
                "id": s.id,
                "metadata": {"name": s.name, "namespace": s.namespace, "uid": s.uid, "attempt": 0},
                "state": "SANDBOX_READY" if runtime.ready(s) else "SANDBOX_NOTREADY",
                "createdAt": str(s.created),
            }
            for s in found
        ]
        return _json({"items": items})
    lines = ["POD ID              CREATED             STATE               NAME                NAMESPACE"]
    lines += [
        f"{s.id[:13]}       now                 {'Ready' if runtime.ready(s) else 'NotReady':<19} {s.name:<19} {s.namespace}"
        for s in found
    ]
    return go_text(*lines)


_CTR: Final = {
    "namespace": "text",
    "n": "text",
    "address": "text",
    "a": "text",
    "quiet": "bool",
    "q": "bool",
    "debug": "bool",
}


class Ctr:
    """ctr: `images ls`, `images pull`, `images import` and `version`; the kubelet sees the namespace k8s.io only."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        try:
            return Exit(0, self._answer(run, pflags(argv[1:], _CTR.get)))
        except GoError as e:
            return Exit(1, b"", go_text(f"ctr: {e}"))

    def _answer(self, run: Run, flags: Flags) -> bytes:
        pipe = flags.text("address", flags.text("a", r"\\.\pipe\containerd-containerd"))
        runtime = dial(run.machine, "npipe://" + pipe.replace("\\", "/"))
        assert isinstance(runtime, Containerd), pipe
        pods = flags.text("namespace", flags.text("n", "default")) == "k8s.io"
        match flags.words:
            case ["version"]:
                return go_text(
                    "Client:", f"  Version:  v{run.version}", "Server:", f"  Version:  v{runtime.version}"
                )
            case ["images" | "image" | "i", "ls" | "list"]:
                found = sorted(runtime.images()) if pods else []
                quiet = flags.flag("quiet") or flags.flag("q")
                return go_text(*([] if quiet else ["REF TYPE DIGEST SIZE PLATFORMS LABELS"]), *found)
            case ["images" | "image" | "i", "pull", reference] if pods:
                return go_text(f"done: {runtime.pull(reference)}")
            case ["images" | "image" | "i", "import", path] if pods:
                return self._import(run, runtime, path)
        raise run.refuse(" ".join(flags.words))

    def _import(self, run: Run, runtime: Containerd, path: str) -> bytes:
        """A lab image archive is JSON: `{"reference": …, "builds": […]}`."""
        try:
            data = json.loads(run.read(path))
            reference, builds = str(data["reference"]), tuple(int(b) for b in data["builds"])
        except (ValueError, KeyError, TypeError):
            raise GoError("unrecognized image format") from None
        runtime.import_image(reference, builds)
        return go_text(f"unpacking {reference}...done")
