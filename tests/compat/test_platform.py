"""Versions, builds, containerd, images: which go together."""

from __future__ import annotations

import pytest

from tests.every import assert_none_wrong
from winboot.config.compat import (
    Version,
    check_build,
    check_containerd,
    check_feature,
    check_kubernetes,
    check_pause_image,
    check_skew,
    containerd_config_version,
    default_containerd,
    default_pause_image,
    load,
    updates_needed,
)
from winboot.config.compat.platform import BUILDS, bad_updates, support, uses_bin_dirs

FACTS = load()
V = Version.parse


@pytest.mark.parametrize(
    ("minor", "os", "expected"),
    [
        ("1.24", "2019", "supported"),
        ("1.34", "2019", "supported"),
        ("1.35", "2019", "warned"),
        ("1.24", "2022", "supported"),
        ("1.36", "2022", "supported"),
        ("1.32", "2025", "refused"),
        ("1.33", "2025", "warned"),
        ("1.35", "2025", "supported"),
    ],
)
def test_each_windows_version_is_supported_warned_about_or_refused(
    minor: str, os: str, expected: str
) -> None:
    """By the lists of Kubernetes, with a grace where only the list is missing."""
    assert support(FACTS, V(minor), BUILDS[os]) == expected


def test_a_build_that_kubernetes_never_listed_is_refused_by_name() -> None:
    """Windows Server 2016 and Annual Channel releases."""
    (found,) = check_build(FACTS, V("1.34.8"), 14393)

    assert found.level == "error"
    assert "Windows Server 2016" in found.about


@pytest.mark.parametrize(
    ("kubelet", "server", "fits"),
    [
        ("1.34.2", "1.34.0", True),
        ("1.31.9", "1.34.0", True),
        ("1.30.9", "1.34.0", False),
        ("1.25.9", "1.27.0", True),
        ("1.24.9", "1.27.0", False),
        ("1.35.0", "1.34.9", False),
        ("1.9.0", "1.34.0", False),
    ],
)
def test_a_kubelet_is_never_newer_and_not_much_older_than_the_server(
    kubelet: str, server: str, fits: bool
) -> None:
    """Three minors since 1.28, two before; compared as numbers."""
    assert (check_skew(V(kubelet), V(server)) == []) is fits


def test_a_bad_patch_is_named_with_the_patch_that_repairs_it() -> None:
    """The fix on the same minor, or else the lowest after it."""
    found = check_kubernetes(FACTS, V("1.34.2"), traits=frozenset({"l2bridge"}))

    assert {one.instead for one in found if one.id == "known-bad"} == {"1.34.4", "1.34.8"}
    later = check_kubernetes(FACTS, V("1.34.8"), traits=frozenset({"l2bridge"}))
    assert [one.id for one in later] == ["end-of-life"]


def test_a_patch_that_is_bad_on_one_build_is_named_for_that_build() -> None:
    """Windows Server 2025 needs the load balancer fix."""
    assert [one.id for one in check_build(FACTS, V("1.33.1"), 26100)] == ["untested", "known-bad"]
    assert check_build(FACTS, V("1.33.1"), 20348) == []


def test_a_version_newer_than_the_data_warns_with_the_date_of_the_data() -> None:
    """And is judged by the newest minor that is known."""
    (found,) = check_kubernetes(FACTS, V("1.39.1"))

    assert found.level == "warning"
    assert FACTS.as_of in found.reason
    assert FACTS.line(V("1.39.1")) == "1.37"


@pytest.mark.parametrize(
    ("containerd", "kubernetes", "levels"),
    [
        ("2.0.11", "1.34.8", []),
        ("1.7.34", "1.34.8", ["warning"]),
        ("1.7.27", "1.34.8", ["warning", "warning"]),
        ("1.5.18", "1.34.8", ["error", "warning"]),
        ("2.2.0", "1.34.8", ["warning", "warning"]),
        ("2.9.0", "1.36.5", ["warning"]),
        ("2.1.5", "1.34.8", ["warning"]),
    ],
)
def test_containerd_is_held_to_the_table_of_its_maker(
    containerd: str, kubernetes: str, levels: list[str]
) -> None:
    """Too old is refused, untested and ended are warned about."""
    assert [one.level for one in check_containerd(FACTS, V(containerd), V(kubernetes))] == levels


def test_the_default_containerd_of_every_minor_is_one_it_is_tested_with() -> None:
    """No finding for winboot's own choice, unless every tested line has ended."""
    found = {
        minor: check_containerd(FACTS, V(default_containerd(FACTS, V(minor))), V(minor))
        for minor in FACTS.minors()
    }

    assert_none_wrong(
        {minor: [one for one in own if one.id != "end-of-life"] for minor, own in found.items()}
    )


def test_the_default_pause_image_has_a_variant_for_every_build() -> None:
    """Whatever the minor recommends, the machine's build decides."""
    assert_none_wrong(
        {
            f"{minor} on {build}": check_pause_image(
                FACTS, default_pause_image(FACTS, V(minor), build), build, V("2.0.11")
            )
            for minor in FACTS.minors()
            for build in BUILDS.values()
        }
    )


def test_a_pause_image_without_the_build_is_refused_unless_an_older_one_runs() -> None:
    """Since 20348 images of an older build run under process isolation, given a containerd that knows it."""
    levels = [
        [one.level for one in check_pause_image(FACTS, "registry.k8s.io/pause:3.9", 26100, V(containerd))]
        for containerd in ("2.0.0", "1.6.10")
    ]

    assert levels == [["warning"], ["error"]]
    assert [
        one.level for one in check_pause_image(FACTS, "registry.k8s.io/pause:3.5", 20348, V("2.0.0"))
    ] == ["error"]
    assert check_pause_image(FACTS, "registry.corp.example/pause:mine", 20348, V("2.0.0")) == []


def test_containerd_2_gets_the_new_form_of_its_configuration() -> None:
    """And the list of program folders from 2.1 on."""
    assert containerd_config_version(V("1.7.28")) == 2
    assert containerd_config_version(V("2.0.0")) == 3
    assert not uses_bin_dirs(FACTS, V("2.0.11"))
    assert uses_bin_dirs(FACTS, V("2.1.0"))
    assert uses_bin_dirs(FACTS, V("2.9.0"))


def test_features_know_the_builds_that_lack_them() -> None:
    """Dual stack and session affinity are not for 2019."""
    assert [one.level for one in check_feature(FACTS, "dual-stack", V("1.34.8"), 17763)] == ["error"]
    assert check_feature(FACTS, "dual-stack", V("1.34.8"), 20348) == []
    assert [one.level for one in check_feature(FACTS, "session-affinity", V("1.34.8"), 17763)] == ["error"]
    assert [one.id for one in check_feature(FACTS, "graceful-shutdown", V("1.31.8"), 20348)] == ["not-yet"]


def test_needed_and_broken_updates_are_reported_by_revision() -> None:
    """What preflight compares with the fourth part of the machine's version."""
    assert [(one.revision, one.kb) for one in updates_needed(FACTS, ("overlay", "dsr"), 17763)] == [
        (379, "KB4489899"),
        (1432, "KB4571748"),
    ]
    assert updates_needed(FACTS, ("overlay", "dsr"), 20348) == ()
    assert [one.kb for one in bad_updates(FACTS, 20348)] == ["KB5040437"]
