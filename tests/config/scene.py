"""Small profiles for the tests: a good one, and good sections to fill up a bad one with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.config.profile import Profile, profile_from
from winboot.config.source import Complaint, compose, merge

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
GOOD = """
kubernetes: {version: "1.36.5"}
cluster:
  server: https://10.0.0.10:6443
  ca: {file: ca.crt}
  kubeconfig: {file: kubeconfig}
  pod_cidr: 10.244.0.0/16
  service_cidr: 10.96.0.0/12
network: {cni: flannel}
"""
FILE = "profile.yaml"


def complaints(text: str) -> list[Complaint]:
    """What is wrong with a profile of which only some sections are written; the others are good."""
    written = compose(text, FILE)
    good = compose(GOOD, "good.yaml")
    missing = {key: entry for key, entry in good.entries.items() if key not in written.entries}
    merged = type(written)(written.place, {**written.entries, **missing})
    return profile_from(merged, "profile")[1]


def a_profile(text: str = "", folder: Path | None = None) -> Profile:
    """A good profile with the given text laid over it."""
    file = str((folder or Path()) / FILE)
    node = merge(compose(GOOD, file), compose(text, file))
    profile, found = profile_from(node, "profile")
    errors = [str(one) for one in found if one.level == "error"]
    assert profile is not None and not errors, errors
    return profile


def an_inventory(folder: Path, inventory: str, profile: str = GOOD) -> Path:
    """An inventory file with profile.yaml, a CA and a kubeconfig next to it."""
    (folder / FILE).write_text(profile, encoding="utf-8")
    (folder / "ca.crt").write_text(CA, encoding="utf-8")
    path = folder / "inventory.yaml"
    path.write_text(inventory, encoding="utf-8")
    return path


def a_spec(
    folder: Path, *, profile: str = "", os: str = "2022", host: str = "{address: 10.0.1.11}"
) -> NodeSpec:
    """The spec of one machine whose profile is the good one with the given text over it."""
    text = f"""
groups:
  pool:
    profile: profile.yaml
    os: "{os}"
    hosts: {{win-1: {host}}}
"""
    path = an_inventory(folder, text)
    machine = load_inventory(path)["win-1"]
    changed = a_profile(profile, folder)
    return resolve(changed, replace(machine, profile=changed))
