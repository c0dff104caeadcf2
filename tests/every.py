"""One assertion about every element of a table: one test, whose message lists each element that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def assert_none_wrong(findings: Mapping[str, object]) -> None:
    """Fail if an element has a finding, or if there is no element.

    `findings`: the name of each element → what is wrong with it; an empty value means right.
    """
    assert findings, "the table has no element"
    wrong = [f"{name}: {found}" for name, found in findings.items() if found]
    # pytest shortens a comparison; it shows a text in full.
    assert not wrong, "\n".join((f"{len(wrong)} of {len(findings)} are wrong:", *wrong))


def untrue(**claims: object) -> list[str]:
    """The names of the claims that do not hold."""
    return [name for name, holds in claims.items() if not holds]


def differs(found: object, wanted: object) -> str:
    """Both values if they are not equal."""
    return "" if found == wanted else f"{found!r}, not {wanted!r}"


def failure(error: type[Exception], check: Callable[..., object], *arguments: object) -> str:
    """The class and the text of the exception if the check raises this one; empty if it returns."""
    try:
        check(*arguments)
    except error as raised:
        return f"{type(raised).__name__}: {raised}"
    return ""
