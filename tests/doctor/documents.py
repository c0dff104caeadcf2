"""Documents of the nodes of a lab site, gathered as `winboot doctor` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.site import Direct, Site
from winboot.config.node_spec import NodeSpec
from winboot.operations.doctor import Document, Verdict, gather, judge, live
from winboot.operations.doctor.bundle import of_document, pack
from winboot.operations.doctor.collection import Collection
from winboot.operations.doctor.gather import WINDOW_S
from winboot.operations.doctor.items import collected
from winboot.script.rendering import collect as collect_script


def documents(site: Site) -> list[Document]:
    """One document for each node of the site."""
    controller = site.controller()

    def one(spec: NodeSpec) -> Document:
        cluster = controller.context.cluster(spec)
        try:
            return gather(spec, live(lambda: Direct(controller, spec)), cluster)
        finally:
            cluster.close()

    return [one(spec) for spec in site.specs()]


def verdict(site: Site, node: str = "win-1") -> Verdict:
    """What doctor says about one node, with its siblings asked, too."""
    return next(one for one in judge(documents(site)) if one.node == node)


def collection(
    site: Site,
    *,
    logs: bool = False,
    change: Callable[[str], str] = str,
    through: Callable[[Direct], Any] = lambda direct: direct,
    wait: Callable[[float], object] | None = None,
) -> Collection:
    """A collection of the site's first node that was not started; `change` changes its script, `through` its way there."""
    controller, spec = site.controller(), site.specs()[0]
    return Collection(
        lambda: through(Direct(controller, spec)),
        change(collect_script(spec, collected(spec, logs=logs))),
        WINDOW_S,
        wait or site.settle,
        lambda: site.machine.now().timestamp(),
    )


def bundle(site: Site, file: Path, *, logs: bool = False) -> Path:
    """A bundle of the site's first node, as `winboot collect` writes it."""
    run = collection(site, logs=logs)
    spec = site.specs()[0]
    document = gather(spec, run.look, site.controller().context.cluster(spec))
    assert not document.login_problem, document.login_problem
    file.write_bytes(
        pack({spec.node.name: [of_document(document), *run.items]}, winboot="1", since_s=WINDOW_S, logs=logs)
    )
    return file
