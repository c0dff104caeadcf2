""".NET regular expressions on Python's."""

from __future__ import annotations

import pytest
from winboot_lab.engine.exceptions import ArgumentException
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.regexes import IGNORE_CASE, MULTILINE, escape, regex, unescape


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("(?i)abc", "xABC", "ABC"),
        ("a(?i)b|c", "xC", "C"),
        ("[a-z-[aeiou]]+", "eeebcd", "bcd"),
        ("(?x) a # a comment\n b", "ab", "ab"),
        ("\\p{Lu}+", "abCD", "CD"),
        ("(?<=x=)\\d+", "x=12", "12"),
        ("c\\Z", "abc\n", "c"),
        ("(?(", None, None),
    ],
)
def test_patterns_mean_what_they_mean_in_net(pattern: str, text: str | None, found: str | None) -> None:
    if text is None:
        with pytest.raises(Refusal):
            regex(pattern)
        return
    assert regex(pattern).search(text).value == found


def test_named_groups_are_numbered_after_the_others() -> None:
    match = regex("(?<word>[a-z]+)(\\d+)").search("ab12")

    assert [group.name for group in match.groups()] == ["0", "1", "word"]
    assert [group.value for group in match.groups()] == ["ab12", "12", "ab"]


def test_the_end_of_text_is_not_before_a_line_end_with_small_z() -> None:
    assert not regex("c\\z").search("abc\n").success


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[", "Unterminated [] set."),
        ("(", "Not enough )'s."),
        ("a)", "Too many )'s."),
        ("*a", "Quantifier {x,y} following nothing."),
        ("a++", "Nested quantifier +."),
        ("[z-a]", "[x-y] range in reverse order."),
        ("\\y", "Unrecognized escape sequence \\y."),
    ],
)
def test_a_malformed_pattern_is_explained_as_net_framework_does(pattern: str, reason: str) -> None:
    with pytest.raises(ArgumentException) as caught:
        regex(pattern)

    assert caught.value.message == f'parsing "{pattern}" - {reason}'


def test_right_to_left_is_refused() -> None:
    with pytest.raises(Refusal):
        regex("a", 64)


def test_options_apply() -> None:
    assert len(list(regex("^x=(\\d)$", IGNORE_CASE | MULTILINE).matches("x=1\nX=2"))) == 2


def test_next_match_walks_on() -> None:
    first = regex("\\d").search("a1b2")

    assert (first.value, first.next().value, first.next().next().success) == ("1", "2", False)


def test_escaping_comes_back() -> None:
    assert unescape(escape("C:\\a.b [x]\n")) == "C:\\a.b [x]\n"
