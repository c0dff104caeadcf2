"""Values and texts of any kind, and how many of them `make fuzz` tries at each border parser.

Each is made from one number: 20,000 of Hypothesis' own recursive values take minutes, and these seconds.
"""

from __future__ import annotations

import json
from random import Random

from hypothesis import settings
from hypothesis import strategies as st

EXAMPLES = settings(max_examples=20_000, deadline=None)
SEEDS = st.integers(0, 2**63 - 1)
DEEP = ("[" * 20_000, '{"a":' * 20_000, "9" * 5000, "[1e999]", "NaN", "")
_LETTERS = "aZ09 \"'\\/{}[]:,.-_=&*!|#%\n\r\t\0\x1b\x7f\x85\xa0\u0661\u2028\ufeff\ud800\udfff\U0001f600"
_PLAIN = (None, True, False, 0, -1, 2**31, 2**64, 10**40, 1e300, float("nan"), float("inf"), "", [], {})


def _text(dice: Random) -> str:
    return "".join(dice.choices(_LETTERS, k=dice.randrange(12)))


def _value(dice: Random, keys: tuple[str, ...], words: tuple[str, ...], depth: int) -> object:
    kind = dice.randrange(10)
    if depth and kind < 2:
        return [_value(dice, keys, words, depth - 1) for _ in range(dice.randrange(4))]
    if depth and kind < 7:
        names = [
            dice.choice(keys) if keys and dice.random() < 0.9 else _text(dice)
            for _ in range(dice.randrange(6))
        ]
        return {name: _value(dice, keys, words, depth - 1) for name in names}
    if words and dice.random() < 0.5:
        return dice.choice(words)
    return dice.choice(_PLAIN) if dice.random() < 0.6 else _text(dice)


def objects(*keys: str, words: tuple[str, ...] = ()) -> st.SearchStrategy[object]:
    """Values that often have these keys, and these words as texts."""
    return SEEDS.map(lambda seed: _value(Random(seed), keys, words, 4))


TEXTS = SEEDS.map(lambda seed: _text(Random(seed)))
JSON = objects()


def texts_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    """The JSON texts of these values: whole, cut, with another letter, or other texts."""

    def made(value: object, seed: int) -> str:
        dice, text = Random(seed), json.dumps(value)
        at = dice.randrange(len(text))
        match dice.randrange(8):
            case 0:
                return text[:at]
            case 1:
                return text[:at] + dice.choice(_LETTERS) + text[at + 1 :]
            case 2:
                return dice.choice(DEEP) if dice.random() < 0.2 else _text(dice)
        return text

    return st.builds(made, values, SEEDS)
