"""kubectl.exe, as far as a node's own scripts ask: reading objects, annotating one, and the version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import KINDS, Kind
from winboot_lab.programs import jsonpath
from winboot_lab.programs.base import GoError, Run, go_text
from winboot_lab.programs.goflags import Flags, pflags
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.session import Computer

_FLAGS: Final = {
    "kubeconfig": "text",
    "context": "text",
    "request-timeout": "text",
    "namespace": "text",
    "n": "text",
    "output": "text",
    "o": "text",
    "ignore-not-found": "bool",
    "all-namespaces": "bool",
    "A": "bool",
    "selector": "text",
    "l": "text",
    "field-selector": "text",
    "client": "bool",
    "raw": "text",
    "cache-dir": "text",
    "overwrite": "bool",
}
# A connection that does not come about costs the caller this long, less when it set a limit.
_SILENCE_S: Final = 10.0


class Kubectl:
    """kubectl get, kubectl annotate and kubectl version."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = pflags(argv[1:], _FLAGS.get)
            return Exit(0, self._answer(run, flags))
        except GoError as e:
            text = str(e)
            if "dial tcp" in text or "tls:" in text:
                machine.wait(_SILENCE_S if "i/o timeout" in text else 0.5)
                text = f"Unable to connect to the server: {text.partition(': ')[2]}"
            else:
                text = f"error: {text}"
            return Exit(1, b"", go_text(text))
        except ApiFailure as e:
            if e.code == 401:
                return Exit(1, b"", go_text("error: You must be logged in to the server (Unauthorized)"))
            return Exit(1, b"", go_text(f"Error from server ({e.reason}): {e.message}"))

    def _answer(self, run: Run, flags: Flags) -> bytes:
        verb, *words = flags.words or [""]
        if verb == "version" and flags.flag("client"):
            return go_text(f"Client Version: v{run.version}")
        if verb not in ("get", "annotate"):
            raise run.refuse(verb or "without a command")
        client = KubeClient(run, self._outside, load_kubeconfig(run, self._kubeconfig(run, flags)))
        if "raw" in flags:
            answer = client.ask("GET", flags.text("raw"))
            return go_text(answer if isinstance(answer, str) else json.dumps(answer))
        # Discovery: all API groups, kept in the caller's profile (cli-runtime: config_flags.go, getDefaultCacheDir).
        cache = flags.text("cache-dir") or run.env.get("USERPROFILE", "C:") + r"\.kube\cache"
        run.write(rf"{cache}\discovery\servergroups.json", b"{}")
        if verb == "annotate":
            return _annotated(run, client, flags, words)
        return self._get(run, client, flags, words)

    def _kubeconfig(self, run: Run, flags: Flags) -> str:
        return (
            flags.text("kubeconfig")
            or run.env.get("KUBECONFIG")
            or run.env.get("USERPROFILE", "C:") + r"\.kube\config"
        )

    def _get(self, run: Run, client: KubeClient, flags: Flags, words: list[str]) -> bytes:
        resource, _, name = (words[0] if words else "").partition("/")
        names = [name] if name else words[1:]
        kind = _kind(resource)
        path = _path(kind, flags)
        if not names:
            query = {
                "labelSelector": flags.text("selector", flags.text("l")),
                "fieldSelector": flags.text("field-selector"),
            }
            return _shown(run, client.ask("GET", path, query={k: v for k, v in query.items() if v}), flags)
        try:
            found = client.ask("GET", f"{path}/{names[0]}")
        except ApiFailure as e:
            if e.code == 404 and flags.flag("ignore-not-found"):
                return b""
            raise
        return _shown(run, found, flags)


def _annotated(run: Run, client: KubeClient, flags: Flags, words: list[str]) -> bytes:
    """`annotate KIND NAME KEY=VALUE KEY- --overwrite`: reads the object, sends a merge patch, null for what goes
    (kubectl: pkg/cmd/annotate, parseAnnotations and RunAnnotate)."""
    resource, name, *changes = words
    if not changes or not flags.flag("overwrite"):
        raise run.refuse("annotate without a change, or without --overwrite")
    path = f"{_path(_kind(resource), flags)}/{name}"
    client.ask("GET", path)
    wanted = {
        key: value if equals else None
        for key, equals, value in (
            one.partition("=") if "=" in one else (one.removesuffix("-"), "", "") for one in changes
        )
    }
    client.ask(
        "PATCH", path, {"metadata": {"annotations": wanted}}, content_type="application/merge-patch+json"
    )
    return go_text(f"{_kind(resource).kind.lower()}/{name} annotated")


def _kind(word: str) -> Kind:
    short = {
        "no": "nodes",
        "po": "pods",
        "svc": "services",
        "cm": "configmaps",
        "csr": "certificatesigningrequests",
    }
    word = short.get(word.lower(), word.lower())
    for kind in KINDS:
        if word in (kind.plural, kind.kind.lower(), kind.qualified):
            return kind
    raise GoError(f'the server doesn\'t have a resource type "{word}"')


def _path(kind: Kind, flags: Flags) -> str:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    everywhere = flags.flag("all-namespaces") or flags.flag("A")
    if kind.namespaced and not everywhere:
        base += f"/namespaces/{flags.text('namespace', flags.text('n', 'default'))}"
    return f"{base}/{kind.plural}"


def _shown(run: Run, found: dict[str, Any], flags: Flags) -> bytes:
    output = flags.text("output", flags.text("o"))
    if output == "json":
        return go_text(json.dumps({**found, "kind": "List"} if "items" in found else found, indent=4))
    if output == "name":
        items = found.get("items", [found])
        return go_text(*(f"{i['kind'].lower()}/{i['metadata']['name']}" for i in items))
    if output.startswith("jsonpath="):
        return jsonpath.show(output.removeprefix("jsonpath="), found).encode("utf-8")
    raise run.refuse(f"get --output={output or 'table'}")
