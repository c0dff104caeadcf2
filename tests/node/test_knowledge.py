"""What kubelet.exe and kube-proxy.exe of a node say they know becomes an overlay, and `check` takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from winboot_lab.engines import run_script
from winboot_lab.language.check import check_script

from tests.steps.test_artifacts import Site
from winboot.base.errors import InternalError, UsageError, WinbootError
from winboot.config.compat import Compat, Version, check_flag, check_gate, check_kubernetes, load
from winboot.config.compat.flags import Component
from winboot.config.compat.learned import Refused, Said, as_text, overlay, said
from winboot.node.knowledge import Learned, learn
from winboot.remote.transport.base import Transport
from winboot.script.rendering import knowledge


class Here:
    """A transport that is a function call."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, object]
    ) -> Iterator[str]:
        lines: list[str] = []
        machine = self._site.machine
        with machine.session("Administrator") as session, machine.acting():
            ended = run_script(
                session,
                script,
                dict(arguments),
                emit=lambda stream, value: lines.append(str(value)),
                local_scope=True,
            )
        assert ended.state == "completed", (getattr(ended.error, "message", ""), lines)
        yield from lines


@pytest.fixture(scope="module")
def site() -> Site:
    """A machine with the programs of 1.36.5; each test says how they are built."""
    site = Site()
    site.run("directories", "artifacts")
    return site


def asked(site: Site, tmp_path: Path, built: Mapping[str, Any] | None = None) -> Learned:
    file = tmp_path / "built.yaml"
    file.write_text(yaml.safe_dump(dict(built or {})), encoding="utf-8")
    site.outside.compat = load(file)
    return learn(site.spec, cast(Transport, Here(site)), load())


def overlaid(learned: Learned, tmp_path: Path) -> Compat:
    file = tmp_path / "learned.yaml"
    file.write_text(
        as_text(learned.sections, "win-a1", learned.programs, date(2026, 11, 24)), encoding="utf-8"
    )
    return load(file)


def test_the_script_is_one_that_windows_powershell_takes(site: Site) -> None:
    assert list(check_script(knowledge(site.spec), origin="knowledge.ps1")) == []


def test_programs_that_know_what_the_data_knows_add_nothing(site: Site, tmp_path: Path) -> None:
    """This includes names that a help omits: winboot asks about GA and deprecated gates."""
    learned = asked(site, tmp_path)

    assert learned.sections == {}
    assert [str(one.version) for one in learned.programs] == ["1.36.5", "1.36.5"]
    assert overlaid(learned, tmp_path).newest == load().newest


# How the programs are built, and what is learned of it.
BUILT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a flag more": (
        {"kubelet_flags": {"vendor-node-pool": {"type": "text", "added": "1.36", "default": "none"}}},
        {"kubelet_flags": {"vendor-node-pool": {"type": "text", "added": "1.36", "default": "none"}}},
    ),
    "a flag less": (
        {"kube_proxy_flags": {"config-sync-period": {"removed": "1.36"}}},
        {"kube_proxy_flags": {"config-sync-period": {"removed": "1.36"}}},
    ),
    "a Linux flag on Windows": (
        {"kubelet_flags": {"application-metrics-count-limit": {"windows": None}}},
        {"kubelet_flags": {"application-metrics-count-limit": {"windows": None, "removed": None}}},
    ),
    "a gate more": (
        {"gates": {"VendorPools": {"stages": [["1.36", "beta", True, False]]}}},
        {"gates": {"VendorPools": {"stages": [["1.36", "beta", True, False]]}}},
    ),
    "a gate less": (
        {"gates": {"WinOverlay": {"removed": "1.36"}}},
        {"gates": {"WinOverlay": {"removed": "1.36"}}},
    ),
    "a gate of 1.37 in 1.36": (
        {"gates": {"DefaultPodSysctls": {"stages": [["1.36", "alpha", False, False]]}}},
        {"gates": {"DefaultPodSysctls": {"stages": [["1.36", "alpha", False, False]]}}},
    ),
    "a gate that is on by now": (
        {
            "gates": {
                "WindowsCPUAndMemoryAffinity": {
                    "stages": [["1.32", "alpha", False, False], ["1.36", "beta", True, False]]
                }
            }
        },
        {
            "gates": {
                "WindowsCPUAndMemoryAffinity": {
                    "stages": [["1.32", "alpha", False, False], ["1.36", "beta", True, False]]
                }
            }
        },
    ),
    "a gate that is locked by now": (
        {
            "gates": {
                "WindowsGracefulNodeShutdown": {
                    "stages": [["1.32", "beta", True, False], ["1.36", "ga", True, True]]
                }
            }
        },
        {"gates": {"WindowsGracefulNodeShutdown": {"stages": None}}},
    ),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_a_build_knows_otherwise_is_learned(site: Site, tmp_path: Path, name: str) -> None:
    built, learned = BUILT[name]
    found = asked(site, tmp_path, built).sections

    if name == "a gate that is locked by now":
        assert found["gates"]["WindowsGracefulNodeShutdown"]["stages"][-1] == ["1.36", "ga", True, True]
    else:
        assert found == learned


def test_check_takes_what_a_build_knows_more_only_with_the_overlay(site: Site, tmp_path: Path) -> None:
    built = {
        "kubelet_flags": {"vendor-node-pool": {"type": "text", "added": "1.36"}, "v": {"removed": "1.36"}},
        "gates": {"VendorPools": {"stages": [["1.36", "beta", True, False]]}},
    }
    of_the_node, version = overlaid(asked(site, tmp_path, built), tmp_path), Version.parse("1.36.5")

    def levels(compat: Compat) -> list[list[str]]:
        return [
            [one.id for one in check_flag(compat, "kubelet", "vendor-node-pool", "blue", version)],
            [one.id for one in check_gate(compat, "kubelet", "VendorPools", True, version)],
            [one.id for one in check_flag(compat, "kubelet", "v", "2", version)],
        ]

    assert levels(load()) == [["unknown"], ["unknown"], []]
    assert levels(of_the_node) == [[], [], ["removed"]]


def test_a_minor_that_is_newer_than_the_data_is_learned_and_says_what_it_does_not_know(
    tmp_path: Path,
) -> None:
    text = (
        "      --brand-new duration   New. (default 1m0s)\n"
        "      --feature-gates mapStringBool   A set:\n"
        "                VendorPools=true|false (ALPHA - default=false)\n"
    )
    said_by: dict[Component, Said] = {
        "kubelet": said("kubelet", "Kubernetes v1.38.0", text),
        "kube-proxy": said("kube-proxy", "Kubernetes v1.38.0", text),
    }
    sections = overlay(load(), {one: (told, Refused()) for one, told in said_by.items()})
    compat = overlaid(Learned(sections, tuple(said_by.values())), tmp_path)
    version = Version.parse("1.38.0")

    assert check_flag(compat, "kubelet", "brand-new", "5s", version) == []
    assert [one.id for one in check_flag(compat, "kubelet", "brand-new", "5s", Version.parse("1.37.1"))] == [
        "not-yet"
    ]
    assert compat.minor(version)["builds"] == [20348, 26100]
    assert compat.as_of == load().as_of, "the rest of the data is as old as it is"
    (finding,) = check_kubernetes(compat, version)
    assert finding.id == "newer-than-data"
    assert "only from a node's programs" in finding.reason
    assert "as for 1.37" in finding.reason


def test_a_node_without_the_programs_gets_an_error() -> None:
    bare = Site()

    with pytest.raises(UsageError, match=r"C:\\k\\versions\\kubernetes-1.36.5\\kubelet.exe is not there"):
        learn(bare.spec, cast(Transport, Here(bare)), load())


@pytest.mark.parametrize(
    ("version", "text", "says"),
    [
        ("no version", "", "reports no version"),
        ("Kubernetes v1.36.5", "Usage: something else", "recognizes no flags and feature gates"),
    ],
)
def test_an_answer_of_another_form_is_no_knowledge(version: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        said("kubelet", version, text)


HELP = "      --feature-gates mapStringBool   A set:\n                Vendor=true|false (ALPHA - default=false)\n"
FIRST: dict[str, object] = {"problem": "", "version": "Kubernetes v1.36.5", "help": HELP}
SECOND: dict[str, object] = {"problem": "", "flags": [], "gates": []}
# Each takes the place of a good line about the kubelet: of the first question, or of those by name.
LIES: list[tuple[object, object]] = [
    *(
        ({**FIRST, **change}, SECOND)
        for change in (
            {"version": 5},
            {"version": ["v1.36.5"]},
            {"version": "v1.36.5" * 1000},
            {"version": "v1." + "9" * 5000 + ".0"},
            {"help": None},
            {"help": 5},
            {"problem": ["x"]},
            {"program": 5},
            {"program": "notepad"},
        )
    ),
    (5, SECOND),
    ([], SECOND),
    (None, SECOND),
    ({}, SECOND),
    *(
        (FIRST, second)
        for second in (
            5,
            {},
            {**SECOND, "flags": 5},
            {**SECOND, "flags": [5]},
            {**SECOND, "flags": ["--never-asked=1: unknown flag"]},
            {**SECOND, "gates": {"a": 1}},
            {**SECOND, "gates": ["NeverAsked=true"]},
        )
    ),
]


class Liar:
    """Its kubelet's lines are these; None is a text of brackets. Its kube-proxy is honest."""

    def __init__(self, first: object, second: object) -> None:
        self._lines = {False: first, True: second}

    def run(self, script: str, arguments: Mapping[str, Any], secrets: Mapping[str, object]) -> Iterator[str]:
        asked = bool(arguments["Ask"])
        line = self._lines[asked]
        yield json.dumps({**(SECOND if asked else FIRST), "program": "kube-proxy"})
        yield (
            "[" * 100_000
            if line is None
            else json.dumps({"program": "kubelet", **line} if isinstance(line, dict) else line)
        )


def test_an_answer_of_another_form_is_an_error_of_the_machine(site: Site) -> None:
    for first, second in LIES:
        try:
            learned = learn(site.spec, cast(Transport, Liar(first, second)), load())
        except WinbootError as error:
            assert not isinstance(error, InternalError)
        else:
            text = yaml.safe_dump(dict(learned.sections))
            assert "never-asked" not in text and "NeverAsked" not in text
