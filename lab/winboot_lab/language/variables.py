"""Which variables a function sets and reads: the part of the strict check that knows about scopes.

A script must set a variable before the place where it reads that variable. The check goes by the text and is lenient. In a
loop an earlier turn may have set it, a script block may run at any time, and a function runs after the whole script. A
function also sees what the script sets at its top; winboot's functions do not use their callers' variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from winboot_lab.language.syntax import (
    ArrayLiteral,
    Assignment,
    Attributed,
    Command,
    CommandParameter,
    Convert,
    Data,
    DoUntil,
    DoWhile,
    Expression,
    Extent,
    For,
    ForEach,
    Node,
    Parameter,
    Paren,
    Pipeline,
    ScriptBlockExpression,
    StringConstant,
    Variable,
    While,
)

# Variables that PowerShell sets itself, in lower case.
AUTOMATIC: Final = frozenset(
    [
        *("$", "?", "^", "_", "args", "consolefilename", "error", "event", "eventargs", "eventsubscriber"),
        *("executioncontext", "false", "foreach", "home", "host", "input", "lastexitcode", "matches"),
        *("myinvocation", "nestedpromptlevel", "null", "pid", "profile", "psboundparameters", "pscmdlet"),
        *("pscommandpath", "psculture", "psdebugcontext", "pshome", "psitem", "psscriptroot", "pssenderinfo"),
        *(
            "psuiculture",
            "psversiontable",
            "pwd",
            "sender",
            "shellid",
            "stacktrace",
            "switch",
            "this",
            "true",
        ),
        *("confirmpreference", "debugpreference", "erroractionpreference", "errorview"),
        *("formatenumerationlimit", "informationpreference", "maximumhistorycount", "ofs", "outputencoding"),
        *("progresspreference", "psdefaultparametervalues", "psemailserver", "psmoduleautoloadingpreference"),
        *("pssessionapplicationname", "pssessionconfigurationname", "pssessionoption", "verbosepreference"),
        *("warningpreference", "whatifpreference"),
    ]
)
# Parameters whose argument is the name of a variable that the command sets.
_SETTING_PARAMETERS: Final = frozenset(
    [
        *("outvariable", "errorvariable", "warningvariable", "informationvariable", "pipelinevariable"),
        *("sessionvariable", "ov", "ev", "wv", "iv", "pv"),
    ]
)
_SETTING_COMMANDS: Final = frozenset(["set-variable", "new-variable", "tee-object", "get-variable"])


@dataclass(slots=True, eq=False)
class Scope:
    """A function, or the whole script."""

    parent: Scope | None
    name: str = ""
    sets: dict[str, list[int]] = field(default_factory=dict)
    """Where in the text each name has a value from; -1 when that is from the start."""
    reads: list[Variable] = field(default_factory=list)
    loops: list[Extent] = field(default_factory=list)
    blocks: list[Extent] = field(default_factory=list)

    @property
    def script(self) -> Scope:
        """The scope of the whole script."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def knows(self, name: str) -> bool:
        """Whether the name is set here, in an enclosing function or at the top of the script."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.sets:
                return True
            scope = scope.parent
        return False

    def knows_at(self, name: str, place: int) -> bool:
        """Whether the name may have a value where the text has come to that place."""
        if self.parent is not None and self.parent.knows(name):
            return True
        if any(block.start <= place < block.end for block in self.blocks):
            return True
        around = [loop for loop in self.loops if loop.start <= place < loop.end]
        return any(
            since <= place or any(loop.start <= since <= loop.end for loop in around)
            for since in self.sets[name]
        )

    def note(self, node: Node) -> None:
        """Take down what a node sets."""
        match node:
            case Assignment(operator="="):
                for variable in assigned(node.target):
                    self._set(variable, node.extent.end)
            case ForEach():
                self.loops.append(node.extent)
                self._set(node.variable, node.extent.start)
            case While() | DoWhile() | DoUntil() | For():
                self.loops.append(node.extent)
            case ScriptBlockExpression():
                self.blocks.append(node.extent)
            case Parameter():
                self._set(node.variable, -1)
            case Data() if node.name is not None:
                self._put(node.name, node.extent.end)
            case Command():
                self._note_command(node)

    def _set(self, variable: Variable, since: int) -> None:
        target = self.script if variable.scope in ("script", "global") else self
        if variable.drive is None:
            target._put(variable.name, since if target is self else -1)

    def _put(self, name: str, since: int) -> None:
        self.sets.setdefault(name.lower(), []).append(since)

    def _note_command(self, node: Command) -> None:
        elements = node.elements
        naming = (node.name or "").lower() in _SETTING_COMMANDS
        for number, element in enumerate(elements[1:], start=1):
            if isinstance(element, CommandParameter):
                following = elements[number + 1] if number + 1 < len(elements) else None
                argument = element.argument if element.argument is not None else following
                lower = element.name.lower()
                if isinstance(argument, StringConstant) and (
                    lower in _SETTING_PARAMETERS or (naming and lower in ("name", "variable"))
                ):
                    self._put(argument.value.lstrip("+"), node.extent.start)
            elif naming and number == 1 and isinstance(element, StringConstant):
                self._put(element.value, node.extent.start)

    def unset_reads(self) -> list[Variable]:
        """The variables that are read here though nothing sets them."""
        return [variable for variable in self.reads if not self._is_set(variable)]

    def _is_set(self, variable: Variable) -> bool:
        name = variable.name.lower()
        if variable.drive is not None or name in AUTOMATIC:
            return True
        if variable.scope in ("script", "global"):
            return name in self.script.sets
        return self.knows(name)

    def early_reads(self) -> list[Variable]:
        """The variables that are read where nothing has set them yet."""
        return [
            variable
            for variable in self.reads
            if variable.drive is None
            and variable.scope is None
            and (name := variable.name.lower()) not in AUTOMATIC
            and name in self.sets
            and not self.knows_at(name, variable.extent.start)
        ]


def assigned(target: Expression) -> list[Variable]:
    """The variables that an assignment to this target sets; `$a.b = 1` reads `$a` and sets none."""
    match target:
        case Variable():
            return [target]
        case ArrayLiteral():
            return [variable for element in target.elements for variable in assigned(element)]
        case Convert() | Attributed():
            return assigned(target.child)
        case Paren():
            inner = target.pipeline.expression if isinstance(target.pipeline, Pipeline) else None
            return [] if inner is None else assigned(inner)
    return []
