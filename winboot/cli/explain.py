"""`winboot explain`: what is known about a name of Kubernetes, of Windows or of winboot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Final

import typer

from winboot.cli import completion
from winboot.cli.colour import tell
from winboot.cli.options import Lines, LinesForm

_OF_DATA: Final = ("flag", "field", "gate", "build", "version")
# The order in which a bare word is looked up.
KINDS: Final = ("problem", "exit-code", "network", "step", "key", *_OF_DATA)
_EXAMPLES: Final = {
    "flag": "node-ip",
    "field": "cgroupsPerQOS",
    "gate": "WinDSR",
    "build": "20348",
    "version": "1.36",
    "problem": "NeedsDrain",
    "step": "pod-network",
    "key": "runtime.registries",
    "exit-code": "69",
}


def explain(
    kind: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.explained,
            help="A name of any kind, or one of flag, field, gate, build, version, network, problem, step, key, "
            "exit-code before it.",
        ),
    ],
    name: Annotated[str, typer.Argument(help="What to explain; `explain network` compares networks.")] = "",
    output: LinesForm = Lines.table,
) -> None:
    """Explain a name: what it is, what it does on Windows, since when, what to write or to do instead."""
    from winboot.report.line import json_line
    from winboot.report.shape import Explained

    found = _asked(kind, name)
    if output is Lines.json:
        for what, text in found:
            typer.echo(json_line(Explained(name=name or kind, what=what, text=text)), nl=False)
        return
    tell("\n\n".join(text for _, text in found))


def _asked(kind: str, name: str) -> list[tuple[str, str]]:
    """Each kind with its text. Raises UsageError where nothing is known, with the nearest name."""
    from winboot.base.errors import UsageError

    if name:
        return [(kind, _of_kind(kind, name))]
    if kind == "network":
        return [(kind, _network(""))]
    if kind in _EXAMPLES:
        # `explain taint`, `explain step`: a word may be called as a kind is; this one is not.
        raise UsageError(
            f"explain {kind} needs a name", hint=f"For example: winboot explain {kind} {_EXAMPLES[kind]}"
        )
    found = list(_any(kind))
    if not found:
        raise _unknown(kind)
    return found


def _any(word: str) -> Iterator[tuple[str, str]]:
    """What is known of a word, of whichever kind it is."""
    from winboot.base.errors import UsageError

    for kind in KINDS if word.strip() else ():
        if kind in _OF_DATA and not _may_be(kind, word):
            continue
        try:
            yield kind, _of_kind(kind, word)
        except UsageError:
            continue


def _may_be(kind: str, word: str) -> bool:
    """A number alone is a build or a version, never a flag."""
    digits = word.lstrip("v")[:1].isdigit() or word.lower().startswith(("windows", "ltsc"))
    return digits == (kind in ("build", "version"))


def _of_kind(kind: str, name: str) -> str:
    """The text. Raises UsageError where the name is not known."""
    own: dict[str, Callable[[str], str]] = {
        "network": _network,
        "problem": _problem,
        "step": _step,
        "key": _key,
        "exit-code": _exit_code,
    }
    if kind in own:
        return own[kind](name)
    from winboot.base.errors import UsageError
    from winboot.config.compat.explain import explain as text
    from winboot.config.compat.facts import load

    if kind not in _OF_DATA:
        raise UsageError(f"{kind!r} cannot be explained", hint=_kinds())
    try:
        return text(load(), kind, name) + (_owned(name) if kind == "flag" else "")
    except UsageError:
        # `explain field network.cni`: a field of winboot's own.
        from winboot.config.keys import key_named, keys

        if kind != "field" or "." not in name:
            raise
        key = key_named(name)
        if key is None:
            raise _missing("field", name, keys(), "docs/profile.md lists them.") from None
        return str(key)


def _owned(name: str) -> str:
    """What a flag does that winboot writes itself, and where its value is from; nothing of others."""
    from winboot.config.compat.flags import normal
    from winboot.config.profile.checks.components import OWNED_FLAGS
    from winboot.script.glossary import FLAGS

    flag = normal(name.partition("=")[0])
    lines = [f"\n  says            {FLAGS[flag]}"] if flag in FLAGS else []
    for component, owned in OWNED_FLAGS.items():
        if flag in owned:
            lines.append(
                f"\n  winboot         writes {component}'s itself: {owned[flag] or 'it has one right value here'}"
            )
    return "".join(lines)


def _problem(name: str) -> str:
    from winboot.script.problems import explain_problem

    return explain_problem(name)


def _step(name: str) -> str:
    from winboot.script.steps import STEPS

    step = next((one for one in STEPS if one.name == name.lower().replace("_", "-")), None)
    if step is None:
        raise _missing("step", name, [one.name for one in STEPS], "`winboot steps` lists them.")
    lines = [f"{step.name}: a step that runs on {'the machine' if step.side == 'node' else 'this computer'}"]
    lines.append(f"  why    {step.why}")
    if step.needs:
        lines.append(f"  after  {', '.join(step.needs)}")
    before = [one.name for one in STEPS if step.name in one.needs]
    if before:
        lines.append(f"  before {', '.join(before)}")
    lines.append(f"  script winboot render --only {step.name}")
    return "\n".join(lines)


def _key(name: str) -> str:
    from winboot.config.keys import key_named, keys

    key = key_named(name)
    if key is None:
        raise _missing("key", name, keys(), "docs/profile.md and docs/inventory.md list them.")
    return str(key)


def _exit_code(name: str) -> str:
    from winboot.script.glossary import EXIT_CODES

    text = EXIT_CODES.get(int(name)) if name.isascii() and name.isdigit() and len(name) < 4 else None
    if text is None:
        raise _missing("exit code", name, (), "docs/exit-codes.md lists them.")
    return f"exit code {name}\n  {text}"


def _missing(kind: str, name: str, names: object, otherwise: str) -> Exception:
    from winboot.base.errors import UsageError
    from winboot.config.source import nearest

    meant = nearest(name, list(names))  # type: ignore[call-overload]
    return UsageError(f"no {kind} {name!r} is known", hint=f"Did you mean {meant!r}?" if meant else otherwise)


def _unknown(word: str) -> Exception:
    """Nothing is called so; what is called alike."""
    from winboot.base.errors import UsageError
    from winboot.cli.vocabulary import names
    from winboot.config.source import nearest

    meant = nearest(word, [*names(), *_EXAMPLES, "network"])
    hint = f"Did you mean {meant!r}? {_kinds()}" if meant else _kinds()
    return UsageError(f"winboot does not know {word!r}", hint=hint)


def _kinds() -> str:
    return (
        "One of "
        + ", ".join((*_OF_DATA, "network", "problem", "step", "key", "exit-code"))
        + "; docs/glossary.md explains words, docs/troubles.md messages of logs."
    )


def _network(name: str) -> str:
    """One solution, one of Windows' kinds of network, or both compared."""
    from winboot.config import networks
    from winboot.config.networks.kinds import kind_named, kinds_text

    if not name:
        return f"{kinds_text()}\n\nThe solutions winboot knows (winboot explain network NAME):\n\n{networks.comparison()}"
    kind = kind_named(name)
    if kind is None:
        # flannel:host-gw, as `init` writes it.
        return networks.explain(name.replace(":", "-"))
    return (
        f"{kind.name}\n  attached  {kind.attached}\n  packets   {kind.packets}\n  used by   {kind.used_by}\n"
        f"  choose    {kind.choose}"
    )
