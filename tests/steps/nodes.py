"""A node of a joined lab: a test can undo one step there, look at it and apply it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tests.lab.actions import Hand
from tests.lab.site import Controller, Inside, Site
from tests.lab.state import changes, state
from tests.steps.bench import Rig, Told, part_of
from winboot.remote.cluster.base import ExpectedNode
from winboot.script.steps.kubelet_credentials import BOOTSTRAP_TOKEN

FORMER = r"C:\ProgramData\winboot\former"
KEEPS = rf"{FORMER}\test.jsonl"


class Node(Rig):
    """The one node of a site. Scripts are of one step; the rest of the node is there."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.machine = site.machine
        (self.spec,) = site.specs()
        self._before = state(site)
        self._minted: list[str] = []

    def after(self, *hands: Hand) -> Node:
        """The node after something happened to it."""
        for hand in hands:
            hand(self.site)
        return self

    def change(self, *names: str, secrets: Mapping[str, str] | None = None) -> Told:
        """Mode Change until nothing is detached any more, with a controller that mints and approves."""
        controller = Controller(self.site)
        cluster = Inside(controller)
        try:
            given = self._secrets(cluster, names) if secrets is None else secrets
            for _ in range(60):
                told = self.run(*names, secrets=given)
                if told.ended != "detached":
                    return told
                self.site.settle(10)
        finally:
            for token in self._minted:
                cluster.forget_token(token)
            controller.alive = False
        raise AssertionError("it stays detached")

    def undo(self, *names: str, forgotten: str = "") -> Told:
        """Mode Undo of these steps alone: what the others have noted is put aside meanwhile.

        `forgotten` is a step that the profile no longer has, but whose notes are still there.
        """
        with self._others_aside((*names, forgotten)):
            for _ in range(60):
                told = super().undo(*names)
                if told.ended != "detached":
                    return Told([event for event in told.events if event.get("step") != "test"])
                self.site.settle(10)
        raise AssertionError("it stays detached")

    @property
    def node_object(self) -> Any:
        """The Node as the cluster knows it."""
        return self.site.node(self.spec.node.name)

    @property
    def differs(self) -> list[str]:
        """What is otherwise than when this test began; a line each."""
        assert not self.site.refusals
        return changes(self._before, state(self.site))

    def _secrets(self, cluster: Inside, names: tuple[str, ...]) -> dict[str, str]:
        """What the steps ask for; and whose certificate requests are in order meanwhile."""
        wanted = {
            secret for step in part_of(self.spec, names).node_side for secret in step.secrets(self.spec)
        }
        secrets = dict.fromkeys(wanted, "the password of a registry")
        requestors = frozenset[str]()
        if BOOTSTRAP_TOKEN in wanted:
            token = cluster.mint_token(node=self.spec.node.name, lifetime=timedelta(hours=1))
            self._minted.append(token.id)
            secrets[BOOTSTRAP_TOKEN] = token.value.reveal()
            requestors = frozenset({f"system:bootstrap:{token.id}"})
        names_of_it = frozenset({self.spec.node.name, self.machine.name.lower()})
        addresses = frozenset({self.site.plans[0].address})
        cluster.settle_requests(ExpectedNode(self.spec.node.name, names_of_it, addresses, requestors))
        return secrets

    @contextmanager
    def _others_aside(self, names: tuple[str, ...]) -> Iterator[None]:
        """Notes of other steps are where an undo does not see them."""
        files = self.machine.files
        paths = [rf"{FORMER}\{entry.name}" for entry in files.list(FORMER) if not entry.node.directory]
        own = {rf"{FORMER}\{name}.jsonl" for name in names}
        aside = {path: files.read(path) for path in paths if path not in own}
        for path in aside:
            files.delete(path)
        # With nothing left to put back, the state folder would go, too.
        files.write(KEEPS, b'{"kind":"Unheard","key":"","value":null}\n')
        try:
            yield
        finally:
            files.delete(KEEPS)
            for path, content in aside.items():
                files.write(path, content)
