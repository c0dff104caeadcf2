"""The modules that a value passes on its way from YAML to the script: `python -m tools.value_path`.

A value passes a module if a function of it returns the value, or an object that directly holds it. Checks only read it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

from winboot.config.inventory import load_inventory
from winboot.config.node_spec import resolve
from winboot.script.plan import make_plan
from winboot.script.rendering import render
from winboot.script.steps import STEPS

VALUE: Final = "a-value-to-follow.example"
_PROFILE: Final = f"""
kubernetes: {{version: "1.36.5"}}
cluster:
  server: https://10.0.0.10:6443
  ca: {{file: ca.crt}}
  pod_cidr: 10.244.0.0/16
  service_cidr: 10.96.0.0/12
  dns_domain: {VALUE}
network: {{cni: flannel}}
"""
_INVENTORY: Final = """
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    connection: {user: u, password: {env: P}}
    hosts: {win-1: {address: 10.0.1.11}}
"""
_CA: Final = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def passed() -> tuple[str, ...]:
    """The modules of winboot, in the order in which the value reaches them."""
    found: dict[str, None] = {}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "return" and module.startswith("winboot.") and _holds([argument, *_inside(argument)]):
            found[module] = None

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("profile.yaml", _PROFILE), ("inventory.yaml", _INVENTORY), ("ca.crt", _CA)):
            (folder / file).write_text(text, encoding="utf-8")
        sys.setprofile(watch)
        try:
            (machine,) = load_inventory(folder / "inventory.yaml")
            spec = resolve(machine.profile, machine)
            script = render(make_plan(spec, STEPS), spec)
        finally:
            sys.setprofile(None)
    assert VALUE in script.text
    return tuple(found)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    if not type(value).__module__.startswith("winboot."):
        return ()
    kind: Any = type(value)
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", {})
    return [getattr(value, one, None) for one in names]


def _holds(values: Iterable[object]) -> bool:
    return any(isinstance(one, str) and one == VALUE for one in values)


if __name__ == "__main__":
    modules = passed()
    print("\n".join(modules))
    print(f"{len(modules)} modules")
