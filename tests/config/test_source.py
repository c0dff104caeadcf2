"""YAML that remembers where everything stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from winboot.errors import InvalidInput
from winboot.source import Complaint, Place, compose, dotted, locate, merge, nearest, raw, read, typed


def _problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        compose(text, "f.yaml")
    return [str(one) for one in caught.value.problems]


def test_scalars_keep_the_text_that_was_written() -> None:
    """1.30 is a version here and no number; on is a word and no boolean."""
    node = compose("version: 1.30\ndsr: on\nport: 0o17\nquoted: 'null'\n", "f.yaml")

    assert raw(node) == {"version": "1.30", "dsr": "on", "port": "0o17", "quoted": "null"}


def test_open_maps_take_numbers_and_booleans_where_they_were_written_plain() -> None:
    """For configuration that another program defines; quotation marks keep text text."""
    node = compose("a: 110\nb: true\nc: 1.5\nd: '110'\ne: yes\nf: ~\ng: [1, x]\nh: -3\n", "f.yaml")

    assert typed(raw(node)) == {
        "a": 110,
        "b": True,
        "c": 1.5,
        "d": "110",
        "e": "yes",
        "f": None,
        "g": [1, "x"],
        "h": -3,
    }


def test_every_key_and_value_has_its_place() -> None:
    """Lines and columns from 1, as editors count."""
    node = compose("a:\n  b: [x,\n      y]\n", "f.yaml")

    assert locate(node, ("a", "b", 1)) == Place("f.yaml", 3, 7)
    assert locate(node, ("a", "b"), key=True) == Place("f.yaml", 2, 3)
    assert locate(node, ("a", "missing")) == Place("f.yaml", 2, 3)
    assert dotted(("a", "b", 1)) == "a.b[1]"


def test_a_key_that_stands_twice_is_refused_with_both_places() -> None:
    """PyYAML would silently take the second."""
    assert _problems("a: 1\nb: 2\na: 3\n") == [
        "f.yaml:3:1: the key 'a' stands twice; expected one 'a' (the first is at f.yaml:1:1)"
    ]


def test_all_structural_mistakes_come_at_once() -> None:
    """A foreign tag, a key that is a list, a second document."""
    problems = _problems("a: !!python/object 1\n? [x]\n: 2\nb: !mine 3\n---\nc: 4\n")

    assert [problem.split(":")[1] for problem in problems] == ["6", "1", "2", "4"]


@pytest.mark.parametrize("text", ["a: [1\nb: 2\n", "a: 'x\n", "\ta: 1\n", "a: b: c\n"])
def test_bad_yaml_is_refused_with_its_place(text: str) -> None:
    """One complaint with file, line and column."""
    (problem,) = _problems(text)

    assert problem.startswith("f.yaml:")


def test_anchors_and_merge_keys_work() -> None:
    """A value written once may be used twice; own keys win over merged ones."""
    node = compose("base: &b {x: 1, y: 2}\none: *b\ntwo: {<<: *b, y: 3}\n", "f.yaml")

    assert typed(raw(node)) == {"base": {"x": 1, "y": 2}, "one": {"x": 1, "y": 2}, "two": {"x": 1, "y": 3}}


def test_an_alias_inside_itself_is_refused() -> None:
    """Instead of running for ever."""
    assert "contains itself" in _problems("a: &a [*a]\n")[0]


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    """Each line doubles the one before."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]

    assert "fewer aliases" in _problems("\n".join(lines))[0]


def test_a_file_that_is_empty_holds_an_empty_map() -> None:
    """And one that holds a list is refused."""
    assert raw(compose("# nothing\n", "f.yaml")) == {}
    assert "no map" in _problems("- a\n")[0]


def test_maps_merge_lists_replace_and_nulls_stay_to_remove() -> None:
    """Places come from the file that said it last."""
    low = compose("a: {x: 1, y: [1, 2]}\nb: 1\n", "low.yaml")
    high = compose("a: {y: [3], z: 4}\nb: null\n", "high.yaml")

    merged = merge(low, high)

    assert typed(raw(merged)) == {"a": {"x": 1, "y": [3], "z": 4}, "b": None}
    assert locate(merged, ("a", "x")).file == "low.yaml"
    assert locate(merged, ("a", "y")).file == "high.yaml"


def test_a_file_that_cannot_be_read_is_an_expected_error(tmp_path: Path) -> None:
    """Missing, or not UTF-8."""
    (tmp_path / "latin").write_bytes(b"a: \xe4\n")

    for name in ("missing", "latin"):
        with pytest.raises(InvalidInput, match=name):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("maxPod", "maxPods"), ("max_pods", "maxPods"), ("MAX-PODS", "maxPods"), ("zebra", "")],
)
def test_the_nearest_word_is_found_whatever_its_spelling(word: str, meant: str) -> None:
    """Case, dashes and underscores do not count; something else entirely is not guessed."""
    assert nearest(word, ["maxPods", "evictionHard"]) == meant


def test_a_complaint_without_details_is_short() -> None:
    """Only what is known is said."""
    assert str(Complaint(None, "a.b", "is wrong")) == "a.b: is wrong"
    assert str(Complaint(Place("f", 1, 2), "", "x", level="warning")) == "f:1:2: warning: x"
