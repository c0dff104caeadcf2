"""A runtime for tests of the value library: a real lab machine, no evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from winboot_lab.engine.values import NOTHING, Value
from winboot_lab.windows.machine import Machine


class BareRuntime:
    """What members may ask of an evaluator, answered without one: script blocks answer `block_answer`."""

    def __init__(self, *, strict: int = 0, block_answer: Value = NOTHING) -> None:
        self.machine: Any = Machine().session()
        self.strict = strict
        self.block_answer = block_answer
        self.variables: dict[str, Value] = {}

    def get(self, key: str, default: Value = None) -> Value:
        return self.variables.get(key, default)

    def put(self, name: str, value: Value) -> None:
        self.variables[name.lower()] = value

    def call(self, block: Any, arguments: Sequence[Value], this: Value = None) -> Value:
        return self.block_answer

    def call_with_underbar(self, block: Any, item: Value, arguments: Sequence[Value] = ()) -> Value:
        return self.block_answer
