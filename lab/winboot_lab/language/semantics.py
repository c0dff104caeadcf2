"""The checks that need a finished tree: targets of assignments, doubled keys, catch clauses in vain.

These are complaints of PowerShell's own parser; `winboot_lab.language.check` has the stricter ones of our taste. The
parser hands over the nodes in question as it makes them, so nothing has to be walked to find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from winboot_lab.language.syntax import (
    ArrayExpression,
    ArrayLiteral,
    Assignment,
    Attribute,
    Attributed,
    Binary,
    Break,
    Command,
    Constant,
    Continue,
    Convert,
    Data,
    DoUntil,
    DoWhile,
    Exit,
    ExpandableString,
    Expression,
    For,
    ForEach,
    FunctionDefinition,
    Hashtable,
    Index,
    InvokeMember,
    Member,
    Node,
    ParamBlock,
    Parameter,
    Paren,
    Pipeline,
    Redirection,
    Return,
    ScriptBlockExpression,
    Statement,
    StringConstant,
    Switch,
    Throw,
    Trap,
    Try,
    TypeConstraint,
    TypeExpression,
    TypeName,
    Unary,
    Variable,
    While,
    children,
    walk,
)

Report = Callable[..., None]
_ASSIGNABLE = (Variable, Member, InvokeMember, Index, Convert, Attributed)
_TYPE_NODES = (TypeConstraint, TypeName)
_CONSTANT_VARIABLES: Final = frozenset(["true", "false", "null"])


def check(nodes: Iterable[Node], permitted: set[Variable], report: Report) -> None:
    """Complain about the nodes the parser has noted, in the order of the text.

    `permitted` are the splatted variables that are arguments of a command.
    """
    for node in sorted(nodes, key=lambda node: node.extent.start):
        match node:
            case Assignment():
                _check_assignment(node, report)
            case Unary():
                _check_increment(node, report)
            case Hashtable():
                _check_keys(node, report)
            case Convert():
                _check_ordered(node, report)
            case Attributed():
                _check_attributed(node, report)
            case Attribute():
                _check_attribute(node, report)
            case Variable() if node not in permitted:
                report("SplattingNotPermitted", node.extent.start, node.path, node.path)
            case ArrayLiteral():
                _check_splatted_list(node, permitted, report)
            case FunctionDefinition():
                _check_function(node, report)
            case ParamBlock():
                _check_parameters(node.parameters, report)
            case Try():
                _check_try(node, report)
            case Data():
                _check_data(node, report)
            case ForEach() | Switch():
                _check_parallel(node, report)


# ----------------------------------------------------------------------------------------------------
# Assignments


def _pure(statement: Statement) -> Expression | None:
    return statement.expression if isinstance(statement, Pipeline) else None


def _bad_target(target: Expression, simple: bool) -> Iterator[Node]:
    """The parts of an assignment's target that cannot be assigned to."""
    if isinstance(target, ArrayLiteral):
        if not simple:
            yield target
            return
        for element in target.elements:
            yield from _bad_target(element, simple=True)
    elif isinstance(target, Paren):
        inner = _pure(target.pipeline)
        if inner is None:
            yield target.pipeline
        else:
            yield from _bad_target(inner, simple)
    elif not isinstance(target, _ASSIGNABLE):
        yield target
    elif isinstance(target, Convert | Attributed):
        yield from _bad_target(target.child, simple)


def _check_assignment(node: Assignment, report: Report) -> None:
    for bad in _bad_target(node.target, node.operator == "="):
        report("InvalidLeftHandSide", bad.extent.start)
    target = node.target
    while isinstance(target, Convert | Attributed):
        if isinstance(target, Convert) and target.type.type.full.lower() in ("void", "system.void"):
            report("VoidTypeConstraintNotAllowed", target.type.extent.start)
        target = target.child


def _check_increment(node: Unary, report: Report) -> None:
    for bad in _bad_target(node.child, simple=False):
        report("OperatorRequiresVariableOrProperty", bad.extent.start, node.operator[-2:])


# ----------------------------------------------------------------------------------------------------
# Expressions


def _key_text(key: Expression) -> str | None:
    if isinstance(key, StringConstant):
        return key.value
    if isinstance(key, Constant):
        value = key.value
        return f"{value:g}" if isinstance(value, float) else str(value)
    return None


def _check_keys(node: Hashtable, report: Report) -> None:
    seen: set[str] = set()
    for key, _ in node.pairs:
        text = _key_text(key)
        if text is None:
            continue
        if text.lower() in seen:
            report("DuplicateKeyInHashLiteral", key.extent.start, text)
        seen.add(text.lower())


def _check_ordered(node: Convert, report: Report) -> None:
    if not isinstance(node.child, Hashtable):
        report("OrderedAttributeOnlyOnHashLiteralNode", node.extent.start)


def _check_attributed(node: Attributed, report: Report) -> None:
    inner: Expression = node
    while isinstance(inner, Attributed | Convert):
        inner = inner.child
    if not isinstance(inner, Variable):
        report("UnexpectedAttribute", node.attribute.extent.start, node.attribute.type.full)


def _check_splatted_list(node: ArrayLiteral, permitted: set[Variable], report: Report) -> None:
    for element in node.elements:
        if isinstance(element, Variable) and element.splatted:
            permitted.add(element)
            report("SplattingNotPermittedInArgumentList", element.extent.start, element.path)


def _constant(node: Node) -> bool:
    """Whether PowerShell takes it as an argument of an attribute."""
    match node:
        case Constant() | StringConstant() | ScriptBlockExpression() | TypeExpression():
            return True
        case Variable():
            return node.path.lower() in _CONSTANT_VARIABLES
        case Member():
            return node.static and isinstance(node.target, TypeExpression)
        case Unary() | Binary() | Convert() | ArrayLiteral() | Hashtable():
            return all(_constant(child) for child in children(node) if not isinstance(child, _TYPE_NODES))
        case Paren():
            inner = _pure(node.pipeline)
            return inner is not None and _constant(inner)
        case ArrayExpression():
            return all(_constant(statement) for statement in node.body.statements)
        case Pipeline():
            return node.expression is not None and _constant(node.expression)
    return False


def _check_attribute(node: Attribute, report: Report) -> None:
    values = [named.value for named in node.named if named.value is not None]
    for value in (*values, *node.positional):
        if not _constant(value):
            report("ParameterAttributeArgumentNeedsToBeConstantOrScriptBlock", value.extent.start)


# ----------------------------------------------------------------------------------------------------
# Functions and statements


def _check_function(node: FunctionDefinition, report: Report) -> None:
    if node.parameters is None:
        return
    if node.body.params is not None:
        report("OnlyOneParameterListAllowed", node.body.params.extent.start)
    else:
        _check_parameters(node.parameters, report)


def _check_parameters(parameters: tuple[Parameter, ...], report: Report) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        name = parameter.name.lower()
        if name in seen:
            report("DuplicateFormalParameter", parameter.variable.extent.start, parameter.name)
        seen.add(name)
        for attribute in parameter.attributes:
            if attribute.type.full.lower() == "ordered":
                report("OrderedAttributeOnlyOnHashLiteralNode", attribute.extent.start)


def _check_parallel(node: ForEach | Switch, report: Report) -> None:
    word = "foreach" if isinstance(node, ForEach) else "switch"
    if "parallel" in node.flags:
        report("KeywordParameterReservedForFutureUse", node.extent.start, word, "parallel")
    elif isinstance(node, ForEach) and node.throttle_limit is not None:
        report("KeywordParameterReservedForFutureUse", node.extent.start, word, "throttlelimit")


# Enough of the exceptions' family tree to see that a clause can never run.
_EXCEPTION_FAMILY: Final[dict[str, str]] = {
    "System.Exception": "",
    "System.SystemException": "System.Exception",
    "System.ArgumentException": "System.SystemException",
    "System.ArgumentNullException": "System.ArgumentException",
    "System.ArgumentOutOfRangeException": "System.ArgumentException",
    "System.ArithmeticException": "System.SystemException",
    "System.DivideByZeroException": "System.ArithmeticException",
    "System.OverflowException": "System.ArithmeticException",
    "System.FormatException": "System.SystemException",
    "System.IndexOutOfRangeException": "System.SystemException",
    "System.InvalidCastException": "System.SystemException",
    "System.InvalidOperationException": "System.SystemException",
    "System.ObjectDisposedException": "System.InvalidOperationException",
    "System.NotSupportedException": "System.SystemException",
    "System.TimeoutException": "System.SystemException",
    "System.UnauthorizedAccessException": "System.SystemException",
    "System.IO.IOException": "System.SystemException",
    "System.IO.FileNotFoundException": "System.IO.IOException",
    "System.IO.DirectoryNotFoundException": "System.IO.IOException",
    "System.IO.DriveNotFoundException": "System.IO.IOException",
    "System.IO.PathTooLongException": "System.IO.IOException",
    "System.Net.WebException": "System.InvalidOperationException",
    "System.Net.Sockets.SocketException": "System.ComponentModel.Win32Exception",
    "System.ComponentModel.Win32Exception": "System.Runtime.InteropServices.ExternalException",
    "System.Runtime.InteropServices.ExternalException": "System.SystemException",
    "System.Runtime.InteropServices.COMException": "System.Runtime.InteropServices.ExternalException",
    "System.Security.SecurityException": "System.SystemException",
    "System.Security.Cryptography.CryptographicException": "System.SystemException",
    "System.Collections.Generic.KeyNotFoundException": "System.SystemException",
    "System.Management.Automation.RuntimeException": "System.SystemException",
    "System.Management.Automation.CommandNotFoundException": "System.Management.Automation.RuntimeException",
    "System.Management.Automation.ActionPreferenceStopException": (
        "System.Management.Automation.RuntimeException"
    ),
    "System.Management.Automation.MethodInvocationException": "System.Management.Automation.MethodException",
    "System.Management.Automation.MethodException": "System.Management.Automation.ExtendedTypeSystemException",
    "System.Management.Automation.ExtendedTypeSystemException": "System.Management.Automation.RuntimeException",
    "System.Management.Automation.ParameterBindingException": "System.Management.Automation.RuntimeException",
    "System.Management.Automation.PSInvalidCastException": "System.InvalidCastException",
    "System.Management.Automation.PSInvalidOperationException": "System.InvalidOperationException",
    "System.Management.Automation.PSArgumentException": "System.ArgumentException",
    "System.Management.Automation.SessionStateException": "System.Management.Automation.RuntimeException",
    "System.Management.Automation.ItemNotFoundException": (
        "System.Management.Automation.SessionStateException"
    ),
    "System.Management.Automation.DriveNotFoundException": (
        "System.Management.Automation.SessionStateException"
    ),
}
_EXCEPTIONS: Final = {name.lower(): name for name in _EXCEPTION_FAMILY}


def _exception(type_name: TypeName) -> str | None:
    name = type_name.full.lower()
    return _EXCEPTIONS.get(name) or _EXCEPTIONS.get("system." + name)


def _is_or_descends(name: str, ancestor: str) -> bool:
    while name:
        if name == ancestor:
            return True
        name = _EXCEPTION_FAMILY.get(name, "")
    return False


def _check_try(node: Try, report: Report) -> None:
    for number, earlier in enumerate(node.catches):
        for later in node.catches[number + 1 :]:
            if not earlier.types:
                report("EmptyCatchNotLast", max(later.extent.start - 1, 0))
                break
            for caught in filter(None, (_exception(one.type) for one in earlier.types)):
                for one in later.types:
                    name = _exception(one.type)
                    if name is not None and _is_or_descends(name, caught):
                        report("ExceptionTypeAlreadyCaught", one.extent.start, name)
    if node.finally_ is not None:
        _check_leaving(node.finally_, frozenset(), report)


_LOOPS = (While, DoWhile, DoUntil, For, ForEach, Switch)


def _check_leaving(node: Node, labels: frozenset[str], report: Report) -> None:
    """Nothing may leave a finally block. `labels` are those of the loops inside it ('' for any loop)."""
    if isinstance(node, Return):
        report("ControlLeavingFinally", node.extent.start)
    elif isinstance(node, Break | Continue):
        label = (
            "" if node.label is None else node.label.value if isinstance(node.label, StringConstant) else None
        )
        if label is None or label.lower() not in labels:
            report("ControlLeavingFinally", node.extent.start)
    elif isinstance(node, _LOOPS):
        labels |= {"", (node.label or "").lower()}
    for child in children(node):
        if not isinstance(child, ScriptBlockExpression | FunctionDefinition | Trap):
            _check_leaving(child, labels, report)


# ----------------------------------------------------------------------------------------------------
# Data sections

_DATA_VARIABLES: Final = frozenset(["true", "false", "null", "psculture", "psuiculture"])
_NOT_IN_DATA: Final[dict[type[Node], str]] = {
    Assignment: "AssignmentStatementNotSupportedInDataSection",
    ExpandableString: "ExpandableStringNotSupportedInDataSection",
    FunctionDefinition: "FunctionDeclarationNotSupportedInDataSection",
    InvokeMember: "MethodCallNotSupportedInDataSection",
    Member: "PropertyReferenceNotSupportedInDataSection",
    Index: "ArrayReferenceNotSupportedInDataSection",
    ScriptBlockExpression: "ScriptBlockNotSupportedInDataSection",
    Redirection: "RedirectionNotSupportedInDataSection",
    Break: "FlowControlStatementNotSupportedInDataSection",
    Continue: "FlowControlStatementNotSupportedInDataSection",
    Return: "FlowControlStatementNotSupportedInDataSection",
    Throw: "FlowControlStatementNotSupportedInDataSection",
    Exit: "FlowControlStatementNotSupportedInDataSection",
    ForEach: "ForeachStatementNotSupportedInDataSection",
    For: "ForWhileStatementNotSupportedInDataSection",
    While: "ForWhileStatementNotSupportedInDataSection",
    DoWhile: "DoWhileStatementNotSupportedInDataSection",
    DoUntil: "DoWhileStatementNotSupportedInDataSection",
    Switch: "SwitchStatementNotSupportedInDataSection",
    Trap: "TrapStatementNotSupportedInDataSection",
    Try: "TryStatementNotSupportedInDataSection",
    Data: "DataSectionStatementNotSupportedInDataSection",
}


def _check_data(node: Data, report: Report) -> None:
    """Only constants, allowed commands and plain operators are allowed in a data section."""
    allowed = {"convertfrom-stringdata"}
    allowed |= {command.value.lower() for command in node.commands if isinstance(command, StringConstant)}
    for inner in walk(node.body):
        error = _NOT_IN_DATA.get(type(inner))
        if error is not None:
            report(error, inner.extent.start)
        elif isinstance(inner, Variable) and inner.path.lower() not in _DATA_VARIABLES:
            report("VariableReferenceNotSupportedInDataSection", inner.extent.start)
        elif isinstance(inner, Command) and (inner.name or "").lower() not in allowed:
            report("CmdletNotInAllowedListForDataSection", inner.extent.start, inner.name or "")
