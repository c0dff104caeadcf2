"""`winboot lab up --like`: machines that are modelled on a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cli.like import plans_of
from winboot_lab.up import Lab

from tests.doctor.documents import bundle
from tests.lab.site import Site
from winboot.base.errors import UsageError
from winboot.cli import run
from winboot.operations.doctor.bundle import facts, pack
from winboot.operations.doctor.collection import Item


def of(items: dict[str, list[dict[str, Any]]], file: Path) -> Path:
    """A bundle of win-7 with these items."""
    packed = [
        Item(name, "", json.dumps(rows).encode(), truncated=False, error="") for name, rows in items.items()
    ]
    file.write_bytes(pack({"win-7": packed}, winboot="1", since_s=1, logs=False))
    return file


MACHINE = {
    "name": "NODE7",
    "manufacturer": "VMware, Inc.",
    "model": "VMware20,1",
    "memory": 8 << 30,
    "processors": 2,
    "domain": False,
    "build": 26100,
    "revision": 1234,
    "product": "Windows Server 2025 Standard",
    "installation": "Server",
    "updates": ["KB1"],
}


def test_a_machine_is_like_the_one_of_the_bundle(tmp_path: Path) -> None:
    addresses = [{"address": "127.0.0.1", "origin": "WellKnown"}, {"address": "10.0.3.4", "origin": "Dhcp"}]
    disk = [{"free": 30 << 30, "size": 50 << 30, "image": False}]
    file = of({"machine": [MACHINE], "addresses": addresses, "disk": disk}, tmp_path / "x.zip")

    with Lab(nodes=plans_of(file)) as lab:
        machine = lab.nodes["win-7"].machine
        is_now = {
            "name": machine.name,
            "build": machine.build,
            "revision": machine.release.ubr,
            "address": machine.network.lan.address,
            "dhcp": any(one.dhcp for one in machine.network.adapters),
            "maker": machine.hardware.manufacturer,
            "memory": machine.hardware.memory,
            "processors": machine.hardware.processors,
            "disk": (machine.hardware.disk, machine.hardware.disk_used),
            "updates": machine.hardware.kbs,
        }

    assert is_now == {
        "name": "NODE7",
        "build": 26100,
        "revision": 1234,
        "address": "10.0.3.4",
        "dhcp": True,
        "maker": "VMware, Inc.",
        "memory": 8 << 30,
        "processors": 2,
        "disk": (50 << 30, 20 << 30),
        "updates": ("KB1",),
    }


def test_a_machine_that_is_modelled_twice_is_the_same(
    joined_site: Callable[[str], Site], tmp_path: Path
) -> None:
    first = bundle(joined_site("plain"), tmp_path / "first.zip")
    (plan,) = plans_of(first)

    with Lab(nodes=[plan]) as lab:
        machine = lab.nodes["win-1"].machine
        there = (
            machine.name,
            machine.build,
            machine.release,
            machine.hardware.memory,
            machine.hardware.processors,
        )

    assert plan.address == "10.0.1.11"
    (known,) = facts(first)["win-1"]["machine"]
    assert there == ("WIN-1", known["build"], machine.release, known["memory"], known["processors"])


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ({}, "no facts of a machine"),
        ({"machine": [MACHINE | {"build": 14393}]}, "its build of Windows is 14393"),
        ({"machine": [MACHINE | {"memory": "much"}]}, "Expected `int`"),
        ({"machine": [MACHINE], "addresses": [{"address": "x", "origin": ""}]}, "'x'"),
    ],
)
def test_another_bundle_is_refused(items: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        plans_of(of(items, tmp_path / "x.zip"))


def test_like_takes_no_number_of_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up", "--like", "x.zip", "--nodes", "2"]) == 64
    assert "--like does not go together" in capsys.readouterr().err
