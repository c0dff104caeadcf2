"""Plan and spec become one text: values stay in their quotes, secrets stay out, and the library is the same for every node."""

import hashlib
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from winboot_lab.engine.run import run_script
from winboot_lab.language import check
from winboot_lab.language.check import check_script
from winboot_lab.language.parser import parse
from winboot_lab.windows.machine import Machine

from tests.steps import builders
from winboot.base.errors import ScriptError
from winboot.base.secret import Secret
from winboot.config.networks.others import NONE
from winboot.config.node_spec import StepSource
from winboot.script import rendering as script
from winboot.script.library import functions_for, library, library_files
from winboot.script.pieces import BOUNDARY, split
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
        node=SimpleNamespace(name="win-a1", startup_taint=SimpleNamespace(key="")),
        profile=SimpleNamespace(name="a profile"),
        network=SimpleNamespace(solution=NONE, ipam_store=""),
        cluster=cluster,
        artifacts=(),
        services=SimpleNamespace(all=()),
        kubelet=SimpleNamespace(config={}),
        kube_proxy=SimpleNamespace(config={}),
        kubernetes=SimpleNamespace(keep_versions=2),
        paths=paths,
        runtime=SimpleNamespace(name="containerd", answers="containerd"),
        boot=SimpleNamespace(check_machine=False),
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
    part = rendered(ports(start=value, count=1)).node_part

    assert script.literal(value) in part
    parse(part)


def test_a_secret_is_refused():
    with pytest.raises(ScriptError, match=r"dynamic-ports.*a Secret is never a part"):
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


def test_two_nodes_of_a_release_get_the_same_library_byte_for_byte():
    first = rendered(ports(start=1, count=2))
    second = script.render(
        make_plan(whole := builders.a_spec_of("flannel-vxlan", manager="nssm"), STEPS), whole, undo=True
    )

    assert first.text.endswith(library().text)
    assert second.text.endswith(library().text)
    assert first.library is second.library


def test_the_library_is_its_files_whole_and_in_their_order():
    text = library().text
    places = [text.index(f"\n# ---- {name}\n{content}") for name, content in library_files().items()]

    assert list(library_files()) == sorted(library_files())
    assert places == sorted(places)


def test_the_library_says_first_which_files_it_has():
    contents = library().text.partition("\n# ----")[0]

    assert [name for name in library_files() if f"\n#   {name}" not in contents] == []


def test_the_head_names_the_settings_and_the_library_by_their_digests():
    done = rendered(ports(start=1, count=2))
    head = done.text[: done.text.index("param(")]

    assert hashlib.sha256(library().text.encode()).hexdigest() == library().sha256
    assert f"# Library   {library().sha256}\n" in head
    assert f"# Settings  {done.settings}\n" in head


@pytest.mark.parametrize("value", ["plain", f"a\n{BOUNDARY}\nb", f"{BOUNDARY}\n"])
def test_a_script_comes_apart_at_the_boundary_whatever_its_values_are(value: str):
    done = rendered(ports(start=value, count=1))

    assert split(done.text) == (done.node_part, done.library.text)


def test_any_other_text_has_no_pieces():
    assert split("Get-Date\n") is None


def test_each_piece_can_be_read_by_itself():
    done = rendered(ports(start=1, count=2))

    assert parse(done.node_part).params is not None
    assert parse(done.library.text).params is None


# `$x` and `$y` have values where the node's part sets them.
WRONG_LIBRARY = """
function Get-Maybe { if ($Host) { '1.0' } }
function Get-Wrong { $unset; $x; $y; $y = 1; $late; $late = 1; [version](Get-Maybe); ls }
"""


def test_the_strict_check_of_the_pieces_finds_what_that_of_the_whole_finds():
    """The check goes through the library once for all scripts. A short library gives its findings sooner."""
    part = rendered(ports(start=1, count=2)).node_part
    values = "Values = { $x = $nothing; $y = 1; Get-TextHash -Txt 'x'; gci\n"
    wrong = part.replace("Values = {\n", values, 1)
    wrong += f"{BOUNDARY}\n{functions_for('Get-TextHash')}{WRONG_LIBRARY}"

    found = check_script(wrong, origin="x")

    assert {one.id for one in found} >= {"UnsetVariable", "UnknownParameter", "Alias", "SilentValue"}
    assert found == check._check_whole(wrong, "x")
    unset = {
        word for one in found if one.id == "UnsetVariable" for word in one.message.split() if "$" in word
    }
    assert unset == {"$nothing", "$unset", "$late"}


def test_each_step_has_its_reason_above_it():
    step = replace(ports(start=1, count=2), why="NodePorts are\nkept")

    assert "\n# ---- dynamic-ports: NodePorts are kept\n@{\nName = 'dynamic-ports'\n" in rendered(step).text


def test_the_steps_come_before_the_library():
    text = rendered(ports(start=1, count=2)).text

    assert text.index("$steps = @(") < text.index(BOUNDARY) < text.index("function Set-PortRange")


def test_the_script_of_remove_looks_at_its_notes_and_has_nothing_to_change_with():
    part = rendered(ports(start=1, count=2), undo=True).node_part

    assert "Modes   = @('Look', 'Undo', 'Detached', 'Rescue')" in part
    assert "Look = {\n    Get-RemovalDifference\n}" in part
    assert not re.search(r"^(Change|Boot) = {", part, re.MULTILINE)


@pytest.mark.parametrize(
    ("undo", "mode"), [(True, "Boot"), (True, "Change"), (False, "Undo"), (False, "look")]
)
def test_a_mode_that_a_script_does_not_have_is_refused(undo: bool, mode: str):
    text = rendered(ports(start=1, count=2), undo=undo).text

    ended = run_script(Machine().session(), text, {"Mode": mode}, emit=lambda stream, value: None)

    assert ended.state == "failed"
    assert f"this script has no mode {mode}" in str(getattr(ended.error, "message", ended.error))


def test_a_step_of_the_users_own_stands_in_the_script_as_it_was_written():
    own = StepSource("my-agent", "monitoring", (), "    Get-Mine", "    Set-Mine", "    Undo-Mine")
    text = rendered(own=own).text

    assert "Name = 'my-agent'" in text
    assert "    Set-Mine\n" in text


def test_files_of_the_steps_are_shown_with_the_script():
    step = replace(ports(start=1, count=2), files=lambda spec: {r"C:\k\crictl.yaml": "timeout: 10\n"})

    assert rendered(step).files == (script.RenderedFile(r"C:\k\crictl.yaml", "timeout: 10\n"),)


@pytest.mark.parametrize("name", ["restart", "boot_id"])
def test_the_helpers_are_complete_and_short_scripts(name: str):
    text = getattr(script.helpers(), name)

    assert [str(one) for one in check_script(text, origin=name)] == []
    assert len(text) < len(library().text) / 5


def test_a_long_table_is_laid_out_in_lines_and_means_the_same():
    table = {"name": "x" * 60, "other": ["y" * 60, "z"], "Odd key": {"deep": None}}
    text = script._laid_out(table, 4)

    assert text.count("\n") == 1
    assert max(map(len, text.splitlines())) <= script._WIDTH
    parse(f"$x = {text}")


def test_a_single_list_in_a_list_keeps_its_comma():
    assert script._laid_out([["a" * 120]], 4).startswith("@(, @(")


def test_a_function_of_the_library_travels_with_those_that_it_calls():
    text = functions_for("Set-PortRange")

    assert "function Invoke-Program" in text, "used by a function that Set-PortRange uses"
    assert "function Set-FirewallRule" not in text
