"""Values are put into YAML that a person wrote, and every other byte of it stays."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from winboot.base.errors import InvalidInput
from winboot.config.edit import drop, put, put_reference

CASES = [
    ("nothing", ""),
    ("no such section", "kubernetes:\n  version: 1.34.2   # mine\n"),
    ("a section without the map", "artifacts:\n  source: upstream\n# the end\n"),
    ("an empty map with a comment", "artifacts:\n  sha256: {}    # later\nsteps: []\n"),
    ("nothing behind the key", "artifacts:\n  sha256:\nsteps: []\n"),
    ("null behind the key", "artifacts:\n  sha256: null # none\n"),
    ("entries", "artifacts:\n  sha256:\n    a: b   # c\n\n# the next\nsteps: []\n"),
    ("entries, deeper", "artifacts:\n    sha256:\n        a: b\n    source: upstream\n"),
    ("braces", "artifacts: {source: upstream, sha256: {a: b}}\nsteps: []\n"),
    ("braces without the map", "artifacts: {source: upstream}  # short\n"),
    ("empty braces inside braces", "artifacts: {source: upstream, sha256: {}}\n"),
    ("no line end at the end", "artifacts:\n  sha256:\n    a: b"),
    ("the key itself", 'artifacts:\n  sha256:\n    "x.zip!y": old  # was\n    z: "1"\n'),
    ("a block of text before", "steps:\n- name: a\n  why: |\n    text\n    more\nartifacts:\n  sha256: {}\n"),
    ("a block of text last", "artifacts:\n  source: |\n    text\nsteps: []\n"),
]


@pytest.mark.parametrize("text", [text for _, text in CASES], ids=[name for name, _ in CASES])
def test_a_value_is_put_where_it_belongs_and_the_rest_stays(text: str) -> None:
    """Read back, only the map has changed; put again, nothing changes."""
    after = put(text, ("artifacts", "sha256"), {"x.zip!y": "value"})

    wanted = yaml.safe_load(text) or {}
    artifacts = wanted.get("artifacts") or {}
    wanted["artifacts"] = artifacts | {"sha256": (artifacts.get("sha256") or {}) | {"x.zip!y": "value"}}
    assert yaml.safe_load(after) == wanted
    assert [line for line in text.splitlines() if "#" in line and line.split("#")[1] not in after] == []
    assert put(after, ("artifacts", "sha256"), {"x.zip!y": "value"}) == after


DROPS = [
    ("a line", "m:\n  a: 1\n  k: 2   # its own\n  b: 3 # stays\n", "m:\n  a: 1\n  b: 3 # stays\n"),
    ("the last line", "m:\n  a: 1\n  k: 2", "m:\n  a: 1\n"),
    ("the only line", "m:\n  k: 2\n# stays\n", "m:\n  {}\n# stays\n"),
    ("in braces, first", "m: {k: 2, a: 1}\n", "m: {a: 1}\n"),
    ("in braces, last", "m: {a: 1, k: 2} # stays\n", "m: {a: 1} # stays\n"),
    ("alone in braces", "m: {k: 2}\n", "m: {}\n"),
    ("not there", "m: {a: 1}\n", "m: {a: 1}\n"),
    ("no such map", "n: 1\n", "n: 1\n"),
]


@pytest.mark.parametrize(("text", "left"), [row[1:] for row in DROPS], ids=[row[0] for row in DROPS])
def test_a_key_goes_and_the_rest_stays(text: str, left: str) -> None:
    """Read back, only the key is missing; dropped again, nothing changes."""
    assert drop(text, ("m",), ["k"]) == left
    kept = yaml.safe_load(text)
    if isinstance(kept.get("m"), dict):
        kept["m"].pop("k", None)
    assert yaml.safe_load(left) == kept
    assert drop(left, ("m",), ["k"]) == left


def test_a_path_through_a_value_is_refused() -> None:
    """With its line."""
    with pytest.raises(InvalidInput, match=r"line 2: artifacts\.sha256 is not a mapping"):
        put("artifacts:\n  sha256: all\n", ("artifacts", "sha256"), {"a": "b"})


def test_a_reference_is_put_beside_the_other_keys() -> None:
    """In the form people write."""
    after = put_reference("cluster:\n  server: https://a:6443\n", ("cluster",), "ca", "./ca.crt")

    assert after == 'cluster:\n  server: https://a:6443\n  ca: {file: "./ca.crt"}\n'


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@example({"1": "\xa0"}, "0", "0", True)
@given(st.dictionaries(WORDS, WORDS, max_size=4), WORDS, WORDS, st.booleans())
def test_whatever_stands_there_nothing_else_changes(
    there: dict[str, str], key: str, value: str, flow: bool
) -> None:
    """Any text as key or value, in both styles of YAML."""
    text = yaml.safe_dump({"a": {"b": there}, "c": "d"}, default_flow_style=flow, allow_unicode=True)

    assert yaml.safe_load(put(text, ("a", "b"), {key: value})) == {"a": {"b": there | {key: value}}, "c": "d"}
