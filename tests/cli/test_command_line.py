"""The command line as a user meets it: codes, words, and no traceback."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.test_check import KUBECONFIG
from tests.config.scene import GOOD, a_spec
from winboot.base.errors import InvalidInput, UsageError
from winboot.cli import run
from winboot.cli.commands import COMMANDS, GROUPS
from winboot.cli.init import inventory_text, profile_text, read_kubeconfig
from winboot.cli.ping import OUR_CLOCK, _ping, judge
from winboot.config.profile.sections import Windows
from winboot.remote.transport.base import Certificate, Probe

WRONG_USE = [
    (["nope"], "No such command 'nope'"),
    (["plan", "--wrong"], "No such option"),
    (["plan", "--workers", "0"], "--workers"),
    (["plan", "-i", "/nowhere/inventory.yaml"], "there is no inventory"),
    (["check", "/nowhere/profile.yaml"], "does not exist"),
    (["explain", "flag", "ndoe-ip"], "Did you mean 'node-ip'"),
    (["explain", "flag"], "needs a name"),
    (["explain", ""], "winboot does not know ''"),
    (["explain", "field", "network.cnj"], "Did you mean 'network.cni'?"),
    (["remove", "--limit", "", "--yes"], "--limit '' names nothing"),
    (["remove", "--limit", " , ", "--yes"], "names nothing"),
    (["join", "-l", "win-1", "-l", "", "--yes"], "--limit '' names nothing"),
    (["join", "--only", "", "--yes"], "--only '' names nothing"),
    (["rollback", "", "--yes"], "NODE '' names nothing"),
    (["plan", "--workers", "0"], "expected a number from 1 on"),
    (["plan", "--workers", "1000000"], "expected a number up to 64"),
    (["plan", "--workers", "x"], "expected a whole number"),
    (["runs", "-o", "xml"], "'--output' / '-o': 'xml' is not one of"),
    (["show", "/nowhere/plan"], "/nowhere/plan: the plan cannot be read: No such file or directory"),
    (["explain", "colour", "red"], "cannot be explained"),
    (["explain", "network", "flanel-vxlan"], "flannel-vxlan"),
    (["remove"], "but there is no terminal for"),
    (["remove", "--keep-node", "--cluster-only", "--yes"], "do not go together"),
    (["join", "-i", "x.yaml", "--report", "report.pdf"], "unknown report format '.pdf'"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG_USE, ids=[" ".join(row[0]) for row in WRONG_USE])
def test_wrong_use_exits_64_and_says_what_to_do(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never Click's 2, which means "plan found changes" here."""
    assert run(arguments) == 64
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_help_does_not_import_what_only_a_run_needs() -> None:
    """`winboot --help` stays fast."""
    heavy = "boto3 azure paramiko pypsrp lightkube psrpcore spnego jinja2 yaml pydantic typer rich importlib.metadata".split()  # noqa: SIM905
    code = (
        "import sys; from winboot.cli import run; run(['--help']); "
        f"print(sorted(set({heavy!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"


def test_help_lists_every_command_that_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """In 80 columns; each line's module has a function of that name with help of its own."""
    assert run(["--help"]) == 0

    told = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command.name} " in told
        assert command.function().__doc__
    assert "  lab " in told
    assert max(map(len, told.splitlines())) <= 80
    titles = [f"{title}:" for title in GROUPS]
    assert [line for line in told.splitlines() if line in titles] == titles


def test_a_command_is_found_without_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the command that is named is imported; its own help has its options."""
    found = {one.name: (run([one.name, "--help"]), capsys.readouterr().out) for one in COMMANDS}

    assert [name for name, (code, shown) in found.items() if code != 0 or "--help" not in shown] == []


def a_probe(**changes: object) -> Probe:
    """A machine with nothing wrong."""
    facts: dict[str, object] = {
        "offered_auth": ("Negotiate",),
        "certificate": None,
        "language_mode": "FullLanguage",
        "execution_policy": "RemoteSigned",
        "administrator": True,
        "filtered_token": False,
        "computer_name": "WIN-1",
        "domain": None,
        "os_build": "20348.2227",
        "ps_version": "5.1.20348.2227",
        "clock_offset": timedelta(seconds=0.2),
        "round_trip": timedelta(milliseconds=9),
    }
    return Probe(**{**facts, **changes})  # type: ignore[arg-type]  # the keys are the fields


A_SPEC = SimpleNamespace(
    machine=SimpleNamespace(
        os="2022", build=20348, connection=SimpleNamespace(auth="ntlm", transport="winrm")
    )
)

PING = [
    ("a filtered token", {"filtered_token": True}, "error", "token", "LocalAccountTokenFilterPolicy"),
    ("no administrator", {"administrator": False}, "error", "token", "Administrators"),
    ("JEA", {"language_mode": "NoLanguage"}, "error", "language mode", "Microsoft.PowerShell"),
    ("Constrained Language", {"language_mode": "ConstrainedLanguage"}, "error", "language mode", "policy"),
    ("Basic offered", {"offered_auth": ("Negotiate", "Basic")}, "warning", "authentication", "Auth"),
    ("a clock 20 s off", {"clock_offset": timedelta(seconds=20)}, "warning", "clock", "w32tm"),
    ("a clock an hour off", {"clock_offset": timedelta(hours=-1)}, "error", "clock", "w32tm"),
    ("another build", {"os_build": "17763.1"}, "error", "build", "inventory"),
    ("PowerShell 7", {"ps_version": "7.4.1"}, "error", "PowerShell", "endpoint"),
]


@pytest.mark.parametrize(
    ("changes", "level", "subject", "fix"), [row[1:] for row in PING], ids=[row[0] for row in PING]
)
def test_ping_names_what_stands_in_the_way_and_its_fix(
    changes: dict[str, object], level: str, subject: str, fix: str
) -> None:
    """Each finding that is not ok has a fix."""
    bad = [one for one in judge(a_probe(**changes), A_SPEC) if one.level != "ok"]  # type: ignore[arg-type]

    assert [(one.level, one.subject) for one in bad] == [(level, subject)]
    assert fix in bad[0].fix


def test_ping_finds_nothing_wrong_with_a_good_machine() -> None:
    """A certificate is shown with its end."""
    certificate = Certificate(
        "ab", "CN=win-1", "CN=ca", ("win-1",), datetime(2027, 1, 1, tzinfo=UTC), "TLSv1.3"
    )
    findings = list(judge(a_probe(certificate=certificate), A_SPEC))  # type: ignore[arg-type]

    assert {one.level for one in findings} == {"ok"}
    assert any("2027-01-01" in one.text for one in findings)


def test_a_clock_is_held_against_the_clusters_where_that_is_known() -> None:
    """Both far from ours, and together."""
    probe = a_probe(clock_offset=timedelta(minutes=8))

    (clock,) = [
        one
        for one in judge(probe, A_SPEC, "the cluster's", timedelta(minutes=8, seconds=-1))  # type: ignore[arg-type]
        if one.subject == "clock"
    ]

    assert (clock.level, clock.text) == ("ok", "+1.0 s from the cluster's")


def test_the_remedy_for_a_clock_names_a_key_that_a_profile_has() -> None:
    (wrong,) = [
        one
        for one in judge(a_probe(clock_offset=timedelta(minutes=8)), A_SPEC)  # type: ignore[arg-type]
        if one.subject == "clock"
    ]

    (key,) = re.findall(r"windows\.(\w+)", wrong.fix)
    assert key in Windows.model_fields


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_a_character_that_standard_output_lacks_ends_nothing(encoding: str, tmp_path: Path) -> None:
    """Windows reports errors in its own language; printing a report of all nodes must not fail."""
    path = tmp_path / "漢字.yaml"
    path.write_text(GOOD, encoding="utf-8")
    (tmp_path / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "winboot", "check", str(path)],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )

    assert (done.returncode, b"bug in winboot" in done.stderr) == (0, False), done.stderr
    assert "漢字".encode(encoding, "backslashreplace") in done.stdout


class Broken:
    """A session in which winboot itself does something wrong."""

    def __enter__(self) -> Broken:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def probe(self) -> Probe:
        raise KeyError("a bug\x1b[2J")


def test_a_bug_at_one_machine_is_a_finding_of_that_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the command once, and the other machines had no answer."""
    monkeypatch.setenv("WINBOOT_PASSWORD", "x")
    logins = SimpleNamespace(guarded=lambda connection, transport, *, name: Broken())

    pinged = _ping(
        a_spec(tmp_path, host="{connection: {user: a, password: {env: WINBOOT_PASSWORD}}}"),
        OUR_CLOCK,
        logins,
        lambda: OUR_CLOCK,
    )  # type: ignore[arg-type]

    (finding,) = pinged.findings
    assert (finding.level, finding.subject, pinged.exit_code) == ("error", "InternalError", 1)
    assert "KeyError" in finding.text
    assert "\x1b" not in finding.text


class Terminal(io.StringIO):
    """Where colours are shown."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://no-color.org; half of the lines did not heed it."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)

    assert run(["check", "/nowhere/inventory.yaml"]) == 64

    assert "/nowhere/inventory.yaml" in terminal.getvalue()
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_init_writes_an_inventory_with_a_group_for_each_release() -> None:
    """The form is NAME=ADDRESS,OS."""
    text = inventory_text(["win-1=10.0.1.1,2022", "win-2=10.0.1.2,2019"], r".\Administrator", "PW")

    assert text.index("windows-2019") < text.index("windows-2022")
    assert '"win-1": {address: "10.0.1.1"}' in text


def test_init_refuses_a_host_in_another_form() -> None:
    """The wrong word is shown, and an example."""
    with pytest.raises(UsageError, match="win-1"):
        inventory_text(["win-1"], "u", "PW")


def test_a_value_cannot_break_out_of_the_profile_that_init_writes() -> None:
    """Whatever a kubeconfig says stays one YAML string."""
    import yaml

    answers = dict.fromkeys(["server", "kubeconfig", "kubernetes", "pod_cidr", "service_cidr"], 'x"\n: {}')
    text = profile_text({**answers, "context": "a: b", "network": "flannel:vxlan", "mirror": None})

    read = yaml.safe_load(text)
    assert read["cluster"]["server"] == 'x"\n: {}'
    assert read["network"] == {"cni": "flannel", "mode": "vxlan"}
    assert read["artifacts"] == {"source": "upstream", "sha256": {}}


@pytest.mark.parametrize("content", ["", "[]", "clusters: []", "current-context: a\ncontexts: []", "\x00"])
def test_a_kubeconfig_that_says_nothing_useful_is_refused(tmp_path: Path, content: str) -> None:
    """The file and the context are named."""
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(InvalidInput, match="config"):
        read_kubeconfig(path, None)
