"""The machine itself contacts proxy, artifact source and registries before the first change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from winboot_lab.windows.sockets import Response, World

from tests.steps.bench import Bench, Told
from tests.steps.builders import a_spec_of
from winboot.config.node_spec import NodeSpec, ProxySpec
from winboot.report.hints import hint_for

STEP = "download-sources"
PROXY = "http://proxy.corp.example:3128"
HOSTS = ("dl.k8s.io", "github.com", "nssm.cc")


def behind_a_proxy(spec: NodeSpec, url: str = PROXY) -> NodeSpec:
    return replace(spec, proxy=ProxySpec(url, url, ()))


def from_a_folder(spec: NodeSpec) -> NodeSpec:
    """Artifacts in a folder that the machine reads."""
    moved = [replace(one, url=rf"D:\bundle\{one.file}") for one in spec.artifacts]
    return replace(spec, artifacts=tuple(moved))


def the_internet(world: World) -> None:
    for host in HOSTS:
        world.serve(host, 443, lambda request: Response(200, b"bytes"))


def asked(
    arrange: Callable[[World], None] = lambda world: None,
    spec: Callable[[NodeSpec], NodeSpec] = lambda spec: spec,
) -> Told:
    """The report of a bare machine in an arranged world, with a minimal profile."""
    bench = Bench(spec=spec(a_spec_of("minimal")))
    the_internet(bench.world)
    arrange(bench.world)
    return bench.look(STEP, "directories")


def test_a_machine_that_reaches_everything_passes() -> None:
    assert asked().states[STEP] == "ok"


def refuse(host: str, status: int) -> Callable[[World], None]:
    return lambda world: world.serve(host, 443, lambda request: Response(status))


@pytest.mark.parametrize(
    ("arrange", "spec", "problem", "said"),
    [
        (lambda world: None, behind_a_proxy, "proxy", "The proxy name could not be resolved"),
        (
            lambda world: world.name("proxy.corp.example", "10.9.9.9"),
            behind_a_proxy,
            "proxy",
            "proxy.corp.example:3128",
        ),
        (
            lambda world: world.proxy("proxy.corp.example", 3128),
            lambda spec: behind_a_proxy(spec, "https://proxy.corp.example:3128"),
            "artifact-source",
            "does not support proxies with the https scheme",
        ),
        (lambda world: world.close("dl.k8s.io", 443), lambda spec: spec, "artifact-source", "dl.k8s.io"),
        (refuse("github.com", 404), lambda spec: spec, "artifact-source", "404"),
        (lambda world: world.close("registry.k8s.io", 443), lambda spec: spec, "registry", "registry.k8s.io"),
        (lambda world: None, from_a_folder, "artifact-source", r"D:\bundle"),
    ],
    ids=[
        "proxy's name",
        "proxy's port",
        "https proxy",
        "source away",
        "source refuses",
        "registry away",
        "folder",
    ],
)
def test_what_does_not_answer_stops_the_node_before_the_first_change(
    arrange: Callable[[World], None], spec: Callable[[NodeSpec], NodeSpec], problem: str, said: str
) -> None:
    told = asked(arrange, spec)

    assert told.states == {STEP: "failed", "directories": "blocked"}
    found = told.step(STEP)["problem"]
    assert found["id"] == problem
    assert said in found["message"]
    assert hint_for(found["id"], found["hint"])


def test_a_proxy_that_is_away_is_reported_once_for_all_that_is_behind_it() -> None:
    assert asked(spec=behind_a_proxy).step(STEP)["problem"]["hint"] == "proxy"


API, LOGIN = {"Docker-Distribution-Api-Version": "registry/2.0"}, {"WWW-Authenticate": "Basic"}


def at_a_mirror(url: str) -> Callable[[NodeSpec], NodeSpec]:
    return lambda spec: replace(
        spec, runtime=replace(spec.runtime, registry_urls={"registry.k8s.io": (url,)})
    )


@pytest.mark.parametrize(
    ("path", "status", "headers", "expected"),
    [
        ("v2/", 200, {}, "ok"),
        ("v2/", 401, LOGIN, "ok"),
        ("v2/", 401, API, "ok"),
        ("v2/", 401, {}, "failed"),
        ("v2/", 403, LOGIN, "failed"),
        ("v2/", 404, {}, "failed"),
        ("v2/", 404, API, "failed"),
        ("v2/", 502, {}, "failed"),
        # With override_path there is nothing to ask that every registry answers alike.
        ("v2/hub/", 404, {}, "ok"),
    ],
)
def test_a_registry_answers_with_200_or_asks_for_a_login(
    path: str, status: int, headers: Mapping[str, str], expected: str
) -> None:
    told = asked(
        lambda world: world.serve("m.example", 443, lambda request: Response(status, headers=headers)),
        at_a_mirror(f"https://m.example/{path}"),
    )

    assert told.states[STEP] == expected


def test_a_mirror_of_a_registry_is_enough() -> None:
    def arrange(world: World) -> None:
        world.close("registry.k8s.io", 443)
        world.serve("mirror.corp.example", 443, lambda request: Response(401, headers=LOGIN))

    def mirrored(spec: NodeSpec) -> NodeSpec:
        urls = {"registry.k8s.io": ("https://mirror.corp.example/v2/", "https://registry.k8s.io/v2/")}
        return replace(spec, runtime=replace(spec.runtime, registry_urls=urls))

    assert asked(arrange, mirrored).states[STEP] == "ok"


def test_a_certificate_that_is_not_trusted_yet_is_an_answer() -> None:
    """The trust roots of the profile come later, and the download says what it does not trust."""
    pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"

    assert (
        asked(lambda world: world.serve("dl.k8s.io", 443, lambda request: Response(200), issuer=pem)).states[
            STEP
        ]
        == "ok"
    )


def test_a_machine_that_has_every_program_is_asked_nothing() -> None:
    """A mirror that is down must not fail a node that is right."""
    bench = Bench(spec=behind_a_proxy(a_spec_of("minimal")))
    for artifact in bench.spec.artifacts:
        for member in artifact.members:
            bench.write(member.destination, b"a program")

    assert bench.look(STEP).states == {STEP: "ok"}
