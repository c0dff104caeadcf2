"""Which variables a function sets and reads: the part of the strict check that knows about scopes.

Order is not looked at: a variable counts as set when any statement of the function sets it. A function also
sees what the script sets at its top; that a callee sees its caller's variables is a habit we do not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from winboot.powershell.syntax import (
    ArrayLiteral,
    Assignment,
    Attributed,
    Command,
    CommandParameter,
    Convert,
    Data,
    Expression,
    ForEach,
    Node,
    Parameter,
    Paren,
    Pipeline,
    StringConstant,
    Variable,
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
    set_names: set[str] = field(default_factory=set)
    reads: list[Variable] = field(default_factory=list)

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
            if name in scope.set_names:
                return True
            scope = scope.parent
        return False

    def note(self, node: Node) -> None:
        """Take down what a node sets."""
        match node:
            case Assignment(operator="="):
                for variable in assigned(node.target):
                    self._set(variable)
            case ForEach():
                self._set(node.variable)
            case Parameter():
                self._set(node.variable)
            case Data() if node.name is not None:
                self.set_names.add(node.name.lower())
            case Command():
                self._note_command(node)

    def _set(self, variable: Variable) -> None:
        target = self.script if variable.scope in ("script", "global") else self
        if variable.drive is None:
            target.set_names.add(variable.name.lower())

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
                    self.set_names.add(argument.value.lstrip("+").lower())
            elif naming and number == 1 and isinstance(element, StringConstant):
                self.set_names.add(element.value.lower())

    def unset_reads(self) -> list[Variable]:
        """The variables that are read here though nothing sets them."""
        return [variable for variable in self.reads if not self._is_set(variable)]

    def _is_set(self, variable: Variable) -> bool:
        name = variable.name.lower()
        if variable.drive is not None or name in AUTOMATIC:
            return True
        if variable.scope in ("script", "global"):
            return name in self.script.set_names
        return self.knows(name)


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
