"""A syntax tree in one line, for tests: `1 + 2 * 3` is `(+ 1 (* 2 3))`."""

from __future__ import annotations

from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import (
    ArrayExpression,
    ArrayLiteral,
    Assignment,
    Attribute,
    Attributed,
    Binary,
    Command,
    CommandExpression,
    CommandParameter,
    Constant,
    Convert,
    ExpandableString,
    Hashtable,
    Index,
    InvokeMember,
    Member,
    Node,
    Paren,
    Pipeline,
    Redirection,
    ScriptBlockExpression,
    Statement,
    StatementBlock,
    StringConstant,
    SubExpression,
    TypeConstraint,
    TypeExpression,
    Unary,
    Variable,
    dump,
)


def show(node: Node | str) -> str:
    """One node."""
    match node:
        case str():
            return repr(node)
        case Pipeline():
            return " | ".join(show(element) for element in node.elements)
        case CommandExpression():
            return " ".join([show(node.expression), *map(show, node.redirections)])
        case Command():
            words = [node.invocation] if node.invocation else []
            return "<" + " ".join([*words, *map(show, (*node.elements, *node.redirections))]) + ">"
        case CommandParameter():
            return f"-{node.name}" if node.argument is None else f"-{node.name}:{show(node.argument)}"
        case Redirection():
            arrow = ">>" if node.append else ">"
            return f"{node.stream}{arrow}" + (show(node.target) if node.target else f"&{node.merge_into}")
        case Assignment():
            return f"({node.operator} {show(node.target)} {show(node.value)})"
        case Binary():
            return f"({node.operator} {show(node.left)} {show(node.right)})"
        case Unary():
            return f"({node.operator} {show(node.child)})"
        case Convert() | Attributed():
            of = node.type if isinstance(node, Convert) else node.attribute
            return f"({show(of)} {show(node.child)})"
        case TypeConstraint() | TypeExpression():
            return f"[{node.type.full}]"
        case Attribute():
            return f"[{node.type.full}()]"
        case ArrayLiteral():
            return "(, " + " ".join(map(show, node.elements)) + ")"
        case ArrayExpression():
            return f"@({show(node.body)})"
        case SubExpression():
            return f"$({show(node.body)})"
        case StatementBlock():
            return "; ".join(map(show, node.statements))
        case Paren():
            return f"({show(node.pipeline)})"
        case ScriptBlockExpression():
            return "{" + show_script(node.body.end.statements if node.body.end else ()) + "}"
        case Hashtable():
            return "@{" + "; ".join(f"{show(key)}={show(value)}" for key, value in node.pairs) + "}"
        case StringConstant():
            return node.value if node.kind == "bare" else repr(node.value)
        case ExpandableString():
            return "“" + " ".join(map(show, node.parts)) + "”"
        case Constant():
            return f"{node.value}" if node.type == "Int32" else f"{node.value}:{node.type}"
        case Variable():
            return ("@" if node.splatted else "$") + node.path
        case Member():
            return f"{show(node.target)}{'::' if node.static else '.'}{show(node.member)}"
        case InvokeMember():
            arguments = ", ".join(map(show, node.arguments))
            return f"{show(node.target)}{'::' if node.static else '.'}{show(node.member)}({arguments})"
        case Index():
            return f"{show(node.target)}[{show(node.index)}]"
    return str(dump(node))


def show_script(statements: tuple[Statement, ...]) -> str:
    """Several statements."""
    return "; ".join(map(show, statements))


def read(text: str) -> str:
    """A script in one line."""
    tree = parse(text)
    assert tree.end is not None
    return show_script(tree.end.statements)
