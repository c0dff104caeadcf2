"""Values and texts of any kind, and how many of them `make fuzz` tries at each border parser."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st

EXAMPLES = settings(max_examples=20_000, deadline=None)
TEXTS = st.text() | st.text(st.characters(categories=["Cs", "Cc", "Lu", "Nd"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)
TRUNCATED = st.integers(0, 200)
DEEP = st.sampled_from(["[" * 20_000, '{"a":' * 20_000, "9" * 5000, "[1e999]", "NaN"])


def objects(*keys: str, words: tuple[str, ...] = ()) -> st.SearchStrategy[object]:
    """Values that often have these keys, and these words as texts."""
    leaves = JSON | st.sampled_from(words) if words else JSON
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner),
        max_leaves=12,
    )


def texts_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    """The JSON texts of these values, whole and cut, and other texts."""
    whole = values.map(json.dumps)
    return whole | st.builds(lambda text, cut: text[:cut], whole, TRUNCATED) | TEXTS | DEEP
