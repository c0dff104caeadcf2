"""What the runtimes share: images, each with one layer that only the host compute service can delete, registries, and the
records of sandboxes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from winboot_lab.programs.base import Daemon, GoError, Run
from winboot_lab.programs.cri import PodSandbox
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.files import COMPRESSED, ENCRYPTED


class Keeper(Daemon):
    """A running program that keeps images. Its subclasses say where, and which registries it asks."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self.outside = outside

    def _file_of(self, part: str) -> str:
        """The file that holds a part of its records."""
        raise NotImplementedError

    def _layer(self, number: int) -> str:
        """The folder of a layer."""
        raise NotImplementedError

    def _mirrors(self, host: str) -> Iterator[str]:
        """The hosts that it asks before a registry."""
        raise NotImplementedError

    def images(self) -> dict[str, dict[str, Any]]:
        """Images by reference."""
        found: dict[str, dict[str, Any]] = self._kept("images")
        return found

    def _kept(self, part: str) -> Any:
        path = self._file_of(part)
        return json.loads(self.run.read(path)).get(part, {}) if self.machine.files.exists(path) else {}

    def _keep(self, part: str, value: Any) -> None:
        path = self._file_of(part)
        data = json.loads(self.run.read(path)) if self.machine.files.exists(path) else {}
        self.run.write(path, json.dumps({**data, part: value}, sort_keys=True).encode("utf-8"))

    def import_image(self, reference: str, builds: tuple[int, ...]) -> str:
        """Take an image in; gives its id."""
        identity = "sha256:" + hashlib.sha256(reference.encode("utf-8")).hexdigest()
        if reference not in self.images():
            self._unpack(reference)
        self._keep("images", {**self.images(), reference: {"id": identity, "builds": list(builds)}})
        return identity

    def _unpack(self, reference: str) -> None:
        # One layer for an image: the snapshotter counts in its own records, and CreateLayer wants no folder there.
        number = int(self._kept("layers") or 0) + 1
        path = self._layer(number)
        if self.machine.files.exists(path):
            message = "Cannot create a file when that file already exists."
            raise GoError(f'failed to extract layer of "{reference}": mkdir {path}\\Files: {message}')
        self.machine.files.make_layer(path)
        self._keep("layers", number)
        self._keep("layer_of", {**(self._kept("layer_of") or {}), reference: number})

    def remove_image(self, reference: str) -> None:
        """Forget an image, and have its layer removed by the host compute service."""
        layers = dict(self._kept("layer_of") or {})
        number = layers.pop(reference, None)
        if number is not None and self.machine.files.exists(self._layer(number)):
            self.machine.files.destroy_layer(self._layer(number))
        self._keep("layer_of", layers)
        self._keep("images", {name: one for name, one in self.images().items() if name != reference})

    # Sandboxes

    def sandboxes(self) -> list[PodSandbox]:
        """Every sandbox, also one that has ended."""
        return [PodSandbox(**one) for one in self._kept("sandboxes") or []]

    def _keep_sandboxes(self, sandboxes: list[PodSandbox]) -> None:
        self._keep("sandboxes", [asdict(one) for one in sandboxes])

    def add_sandbox(self, sandbox: PodSandbox) -> None:
        """One that runs."""
        self._keep_sandboxes([*self.sandboxes(), sandbox])

    def drop_sandbox(self, identity: str) -> None:
        """Forget one."""
        self._keep_sandboxes([one for one in self.sandboxes() if one.id != identity])

    def require_plain_folder(self, root: str) -> None:
        """GoError where containers' disks would lie in a compressed or encrypted folder (docker/for-win#13920); by design
        (moby/moby#26947)."""
        if self.machine.files.need(root)[1].attributes & (COMPRESSED | ENCRYPTED):
            raise GoError(
                "Virtual hard disk files must be uncompressed and unencrypted and must not be sparse."
            )

    # Registries

    def _unreachable(self, host: str) -> str | None:
        """Why neither a mirror of the host nor the host itself answers; None when one does."""
        problems = [self._no_answer(h) for h in (*self._mirrors(host), host)]
        return problems[-1] if all(p is not None for p in problems) else None

    def _no_answer(self, host: str) -> str | None:
        name = host.partition(":")[0]
        head = f'failed to do request: Head "https://{host}/v2/"'
        world, proxied = (
            self.machine.world,
            any(k.upper() == "HTTPS_PROXY" and v for k, v in self.run.env.items()),
        )
        if name in world.behind_proxy and not proxied:
            return f"{head}: dial tcp: connectex: A connection attempt failed because the connected party did not respond"
        if host not in self.outside.images.hosts and name not in self.outside.images.hosts:
            return f"{head}: dial tcp: lookup {name}: no such host"
        if not self.machine.network.online():
            return f"{head}: dial tcp: connectex: A socket operation was attempted to an unreachable network."
        return None

    def _published(self, reference: str) -> tuple[int, ...] | None:
        """The Windows builds that an image has variants of; None where its registry does not have it."""
        images = self.outside.images
        return None if reference in images.missing else images.builds.get(reference)
