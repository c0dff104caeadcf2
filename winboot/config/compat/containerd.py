"""containerd's own settings: does this line of it know them, and what does it take?

The data has the settings of config.toml by plug-in, those outside of plug-ins under `top`. `added` and `until` are lines
of containerd; without them the lines 1.7 to 2.4 have the setting. Their source is the
`toml:` tags of containerd's structs at v1.7.34, v2.0.11, v2.1.9, v2.2.7, v2.3.4 and, for 2.4, at 301026e5. These are
config.go of the server and of CRI, and the `config` of each plug-in that cmd/containerd/builtins registers on Windows.
`ignored` ones are read in files for Linux alone. Settings that winboot writes itself are not in the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.config.compat.facts import Compat, Facts
from winboot.config.compat.finding import Finding
from winboot.config.compat.flags import FieldPath
from winboot.config.compat.values import wrong_values
from winboot.config.compat.version import Version, minor_key
from winboot.config.source import nearest

TOP: Final = "top"
_LINES: Final = ("1.7", "2.0", "2.1", "2.2", "2.3", "2.4")


def check_settings(
    compat: Compat, config: Mapping[str, Any], containerd: Version
) -> Iterator[tuple[FieldPath, Finding]]:
    """Every setting that this containerd does not know or refuses, or that does nothing on Windows, with its path.

    containerd itself ignores unknown settings (config.go: `Ignoring unknown key in TOML`; 1.7 without a warning)."""
    line = _line(containerd)
    known = _known(compat, line)
    for key, value in config.items():
        if key != "plugins":
            yield from _in_section(compat, known, TOP, {key: value}, (), line)
        elif not isinstance(value, Mapping):
            yield ("plugins",), _wrong("plugins", "found no mapping", "plug-in: {setting: value}")
        else:
            for plugin, settings in value.items():
                yield from _plugin(compat, known, plugin, settings, line)


def _line(containerd: Version) -> str:
    """The line whose settings apply: an older or newer one than the data has is judged as its nearest."""
    older = [line for line in _LINES if minor_key(line) <= minor_key(containerd.minor)]
    return older[-1] if older else _LINES[0]


def _known(compat: Compat, line: str) -> dict[str, dict[str, Facts]]:
    """Plug-in → setting → its facts, as this line has them."""
    every: Mapping[str, Mapping[str, Facts]] = compat.section("containerd_settings")
    known = {
        plugin: {name: entry for name, entry in settings.items() if _has(entry, line)}
        for plugin, settings in every.items()
    }
    return {plugin: settings for plugin, settings in known.items() if settings}


def _has(entry: Facts, line: str) -> bool:
    return _since(entry, line) and minor_key(line) <= minor_key(entry.get("until", _LINES[-1]))


def _plugin(
    compat: Compat, known: Mapping[str, Mapping[str, Facts]], plugin: str, settings: Any, line: str
) -> Iterator[tuple[FieldPath, Finding]]:
    path = ("plugins", plugin)
    if plugin not in known or plugin == TOP:
        yield path, _unknown_plugin(compat, known, plugin, settings, line)
    elif isinstance(settings, Mapping):
        yield from _in_section(compat, known, plugin, settings, path, line)
    elif settings is not None:
        yield path, _wrong(plugin, "found no mapping", "setting: value")


def _in_section(
    compat: Compat,
    known: Mapping[str, Mapping[str, Facts]],
    plugin: str,
    settings: Mapping[str, Any],
    above: FieldPath,
    line: str,
    prefix: str = "",
) -> Iterator[tuple[FieldPath, Finding]]:
    for key, value in settings.items():
        path, name = (*above, key), f"{prefix}{key}"
        entry = known[plugin].get(name) or _named(known[plugin], prefix)
        if entry is None:
            yield path, _unknown_setting(compat, known, plugin, name, value, line)
            continue
        wrong = list(wrong_values(entry, value))
        for one in wrong:
            yield (
                (*path, *one.below),
                Finding(
                    "error",
                    "wrong-value",
                    name,
                    one.wrong,
                    "",
                    _source(compat),
                    one.expected,
                    one.did_you_mean,
                ),
            )
        if entry.get("windows") == "ignored":
            reason = "containerd reads this setting only on Linux"
            yield path, Finding("warning", "ignored", name, reason, "remove it", _source(compat))
        elif _has_empty_item(value):
            yield path, _wrong(name, "a list cannot have an empty item", "items with values")
        elif not wrong and isinstance(value, Mapping) and _is_section(entry):
            below = f"{prefix}*." if name not in known[plugin] else f"{name}."
            yield from _in_section(compat, known, plugin, value, path, line, below)


def _named(settings: Mapping[str, Facts], prefix: str) -> Facts | None:
    """An entry under a name of the user's own, such as a runtime handler: a map with known settings."""
    section = settings.get(prefix.removesuffix("."))
    return {"type": "map"} if section is not None and section.get("names") else None


def _has_empty_item(value: Any, *, item: bool = False) -> bool:
    """TOML has no null. One of a mapping takes a setting away, one in a list cannot be meant."""
    if isinstance(value, Mapping):
        return any(_has_empty_item(one, item=item) for one in value.values())
    if isinstance(value, list | tuple):
        return any(_has_empty_item(one, item=True) for one in value)
    return item and value is None


def _is_section(entry: Facts) -> bool:
    return bool(entry["type"] == "map" and not entry.get("open"))


def _unknown_plugin(
    compat: Compat, known: Mapping[str, Mapping[str, Facts]], plugin: str, settings: Any, line: str
) -> Finding:
    reason = f"containerd {line} reads no section of this name in the file that winboot writes"
    if plugin.startswith("io.containerd.server."):
        # Version 4 of the file, which older lines do not read, has them there (config.go, serviceMigrate).
        return _unknown(plugin, reason, "", "plugins, debug, grpc, metrics or ttrpc")
    other_line = plugin in compat.section("containerd_settings")
    # Version 1 of the file has the last part alone (docs/PLUGINS.md, "Configuration Versions").
    names = [one for one in known if one.endswith(f".{plugin}")] or [nearest(plugin, known.keys() - {TOP})]
    meant = "" if other_line else names[0]
    return _unknown(plugin, reason, meant, "" if meant else _elsewhere(known, plugin, settings))


def _unknown_setting(
    compat: Compat, known: Mapping[str, Mapping[str, Facts]], plugin: str, name: str, value: Any, line: str
) -> Finding:
    entry = compat.section("containerd_settings")[plugin].get(name, {})
    if "added" in entry and not _since(entry, line):
        return _unknown(name, f"containerd {line} does not have this setting (new in {entry['added']})")
    instead = _elsewhere(known, plugin, {name.rpartition(".")[2]: value})
    gone = f" any more: {entry['until']} was the last line with it" if entry else " here"
    head = name.rpartition(".")[0]
    beside = [one.rpartition(".")[2] for one in known[plugin] if one.rpartition(".")[0] == head]
    meant = "" if instead or entry else nearest(name.rpartition(".")[2], beside)
    return _unknown(name, f"containerd {line} has no such setting{gone}", meant, instead)


def _since(entry: Facts, line: str) -> bool:
    return minor_key(entry.get("added", _LINES[0])) <= minor_key(line)


def _elsewhere(known: Mapping[str, Mapping[str, Facts]], plugin: str, settings: Any) -> str:
    """The one other place in which this line has the first of these settings: 2.0 moved many, and those of CRI within CRI."""
    of_cri = "cri" in plugin.split(".")
    last = ""
    while isinstance(settings, Mapping) and settings:
        last, settings = next(iter(settings.items()))
    places = [
        name if other == TOP else f"plugins.{other}.{name}"
        for other, names in known.items()
        for name in names
        if other != plugin and name.rpartition(".")[2] == last and ("cri" in other.split(".") or not of_cri)
    ]
    return places[0] if len(places) == 1 else ""


def _unknown(about: str, reason: str, meant: str = "", instead: str = "") -> Finding:
    return Finding("error", "unknown", about, reason, instead, did_you_mean=meant)


def _wrong(about: str, reason: str, expected: str) -> Finding:
    return Finding("error", "wrong-value", about, reason, "", "", expected)


def _source(compat: Compat) -> str:
    return compat.source("containerd-src")
