"""`--limit` means what Ansible's pattern means."""

from __future__ import annotations

import os
from collections.abc import Callable
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


def test_without_a_limit_all_are_meant() -> None:
    assert chosen(HOSTS, ()) == set(HOSTS)


@pytest.mark.parametrize("limit", ["", " ", ",", ":", "!", "&", "~", "win-1:&", "win-1:!", "all,!~"])
def test_a_limit_that_names_nothing_is_never_all_hosts(limit: str) -> None:
    """`remove --limit "$HOSTS" --yes` with a variable that is not set."""
    with pytest.raises(UsageError, match="names no host"):
        chosen(HOSTS, (limit,))


def test_a_file_without_a_word_is_never_all_hosts(tmp_path: Path) -> None:
    """For example the list of last night's failures after a night without any."""
    (tmp_path / "failed").write_text("# none\n", encoding="utf-8")

    with pytest.raises(UsageError, match="names no host"):
        chosen(HOSTS, (f"@{tmp_path / 'failed'}",))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "it is not a file"),
        (lambda path: path.mkdir(), "it is not a file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
        (lambda path: path.write_bytes(b"\xff\xfewin-1"), "is not UTF-8"),
    ],
    ids=["fifo", "folder", "circle", "bytes"],
)
def test_a_path_that_is_not_a_file_is_named_in_words(
    make: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    """winboot does not wait for a named pipe without a writer."""
    make(tmp_path / "failed")

    with pytest.raises(UsageError, match=said) as caught:
        chosen(HOSTS, (f"@{tmp_path / 'failed'}",))

    assert "Errno" not in caught.value.hint


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
        ("@nowhere", "--limit @nowhere: the file cannot be read: No such file", "Name another"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(limit: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        chosen(HOSTS, (limit,))

    assert said in caught.value.problem
    assert hint in caught.value.hint


def test_a_name_like_no_other_lists_hosts_and_groups() -> None:
    with pytest.raises(UsageError) as refused:
        chosen(HOSTS, ["nosuch"])

    assert refused.value.hint == "The inventory has edge, rack-a, rack-b, sql-1, win-1, win-10, win-2."
