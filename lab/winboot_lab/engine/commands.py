"""What a command name can mean, and how it is found: alias, function, cmdlet, machine command, script file, program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.blocks import Code
from winboot_lab.engine.cmdlet import Cmdlet
from winboot_lab.engine.errors import command_not_found
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.signatures import (
    ALL_SETS,
    CommandSpec,
    ParameterSpec,
    Place,
    common_parameters,
)
from winboot_lab.engine.values import Instance, ScriptBlock
from winboot_lab.language.commands import find as find_facts
from winboot_lab.windows.door import CommandSignature

Value = Any


class Bound:
    """What a ScriptBlock value is bound to: its code and, for a closure, the scope it lives in."""

    __slots__ = ("code", "home")

    def __init__(self, code: Code, home: Scope | None = None) -> None:
        self.code = code
        self.home = home


class Function(Instance):
    """A function: its code and, when it was defined inside a closure, the scope it lives in."""

    kind = "Function"

    def __init__(self, name: str, code: Code, scope: Scope | None = None) -> None:
        self.name = name
        self.code = code
        self.home = scope
        self.options: frozenset[str] = frozenset()

    def block(self) -> ScriptBlock:
        """The function's body as a script block."""
        tree = self.code.tree
        text = tree.extent.text
        if text.startswith("{") and text.endswith("}"):
            text = text[1:-1]
        if tree.params is None and self.code.parameters:
            # Parameters in parentheses after the name become a param block before the body.
            listed = ", ".join(parameter.extent.text for parameter in self.code.parameters)
            text = f"param({listed})\r\n{text}"
        return ScriptBlock(text, tree, Bound(self.code, self.home))


class Script(Function):
    """A script block that runs by itself: a whole script, or one called with `&`. It has no name."""

    kind = "Script"

    def __init__(self, code: Code, scope: Scope | None = None) -> None:
        super().__init__("", code, scope)


class MachineCommand(Instance):
    """A command that the machine implements; the binder takes its parameters from the door's signature."""

    def __init__(self, signature: CommandSignature) -> None:
        self.signature = signature
        self.name = signature.name
        self.module = signature.module
        self.kind: str = signature.kind
        self._spec: CommandSpec | None = None

    @property
    def spec(self) -> CommandSpec:
        """The door's signature in the binder's terms."""
        if self._spec is None:
            self._spec = machine_spec(self.signature)
        return self._spec


@dataclass(frozen=True, slots=True)
class Application:
    """A program outside: `path` is its full path."""

    name: str
    path: str
    kind: str = "Application"


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A .ps1 file: `path` is its full path."""

    name: str
    path: str
    kind: str = "ExternalScript"


Command = Function | Cmdlet | MachineCommand | Application | ScriptFile


def machine_spec(signature: CommandSignature) -> CommandSpec:
    """Translate a door signature for the binder."""
    from winboot_lab.engine.bridge import parameter_spec

    parameters: list[ParameterSpec] = []
    for declared in signature.parameters:
        kind, checks = parameter_spec(declared.name, declared.type_name, tuple(declared.words))
        spec = ParameterSpec(declared.name, kind, declared.aliases, validators=checks)
        spec.places.update(
            (entry.name, Place(entry.mandatory, entry.position, entry.by_value, entry.by_name))
            for entry in declared.sets
        )
        parameters.append(spec)
    taken = {parameter.key for parameter in parameters}
    parameters.extend(
        parameter
        for parameter in common_parameters(should_process=signature.should_process)
        if parameter.key not in taken
    )
    default = signature.default_set
    made = CommandSpec(
        signature.name,
        parameters,
        default_set=None if default == ALL_SETS else default,
        suffix=signature.name
        if signature.kind == "Function"
        else f"Microsoft.PowerShell.Commands.{signature.name.replace('-', '')}Command",
        should_process=signature.should_process,
    )
    made.partial = True
    made.confirm_impact = signature.confirm_impact
    return made


# -- the registry of cmdlets


_CMDLETS: dict[str, Cmdlet] = {}
_MACHINE: dict[int, tuple[CommandSignature, MachineCommand]] = {}

UTILITY = "Microsoft.PowerShell.Utility"
MANAGEMENT = "Microsoft.PowerShell.Management"
CORE = "Microsoft.PowerShell.Core"
SECURITY = "Microsoft.PowerShell.Security"


def cmdlet(
    name: str,
    signature: str = "",
    *,
    module: str = UTILITY,
    default_set: str | None = None,
    suffix: str | None = None,
    should_process: bool = False,
) -> Callable[[Any], Any]:
    """Declare a cmdlet; the decorated function or class does its work (see cmdlets/__init__.py)."""

    def declare(run: Any) -> Any:
        _CMDLETS[name.lower()] = Cmdlet(
            name,
            signature,
            run,
            module=module,
            default_set=default_set,
            suffix=suffix,
            should_process=should_process,
        )
        return run

    return declare


def all_cmdlets() -> dict[str, Cmdlet]:
    """Every declared cmdlet by lower-case name."""
    return _CMDLETS


# -- finding


def find_command(scope: Scope, name: str) -> Command:
    """The command a name means from this scope; raises CommandNotFoundException, or a Refusal for a known unknown."""
    found = look_up(scope, name)
    if found is not None:
        return found
    alias = scope.find_alias(name.lower())
    meant = alias if isinstance(alias, str) else name
    if is_known_elsewhere(meant):
        raise Refusal("command", meant)
    raise command_not_found(name)


def look_up(scope: Scope, name: str) -> Command | None:
    """The command a name means, or None."""
    key = name.lower()
    seen = {key}
    alias = scope.find_alias(key)
    while alias is not None:
        name = alias if isinstance(alias, str) else alias.definition
        key = name.lower()
        if key in seen:
            return None
        seen.add(key)
        alias = scope.find_alias(key)
    found = _direct(scope, name, key)
    if found is not None:
        return found
    outside = _outside(scope, name)
    if outside is not None:
        return outside
    if "-" not in key and "\\" not in key and "/" not in key:
        return _direct(scope, f"Get-{name}", f"get-{key}")
    return None


def _direct(scope: Scope, name: str, key: str) -> Command | None:
    place, _, rest = key.partition(":")
    if rest and place in ("global", "script", "local", "private"):
        return scope.named(place).functions.get(rest)
    function = scope.find_function(key)
    if function is not None:
        return function  # type: ignore[no-any-return]
    found = _CMDLETS.get(key)
    if found is not None:
        return found
    signature = scope.machine.commands.get(key)
    if signature is not None:
        return _machine_command(signature)
    if "\\" in key:
        module, _, short = key.rpartition("\\")
        found = _CMDLETS.get(short)
        if found is not None and found.module.lower() == module:
            return found
        signature = scope.machine.commands.get(short)
        if signature is not None and signature.module.lower() == module:
            return _machine_command(signature)
    return None


def _machine_command(signature: CommandSignature) -> MachineCommand:
    known = _MACHINE.get(id(signature))
    if known is None or known[0] is not signature:
        known = _MACHINE[id(signature)] = (signature, MachineCommand(signature))
    return known[1]


def _outside(scope: Scope, name: str) -> Command | None:
    """A script file or a program."""
    if not name.strip() or any(letter in name for letter in '"<>|\n'):
        return None
    locations = scope.session.locations
    if "\\" in name or "/" in name or (len(name) > 1 and name[1] == ":"):
        path = locations.file_path(name)
        if path is None:
            return None
        full = _existing_file(scope, path)
        if full is None:
            found = scope.machine.invoke("program.find", {"name": path}).objects
            full = found[0] if found else None
    else:
        found = scope.machine.invoke("program.find", {"name": name}).objects
        full = found[0] if found else None
    if full is None:
        return None
    short = full.replace("/", "\\").rpartition("\\")[2]
    if full.lower().endswith(".ps1"):
        return ScriptFile(short, full)
    return Application(short, full)


def _existing_file(scope: Scope, path: str) -> str | None:
    for candidate in (path, path + ".ps1"):
        stat = scope.machine.invoke("file.stat", {"path": candidate})
        if stat.objects and stat.objects[0]["kind"] == "file":
            return candidate  # with the case it was called by
    return None


# Functions that a session of Windows PowerShell is born with and the lab's is not.
_SHELL_FUNCTIONS = frozenset(
    (
        "cd..",
        "cd\\",
        "clear-host",
        "get-verb",
        "help",
        "importsystemmodules",
        "mkdir",
        "more",
        "oss",
        "pause",
        "prompt",
        "tabexpansion2",
    )
)


def is_known_elsewhere(name: str) -> bool:
    """Is it a command of Windows PowerShell 5.1 (or of a module of Windows Server) that the lab does not have?"""
    short = name.rpartition("\\")[2]
    if name.lower() in _SHELL_FUNCTIONS or (len(name) == 2 and name[1] == ":" and name[0].isalpha()):
        return True
    return find_facts(short) is not None
