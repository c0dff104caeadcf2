"""daemon.json is as the profile says, and Docker starts again with it."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.lab.actions import write
from tests.steps.nodes import Node

STEP = "docker-config"


def test_a_changed_daemon_json_is_put_back_and_docker_starts_again(joined: Callable[[str], Node]) -> None:
    node = joined("docker")
    path = node.spec.paths.docker_config
    node.after(write(path, '{"bridge": "none"}'))

    found = node.look(STEP).differences(STEP)

    assert list(found) == [f"file {path}: content"]
    assert node.change(STEP).states == {STEP: "changed"}
    assert node.look("docker").differences("docker") != {}
    assert node.change("docker").states == {"docker": "changed"}
    assert json.loads(node.machine.files.read(path)) == {
        "exec-opts": ["isolation=process"],
        "log-driver": "json-file",
        "log-opts": {"max-file": "5", "max-size": "50m"},
    }
