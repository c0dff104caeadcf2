"""Documents of the nodes of a lab site, gathered as `winboot doctor` does."""

from __future__ import annotations

from tests.lab.site import Direct, Site
from winboot.config.node_spec import NodeSpec
from winboot.operations.doctor import Document, Verdict, gather, judge


def documents(site: Site) -> list[Document]:
    """One document for each node of the site."""
    controller = site.controller()

    def one(spec: NodeSpec) -> Document:
        cluster = controller.context.cluster(spec)
        try:
            return gather(spec, lambda: Direct(controller, spec), cluster)
        finally:
            cluster.close()

    return [one(spec) for spec in site.specs()]


def verdict(site: Site, node: str = "win-1") -> Verdict:
    """What doctor says about one node, with its siblings asked, too."""
    return next(one for one in judge(documents(site)) if one.node == node)
