"""wevtutil.exe im and um: the event providers and logs of a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from winboot_lab.programs.base import Run
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.registry import HKLM
from winboot_lab.windows.session import Computer

# Keys and values: learn.microsoft.com/windows-hardware/drivers/develop/porting-inf-to-driver-package-isolation. Elements and
# attributes: learn.microsoft.com/windows/win32/wes/eventmanifestschema-providertype-complextype.
_WINEVT: Final = HKLM + r"\SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT"
_SPACE: Final = "{http://schemas.microsoft.com/win/2004/08/events}"
_FILES: Final = {"/rf:": "resourceFileName", "/mf:": "messageFileName"}


class Wevtutil:
    """im MANIFEST /rf:FILE /mf:FILE, um MANIFEST (Microsoft's page of the Windows command wevtutil)."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One command. What it prints has no source: nothing."""
        run = Run(machine, process, argv, env, stdin)
        match argv[1:]:
            case [("im" | "um") as verb, manifest, *options]:
                for provider in ElementTree.fromstring(run.read(manifest)).iter(f"{_SPACE}provider"):
                    _register(run, provider, verb, options)
                return Exit(0)
        raise run.refuse(" ".join(argv[1:]))


def _register(run: Run, provider: ElementTree.Element, verb: str, options: list[str]) -> None:
    registry, guid = run.machine.registry, provider.attrib["guid"]
    key = rf"{_WINEVT}\Publishers\{guid}"
    logs = [rf"{_WINEVT}\Channels\{one.attrib['name']}" for one in provider.iter(f"{_SPACE}channel")]
    if registry.exists(key) != (verb == "um") or any(one[:4] not in _FILES for one in options):
        raise run.refuse(" ".join([verb, "of a provider in this state", *options]))
    if verb == "um":
        for one in (key, *logs):
            registry.wipe(one)
        return
    registry.set(key, "", "String", provider.attrib["name"])
    files = {name: provider.attrib[name] for name in _FILES.values()}
    for name, file in (files | {_FILES[one[:4]]: one[4:] for one in options}).items():
        registry.set(key, name[:1].upper() + name[1:], "ExpandString", file)
    for one in logs:
        registry.set(one, "OwningPublisher", "String", guid)
