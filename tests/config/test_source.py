"""YAML that remembers where everything stands."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from winboot.base.errors import InvalidInput
from winboot.config.source import (
    MOST_COMPLAINTS,
    Complaint,
    Place,
    compose,
    decoded,
    dotted,
    locate,
    masked,
    merge,
    nearest,
    raw,
    read,
    read_standard_input,
    read_text,
    typed,
)


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
        "f.yaml:3:1: duplicate key 'a'; expected it once (it is first set at f.yaml:1:1)"
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
    """Instead of running without end."""
    assert "contains itself" in _problems("a: &a [*a]\n")[0]


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    """Each line doubles the one before."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]

    assert "fewer aliases" in _problems("\n".join(lines))[0]


def test_a_file_that_is_empty_holds_an_empty_map() -> None:
    """And one that holds a list is refused."""
    assert raw(compose("# nothing\n", "f.yaml")) == {}
    assert "not contain a mapping" in _problems("- a\n")[0]


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
    """It leaves out unknown parts."""
    assert str(Complaint(None, "a.b", "is wrong")) == "a.b: is wrong"
    assert str(Complaint(Place("f", 1, 2), "", "x", level="warning")) == "f:1:2: warning: x"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_what_is_nested_too_deeply_is_refused_before_the_stack_ends(opening: str, closing: str) -> None:
    """A hundred thousand levels ended the process with a segmentation fault, a thousand with a RecursionError."""
    before = "" if opening == "- " else "a: "
    for levels in (60, 5_000, 100_000):
        assert "inside each other" in _problems(before + opening * levels + closing * levels)[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('a: "x\\ny"', "f.yaml:1:4: the value has a line break"),
        ("a: |\n  b\n", "f.yaml:1:4: the value has a line break"),
        ('a: "x\\0"', "f.yaml:1:4: the value contains the control character U+0000"),
        ('"x\\e": a', "f.yaml:1:1: the value contains the control character U+001B"),
        ('a: "x\\u2028"', "the control character U+2028"),
        ("a: x\x1by", "f.yaml:1:5: contains the control character U+001B"),
        ("a:\n\tb: 1", "f.yaml:2:1: a tab is used to indent; expected spaces"),
    ],
)
def test_characters_that_no_name_has_are_refused_at_their_place(text: str, says: str) -> None:
    """Line breaks, control characters, separators of lines; in values and in keys, raw or escaped."""
    assert says in _problems(text)[0]


def test_a_command_may_have_lines() -> None:
    """It may be a small script for a shell."""
    assert compose("command:\n- sh\n- |\n  echo a\n  echo b\n", "f.yaml").entries


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: 1\nb: \xff\n", ":2:4: the byte 0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), ":1:1: the file is UTF-16; expected a file saved as UTF-8"),
        (b"a: 1\n" * 2**20, ":1:1: is larger than 4 MiB"),
    ],
    ids=["latin-1", "utf-16", "large"],
)
def test_a_file_that_is_no_text_is_refused_at_its_place(data: bytes, says: str, tmp_path: Path) -> None:
    """The first byte that is not UTF-8, or the encoding that the file's mark names."""
    file = tmp_path / "f.yaml"
    file.write_bytes(data)

    with pytest.raises(InvalidInput) as caught:
        read(file)

    assert says in str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("a: ü".encode("utf-16")[:-1], "the file is UTF-16"),
        ("\ufeffä: 1\nb: ".encode() + b"\xff\n", ":2:4: the byte 0xff is not UTF-8"),
    ],
    ids=["half of a character", "behind a mark"],
)
def test_a_damaged_file_of_powershell_is_refused(data: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(data)

    with pytest.raises(InvalidInput) as caught:
        read_text(file, decoded)

    assert says in str(caught.value.problems[0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_standard_input_is_read_in_powershells_encodings(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("kubeadm join ü".encode(encoding)), "ascii"))

    assert read_standard_input() == "kubeadm join ü"


def test_a_refusal_of_standard_input_shows_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback holds the decoder's bytes, and so the token of a join command."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"--token TOKEN \xff"), "utf-8"))

    with pytest.raises(InvalidInput, match="standard input is not UTF-8 text") as caught:
        read_standard_input()

    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user:PASS@proxy:3128", "***@proxy:3128"),
        ("socks5://u:PASS@h:1", "socks5://***@h:1"),
        ("https://TOKEN@h/x", "https://***@h/x"),
        ("https://u:pa/ss@h", "https://***@h"),
        ("https://mirror/x?sv=1&sig=TOKEN", "https://mirror/x?***"),
        ("registry.k8s.io:443/pause:3.10@sha256:ab", "registry.k8s.io:443/pause:3.10@sha256:ab"),
        ("did you mean a=b?", "did you mean a=b?"),
    ],
)
def test_a_complaint_shows_no_credential_of_an_address(text: str, shown: str) -> None:
    """This holds for complaints from any module; an image's digest is not a credential."""
    assert str(Complaint(None, "", text)) == shown


BOMBS = {
    "aliases of tens": "a0: &a0 [x]\n"
    + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    "merges of tens": "a0: &a0 {x: 1}\n"
    + "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)),
    "brackets": "a: " + "[" * 100_000,
    "depth": "\n".join(" " * n + "a:" for n in range(1_000)),
    "the same key": "a: 1\n" * 20_000,
    "tags": "\n".join(f"a{n}: !!python/object/apply:os.system [x]" for n in range(5_000)),
    "documents": "---\na: 1\n" * 5_000,
    "controls": "\n".join(f'a{n}: "\\e"' for n in range(5_000)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_strangers_file_fills_neither_memory_nor_terminal(bomb: str) -> None:
    """A file of 200,000 errors was 28 MB of complaints."""
    problems = _problems(BOMBS[bomb])

    assert 1 <= len(problems) <= MOST_COMPLAINTS + 1
    assert sum(map(len, problems)) < 100_000


@pytest.mark.parametrize("word", ["a?", "?a:", "a:", "//", "@sha256:", ":@", "a:b@", "'?a=", "http://a?b=c"])
def test_a_word_without_an_end_is_masked(word: str) -> None:
    """Each letter of it was a beginning to try, of which each went to the end: hours."""
    assert isinstance(masked(f"?@ {word * 100_000}"), str)
    assert isinstance(masked(word * 100_000 + "@sha256:"), str)
