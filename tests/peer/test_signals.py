"""A signal ends a real `winboot` process within seconds, whatever its machines do, and their scripts with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from lab_wsman.stage import PASSWORD, USER, Actor, settings
from winboot_lab.wsman.endpoint import Endpoint
from winboot_lab.wsman.executor import Emit, Ended
from winboot_lab.wsman.farm import Farm

from tests.config.scene import GOOD, an_inventory

# The command's own bound is 3 s and one to forget a token; the rest is for a loaded machine.
SECONDS: Final = 15
ENDS: Final = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
CODES: Final = [
    pytest.param(getattr(signal, name), code, id=name) for name, code in ENDS.items() if hasattr(signal, name)
]


class Quiet:
    """A machine whose script begins, and then says nothing until it is stopped."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.stopped = threading.Event()

    def __call__(
        self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        event = {"v": 1, "event": "run", "run": parameters["RunId"], "boot_id": "b1", "smbios_uuid": "u"}
        emit("output", json.dumps(event | {"build": "1.1", "computer_name": "N", "fence": 1}))
        self.begun.set()
        while not cancelled():
            time.sleep(0.02)
        self.stopped.set()
        return Ended("stopped")


@pytest.fixture
def farm() -> Iterator[Farm]:
    with Farm() as farm:
        yield farm


def _command(folder: Path, node: Endpoint) -> subprocess.Popen[str]:
    host = f"{{address: 127.0.0.1, connection: {{host: {node.settings.address}, port: {node.http_port}, scheme: http}}}}"
    inventory = an_inventory(
        folder,
        f"""
groups:
  pool:
    profile: profile.yaml
    os: "2022"
    connection: {{user: {USER}, password: {{env: WINBOOT_TEST_PASSWORD}}}}
    hosts: {{win-1: {host}}}
""",
        GOOD.replace("  kubeconfig: {file: kubeconfig}\n", ""),
    )
    command = [sys.executable, "-m", "winboot", "plan", "-i", str(inventory), "-o", "json"]
    return subprocess.Popen(
        command,
        env=os.environ | {"WINBOOT_TEST_PASSWORD": PASSWORD, "WINBOOT_STATE": str(folder / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_until_heard(folder: Path) -> None:
    """Until the command has the script's only line: from then on it waits for one that never comes."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        journals = (folder / "state").rglob("win-1.jsonl")
        if any('"event"' in journal.read_text(encoding="utf-8") for journal in journals):
            time.sleep(0.3)  # the next question is on its way
            return
        time.sleep(0.05)
    raise AssertionError("the script's line did not arrive")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that another process can send")
@pytest.mark.parametrize(("number", "code"), CODES)
def test_a_signal_ends_the_command_and_the_script_on_the_machine(
    farm: Farm, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Else the script runs on, holds the node's lock, and the next join waits for it."""
    quiet = Quiet()
    node = farm.add("win-1", Actor(quiet), settings())
    process = _command(tmp_path, node)
    try:
        assert quiet.begun.wait(30), "".join(process.communicate(timeout=5))[-1500:]
        _wait_until_heard(tmp_path)
        process.send_signal(number)
        begun = time.monotonic()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()

    assert (process.returncode, "Traceback" in err) == (code, False), err
    assert time.monotonic() - begun < SECONDS
    assert '"interrupted"' in out
    assert quiet.stopped.wait(5)
    assert node.shells == ()
