"""A lab that is closed leaves nothing behind that computes."""

from __future__ import annotations

import threading

from winboot_lab.up import Lab


def machines() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("machine ")}


def test_the_machines_of_a_closed_lab_live_no_longer() -> None:
    before = machines()
    with Lab(nodes=2):
        ours = machines() - before
        assert len(ours) == 2

    for thread in ours:
        thread.join(10)

    assert not ours & machines()
