"""How kubelet.exe words a configuration value that it refuses, and at which stage of its start it does.

Words of kubelet 1.36 where the contract has a row for them (lab/contracts/kubelet.yaml); else winboot's, at the right stage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from winboot.config.compat import Compat, Finding
from winboot.config.compat.values import wrong_values
from winboot_lab.programs.base import GoError

# Read after the container runtime has answered, or with the authorization; the CPU manager's policy is not read on Windows.
LATER: Final = frozenset(
    {"systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "authorization", "cpuManagerPolicy"}
)
_QUANTITIES: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
# A field's type in the data, Go's name for it, and what of YAML fits it.
_GO_TYPES: Final[Mapping[str, tuple[str, type]]] = {
    "int32": ("int32", int),
    "int64": ("int64", int),
    "uint32": ("uint32", int),
    "bool": ("bool", bool),
    "text": ("string", str),
}
_JSON_TYPES: Final = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}


def check_types(compat: Compat, data: Mapping[str, Any]) -> None:
    """GoError in the decoder's words for the first field whose JSON type is not the Go field's."""
    fields: Mapping[str, Any] = compat.section("kubelet_fields")
    for name, value in data.items():
        kind = fields.get(name, {}).get("type", "")
        if kind == "duration" and isinstance(value, str) and list(wrong_values({"type": kind}, value)):
            raise GoError(_duration_problem(value))
        go, fits = _GO_TYPES.get(kind, ("", object))
        found = _JSON_TYPES.get(type(value))
        if go and found and type(value) is not fits:
            raise GoError(
                f"json: cannot unmarshal {found} into Go struct field KubeletConfiguration.{name} of type {go}"
            )


def _duration_problem(text: str) -> str:
    """ParseDuration of Go's time/format.go."""
    number = re.fullmatch(r"[-+]?\d+\.?\d*([^\d.]*)", text)
    if number is None:
        return f'time: invalid duration "{text}"'
    unit = number[1]
    return (
        f'time: unknown unit "{unit}" in duration "{text}"'
        if unit
        else f'time: missing unit in duration "{text}"'
    )


def refuse(config: Mapping[str, Any], path: Sequence[str | int], finding: Finding) -> None:
    """Raise GoError as ValidateKubeletConfiguration words it."""
    value: Any = config
    for part in path:
        value = value[part] if isinstance(part, int) or part in value else None
    name = ".".join(map(str, path))
    words = f"{name}: {finding.reason}" + (f", expected {finding.expected}" if finding.expected else "")
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        words = f"{name} (--{_flag(name)}) {value} must not be a negative number"
    raise _invalid(f"invalid configuration: {words}")


def check_taints(config: Mapping[str, Any]) -> None:
    """GoError for a taint with an effect that there is not."""
    for one in config.get("registerWithTaints") or []:
        if one.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            shown = " ".join(str(one.get(key, "")) for key in ("key", "value", "effect"))
            raise _invalid(f"invalid taint: {{{shown} <nil>}}")


def _invalid(words: str) -> GoError:
    failed = "failed to validate kubelet configuration, error: "
    return GoError(f"{failed}{words}, path: &TypeMeta{{Kind:,APIVersion:,}}")


def _flag(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def authorization_problem(config: Mapping[str, Any]) -> str | None:
    """Why no authorizer comes about, or None (BuildAuthz of cmd/kubelet/app/auth.go)."""
    mode = (config.get("authorization") or {}).get("mode", "Webhook")
    return None if mode in ("Webhook", "AlwaysAllow") else f"unknown authorization mode {mode}"


def resource_problems(config: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with reserved resources and eviction thresholds, in the order in which they are read."""
    for key, flag in (("kubeReserved", "kube-reserved"), ("systemReserved", "system-reserved")):
        for resource, text in (config.get(key) or {}).items():
            failed = f"--{flag} value failed to parse"
            if resource not in _RESOURCES:
                yield f'{failed}: cannot reserve "{resource}" resource'
            elif list(wrong_values({"type": "resources"}, {resource: text})):
                yield f'{failed}: failed to parse quantity "{text}" for "{resource}" resource: {_QUANTITIES}'
    for key in ("evictionHard", "evictionSoft"):
        for wrong in wrong_values({"type": "thresholds"}, config.get(key)):
            text = str((config.get(key) or {}).get(str(wrong.below[0]), "")) if wrong.below else ""
            yield f"{key}: {wrong.wrong}, expected {wrong.expected}" if "%" in text else _QUANTITIES
