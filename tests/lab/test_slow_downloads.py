"""A bad day of the mirror: everything dribbles for the whole fleet, and downloads break off in the middle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from winboot_lab.up import MIRROR_HOST, NodePlan
from winboot_lab.windows.sockets import Request, Response

from tests.lab.site import Site, problems

PLANS = (
    NodePlan("win-1", "2019", "10.0.1.11"),
    NodePlan("win-2", "2022", "10.0.1.12"),
    NodePlan("win-3", "2025", "10.0.1.13"),
)


class Dribbling:
    """In front of a site's mirror: some bytes a second, and with `breaks` an answer with a whole file ends half way. Counts
    the requests for a whole file, and for the rest of one."""

    def __init__(self, site: Site, pace: float, *, breaks: bool) -> None:
        self.whole: Counter[str] = Counter()
        self.rest: Counter[str] = Counter()
        self._mirror, self._breaks = site.mirror, breaks
        site.internet.serve(MIRROR_HOST, 80, self._answer)
        for spec in site.specs():
            for one in spec.artifacts:
                site.internet.slow(one.url, pace)

    def _answer(self, request: Request) -> Response:
        response = self._mirror.handle(request)
        asked = self.whole if response.status == 200 else self.rest
        asked[request.path] += 1
        if self._breaks and asked is self.whole:
            half = response.content[: len(response.content) // 2]
            response = replace(response, content=half, complete=False)
        return response


@pytest.mark.matrix
@pytest.mark.parametrize(
    "breaks",
    [pytest.param(False, id="slow"), pytest.param(True, id="slow, and each breaks off in the middle")],
)
def test_a_fleet_whose_downloads_are_slow_is_joined_after_at_most_one_more_run(
    tmp_path: Path, breaks: bool
) -> None:
    """What has come is not asked for again."""
    site = Site(tmp_path, *PLANS)
    mirror, began = Dribbling(site, 100.0, breaks=breaks), site.time.seconds

    site.join()
    report = site.join()

    assert problems(report) == []
    assert [node.ready for node in report.nodes] == [True, True, True]
    assert site.time.seconds - began > 240.0
    # winboot also requests a server's first file before the first change, to check that it is there.
    more = [path for path, times in mirror.whole.items() if times != len(PLANS)]
    assert len(more) == 1 and more[0].startswith("/containerd/")
    assert mirror.rest == (dict.fromkeys(mirror.whole, len(PLANS)) if breaks else {})
    assert site.join().changed == 0
