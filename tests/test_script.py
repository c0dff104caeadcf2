"""Plan and spec become one text: values stay in their quotes, secrets stay out, and only what is used comes along."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.config.scene import a_spec as a_machine
from tests.steps import builders
from winboot.base.errors import ScriptError
from winboot.base.secret import Secret
from winboot.config.networks.others import NONE
from winboot.config.node_spec import StepSource
from winboot.powershell.check import check_script, check_template
from winboot.powershell.parser import parse
from winboot.powershell.syntax import FunctionDefinition, StringConstant, walk
from winboot.script import rendering as script
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS
from winboot.script.steps.step import Step


def a_spec(*own: StepSource) -> Any:
    """As much of a spec as rendering itself takes."""
    cluster = SimpleNamespace(server_host="10.0.0.10", server_port=6443, pod_cidrs=(), ca_pem="a certificate")
    paths = SimpleNamespace(kubectl="", kubeconfig="", crictl="", crictl_config="")
    return SimpleNamespace(
        steps=own,
        machine=SimpleNamespace(name="win-a1", node_ip=None),
        node=SimpleNamespace(name="win-a1"),
        profile=SimpleNamespace(name="a profile"),
        network=SimpleNamespace(solution=NONE, ipam_store=""),
        cluster=cluster,
        artifacts=(),
        paths=paths,
    )


def ports(**given: object) -> Step:
    """The step dynamic-ports with other values."""
    inputs = {"range": {name.capitalize(): value for name, value in given.items()}, "excluded": ()}
    return Step(name="dynamic-ports", why="", inputs=lambda spec: inputs)


def rendered(*steps: Step, own: StepSource | None = None, undo: bool = False) -> script.Script:
    spec = a_spec(*([own] if own else []))
    return script.render(make_plan(spec, steps), spec, undo=undo)


@pytest.mark.parametrize(
    "value", ["'; Remove-Item C:\\ #", "\u2019 typographic", "$(throw 1)", "`n", "two\nlines", "}}", "'@", ""]
)
def test_a_value_stays_in_its_quotes_whatever_it_is(value: str):
    text = rendered(ports(start=value, count=1)).text

    assert script.literal(value) in text
    parse(text)


def test_a_secret_is_refused():
    with pytest.raises(ScriptError, match=r"dynamic-ports.*Secret travels beside"):
        rendered(ports(start=Secret("hunter2"), count=1))


def test_a_value_that_the_step_does_not_give_is_refused_by_name():
    with pytest.raises(ScriptError, match="no attribute 'Count'"):
        rendered(ports(start=1))


def test_the_same_plan_gives_the_same_text():
    assert rendered(ports(start=1, count=2)) == rendered(ports(start=1, count=2))


def test_digest_and_size_are_those_of_the_bytes_that_travel():
    done = rendered(ports(start=1, count=2))

    assert len(done.digest) == 64
    assert done.size_bytes == len(done.text.encode())


def test_a_further_host_parses_only_the_steps_in_which_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading templates and library is what a render costs: a thousand hosts of one profile pay for it once.
    `python -m benchmarks check` has the times.
    """
    first, second = (
        a_machine(tmp_path, host="{address: 10.0.1.11}"),
        a_machine(tmp_path, host="{address: 10.0.1.12}"),
    )
    second = replace(second, node=replace(second.node, name="win-2"))
    plan = make_plan(first, STEPS).complete
    script.render(plan, first)
    parsed: list[str] = []
    monkeypatch.setattr(script, "parse", lambda text: parsed.append(text) or parse(text))

    text = script.render(make_plan(second, STEPS).complete, second).text

    assert "'win-2'" in text
    assert len(parsed) <= len(plan.node_side) // 4


def test_only_functions_that_a_step_uses_come_along():
    text = rendered(ports(start=1, count=2)).text

    assert "function Set-PortRange" in text
    assert "function Invoke-Program" in text, "used by a function that the step uses"
    assert "function Set-FirewallRule" not in text


@pytest.mark.parametrize("undo", [False, True])
def test_a_function_in_the_script_is_the_one_of_the_library_byte_for_byte(undo: bool):
    """Line by line what a developer reads is what runs: nothing is rewritten on the way."""
    spec = builders.a_spec_of("flannel-vxlan-nssm")
    text = script.render(make_plan(spec, STEPS), spec, undo=undo).text
    library = "\n".join(script.library_files().values())
    functions = [node for node in parse(text).end.statements if isinstance(node, FunctionDefinition)]

    assert len(functions) > 100
    assert [one.name for one in functions if f"\n\n{one.extent.text}\n" not in f"\n\n{library}"] == []


@pytest.mark.parametrize("undo", [False, True])
def test_a_reader_meets_each_function_before_another_one_calls_it(undo: bool):
    spec = builders.a_spec_of("flannel-vxlan-nssm")
    text = script.render(make_plan(spec, STEPS), spec, undo=undo).text
    functions = [node for node in parse(text).end.statements if isinstance(node, FunctionDefinition)]
    later = {one.name for one in functions}
    early = []
    for one in functions:
        later.discard(one.name)
        calls = {node.value for node in walk(one) if isinstance(node, StringConstant)}
        early += [f"{one.name} calls {name}" for name in calls & later]

    assert early == []


def test_the_functions_of_a_file_stand_below_its_name_and_what_it_says_of_itself_once():
    text = rendered(ports(start=1, count=2)).text
    files = re.findall(r"^# ---- (\S+)$", text, re.MULTILINE)

    assert set(files) <= set(script.library_files())
    assert text.count("# Who may do what with files and folders.") == 1
    assert "# ---- ports.ps1\n\nfunction Get-PortRange {" in text


def test_of_functions_that_call_each_other_one_comes_first_and_all_come_once():
    def function(name: str, file: str, *names: str) -> script._Function:
        return script._Function(name, file, f"function {name} {{ }}\n", frozenset(names), restores=False)

    order = script.reading_order(
        [
            function("Get-A", "a.ps1", "Get-B", "Get-C"),
            function("Get-B", "b.ps1", "Get-A"),
            function("Get-C", "c.ps1", "Get-C"),
        ]
    )

    assert [one.name for one in order] == ["Get-C", "Get-A", "Get-B"]


def test_the_steps_come_after_the_functions_that_they_use():
    text = rendered(ports(start=1, count=2)).text

    assert text.index("function Set-PortRange") < text.index("$steps = @(")


def test_every_function_that_the_text_calls_is_in_it():
    text = rendered(ports(start=1, count=2)).text
    known = set(re.findall(r"^function ([\w-]+)", text, re.MULTILINE))

    assert set(script._names(text)) <= known


def test_the_script_of_remove_holds_every_function_that_puts_something_back_and_no_change():
    text = rendered(ports(start=1, count=2), undo=True).text

    assert "function Restore-PortRange" in text
    assert "function Restore-Service" in text, "a former profile may have had other steps"
    assert "Get-ChangeResult" not in text
    parse(text)


def test_a_step_of_the_users_own_stands_in_the_script_as_it_was_written():
    own = StepSource("my-agent", "monitoring", (), "    Get-Mine", "    Set-Mine", "    Undo-Mine")
    text = rendered(own=own).text

    assert "Name = 'my-agent'" in text
    assert "    Set-Mine\n" in text


def test_files_of_the_steps_are_shown_with_the_script():
    step = replace(ports(start=1, count=2), files=lambda spec: {r"C:\k\crictl.yaml": "timeout: 10\n"})

    assert rendered(step).files == (script.RenderedFile(r"C:\k\crictl.yaml", "timeout: 10\n"),)


@pytest.mark.parametrize("name", ["restart", "boot_id"])
def test_the_helpers_are_complete_scripts(name: str):
    text = getattr(script.helpers(), name)
    known = set(re.findall(r"^function ([\w-]+)", text, re.MULTILINE))

    parse(text)
    assert set(script._names(text)) <= known


@pytest.mark.parametrize(
    "template", sorted(script.templates_root().rglob("*.j2")), ids=lambda path: path.name
)
def test_a_value_stands_only_where_an_expression_may_stand(template):
    assert check_template(template.read_text(encoding="utf-8"), origin=template.name) == ()


def test_a_long_table_is_laid_out_in_lines_and_means_the_same():
    table = {"name": "x" * 60, "other": ["y" * 60, "z"], "Odd key": {"deep": None}}
    text = script._laid_out(table, 4)

    assert text.count("\n") == 1
    assert max(map(len, text.splitlines())) <= script._WIDTH
    parse(f"$x = {text}")


def test_a_single_list_in_a_list_keeps_its_comma():
    assert script._laid_out([["a" * 120]], 4).startswith("@(, @(")


def test_the_whole_library_passes_the_strict_check():
    """Also the functions that no shipped profile uses."""
    text = "$script:Run = @{}\n$script:Node = @{}\n" + script._library_text(script._library())

    assert [str(one) for one in check_script(text, origin="library")] == []
