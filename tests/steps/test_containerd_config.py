"""containerd's configuration: pause image, CNI folders, mirrors, and logins that nobody else may read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.hands import append, delete, let_in, replace
from tests.lab.scenes import REGISTRY_PASSWORD
from tests.steps.bench import Bench
from tests.steps.nodes import Node

STEP = "containerd-config"
TOML = r"C:\Program Files\containerd\config.toml"
CRICTL = r"C:\k\crictl.yaml"
CERTS = r"C:\ProgramData\containerd\certs.d"
LOGIN = rf"{CERTS}\private.corp.example\hosts.toml"


def test_a_bare_machine_lacks_the_configuration_and_the_mirrors(bench: Bench):
    assert set(bench.look(STEP).differences(STEP)) == {
        rf"file {TOML}: content",
        rf"file {CRICTL}: content",
        rf"file {CERTS}\docker.io\hosts.toml: content",
    }


def test_it_is_written_once_taken_away_and_written_again(node: Node):
    assert node.undo(STEP).states == {STEP: "changed"}
    assert node.file(TOML) is None
    assert node.file(CRICTL) is None
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.change(STEP).states == {STEP: "ok"}
    # What runs has read the file of before.
    assert node.change("containerd", "kubelet", "flanneld", "kube-proxy").states["containerd"] == "changed"
    node.site.settle(60)
    assert node.differs == []


def test_what_somebody_had_written_there_comes_back(bench: Bench):
    before = b"version = 2\n# by hand\n"
    bench.write(TOML, before)
    bench.run(STEP, "directories")
    assert b"by hand" not in (bench.file(TOML) or b"")

    bench.undo(STEP, "directories")

    assert bench.file(TOML) == before


def test_the_mirrors_of_other_registries_are_left_alone(bench: Bench):
    stranger = rf"{CERTS}\ghcr.io\hosts.toml"
    bench.write(stranger, b"# somebody's")

    bench.run(STEP, "directories")

    assert bench.file(stranger) == b"# somebody's"
    assert bench.look(STEP).states == {STEP: "ok"}


@pytest.mark.parametrize(
    ("what", "hand"),
    [
        ("content", replace(LOGIN, "mirror.corp.example", "other.corp.example")),
        ("logins", replace(LOGIN, "Basic ", "Other ")),
        ("logins", append(LOGIN, "skip_verify = true\n")),
        ("logins", append(LOGIN, '[host."x".header]\n  authorization = "Basic b3RoZXI="\n')),
        ("access", let_in(LOGIN)),
    ],
    ids=["another mirror", "no login", "more than logins", "a login too many", "a file that users read"],
)
def test_a_file_with_a_login_is_known_by_all_but_the_login(
    joined: Callable[[str], Node], what: str, hand: Callable[..., None]
):
    node = joined("everything").after(hand)

    told = node.look(STEP)
    node.change(STEP, secrets={step_secret(node): REGISTRY_PASSWORD})

    assert set(told.differences(STEP)) == {rf"file {LOGIN}: {what}"}
    assert REGISTRY_PASSWORD not in str(told.events)
    assert node.differs == []


def test_without_the_login_the_change_says_which_secret_is_missing(joined: Callable[[str], Node]):
    node = joined("everything").after(delete(LOGIN))

    problem = node.change(STEP, secrets={}).problem(STEP)

    assert problem.id == "SecretMissing"
    assert step_secret(node) in problem.message


def step_secret(node: Node) -> str:
    """The name of the one login's secret."""
    (name,) = (one.secret for one in node.spec.runtime.registries if one.secret)
    return name
