"""Ask whether the machine reaches what it has to download, before anything on it is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.programs import proxy_for
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"sources": [*_artifact_sources(spec), *_registries(spec)]}


def _artifact_sources(spec: NodeSpec) -> Iterator[Mapping[str, object]]:
    """One download of each host; all of them where they are files of a folder."""
    seen: set[str] = set()
    for artifact in spec.artifacts:
        host = urlsplit(artifact.url).netloc if "://" in artifact.url else artifact.url
        if host not in seen:
            seen.add(host)
            yield {
                "registry": False,
                "title": f"the artifact source {host}",
                "addresses": [_address(spec, artifact.url)],
            }


def _registries(spec: NodeSpec) -> Iterator[Mapping[str, object]]:
    """The pause image's registry, and those that the profile speaks of: any of a registry's mirrors or it itself will do."""
    for host, urls in spec.runtime.registry_urls.items():
        yield {
            "registry": True,
            "title": f"the registry {host}",
            "addresses": [_address(spec, url) for url in urls],
        }


def _address(spec: NodeSpec, url: str) -> Mapping[str, object]:
    proxy = proxy_for(spec, url)
    return {"url": url, "proxy": proxy} if proxy else {"url": url}


DOWNLOAD_SOURCES = Step(
    name="download-sources",
    why="winboot finds a proxy, mirror or registry that does not answer before it renames or restarts the machine",
    inputs=_inputs,
    needs=("node-preflight",),
    wanted=lambda spec: bool(spec.artifacts),
    identity=False,
)
