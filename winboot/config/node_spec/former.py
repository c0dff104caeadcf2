"""A node at other versions than its profile wants: those that a rollback has brought back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from winboot.base.errors import InvalidInput
from winboot.config.compat import Version
from winboot.config.inventory import Machine
from winboot.config.node_spec.node import Artifact, NodeSpec
from winboot.config.node_spec.resolve import resolve
from winboot.config.profile import Profile
from winboot.config.profile.sections import Artifacts


def at_versions(machine: Machine, versions: Mapping[str, str], archives: Mapping[str, str]) -> NodeSpec:
    """What the node would be if its profile wanted these versions: artifact → version, and artifact → SHA-256 of its archive.
    Configurations and flags are those of these versions. What the profile pins itself comes first.

    Raises InvalidInput where a version is invalid, or the profile's network does not know it.
    """
    try:
        spec = resolve(_profile_at(machine.profile, versions), machine)
    except ValueError as error:
        raise InvalidInput(f"{machine.name}: the versions noted there cannot be used: {error}") from None
    return replace(spec, artifacts=tuple(_pinned(one, archives.get(one.name)) for one in spec.artifacts))


def _profile_at(profile: Profile, versions: Mapping[str, str]) -> Profile:
    """The profile with these versions. Raises ValueError."""
    keys = {"crictl": "crictl", "nssm": "nssm", **{one.name: one.key for one in profile.solution.downloads}}
    wanted = {key: versions[name] for name, key in keys.items() if name in versions}
    read = Artifacts.model_validate(wanted)
    kubernetes = {"version": Version.parse(versions["kubernetes"])} if "kubernetes" in versions else {}
    keys = {"containerd": "containerd", "docker": "docker", "cri-dockerd": "cri_dockerd"}
    runtime = {key: Version.parse(versions[name]) for name, key in keys.items() if name in versions}
    return profile.model_copy(
        update={
            "kubernetes": profile.kubernetes.model_copy(update=kubernetes),
            "runtime": profile.runtime.model_copy(update=runtime),
            "artifacts": profile.artifacts.model_copy(update={key: getattr(read, key) for key in wanted}),
        }
    )


def _pinned(artifact: Artifact, archive: str | None) -> Artifact:
    """With the hash of its archive where the profile has none; a plain file is its own member."""
    whole = artifact.sha256 or archive
    own = whole if artifact.kind == "file" else None
    members = tuple(replace(one, sha256=one.sha256 or own) for one in artifact.members)
    return replace(artifact, sha256=whole, members=members)
