"""How often each value and each object of a lab machine was written in effect: so that it became another one.

Work that is done again by a second controller, or by one that wakes up, shows here also where the state in the end is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from winboot_lab.windows.files import Files, Node
from winboot_lab.windows.hns import Hns, Json
from winboot_lab.windows.registry import Registry

# Files that change by nature: logs, and winboot's own notes of runs, findings and former values.
_NOTES: Final = re.compile(r"^c:\\(programdata\\winboot|var\\log)\\")
# What a join that nothing disturbs writes more than once. Nothing else is.
USUAL: Final[Mapping[str, int]] = {
    # Services are made on demand, and start by themselves once all is in place; HNS and the agent's while the network is made.
    r"\\services\\(containerd|hns|kubelet): start$": 2,
    r"\\services\\flanneld: start$": 3,
    # The machine comes with its image's name.
    r"\\(active)?computername: computername$": 2,
    r"\\tcpip\\parameters: (nv )?hostname$": 2,
    # Windows itself: the switch takes the adapter's settings over.
    r"\\tcpip\\parameters\\(interfaces\\\{|persistentroutes: )": 2,
    # containerd: for each image that is pulled.
    r"\\io\.containerd\.snapshotter\.v1\.windows\\metadata\.db$": 2,
}


class Writes:
    """Counts what all machines of a lab write, from now on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._count: Counter[str] = Counter()
        store, put, network = Files._store, Registry.put, Hns.create_network

        def storing(files: Files, node: Node, content: bytes, path: str) -> None:
            if content != node.content:
                # A file is written under another name first, and takes its own at once.
                self._count[path.lower().removesuffix(".winboot-new")] += 1
            store(files, node, content, path)

        def putting(registry: Registry, path: str, name: str, *given: Any, **more: Any) -> None:
            before = registry.value(path, name)
            put(registry, path, name, *given, **more)
            if registry.value(path, name) != before:
                self._count[f"{path}: {name}".lower()] += 1

        def networking(hns: Hns, body: Json) -> Json:
            self._count[f"network {body['Name']}"] += 1
            return network(hns, body)

        patch.setattr(Files, "_store", storing)
        patch.setattr(Registry, "put", putting)
        patch.setattr(Hns, "create_network", networking)

    def again(self) -> dict[str, int]:
        """What was written more than once, and how often."""
        assert self._count["network cbr0"] == 1
        return {what: times for what, times in self._count.items() if times > 1 and not _NOTES.search(what)}

    def too_often(self) -> dict[str, int]:
        """What was written more often than in a join that nothing disturbs."""
        return {what: times for what, times in self.again().items() if times > usual(what)}


def usual(what: str) -> int:
    """How often a join that nothing disturbs writes it."""
    return next((times for pattern, times in USUAL.items() if re.search(pattern, what)), 1)
