"""The strict check: what a script for a node must not contain although PowerShell would read it.

`check_script` takes the text that is sent, `check_template` a template before it is rendered. Both give
findings with a place and with what to write instead; an empty tuple means all is well.

| finding | what it is about |
| --- | --- |
| (a PowerShell error id) | the text does not parse as Windows PowerShell 5.1 |
| Alias, ParameterAlias, AbbreviatedParameter | short forms |
| UnknownCommand, UnknownParameter, NotEverywhere | what Windows Server 2019, 2022 and 2025 do not all have |
| TooManyArguments | arguments that a function of the script would drop without a word |
| NewerType, NewerMember, NewerVariable, NewerRequires | what only newer PowerShells have |
| UnsetVariable | a variable that nothing sets, or nothing has set yet |
| SilentValue | a function without output where null and '' differ: casts, arguments and targets of .NET methods |
| ExitCodeIgnored | a program was started and $LASTEXITCODE never looked at |
| FileEncoding, FileRedirection | writing a file in an encoding that was not chosen |
| InvokeExpression, PlainTextSecret | code or secrets made of text |
| UnapprovedVerb, FunctionName | names of functions |
| MarkerMisplaced | `{{ }}` where no expression is allowed |
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from winboot.script.pieces import Pieces, split
from winboot_lab.language import commands, newer
from winboot_lab.language.parser import parse
from winboot_lab.language.silent import Callables, functions_of, unguarded_uses
from winboot_lab.language.syntax import (
    Assignment,
    Attribute,
    Command,
    CommandExpression,
    CommandParameter,
    ExpandableString,
    Expression,
    Extent,
    FunctionDefinition,
    InvokeMember,
    Member,
    Node,
    Parameter,
    ParseErrors,
    Redirection,
    ScriptBlock,
    StringConstant,
    TypeExpression,
    TypeName,
    Variable,
    children,
    walk,
)
from winboot_lab.language.variables import Scope, assigned


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint: what is wrong, where, and what to write instead."""

    id: str
    message: str
    line: int
    column: int
    instead: str = ""
    origin: str = ""

    def __str__(self) -> str:
        instead = f"; write {self.instead}" if self.instead else ""
        return f"{self.origin}:{self.line}:{self.column}: {self.message}{instead} ({self.id})"


def check_script(text: str, *, origin: str) -> tuple[Finding, ...]:
    """Check the text of a script. `origin` is how a finding names it.

    The library that rendered scripts end with is gone through once, not once a script.
    """
    pieces = split(text)
    found = _check_pieces(pieces, origin) if pieces is not None else None
    return _check_whole(text, origin) if found is None else found


def _check_whole(text: str, origin: str) -> tuple[Finding, ...]:
    try:
        tree = parse(text)
    except ParseErrors as refused:
        return tuple(Finding(e.id, e.message, e.line, e.column, "", origin) for e in refused.errors)
    checker = _Checker(origin, _declared(tree))
    checker.run(tree)
    return _in_order(checker.findings)


def _check_pieces(pieces: Pieces, origin: str) -> tuple[Finding, ...] | None:
    """The same findings, with what is known of the library; None where the two have to be read together."""
    try:
        tree = parse(pieces.node)
        known = _library(pieces.library)
    except ParseErrors:
        return None
    if functions_of(tree):
        return None
    checker = _Checker(origin, known.declared)
    checker.run(tree, known.callable, known.names)
    above = pieces.node.count("\n")
    below = (one for one in known.findings if known.unset.get(one) not in checker.names)
    moved = [replace(one, line=one.line + above, origin=origin) for one in below]
    return _in_order([*checker.findings, *moved])


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (finding.line, finding.column)))


@dataclass(frozen=True, slots=True)
class _Library:
    """What the check of a node's part has to know of the library below it."""

    declared: Mapping[str, _Declared]
    callable: Callables
    names: frozenset[str]
    findings: tuple[Finding, ...]
    unset: Mapping[Finding, str]
    """The findings that fall away if the text above the library sets this variable."""


@functools.lru_cache(maxsize=2)
def _library(text: str) -> _Library:
    tree = parse(text)
    checker = _Checker("", declared := _declared(tree))
    checker.run(tree)
    return _Library(
        declared, Callables.of(tree), frozenset(checker.names), tuple(checker.findings), checker.unset
    )


# ----------------------------------------------------------------------------------------------------
# Functions of the script


@dataclass(slots=True)
class _Declared:
    """What calls of a function may say."""

    parameters: dict[str, str] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    switches: set[str] = field(default_factory=set)
    advanced: bool = False
    open: bool = False
    """Takes arguments that are not declared: reads $args, or has dynamic parameters."""
    positions: bool = False
    """Says itself where arguments belong."""


def _declared(tree: ScriptBlock) -> dict[str, _Declared]:
    """The functions of a script by lower-case name; two of one name are taken together."""
    found: dict[str, _Declared] = {}
    for node in walk(tree):
        if isinstance(node, FunctionDefinition):
            name = node.name.lower().rpartition(":")[2]
            _declare(found.setdefault(name, _Declared()), node)
    return found


def _declare(declared: _Declared, function: FunctionDefinition) -> None:
    body = function.body
    parameters = function.parameters or (body.params.parameters if body.params else ())
    declared.advanced |= body.params is not None and bool(body.params.attributes)
    declared.open |= body.dynamicparam is not None or _reads_args(body)
    for parameter in parameters:
        declared.parameters[parameter.name.lower()] = parameter.name
        if parameter.type is not None and _last_name(parameter.type) in ("switch", "switchparameter"):
            declared.switches.add(parameter.name.lower())
        for attribute in parameter.attributes:
            if isinstance(attribute, Attribute):
                _declare_attribute(declared, attribute)


def _declare_attribute(declared: _Declared, attribute: Attribute) -> None:
    name = _last_name(attribute.type)
    if name == "parameter":
        declared.advanced = True
        named = {argument.name.lower() for argument in attribute.named}
        declared.positions |= bool(named & {"position", "valuefromremainingarguments"})
    elif name == "alias":
        declared.aliases |= {a.value.lower() for a in attribute.positional if isinstance(a, StringConstant)}


def _reads_args(body: ScriptBlock) -> bool:
    return any(isinstance(node, Variable) and node.name.lower() == "args" for node in walk(body))


def _last_name(type_name: TypeName) -> str:
    return type_name.name.lower().rpartition(".")[2]


# ----------------------------------------------------------------------------------------------------
# The check

_SECRET_NAME: Final = re.compile(r"(password|passphrase|secret|token)s?$", re.IGNORECASE)
_PROGRAM_VARIABLE: Final = re.compile(r"(exe|program|executable)$", re.IGNORECASE)
_PROGRAM_NAME: Final = re.compile(r"[\\/]|\.(exe|cmd|bat|com)$", re.IGNORECASE)
_SPOKEN: Final = '"$({0} …)", a look at $null before it, or `return $null` in {0}'
_NO_BOM: Final = "[IO.File]::WriteAllText(…, [Text.UTF8Encoding]::new($false))"
_WRITERS: Final = frozenset(["set-content", "add-content", "export-csv", "export-clixml"])
_PLAIN_ENCODINGS: Final = frozenset(["ascii", "byte"])
# Overloads that came later: (member, number of arguments) of an instance or of a type.
_NEWER_OVERLOADS: Final[Mapping[tuple[str, int], str]] = {
    ("file.move", 3): "[IO.File]::Delete() before [IO.File]::Move()",
    (".replace", 3): "-replace or [regex]::Replace()",
    (".contains", 2): ".IndexOf(…, [StringComparison]::OrdinalIgnoreCase) -ge 0",
}


@dataclass(slots=True)
class _FunctionState:
    """What is noted while a function (or the script) is gone through."""

    scope: Scope
    programs: list[tuple[Extent, str]] = field(default_factory=list)
    last_exit_code_read: int = -1


class _Checker:
    def __init__(self, origin: str, functions: Mapping[str, _Declared]) -> None:
        self.origin = origin
        self.functions = functions
        self.findings: list[Finding] = []
        # A finding about a variable without a value → the variable.
        self.unset: dict[Finding, str] = {}
        # The variables that the script sets at its top.
        self.names: Set[str] = frozenset()
        self._states: list[_FunctionState] = []
        self._not_read: set[Variable] = set()

    def run(self, tree: ScriptBlock, known: Callables | None = None, names: Iterable[str] = ()) -> None:
        """Go through a script; `known` are functions of a text that runs with it, `names` variables at that text's top."""
        if tree.requirements is not None and (tree.requirements.version or (5,)) > (5, 1):
            self.add("NewerRequires", tree.extent, "the script asks for a newer PowerShell than 5.1")
        state = _FunctionState(Scope(None, sets={name: [-1] for name in names}))
        self._states.append(state)
        self._visit(tree, state)
        self.names = state.scope.sets.keys() - set(names)
        for one in self._states:
            self._finish(one)
        for use in unguarded_uses(tree, known):
            message = (
                f"{use.function} can end without output, which {use.how} takes for null and never for ''"
            )
            self.add("SilentValue", use.node.extent, message, _SPOKEN.format(use.function))

    def add(self, finding_id: str, place: Extent, message: str, instead: str = "") -> Finding:
        line, column = place.position
        self.findings.append(found := Finding(finding_id, message, line, column, instead, self.origin))
        return found

    # -- going through the tree ------------------------------------------------------------------------

    def _visit(self, node: Node, state: _FunctionState) -> None:
        state.scope.note(node)
        match node:
            case Command():
                self._command(node, state)
            case Variable():
                self._variable(node, state)
            case Assignment(operator="="):
                self._not_read.update(assigned(node.target))
            case FunctionDefinition():
                self._function(node, state)
                return
            case Parameter():
                self._parameter(node)
            case CommandExpression():
                self._redirections(node.redirections)
            case Member() | InvokeMember():
                self._member(node)
            case Attribute():
                self._attribute(node)
            case TypeName():
                self._type(node)
        for child in children(node):
            self._visit(child, state)

    def _function(self, node: FunctionDefinition, outer: _FunctionState) -> None:
        self._function_name(node)
        state = _FunctionState(Scope(outer.scope, node.name))
        self._states.append(state)
        for parameter in node.parameters or ():
            self._visit(parameter, state)
        self._visit(node.body, state)

    def _finish(self, state: _FunctionState) -> None:
        for variable in state.scope.unset_reads():
            name = variable.name.lower()
            if name in newer.VARIABLES:
                message = f"Windows PowerShell 5.1 has no variable ${variable.path}"
                found = self.add("NewerVariable", variable.extent, message, newer.VARIABLES[name])
            else:
                message = f"nothing sets the variable ${variable.path}"
                found = self.add("UnsetVariable", variable.extent, message)
            self.unset[found] = name
        for variable in state.scope.early_reads():
            message = f"the variable ${variable.path} is read before anything sets it"
            self.unset[self.add("UnsetVariable", variable.extent, message)] = variable.name.lower()
        for extent, program in state.programs:
            if extent.end > state.last_exit_code_read:
                message = f"$LASTEXITCODE is not checked after {program}"
                self.add("ExitCodeIgnored", extent, message, "if ($LASTEXITCODE -ne 0) { throw … }")

    # -- variables and functions -----------------------------------------------------------------------

    def _variable(self, node: Variable, state: _FunctionState) -> None:
        if node in self._not_read:
            return
        if node.name.lower() == "lastexitcode":
            state.last_exit_code_read = max(state.last_exit_code_read, node.extent.start)
        state.scope.reads.append(node)

    def _function_name(self, node: FunctionDefinition) -> None:
        name = node.name.rpartition(":")[2]
        verb, dash, noun = name.partition("-")
        if not dash or not noun:
            self.add("FunctionName", node.extent, f"the function {name} is not named Verb-Noun")
        elif verb not in commands.VERBS:
            self.add("UnapprovedVerb", node.extent, f"{verb} is not an approved verb", "one of Get-Verb")

    def _parameter(self, node: Parameter) -> None:
        self._not_read.add(node.variable)
        type_name = node.type
        is_text = type_name is not None and type_name.full.lower() in ("string", "system.string")
        if is_text and _SECRET_NAME.search(node.name):
            message = f"the parameter ${node.name} takes a secret as plain text"
            self.add("PlainTextSecret", node.extent, message, "[securestring]")

    # -- commands --------------------------------------------------------------------------------------

    def _command(self, node: Command, state: _FunctionState) -> None:
        self._redirections(node.redirections)
        name = node.name
        if name is None:
            first = node.elements[0]
            if isinstance(first, Variable) and _PROGRAM_VARIABLE.search(first.name):
                state.programs.append((node.extent, first.extent.text))
            return
        lower = name.lower().rpartition("\\")[2] if "-" in name else name.lower()
        declared = self.functions.get(lower)
        facts = None if declared is not None else commands.find(lower)
        if declared is not None:
            self._function_call(node, name, declared)
        elif (better := commands.alias(lower)) is not None:
            self.add("Alias", node.extent, f"{name} is an alias", better)
        elif facts is not None:
            self._cmdlet_call(node, name, facts)
        elif _PROGRAM_NAME.search(name) or lower in commands.PROGRAMS:
            state.programs.append((node.extent, name))
        else:
            message = f"{name} is no cmdlet of Windows PowerShell 5.1, no function here and no known program"
            self.add("UnknownCommand", node.extent, message)

    def _redirections(self, redirections: tuple[Redirection, ...]) -> None:
        for redirection in redirections:
            target = redirection.target
            if target is None or (isinstance(target, Variable) and target.name.lower() == "null"):
                continue
            message = "redirection writes UTF-16 with a byte order mark"
            self.add("FileRedirection", redirection.extent, message, _NO_BOM)

    def _function_call(self, node: Command, name: str, declared: _Declared) -> None:
        if declared.open:
            return
        for parameter in _parameters(node):
            lower = parameter.name.lower()
            if lower in declared.parameters or lower in declared.aliases:
                continue
            common = lower in {one.lower() for one in commands.COMMON_PARAMETERS}
            if common and declared.advanced:
                continue
            candidates = [full for key, full in declared.parameters.items() if key.startswith(lower)]
            self._bad_parameter(parameter, name, candidates)
        self._count_arguments(node, name, declared)

    def _count_arguments(self, node: Command, name: str, declared: _Declared) -> None:
        """Arguments beyond the declared ones would vanish in $args."""
        if declared.positions or any(isinstance(e, Variable) and e.splatted for e in node.elements):
            return
        positional = 0
        named: set[str] = set()
        takes_next = False
        for element in node.elements[1:]:
            if isinstance(element, CommandParameter):
                named.add(element.name.lower())
                takes_next = element.argument is None and element.name.lower() not in declared.switches
            elif takes_next:
                takes_next = False
            else:
                positional += 1
        free = set(declared.parameters) - declared.switches - named
        if positional > len(free):
            self.add(
                "TooManyArguments", node.extent, f"{name} takes {len(free)} of these {positional} arguments"
            )

    def _cmdlet_call(self, node: Command, name: str, facts: commands.CommandFacts) -> None:
        missing = facts.missing_systems()
        if missing:
            message = f"{facts.name} is missing on Windows Server {' and '.join(missing)}"
            self.add("NotEverywhere", node.extent, message)
        for parameter in _parameters(node):
            if parameter.name == "-":
                continue
            found = facts.parameter(parameter.name)
            if found is None:
                self._bad_parameter(parameter, facts.name, facts.beginning_with(parameter.name))
                continue
            spelling, lacking = found
            if lacking:
                message = f"{facts.name} has no -{spelling} on Windows Server {' and '.join(lacking)}"
                self.add("NotEverywhere", parameter.extent, message)
            elif commands.is_parameter_alias(spelling):
                message = f"-{parameter.name} of {facts.name} is the short form of another parameter"
                self.add("ParameterAlias", parameter.extent, message, "the parameter's full name")
        self._taste(node, facts.name)

    def _bad_parameter(self, parameter: CommandParameter, command: str, candidates: list[str]) -> None:
        if candidates:
            message = f"-{parameter.name} of {command} is abbreviated"
            self.add(
                "AbbreviatedParameter", parameter.extent, message, "-" + " or -".join(sorted(candidates))
            )
        else:
            message = f"{command} has no parameter -{parameter.name}"
            self.add("UnknownParameter", parameter.extent, message)

    def _taste(self, node: Command, name: str) -> None:
        """Cmdlets that do something else than one thinks."""
        lower = name.lower()
        if lower == "invoke-expression":
            message = "Invoke-Expression runs text as code"
            self.add("InvokeExpression", node.extent, message, "the call itself, with its arguments")
        elif lower == "out-file" or (lower == "tee-object" and _argument(node, "variable") is None):
            message = f"{name} writes UTF-16 with a byte order mark"
            self.add("FileEncoding", node.extent, message, _NO_BOM)
        elif lower in _WRITERS:
            self._writer(node, name)
        elif lower == "convertto-securestring":
            self._secure_string(node)

    def _writer(self, node: Command, name: str) -> None:
        encoding = _argument(node, "encoding")
        if encoding is None:
            message = f"{name} without -Encoding writes the ANSI code page"
        elif isinstance(encoding, StringConstant) and encoding.value.lower() in _PLAIN_ENCODINGS:
            return
        else:
            message = f"{name} -Encoding {encoding.extent.text} writes a byte order mark"
        self.add("FileEncoding", node.extent, message, _NO_BOM)

    def _secure_string(self, node: Command) -> None:
        if not any(p.name.lower() == "asplaintext" for p in _parameters(node)):
            return
        if any(isinstance(element, StringConstant) for element in node.elements[1:]):
            self.add(
                "PlainTextSecret", node.extent, "the script's text contains a secret", "a value of $Secrets"
            )

    # -- what 5.1 lacks --------------------------------------------------------------------------------

    def _type(self, node: TypeName) -> None:
        name = _last_name(node)
        if name in newer.TYPES:
            self.add("NewerType", node.extent, f"5.1 has no type [{node.full}]", newer.TYPES[name])

    def _attribute(self, node: Attribute) -> None:
        for argument in node.named:
            if argument.name.lower() == "errormessage" and _last_name(node.type).startswith("validate"):
                self.add("NewerMember", argument.extent, "5.1 has no ErrorMessage in validation attributes")

    def _member(self, node: Member | InvokeMember) -> None:
        if not isinstance(node.member, StringConstant):
            return
        member = node.member.value.lower()
        if isinstance(node.target, TypeExpression) and node.static:
            key = f"{_last_name(node.target.type)}.{member}"
            known = newer.STATIC_MEMBERS
        else:
            key, known = member, newer.INSTANCE_MEMBERS
            if isinstance(node.target, Member) and isinstance(node.target.member, StringConstant):
                chained = f"{node.target.member.value.lower()}.{member}"
                key = chained if chained in known else key
        instead = known.get(key)
        if instead is None and isinstance(node, InvokeMember):
            overload = key if node.static else "." + member
            instead = _NEWER_OVERLOADS.get((overload, len(node.arguments)))
            instead = self._split(node, member) if instead is None else instead
        if instead is not None:
            what = "overload" if key not in known else "member"
            self.add("NewerMember", node.extent, f"5.1 has no such {what}: {node.member.value}", instead)

    def _split(self, node: InvokeMember, member: str) -> str | None:
        """`.Split('ab')` splits at each character in 5.1."""
        first = node.arguments[0] if node.arguments else None
        if (
            member == "split"
            and not node.static
            and isinstance(first, StringConstant)
            and len(first.value) > 1
        ):
            return "-split [regex]::Escape(…)"
        return None


def _parameters(node: Command) -> Iterator[CommandParameter]:
    return (element for element in node.elements if isinstance(element, CommandParameter))


def _argument(node: Command, name: str) -> Expression | None:
    """The argument of a parameter given by its name."""
    for number, element in enumerate(node.elements):
        if isinstance(element, CommandParameter) and element.name.lower() == name:
            if element.argument is not None:
                return element.argument
            following = node.elements[number + 1] if number + 1 < len(node.elements) else None
            return following if isinstance(following, Expression) else None
    return None


# ----------------------------------------------------------------------------------------------------
# Templates

_TEMPLATE_PART: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_BLOCK_WORD: Final = re.compile(r"\{%[-+]?\s*(\w+)")
# No script contains this character, so what holds it is a marker.
_MARK: Final = "\ue000"


def check_template(text: str, *, origin: str) -> tuple[Finding, ...]:
    """Check that each `{{ }}` of a template is where an expression is allowed.

    Each is replaced by a literal of the same length, so places in findings are those of the template. Of an
    `{% if %}` all branches are taken together if that parses, else each in turn.
    """
    variants = [_without_blocks(text, branch=None)]
    try:
        parse(variants[0])
    except ParseErrors:
        variants = [_without_blocks(text, branch="first"), _without_blocks(text, branch="last")]
    findings: dict[Finding, None] = {}
    for variant in variants:
        findings.update(dict.fromkeys(_check_markers(variant, origin)))
    return tuple(findings)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _marker(text: str) -> str:
    """A literal as long as the expression it replaces; line ends inside stay line ends."""
    inner = "".join(char if char in "\r\n" else _MARK for char in text[1:-1])
    return f"'{inner}'"


def _without_blocks(text: str, branch: str | None) -> str:
    """The template with markers for expressions and without blocks, comments and unwanted branches."""
    out: list[str] = []
    depth: list[list[bool]] = []  # for each open if: is the branch at hand wanted
    at = 0
    ends = _last_branches(text) if branch == "last" else frozenset()
    for match in _TEMPLATE_PART.finditer(text):
        out.append(_kept(text[at : match.start()], depth))
        part = match[0]
        if part.startswith("{{"):
            out.append(_kept(_marker(part), depth))
        else:
            out.append(_blank(part))
            if part.startswith("{%") and branch is not None:
                _follow(part, match.start(), depth, branch, ends)
        at = match.end()
    out.append(_kept(text[at:], depth))
    return "".join(out)


def _kept(text: str, depth: list[list[bool]]) -> str:
    return text if all(wanted[0] for wanted in depth) else _blank(text)


def _follow(part: str, at: int, depth: list[list[bool]], branch: str, ends: frozenset[int]) -> None:
    found = _BLOCK_WORD.match(part)
    match found[1] if found else "":
        case "if":
            depth.append([branch == "first" or at in ends])
        case "elif" | "else" if depth:
            depth[-1][0] = branch == "last" and at in ends
        case "endif" if depth:
            depth.pop()


def _last_branches(text: str) -> frozenset[int]:
    """Where the last branch of each `{% if %}` begins."""
    last: list[int] = []
    found: set[int] = set()
    for match in _TEMPLATE_PART.finditer(text):
        word = _BLOCK_WORD.match(match[0])
        if word is None:
            continue
        if word[1] == "if":
            last.append(match.start())
        elif word[1] in ("elif", "else") and last:
            last[-1] = match.start()
        elif word[1] == "endif" and last:
            found.add(last.pop())
    return frozenset(found)


def _check_markers(text: str, origin: str) -> Iterator[Finding]:
    try:
        tree = parse(text)
    except ParseErrors as refused:
        for error in refused.errors:
            yield Finding(error.id, error.message.replace(_MARK, "…"), error.line, error.column, "", origin)
        return
    standing = set(_standing(tree))
    for match in re.finditer(f"'[{_MARK}\r\n]*{_MARK}[{_MARK}\r\n]*'", text):
        if match.start() not in standing:
            line, column = tree.extent.source.position(match.start())
            message = "{{ }} where no expression is allowed"
            instead = "it in a separate statement, and the variable here"
            yield Finding("MarkerMisplaced", message, line, column, instead, origin)


def _standing(node: Node) -> Iterator[int]:
    """Where markers are expressions.

    Inside a double-quoted text not even `$( )` is a place for one: a quote or a parenthesis in the value would
    be counted before the code is read. And `Get-Item {{ name }}.txt` would ask the value for a property.
    """
    if isinstance(node, StringConstant) and node.kind == "single" and _is_marker(node.value):
        yield node.extent.start
    for child in children(node):
        glued = (
            isinstance(node, Command)
            and isinstance(child, Member)
            and isinstance(child.target, StringConstant)
        )
        if not glued and not isinstance(child, ExpandableString):
            yield from _standing(child)


def _is_marker(value: str) -> bool:
    return _MARK in value and not value.strip(_MARK + "\r\n")
