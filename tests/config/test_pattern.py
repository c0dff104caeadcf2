"""`--limit` means what Ansible's pattern means."""

from __future__ import annotations

from pathlib import Path

import pytest

from winboot.base.errors import UsageError
from winboot.config.pattern import chosen

HOSTS = {
    "win-1": ("rack-a", "edge"),
    "win-2": ("rack-a",),
    "win-10": ("rack-b", "edge"),
    "sql-1": ("rack-b",),
}


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        ("", "win-1 win-2 win-10 sql-1"),
        ("all", "win-1 win-2 win-10 sql-1"),
        ("*", "win-1 win-2 win-10 sql-1"),
        ("win-1", "win-1"),
        ("rack-a", "win-1 win-2"),
        ("win-*", "win-1 win-2 win-10"),
        ("win-?", "win-1 win-2"),
        ("win-[12]", "win-1 win-2"),
        ("rack-*", "win-1 win-2 win-10 sql-1"),
        ("win-1,sql-1", "win-1 sql-1"),
        ("win-1:sql-1", "win-1 sql-1"),
        ("rack-a:!win-2", "win-1"),
        ("!win-2:rack-a", "win-1"),
        ("rack-a,!edge", "win-2"),
        ("!rack-a", "win-10 sql-1"),
        ("rack-b:&edge", "win-10"),
        ("&edge", "win-1 win-10"),
        ("rack-a:rack-b:&edge:!win-10", "win-1"),
        ("all:!nosuch-*", "win-1 win-2 win-10 sql-1"),
        (r"~win-\d+$", "win-1 win-2 win-10"),
        ("~(win|sql)-1$", "win-1 sql-1"),
        ("all:!~x", "win-1 win-2 win-10 sql-1"),
        ("all,!~win", "sql-1"),
    ],
)
def test_a_pattern_means_these_hosts(limit: str, names: str) -> None:
    assert chosen(HOSTS, (limit,)) == set(names.split())


def test_a_file_has_a_word_a_line(tmp_path: Path) -> None:
    (tmp_path / "failed").write_text("# of last night\nwin-1\n\nrack-b\n", encoding="utf-8")

    assert chosen(HOSTS, (f"@{tmp_path / 'failed'}", "!sql-1")) == {"win-1", "win-10"}


@pytest.mark.parametrize(
    ("limit", "said", "hint"),
    [
        ("win-11", "--limit win-11: no such host or group", "Did you mean 'win-1'?"),
        ("all:!win-11", "--limit win-11: no such host or group", "Did you mean 'win-1'?"),
        ("lin-*", "--limit lin-*: no host or group matches", "winboot inventory"),
        ("~lin", "--limit ~lin: no host or group matches", "winboot inventory"),
        ("~(", "--limit ~(: not a regular expression", "~win-"),
        ("rack-a:!all", "no host is left", "winboot inventory"),
        ("@nowhere", "--limit @nowhere: the file cannot be read", "nowhere"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(limit: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        chosen(HOSTS, (limit,))

    assert said in caught.value.problem
    assert hint in caught.value.hint
