"""A fault around a node during a join has a name, a cause and a next step; once it is fixed, the join continues."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from winboot_lab.up import MIRROR_HOST

from tests.lab.scenes import Scenes
from tests.lab.site import Site, only, problems
from tests.matrix import first
from winboot.node.run import Patience

API: Final = ("10.0.0.10", 6443)
FLANNELD: Final = "flanneld.exe"


@dataclass(frozen=True)
class Fault:
    """`strike` comes before the join, or at the event that `at` names; `told` is what the report says then."""

    name: str
    strike: Callable[[Site], object]
    mend: Callable[[Site], object]
    told: str
    at: str = ""


EVERY_TIME: Final = (
    "the mirror gives another file than it should",
    "the disk is full",
    "HNS refuses the network once",
)


def artifact(site: Site, name: str) -> str:
    """The address of a download."""
    (spec,) = site.specs()
    return next(one.url for one in spec.artifacts if one.file == name)


def disk(site: Site) -> Any:
    """The machine's only volume."""
    return site.machine.files.volumes["C:"]


def fill(site: Site) -> None:
    """A log somewhere has grown."""
    site.machine.faults.disk_full(free=1000)


def restart_hns(site: Site) -> None:
    """An update replaces files of HNS: what is not persistent goes, and all load balancers."""
    services = site.machine.services
    with site.machine.lock:
        services.stop_with_dependents(services.need("hns"))
        services.start(services.need("hns"))


def stop_for_a_minute(site: Site) -> None:
    """An update stops services that have its files open, and starts them when it is done."""
    services = site.machine.services
    with site.machine.lock:
        running = [
            name for name in ("containerd", "kubelet", "flanneld", "kube-proxy") if services.running(name)
        ]
        services.stop_with_dependents(services.need("containerd"))
    for name in running:
        site.machine.after(60, functools.partial(start_again, site, name))


def start_again(site: Site, name: str) -> None:
    """Start a service again unless it runs already."""
    services = site.machine.services
    if not services.running(name):
        services.start(services.need(name))


FAULTS: Final = (
    Fault(
        "the mirror gives another file than it should",
        lambda site: site.internet.damage(artifact(site, FLANNELD), b"MZ another one"),
        lambda site: site.internet.repair(artifact(site, FLANNELD)),
        r"artifacts failed: \w*Hash\w*: .*flanneld\.exe",
    ),
    Fault(
        "the mirror is off",
        lambda site: site.internet.close(MIRROR_HOST, 80),
        lambda site: site.internet.serve(MIRROR_HOST, 80, site.mirror.handle),
        r"download-sources failed: artifact-source: .*mirror\.lab",
    ),
    Fault(
        "the disk is full",
        fill,
        lambda site: setattr(disk(site), "other", 0),
        r"not enough space on the disk",
        at="dynamic-ports",
    ),
    Fault(
        "the machine does not come up after the restart",
        lambda site: site.machine.faults.stays_down(),
        lambda site: site.machine.power_on(),
        r"Unreachable: win-1: the machine does not answer \d+ s after the restart",
    ),
    Fault(
        "HNS refuses the network once",
        lambda site: site.machine.hns.fail_next(0x80070057, "The parameter is incorrect."),
        lambda site: None,
        "",
        at="flanneld",
    ),
    Fault(
        "an update restarts HNS, before the network is made",
        restart_hns,
        lambda site: None,
        "",
        at="kubelet",
    ),
    Fault(
        "an update restarts HNS, after the network was made",
        restart_hns,
        lambda site: None,
        "",
        at="kube-proxy-config",
    ),
    Fault(
        "an update stops our services for a minute",
        stop_for_a_minute,
        lambda site: None,
        "",
        at="kubelet",
    ),
    Fault(
        "containerd dies twice when it is started",
        lambda site: site.machine.faults.dies("containerd", times=2, after=0.5),
        lambda site: None,
        "",
    ),
)


# `make check` has an early fault, one in the middle, and one without a cause on the node.
@pytest.mark.parametrize(
    "fault",
    first(0, sorted(FAULTS, key=lambda one: one.name not in EVERY_TIME), lambda one: one.name, daily=1),
)
def test_a_fault_is_reported_by_its_name_and_the_join_continues_after_the_fix(
    fault: Fault, scenes: Scenes
) -> None:
    site = scenes.bare("plain")
    left = [fault] if fault.at else []
    if not fault.at:
        fault.strike(site)

    def hear(line: str) -> None:
        if left and f'"step":"{fault.at}"' in line and controller.pipelines[-1]["Mode"] == "Change":
            left.pop().strike(site)

    controller = site.controller(hear=hear)
    failed = controller.join(ready=60.0, patience=Patience(poll=5.0, reconnect=0.5, restart=0.5))
    fault.mend(site)
    site.settle(60)
    mended = site.join()

    assert not left
    told = problems(failed)
    assert told or only(failed).ready, "neither Ready nor named"
    if fault.told:
        assert any(re.search(fault.told, one) for one in told), told
        assert failed.exit_code in (1, 69)
        first = next((s.problem for s in only(failed).steps if s.state == "failed"), only(failed).failure)
        assert first is not None and first.hint
    assert (problems(mended), only(mended).ready) == ([], True)
    site.settle(60)
    assert site.plan().exit_code == 0
    assert not site.refusals
