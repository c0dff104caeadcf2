"""What is tried again is an error of winboot's own classes; a bug is raised where it is made."""

from __future__ import annotations

import pytest

from winboot.base.errors import ClusterUnreachable
from winboot.base.retry import retried


def attempts(error: Exception) -> int:
    """How often work is tried whose first attempt ends with this error."""
    asked = 0

    def work() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise error
        return asked

    return retried(work, 60.0, sleep=lambda seconds: None)


def test_a_bug_is_not_tried_again() -> None:
    with pytest.raises(ValueError, match="a bug"):
        attempts(ValueError("a bug"))

    assert attempts(ClusterUnreachable("away")) == 2
