"""Scripts become the trees PowerShell makes of them, and what is no 5.1 is refused at the right place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from winboot_lab.language.parser import parse
from winboot_lab.language.syntax import (
    Break,
    Command,
    Constant,
    Continue,
    Data,
    DoUntil,
    DoWhile,
    Exit,
    For,
    ForEach,
    FunctionDefinition,
    If,
    Node,
    ParseErrors,
    Pipeline,
    Return,
    Statement,
    StringConstant,
    Switch,
    Throw,
    Trap,
    Try,
    Variable,
    While,
    dump,
    walk,
)

from tests.powershell.show import read, show


def statements(text: str) -> tuple[Statement, ...]:
    """The statements of a script."""
    tree = parse(text)
    assert tree.end is not None
    return tree.end.statements


def refused(text: str) -> ParseErrors:
    """The complaints about a script."""
    with pytest.raises(ParseErrors) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "(+ 1 (* 2 3))"),
        ("1 - 2 - 3", "(- (- 1 2) 3)"),
        ("'{0}' -f 1 + 'x'", "(+ (f '{0}' 1) 'x')"),
        ("0..$n-1", "(- (.. 0 $n) 1)"),
        ("-1..1", "(.. -1 1)"),
        ("1,2 + 3,4", "(+ (, 1 2) (, 3 4))"),
        (", 1 + , 2", "(+ (, 1) (, 2))"),
        ("$a -and $b -or $c", "(or (and $a $b) $c)"),
        ("$a -or $b -and $c", "(and (or $a $b) $c)"),
        ("1 -band 3 -eq 3", "(band 1 (ieq 3 3))"),
        ("1 -shl 2 + 1", "(shl 1 (+ 2 1))"),
        ("1 -eq 1 -eq $true", "(ieq (ieq 1 1) $true)"),
        ("'a' -ceq 'A' -xor $b", "(xor (ceq 'a' 'A') $b)"),
        ("-join 'a','b'", "(, (join 'a') 'b')"),
        ("-not $a -eq $b", "(ieq (not $a) $b)"),
        ("!$a.b", "(not $a.b)"),
        ("- 5", "(- 5)"),
        ("2 - -2", "(- 2 -2)"),
        ("2 \u2013 1", "(- 2 1)"),
        ("$x-1", "(- $x 1)"),
        ("1 -split ',' -contains '2'", "(icontains (isplit 1 ',') '2')"),
        ("$a -replace 'x', 'y'", "(ireplace $a (, 'x' 'y'))"),
        ("$x -isnot [int]", "(isnot $x [int])"),
        ("[int]'5' + 1", "(+ ([int] '5') 1)"),
        ("[int] '5'.Length", "([int] '5'.Length)"),
        ("[void][int]$x", "([void] ([int] $x))"),
        ("$x++ + ++$y", "(+ (post++ $x) (pre++ $y))"),
    ],
)
def test_operators_bind_as_in_powershell(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("$x.y.z()[0]::w", "$x.y.z()[0]::w"),
        ("$x.'a b'.$p.($q)", "$x.'a b'.$p.($q)"),
        ("'a'.PadLeft(2 + 4, '.')", "'a'.PadLeft((+ 2 4), '.')"),
        ("$h.2.3", "$h.2.3:Double"),
        ("[Math]::Max(1, -2)", "[Math]::Max(1, -2)"),
        ("(1..3).Where{ $_ }", "((.. 1 3)).Where({$_})"),
        ("'a'.\nTrim().\nLength", "'a'.Trim().Length"),
        ("$x<# why #>.y", "$x.y"),
        ("[a.b[string, int[]]]::new()", "[a.b[string,int[]]]::new()"),
        ("[int[,]]", "[int[,]]"),
        ("[string[][]]", "[string[][]]"),
        ("[ int ]", "[int]"),
        ("$o.if.class", "$o.if.class"),
    ],
)
def test_members_hang_on_their_value(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("$a, $b = 1, 2", "(= (, $a $b) (, 1 2))"),
        ("$a = $b = 3", "(= $a (= $b 3))"),
        ("$x += 2", "(+= $x 2)"),
        ("[int[]]$x = 1,2", "(= ([int[]] $x) (, 1 2))"),
        ("[ValidateRange(1, 5)] [int] $v = 3", "(= ([ValidateRange()] ([int] $v)) 3)"),
        ("$h.k = Get-Item x", "(= $h.k <Get-Item x>)"),
        ("$f =\n5", "(= $f 5)"),
        ("${a b} = 1", "(= $a b 1)"),
        ("$env:PATH = 'x'", "(= $env:PATH 'x')"),
    ],
)
def test_assignments_have_a_target_and_a_statement(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (r"Get-Item -Path C:\a\b.txt -Force", r"<Get-Item -Path C:\a\b.txt -Force>"),
        ("Foo -a:$true -b: 5 c", "<Foo -a:$true -b:5 c>"),
        ("Foo 1 1.5 -3 +3 1..3 0x1f 1a", "<Foo 1 1.5:Double -3 +3 1..3 31 1a>"),
        ("Foo a,b $x,$y @h @(1)", "<Foo (, a b) (, $x $y) @h @(1)>"),
        ("Foo $a$b $a-z $a.b $a/b z$a", "<Foo “$a $b” “$a '-z'” $a.b “$a '/b'” “'z' $a”>"),
        ("Foo $o.p/sub $o['p'].q", "<Foo $o.p /sub $o['p'].q>"),
        ("""Foo "a"b c"d"'e f'""", "<Foo 'a' b cde f>"),
        ("Foo x$(1)y ${v}z", "<Foo “'x' $(1) 'y'” “$v 'z'”>"),
        ("Foo --% a | b", "<Foo --% 'a '> | <b>"),
        ("Foo -- -x", "<Foo -- -x>"),
        ("& $x.y 1", "<& $x.y 1>"),
        (". { 1 }", "<. {1}>"),
        ("&$n 'i'", "<& $n 'i'>"),
        ("F(5)", "<F (5)>"),
        ("Foo -p$v --name=$v", "<Foo -p$v “'--name=' $v”>"),
        ("Foo http://x.y/z?q=1 a=b", "<Foo http://x.y/z?q=1 a=b>"),
        ("Foo a{b}", "<Foo a {<b>}>"),
        ("Foo if else in process", "<Foo if else in process>"),
        ("Foo a `\n b", "<Foo a b>"),
        ("Foo a`\nb", "<Foo a\nb>"),
        ("Foo `\n b # c", "<Foo b>"),
        ("Foo a#b", "<Foo a#b>"),
        ("Foo | Bar -a | % { $_ }", "<Foo> | <Bar -a> | <% {$_}>"),
        ("Foo |\nBar", "<Foo> | <Bar>"),
        ("'x' | Foo", "'x' | <Foo>"),
    ],
)
def test_commands_take_words_for_texts(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("Foo > a.txt 2>&1", "<Foo 1>a.txt 2>&1>"),
        ("Foo 2>$null *>> b", "<Foo 2>$null 0>>b>"),
        ("1 > $null", "1 1>$null"),
        ("Foo c>o.txt", "<Foo c>o.txt>"),
        ("Foo 'c'>o.txt", "<Foo 'c' 1>o.txt>"),
        ("Foo 2>o.txt", "<Foo 2>o.txt>"),
        ("Foo a2>o.txt", "<Foo a2>o.txt>"),
    ],
)
def test_redirections_belong_to_their_command(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('"a $x b"', "“'a ' $x ' b'”"),
        ('"$x.y $($x.y) $h[0]"', "“$x '.y ' $($x.y) ' ' $h '[0]'”"),
        ('"${a b}c$env:PATH"', "“$a b 'c' $env:PATH”"),
        ('"$a::b"', "“$a '::b'”"),
        ('"$server:443"', "“$server:443”"),
        ('"$x?"', "“$x?”"),
        ('"cost: $5 $ 100%"', "“'cost: ' $5 ' $ 100%'”"),
        (r'''"a`tb`"c""d`q"''', r"""'a\tb"c"dq'"""),
        ('"$(""in"")"', "“$('in')”"),
        ('"$(1; "x$y")"', "“$(1; “'x' $y”)”"),
        ("“curly”", "'curly'"),
        ("‘it’’s’", "'it’s'"),
        ("'a''b'", '"a\'b"'),
        ("'`$x'", "'`$x'"),
        ("@'\na\n 'b'\n'@", repr("a\n 'b'")),
        ('@"\na $x\n$(1)\n"@ -split 1', r"(isplit “'a ' $x '\n' $(1)” 1)"),
        ("@'\n'@", "''"),
        ("@'\n\n'@", "''"),
    ],
)
def test_texts_keep_what_is_theirs(text: str, tree: str) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("1", 1, "Int32"),
        ("2147483647", 2147483647, "Int32"),
        ("2147483648", 2147483648, "Int64"),
        ("-2147483648", -2147483648, "Int32"),
        ("1l", 1, "Int64"),
        ("0x10", 16, "Int32"),
        ("0xFFFFFFFF", -1, "Int32"),
        ("0xFFFFFFFFL", 4294967295, "Int64"),
        ("0x100000000", 4294967296, "Int64"),
        ("0xFFFFFFFFFFFFFFFF", -1, "Int64"),
        ("1kb", 1024, "Int32"),
        ("2gb", 2147483648, "Int64"),
        ("1pb", 1125899906842624, "Int64"),
        ("1.5", 1.5, "Double"),
        ("5.", 5.0, "Double"),
        (".5", 0.5, "Double"),
        ("1e3", 1000.0, "Double"),
        ("1.5kb", 1536.0, "Double"),
        ("1.6l", 2, "Int64"),
    ],
)
def test_numbers_have_the_narrowest_type(text: str, value: object, type_name: str) -> None:
    (statement,) = statements(text)
    assert isinstance(statement, Pipeline)
    constant = statement.expression
    assert isinstance(constant, Constant)
    assert (constant.value, constant.type) == (value, type_name)


def test_big_numbers_are_decimals_and_then_doubles() -> None:
    assert read("9223372036854775808") == "9223372036854775808:Decimal"
    assert read("79228162514264337593543950336") == "7.922816251426434e+28:Double"
    assert read("1.10d") == "1.10:Decimal"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("if ($a) { 1 } elseif ($b) { 2 } else { 3 }", If),
        ("if ($a) { 1 }\n# why\nelse { 3 }", If),
        ("while ($a) { 1 }", While),
        ("do { 1 } while ($a)", DoWhile),
        ("do { 1 } until ($a)", DoUntil),
        ("for (;;) { 1 }", For),
        ("for ($i = 0; $i -lt 2; $i++) { $i }", For),
        ("foreach ($i in 1, 2) { $i }", ForEach),
        (":outer foreach ($i in $j) { break outer }", ForEach),
        ("switch -Regex -CaseSensitive ($a) { 'x' { 1 } default { 2 } }", Switch),
        ("switch -File a.txt { { $_ } { 1 } }", Switch),
        ("try { 1 } catch [IO.IOException], [FormatException] { 2 } catch { 3 } finally { 4 }", Try),
        ("function Get-It([int] $a = 1, $b) { $a }", FunctionDefinition),
        ("filter Get-It { $_ }", FunctionDefinition),
        ("data name -SupportedCommand ConvertFrom-StringData { 1 }", Data),
        ("return", Return),
        ("return 1 | Foo", Return),
        ("throw 'x'", Throw),
        ("exit 1", Exit),
        ("break outer", Break),
        ("continue", Continue),
    ],
)
def test_every_statement_has_its_node(text: str, kind: type[Node]) -> None:
    (statement,) = statements(text)
    assert type(statement) is kind
    assert statement.extent.text == text


def test_a_switch_knows_its_flags_clauses_and_default() -> None:
    (switch,) = statements("switch -w ($a) { 'x*' { 1 } DEFAULT { 2 } }")
    assert isinstance(switch, Switch)
    assert switch.flags == {"wildcard"}
    assert [show(test) for test, _ in switch.clauses] == ["'x*'"]
    assert switch.default is not None


def test_named_blocks_and_parameters_are_taken_apart() -> None:
    tree = parse(
        "[CmdletBinding()]\nparam([Parameter(Mandatory, Position = 0)] [Alias('n')] [string] $Name = 'x', [switch] $All)\n"
        "begin { 1 } process { 2 } end { 3 }"
    )
    assert tree.params is not None
    assert [attribute.type.name for attribute in tree.params.attributes] == ["CmdletBinding"]
    name, switch = tree.params.parameters
    assert (name.name, name.type and name.type.full, show(name.default) if name.default else None) == (
        "Name",
        "string",
        "'x'",
    )
    assert (switch.name, switch.type and switch.type.full) == ("All", "switch")
    assert all(block is not None and not block.unnamed for block in (tree.begin, tree.process, tree.end))


def test_traps_stand_apart_from_the_statements() -> None:
    tree = parse("1\ntrap [Exception] { continue }\n2")
    assert tree.end is not None
    assert len(tree.end.statements) == 2
    assert [type(trap) for trap in tree.end.traps] == [Trap]


def test_a_filter_runs_its_body_for_each_object() -> None:
    (definition,) = statements("filter Get-It { $_ }")
    assert isinstance(definition, FunctionDefinition)
    assert definition.body.process is not None
    assert definition.body.process.unnamed
    assert definition.body.end is None


def test_requirements_and_usings_are_read() -> None:
    tree = parse("#requires -Version 5.1 -RunAsAdministrator\nusing namespace System.Text\n1")
    assert tree.requirements is not None
    assert tree.requirements.version == (5, 1)
    assert tree.requirements.run_as_administrator
    assert [(using.kind, using.name) for using in tree.using] == [("namespace", "System.Text")]


@pytest.mark.parametrize(
    ("path", "scope", "drive", "name"),
    [
        ("x", None, None, "x"),
        ("script:x", "script", None, "x"),
        ("GLOBAL:x", "global", None, "x"),
        ("using:x", "using", None, "x"),
        ("env:PATH", None, "env", "PATH"),
        ("function:x", None, "function", "x"),
    ],
)
def test_a_variables_path_is_taken_apart(path: str, scope: str | None, drive: str | None, name: str) -> None:
    variable = next(node for node in walk(parse(f"${path}")) if isinstance(node, Variable))
    assert (variable.path, variable.scope, variable.drive, variable.name) == (path, scope, drive, name)


def test_nodes_know_their_place_in_the_text() -> None:
    tree = parse("Foo 1\r\nif ($a) {\r\n  Bar 'x'\r\n}")
    command = [node for node in walk(tree) if isinstance(node, Command)][1]
    assert command.extent.text == "Bar 'x'"
    assert command.extent.position == (3, 3)
    assert command.extent.end_position == (3, 10)


def test_code_inside_a_text_knows_its_place_too() -> None:
    tree = parse('"a\n $(Foo ""x"" $y)"')
    variable = next(node for node in walk(tree) if isinstance(node, Variable))
    assert variable.extent.position == (2, 14)


@pytest.mark.parametrize(
    ("text", "error_id", "line", "column"),
    [
        ("$true ? 1 : 2", "UnexpectedToken", 1, 7),
        ("$a ?? 1", "UnexpectedToken", 1, 4),
        ("$a ??= 1", "UnexpectedToken", 1, 4),
        ("${a}?.b", "UnexpectedToken", 1, 5),
        ("Foo && Bar", "InvalidEndOfLine", 1, 5),
        ("Foo || Bar", "InvalidEndOfLine", 1, 5),
        ("Foo &", "AmpersandNotAllowed", 1, 5),
        ("$x = 5u", "NewerNumberNotSupported", 1, 6),
        ("1ukb", "NewerNumberNotSupported", 1, 1),
        ("0b101", "NewerNumberNotSupported", 1, 1),
        ('"`u{41}"', "NewerEscapeNotSupported", 1, 2),
        ('"`e[0m"', "NewerEscapeNotSupported", 1, 2),
        ("Foo\n| Bar", "EmptyPipeElement", 2, 1),
        ("function F { process { 1 } clean { 2 } }", "CleanBlockNotSupported", 1, 28),
        ("function F { clean { 2 } }", "CleanBlockNotSupported", 1, 14),
        ("class A { [int] $b }", "TypeDefinitionNotSupported", 1, 1),
        ("enum A { b }", "TypeDefinitionNotSupported", 1, 1),
        ("[array]::Empty[int]()", "MissingArrayIndexExpression", 1, 16),
        ("foreach -Parallel ($a in $b) { 1 }", "KeywordParameterReservedForFutureUse", 1, 1),
    ],
)
def test_what_only_newer_powershells_read_is_refused(
    text: str, error_id: str, line: int, column: int
) -> None:
    first = refused(text).first
    assert (first.id, first.line, first.column) == (error_id, line, column)


@pytest.mark.parametrize(
    ("text", "error_id"),
    [
        ("function F { try { 1 } finally { return } }", "ControlLeavingFinally"),
        ("foreach ($a in 1) { try { 1 } finally { break } }", "ControlLeavingFinally"),
        ("param($a, $A)", "DuplicateFormalParameter"),
        ("[void] $x = 1", "VoidTypeConstraintNotAllowed"),
        ("Foo $a, @b", "SplattingNotPermittedInArgumentList"),
        ("Foo -x:@b", "SplattingNotPermitted"),
        ("$x = 99999999999999999999l", "BadNumericConstant"),
        ("Foo ,a", "MissingArgument"),
        ("Foo -x:", "ParameterRequiresArgument"),
        ("$a[", "MissingArrayIndexExpression"),
        ("$a[1", "MissingEndSquareBracket"),
        ("data { $a.b }", "PropertyReferenceNotSupportedInDataSection"),
        ("(" * 2000 + "1" + ")" * 2000, "ScriptTooComplicated"),
    ],
)
def test_mistakes_have_powershells_names(text: str, error_id: str) -> None:
    assert refused(text).first.id == error_id


def test_leaving_a_loop_inside_finally_is_allowed() -> None:
    parse("try { 1 } finally { foreach ($a in 1) { break }; & { return } }")


def test_several_mistakes_are_told_at_once() -> None:
    errors = refused("if ($x != 5) { 1 }\n$y = (2").errors
    assert len(errors) > 2
    assert errors[0].line == 1
    assert errors[-1].line == 2 or any(error.line == 2 for error in errors)


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "if",
            "else",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            "@(",
            "@{",
            "$(",
            "$x",
            "${a}",
            "@x",
            "'a'",
            '"b$x"',
            '"$(1)"',
            ",",
            ";",
            "|",
            "&",
            ".",
            "..",
            "::",
            "=",
            "+=",
            "-eq",
            "-f",
            "-not",
            "!",
            "++",
            "+",
            "-",
            "*",
            "/",
            "1",
            "1.5",
            "0x1",
            "foo",
            "foreach",
            "in",
            "while",
            "do",
            "until",
            "switch",
            "function",
            "try",
            "catch",
            "finally",
            "trap",
            "return",
            "param",
            "begin",
            "process",
            "data",
            "class",
            "#",
            "<#",
            "#>",
            "`",
            ">",
            "2>&1",
            "<",
            "--%",
            "[int]",
            "[Parameter(",
            "?",
            ":lbl",
            "'o",
            '"o',
            "@'",
            "'@",
            "$x.y().z",
        ]
    )
    | st.sampled_from(["\n", " ", "\r\n", "@'\n", "\n'@", '@"\n', '\n"@', "\0", "“", "’", "–"]),
    max_size=25,
)


def always_ends(text: str) -> None:
    """Whatever the text, there is a tree or there are complaints with places in it."""
    try:
        tree = parse(text)
    except ParseErrors as errors:
        assert all(0 <= error.offset <= len(text) + 1 for error in errors.errors)
        return
    assert tree.extent.end <= len(text)
    assert dump(parse(text)) == dump(tree)


@given(FRAGMENTS, st.sampled_from(["", " "]))
@settings(max_examples=80, deadline=None)
def test_any_text_is_read_or_refused(fragments: list[str], between: str) -> None:
    always_ends(between.join(fragments))


@pytest.mark.nightly
@given(FRAGMENTS, st.sampled_from(["", " "]))
@settings(max_examples=10_000, deadline=None)
def test_any_text_is_read_or_refused_ten_thousand_times(fragments: list[str], between: str) -> None:
    always_ends(between.join(fragments))


def test_a_bare_word_is_told_from_a_quoted_one() -> None:
    kinds = [node.kind for node in walk(parse("Foo a 'b' \"c\"")) if isinstance(node, StringConstant)]
    assert kinds == ["bare", "bare", "single", "double"]
