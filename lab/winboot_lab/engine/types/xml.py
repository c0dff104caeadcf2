"""System.Xml: documents as trees of nodes, with PowerShell's own way to reach elements and attributes by name.

XPath is a small subset (steps, `//`, `*`, `@name`, `text()`, simple predicates); more of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from winboot_lab.engine.convert import NOT_CONVERTED, converts, failure, to_string
from winboot_lab.engine.dotnet import DotNetType, Runtime, accelerate, dotnet, named
from winboot_lab.engine.exceptions import ArgumentException, SystemException, declare_exception
from winboot_lab.engine.members import ADAPTERS
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.files import read_bytes, write_bytes
from winboot_lab.engine.types.text import UTF8
from winboot_lab.engine.values import Array, Instance, Value, View, enum_value

_NS = "System.Xml."
XmlException = declare_exception(_NS + "XmlException", SystemException)
XmlException.default_message = "An XML error has occurred."
_KINDS = {
    "Element": "XmlElement",
    "Attribute": "XmlAttribute",
    "Text": "XmlText",
    "CDATA": "XmlCDataSection",
    "Comment": "XmlComment",
    "Document": "XmlDocument",
    "XmlDeclaration": "XmlDeclaration",
    "ProcessingInstruction": "XmlProcessingInstruction",
}
_FIXED_NAMES = {"Text": "#text", "CDATA": "#cdata-section", "Comment": "#comment", "Document": "#document"}


class Node(Instance):
    """One XML node. `children` are in order; attributes stand apart."""

    def __init__(self, kind: str, name: str = "", value: str = "") -> None:
        self.kind = kind
        self.name = name or _FIXED_NAMES.get(kind, "")
        self.value = value
        self.children: list[Node] = []
        self.attributes: list[Node] = []
        self.parent: Node | None = None
        self.empty = False

    @property
    def dotnet_type(self) -> DotNetType:
        return named(_NS + _KINDS[self.kind])

    @property
    def local_name(self) -> str:
        return self.name.rpartition(":")[2]

    @property
    def prefix(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def document(self) -> Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def namespace(self) -> str:
        """The namespace URI that the prefix (or its absence) means here."""
        if self.kind == "Attribute" and not self.prefix:
            return ""
        wanted = f"xmlns:{self.prefix}" if self.prefix else "xmlns"
        node: Node | None = self.parent if self.kind == "Attribute" else self
        while node is not None:
            found = next((one for one in node.attributes if one.name == wanted), None)
            if found is not None:
                return found.value
            node = node.parent
        return ""

    def append(self, child: Node) -> None:
        """Put a node at the end, taking it from where it was."""
        if child.parent is not None:
            child.parent.children = [one for one in child.parent.children if one is not child]
        child.parent = self
        self.children.append(child)
        self.empty = False

    def elements(self) -> Iterator[Node]:
        return (child for child in self.children if child.kind == "Element")

    def attribute(self, name: str) -> Node | None:
        return next((one for one in self.attributes if one.name == name), None)

    @property
    def inner_text(self) -> str:
        if self.kind in ("Element", "Document"):
            return "".join(
                child.inner_text for child in self.children if child.kind not in ("Comment", "XmlDeclaration")
            )
        return self.value

    @property
    def inner_xml(self) -> str:
        return "".join(child.outer_xml for child in self.children)

    @property
    def outer_xml(self) -> str:
        match self.kind:
            case "Document":
                return self.inner_xml
            case "Text":
                return escape(self.value)
            case "CDATA":
                return f"<![CDATA[{self.value}]]>"
            case "Comment":
                return f"<!--{self.value}-->"
            case "XmlDeclaration":
                return f"<?xml {self.value}?>"
            case "ProcessingInstruction":
                return f"<?{self.name} {self.value}?>"
            case "Attribute":
                return f'{self.name}="{_attribute_text(self.value)}"'
        start = self.name + "".join(f" {one.outer_xml}" for one in self.attributes)
        if not self.children:
            return f"<{start} />" if self.empty else f"<{start}></{self.name}>"
        return f"<{start}>{self.inner_xml}</{self.name}>"

    def descendants(self) -> Iterator[Node]:
        for child in self.children:
            yield child
            yield from child.descendants()

    def __str__(self) -> str:
        return self.dotnet_type.name


def _attribute_text(value: str) -> str:
    return escape(value, {'"': "&quot;", "\n": "&#xA;", "\r": "&#xD;", "\t": "&#x9;"})


# -- reading


def parse(text: str, *, keep_blanks: bool = False) -> Node:
    """A document from text. Raises XmlException."""
    document = Node("Document")
    document.empty = keep_blanks
    _Builder(document, keep_blanks).run(text.lstrip("\ufeff"))
    return document


_START_TAG = re.compile(rb"<(?:[^\"'/>]|\"[^\"]*\"|'[^']*')*(/?)>")


class _Builder:
    """Builds the tree from expat's events."""

    def __init__(self, document: Node, keep_blanks: bool) -> None:
        self.open = [document]
        self.keep_blanks = keep_blanks
        self.text: list[str] = []
        self.in_cdata = False
        self.source = b""
        self.parser = expat.ParserCreate()
        self.parser.ordered_attributes = True
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.CommentHandler = lambda value: self.add(Node("Comment", value=value))
        self.parser.ProcessingInstructionHandler = lambda name, value: self.add(
            Node("ProcessingInstruction", name, value)
        )
        self.parser.StartCdataSectionHandler = self.cdata
        self.parser.EndCdataSectionHandler = self.end_cdata
        self.parser.XmlDeclHandler = self.declaration

    def run(self, text: str) -> None:
        self.source = text.encode("utf-8")
        try:
            self.parser.Parse(self.source, True)
        except expat.ExpatError as problem:
            raise XmlException(
                f"{expat.ErrorString(problem.code).capitalize()}. Line {problem.lineno}, position "
                f"{problem.offset + 1}."
            ) from None

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        value = f'version="{version}"' + (f' encoding="{encoding}"' if encoding else "")
        if standalone >= 0:
            value += f' standalone="{"yes" if standalone else "no"}"'
        self.open[0].append(Node("XmlDeclaration", "xml", value))

    def flush(self) -> None:
        text = "".join(self.text)
        self.text.clear()
        if text and (self.keep_blanks or text.strip(" \t\r\n")) and len(self.open) > 1:
            self.open[-1].append(Node("Text", value=text))

    def add(self, node: Node) -> None:
        self.flush()
        self.open[-1].append(node)

    def start(self, name: str, attributes: list[str]) -> None:
        node = Node("Element", name)
        for at in range(0, len(attributes), 2):
            made = Node("Attribute", attributes[at], attributes[at + 1])
            made.parent = node
            node.attributes.append(made)
        self.add(node)
        self.open.append(node)
        # `<a/>` is written back in the short form, `<a></a>` is not.
        tag = _START_TAG.match(self.source, self.parser.CurrentByteIndex)
        node.empty = tag is not None and tag[1] == b"/"

    def end(self, _name: str) -> None:
        self.flush()
        self.open.pop()

    def cdata(self) -> None:
        self.flush()

    def end_cdata(self) -> None:
        text = "".join(self.text)
        self.text.clear()
        self.open[-1].append(Node("CDATA", value=text))


# -- types and members

NODE = dotnet(_NS + "XmlNode", kind="abstract")
_TYPES = {kind: dotnet(_NS + name, base=NODE) for kind, name in _KINDS.items()}
DOCUMENT = _TYPES["Document"]
ELEMENT = _TYPES["Element"]
ATTRIBUTE = _TYPES["Attribute"]
NODE_LIST = dotnet(_NS + "XmlNodeList")
ATTRIBUTES = dotnet(_NS + "XmlAttributeCollection")
DECLARATION = _TYPES["XmlDeclaration"]

accelerate("xml", DOCUMENT)


@converts(DOCUMENT)
def _to_document(value: Value) -> Value:
    if type(value) is not str and not isinstance(value, Array):
        return NOT_CONVERTED
    try:
        return parse(to_string(value, "\n"))
    except XmlException as cause:
        raise failure(value, DOCUMENT, "InvalidCastToXmlDocument", cause) from None


def _list(nodes: list[Node]) -> View:
    return View(_NS + "XmlNodeList", lambda: list[Any](nodes))


def _value(self: Node) -> Value:
    return None if self.kind in ("Element", "Document") else self.value


def _set_value(self: Node, value: str) -> None:
    if self.kind in ("Element", "Document"):
        raise ArgumentException(f"Cannot set a value on node type '{self.kind}'.")
    self.value = value or ""


def _set_inner_text(self: Node, text: str) -> None:
    if self.kind != "Element":
        self.value = text or ""
        return
    self.children = []
    self.append(Node("Text", value=text or ""))


def _set_inner_xml(self: Node, text: str) -> None:
    wrapped = parse(f"<x>{text}</x>")
    self.children = []
    for child in list(wrapped.children[0].children):
        self.append(child)


NODE.prop("Name", "string", lambda self: self.name)
NODE.prop("LocalName", "string", lambda self: self.local_name)
NODE.prop("Prefix", "string", lambda self: self.prefix)
NODE.prop("NamespaceURI", "string", lambda self: self.namespace)
NODE.prop("NodeType", _NS + "XmlNodeType", lambda self: enum_value(_NS + "XmlNodeType", self.kind))
NODE.prop("Value", "string", _value, _set_value)
NODE.prop("InnerText", "string", lambda self: self.inner_text, _set_inner_text)
NODE.prop(
    "InnerXml",
    "string",
    lambda self: self.inner_xml if self.kind != "Attribute" else self.value,
    _set_inner_xml,
)
NODE.prop("OuterXml", "string", lambda self: self.outer_xml)
NODE.prop("ParentNode", "object", lambda self: self.parent)
NODE.prop("OwnerDocument", "object", lambda self: None if self.kind == "Document" else self.document)
NODE.prop("ChildNodes", "object", lambda self: _list(self.children))
NODE.prop("HasChildNodes", "bool", lambda self: bool(self.children))
NODE.prop("FirstChild", "object", lambda self: self.children[0] if self.children else None)
NODE.prop("LastChild", "object", lambda self: self.children[-1] if self.children else None)


def _sibling(self: Node, step: int) -> Node | None:
    around = self.parent.children if self.parent is not None else []
    at = next((index for index, one in enumerate(around) if one is self), None)
    return around[at + step] if at is not None and 0 <= at + step < len(around) else None


NODE.prop("NextSibling", "object", lambda self: _sibling(self, 1))
NODE.prop("PreviousSibling", "object", lambda self: _sibling(self, -1))


@NODE.method(f"AppendChild({_NS}XmlNode newChild)")
def _append(self: Node, child: Node) -> Node:
    self.append(child)
    return child


@NODE.method(f"PrependChild({_NS}XmlNode newChild)")
def _prepend(self: Node, child: Node) -> Node:
    self.append(child)
    self.children.insert(0, self.children.pop())
    return child


@NODE.method(f"RemoveChild({_NS}XmlNode oldChild)")
def _remove(self: Node, child: Node) -> Node:
    if child.parent is not self:
        raise ArgumentException("The node to be removed is not a child of this node.")
    self.children = [one for one in self.children if one is not child]
    child.parent = None
    return child


@NODE.method(f"ReplaceChild({_NS}XmlNode newChild, {_NS}XmlNode oldChild)")
def _replace(self: Node, new: Node, old: Node) -> Node:
    at = next(index for index, one in enumerate(self.children) if one is old)
    self.append(new)
    self.children.pop()
    self.children[at] = new
    old.parent = None
    return old


@NODE.method("void RemoveAll()")
def _remove_all(self: Node) -> None:
    self.children, self.attributes = [], []


@NODE.method("CloneNode(bool deep)")
def _clone(self: Node, deep: bool) -> Node:
    made = Node(self.kind, self.name, self.value)
    made.empty = self.empty
    for one in self.attributes:
        copy = Node("Attribute", one.name, one.value)
        copy.parent = made
        made.attributes.append(copy)
    if deep:
        for child in self.children:
            made.append(_clone(child, True))
        made.empty = self.empty
    return made


NODE.method("SelectNodes(string xpath)")(lambda self, path: _list(_select(self, path, {})))
NODE.method("SelectSingleNode(string xpath)")(lambda self, path: next(iter(_select(self, path, {})), None))
_MANAGER = f"{_NS}XmlNamespaceManager nsmgr"
NODE.method(f"SelectNodes(string xpath, {_MANAGER})")(
    lambda self, path, names: _list(_select(self, path, names.table))
)
NODE.method(f"SelectSingleNode(string xpath, {_MANAGER})")(
    lambda self, path, names: next(iter(_select(self, path, names.table)), None)
)
NODE.refuses(
    "BaseURI IsReadOnly SchemaInfo PreviousText Clone CreateNavigator GetEnumerator GetNamespaceOfPrefix GetPrefixOfNamespace "
    "InsertAfter InsertBefore Normalize Supports WriteContentTo WriteTo Item"
)
for _type in _TYPES.values():
    _type.complete()


# elements and attributes


def _set_attribute(self: Node, name: str, value: str) -> None:
    found = self.attribute(name)
    if found is None:
        found = Node("Attribute", name)
        found.parent = self
        self.attributes.append(found)
    found.value = value or ""


ELEMENT.prop("HasAttributes", "bool", lambda self: bool(self.attributes))
ELEMENT.prop("IsEmpty", "bool", lambda self: self.empty)
ELEMENT.prop(
    "Attributes",
    "object",
    lambda self: View(_NS + "XmlAttributeCollection", lambda: list[Any](self.attributes)),
)
ELEMENT.method("GetAttribute(string name)")(lambda self, name: _text_of(self.attribute(name)))
ELEMENT.method("HasAttribute(string name)")(lambda self, name: self.attribute(name) is not None)
ELEMENT.method("void SetAttribute(string name, string value)")(_set_attribute)


def _text_of(node: Node | None) -> str:
    return "" if node is None else node.value


@ELEMENT.method("void RemoveAttribute(string name)")
def _remove_attribute(self: Node, name: str) -> None:
    self.attributes = [one for one in self.attributes if one.name != name]


for _type in (ELEMENT, DOCUMENT):
    _type.method("GetElementsByTagName(string name)")(
        lambda self, name: _list(
            [one for one in self.descendants() if one.kind == "Element" and name in ("*", one.name)]
        )
    )
ELEMENT.refuses(
    "GetAttributeNode SetAttributeNode RemoveAllAttributes RemoveAttributeAt RemoveAttributeNode GetAttributeNodeNS"
)
ATTRIBUTE.prop("OwnerElement", "object", lambda self: self.parent)
ATTRIBUTE.prop("Specified", "bool", lambda self: True)
for _type, _parameter in ((NODE_LIST, "int index"), (ATTRIBUTES, "int index")):
    _type.prop("Count", "int", len)
    _type.method(f"Item({_parameter})")(
        lambda self, index: self.read()[index] if 0 <= index < len(self) else None
    )
    _type.refuses("GetEnumerator")
ATTRIBUTES.method("Item(string name)")(
    lambda self, name: next((one for one in self.read() if one.name == name), None)
)
ATTRIBUTES.refuses(
    "Append GetNamedItem InsertAfter InsertBefore Prepend Remove RemoveAll RemoveAt RemoveNamedItem SetNamedItem CopyTo"
)

# documents

DOCUMENT.constructor("")(lambda: Node("Document"))
DOCUMENT.prop("DocumentElement", "object", lambda self: next(self.elements(), None))
DOCUMENT.prop(
    "PreserveWhitespace", "bool", lambda self: self.empty, lambda self, value: setattr(self, "empty", value)
)
DOCUMENT.prop("NameTable", "object", lambda self: self)


@DOCUMENT.method("void LoadXml(string xml)")
def _load_xml(self: Node, text: str) -> None:
    made = parse(text, keep_blanks=self.empty)
    self.children = []
    for child in list(made.children):
        self.append(child)


@DOCUMENT.method("void Load(string filename)", effect=True)
def _load(runtime: Runtime, self: Node, path: str) -> None:
    from winboot_lab.engine.types.files import decoded

    _load_xml(self, decoded(read_bytes(runtime, path), None))


def _indented(node: Node, depth: int = 0) -> str:
    """A node as Save writes it: children on lines of their own unless there is text among them."""
    if (
        node.kind != "Element"
        or not node.children
        or any(child.kind in ("Text", "CDATA") for child in node.children)
    ):
        return "  " * depth + node.outer_xml
    start = node.name + "".join(f" {one.outer_xml}" for one in node.attributes)
    inner = "\r\n".join(_indented(child, depth + 1) for child in node.children)
    return f"{'  ' * depth}<{start}>\r\n{inner}\r\n{'  ' * depth}</{node.name}>"


@DOCUMENT.method("void Save(string filename)", effect=True)
def _save(runtime: Runtime, self: Node, path: str) -> None:
    text = self.outer_xml if self.empty else "\r\n".join(_indented(child) for child in self.children)
    declared = next((child for child in self.children if child.kind == "XmlDeclaration"), None)
    if declared is not None and "encoding" in declared.value and "utf-8" not in declared.value.lower():
        raise Refusal("value", declared.value, "encoding of an XML document")
    mark = UTF8.bom if declared is None or "encoding" in declared.value else b""
    write_bytes(runtime, path, mark + text.encode())


DOCUMENT.method("CreateElement(string name)")(lambda self, name: _empty_element(name))


def _empty_element(name: str) -> Node:
    made = Node("Element", name)
    made.empty = True
    return made


DOCUMENT.method("CreateAttribute(string name)")(lambda self, name: Node("Attribute", name))
DOCUMENT.method("CreateTextNode(string text)")(lambda self, text: Node("Text", value=text))
DOCUMENT.method("CreateComment(string data)")(lambda self, text: Node("Comment", value=text))
DOCUMENT.method("CreateCDataSection(string data)")(lambda self, text: Node("CDATA", value=text))


@DOCUMENT.method("CreateXmlDeclaration(string version, string encoding, string standalone)")
def _declaration(_self: Node, version: str, encoding: str, standalone: str) -> Node:
    value = f'version="{version}"' + (f' encoding="{encoding}"' if encoding else "")
    return Node("XmlDeclaration", "xml", value + (f' standalone="{standalone}"' if standalone else ""))


DOCUMENT.method(f"ImportNode({_NS}XmlNode node, bool deep)")(lambda self, node, deep: _clone(node, deep))
DOCUMENT.refuses(
    "DocumentType Implementation Schemas XmlResolver CreateDocumentFragment CreateDocumentType CreateEntityReference "
    "CreateNode CreateProcessingInstruction CreateSignificantWhitespace CreateWhitespace GetElementById ReadNode Validate"
)


class Names(Instance):
    """XmlNamespaceManager."""

    def __init__(self, _table: Value) -> None:
        self.table: dict[str, str] = {}


MANAGER = dotnet(_NS + "XmlNamespaceManager", Names)
MANAGER.constructor("object nameTable")(Names)


@MANAGER.method("void AddNamespace(string prefix, string uri)")
def _add_namespace(self: Names, prefix: str, uri: str) -> None:
    self.table[prefix] = uri


MANAGER.refuses(
    "DefaultNamespace NameTable GetEnumerator GetNamespacesInScope HasNamespace LookupNamespace LookupPrefix "
    "PopScope PushScope RemoveNamespace"
)

# -- XPath

_STEP = re.compile(r"(@?[\w.:*-]+(?:\(\))?|\.\.|\.)((?:\[[^\[\]]*\])*)")
_EQUALS = re.compile(r"(@?[\w.:-]+|\.|text\(\))\s*=\s*(?:'([^']*)'|\"([^\"]*)\")")


def _select(start: Node, path: str, names: dict[str, str]) -> list[Node]:
    nodes = [start.document] if path.startswith("/") else [start]
    rest = path
    found: list[Node] = []
    for part in path.split("|") if "|" in path and "[" not in path else [rest]:
        found.extend(_follow(nodes, part.strip(), names, path))
    return list(dict.fromkeys(found))


def _follow(nodes: list[Node], rest: str, names: dict[str, str], path: str) -> list[Node]:
    while rest:
        deep = rest.startswith("//")
        rest = rest.lstrip("/")
        match = _STEP.match(rest)
        if match is None:
            raise Refusal("value", path, "XPath expression")
        if deep:
            nodes = [one for node in nodes for one in (node, *node.descendants())]
        nodes = [one for node in nodes for one in _step(node, match.group(1), match.group(2), names, path)]
        rest = rest[match.end() :]
        if rest and not rest.startswith("/"):
            raise Refusal("value", path, "XPath expression")
    return nodes


def _step(node: Node, test: str, predicates: str, names: dict[str, str], path: str) -> list[Node]:
    if test == ".":
        found = [node]
    elif test == "..":
        found = [node.parent] if node.parent is not None else []
    elif test == "text()":
        found = [child for child in node.children if child.kind in ("Text", "CDATA")]
    elif test.startswith("@"):
        found = [one for one in node.attributes if test == "@*" or one.name == test[1:]]
    else:
        found = [child for child in node.elements() if _is_named(child, test, names)]
    for predicate in re.findall(r"\[([^\[\]]*)\]", predicates):
        found = _filtered(found, predicate.strip(), path)
    return found


def _is_named(node: Node, test: str, names: dict[str, str]) -> bool:
    if test == "*":
        return True
    prefix, _, local = test.rpartition(":")
    if prefix:
        return node.local_name == local and node.namespace == names.get(prefix, "\0")
    return node.name == test and not node.namespace


def _filtered(nodes: list[Node], predicate: str, path: str) -> list[Node]:
    if predicate.isdigit():
        return nodes[int(predicate) - 1 : int(predicate)]
    if predicate == "last()":
        return nodes[-1:]
    match = _EQUALS.fullmatch(predicate)
    if match is not None:
        wanted = match.group(2) if match.group(2) is not None else match.group(3)
        return [node for node in nodes if wanted in _operand(node, match.group(1))]
    if re.fullmatch(r"@?[\w.:-]+", predicate):
        return [node for node in nodes if _operand(node, predicate)]
    raise Refusal("value", path, "XPath expression")


def _operand(node: Node, name: str) -> list[str]:
    if name in (".", "text()"):
        return [node.inner_text]
    if name.startswith("@"):
        return [one.value for one in node.attributes if one.name == name[1:]]
    return [child.inner_text for child in node.elements() if child.name == name]


# -- PowerShell's way in


class XmlAdapter:
    """Attributes and child elements as properties."""

    def read(self, value: Node, name: str) -> tuple[Value] | None:
        return read_property(value, name)

    def write(self, value: Node, name: str, new: Value) -> bool:
        return write_property(value, name, new)

    def names(self, value: Node) -> list[str]:
        return property_names(value)


def adapted(node: Node, name: str) -> list[Node]:
    """The attributes and children that a property name means, without regard to case."""
    wanted = name.lower()
    found = [one for one in node.attributes if one.local_name.lower() == wanted]
    return found + [child for child in node.children if child.local_name.lower() == wanted]


def shown(node: Node) -> Value:
    """A node as a property value: text where there is nothing but text."""
    if node.kind != "Element":
        return node.value
    if node.attributes or any(child.kind == "Element" for child in node.children):
        return node
    if not node.children:
        return ""
    if all(child.kind in ("Text", "CDATA") for child in node.children) and len(node.children) == 1:
        return node.inner_text
    return node


def read_property(node: Node, name: str) -> tuple[Value] | None:
    """(value,) of an attribute or child element, or None."""
    found = adapted(node, name)
    if not found:
        return None
    if len(found) == 1:
        return (shown(found[0]),)
    return (Array(shown(one) for one in found),)


def write_property(node: Node, name: str, value: Value) -> bool:
    """Set an attribute or a text-only child element; answers whether there is one."""
    found = adapted(node, name)
    if len(found) != 1:
        return False
    target = found[0]
    if target.kind == "Element":
        if any(child.kind == "Element" for child in target.children) or target.attributes:
            raise Refusal("member", name, "assigning to an element that is more than text")
        target.children = []
        target.append(Node("Text", value=to_string(value)))
    else:
        target.value = to_string(value)
    return True


def property_names(node: Node) -> list[str]:
    """The names PowerShell lists for a node."""
    names = [one.local_name for one in node.attributes] + [child.local_name for child in node.children]
    return list(dict.fromkeys(names))


ADAPTERS[Node] = XmlAdapter()
