"""The page as a browser shows it, where headless Chromium is installed: everything is there and nothing is fetched."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from tests.report.test_report import GONE, a_node, a_report
from winboot.report.events import Difference, Problem
from winboot.report.finding import Finding
from winboot.report.page import html
from winboot.report.results import Digests, Failure, Need, NodeReport, Report, StepReport

pytestmark = pytest.mark.check

Chromium = Callable[..., str]
# A node's card: its name is within it, so that a link to it opens it.
CARD = r'<details( open="")?>\s*<summary>.*?</summary>\s*<div id="([^"]+)"'
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Names lead nowhere, so that no browser feature contacts a server.
    "--host-resolver-rules=MAP * ~NOTFOUND",
]


@pytest.fixture
def chromium(tmp_path: Path) -> Chromium:
    """Runs the browser with a profile folder of its own, and gives what it prints."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")

    def run(*arguments: str) -> str:
        command = [program, *QUIET, f"--user-data-dir={tmp_path / 'browser'}", *arguments]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, check=True, text=True
        )
        return ended.stdout

    return run


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report with a bit of everything, written."""
    path = tmp_path / "report.html"
    path.write_text(html(_report()), encoding="utf-8")
    return path


def _report() -> Report:
    problem = Problem("NotReady", "no <network>", "look & see", "line 3")
    bad = StepReport("cni-config", "failed", 3, (Difference("file x", None, "<b>bold</b>"),), problem)
    good = StepReport("kubelet", "changed", 40, (Difference("service kubelet: state", "Stopped", "Running"),))
    node = NodeReport("win-1", "10.0.0.1", "2022", (good, bad), None, notes=("a note",))
    return a_report(node, a_node("ok", "changed", node="win-2"), a_node(failure=GONE, node="win-3"))


def test_every_node_and_step_is_in_the_document(chromium: Chromium, page: Path) -> None:
    """What the browser has made of the page, as it would show it."""
    document = chromium("--dump-dom", page.as_uri())

    assert [name for _, name in re.findall(CARD, document)] == ["win-1", "win-2", "win-3"]
    for said in ("kubelet", "cni-config", "step-0", "step-1", "a note", "Unreachable", "NotReady"):
        assert said in document
    assert "no &lt;network&gt;" in document
    assert "<b>bold" not in document


def test_nodes_that_need_attention_stand_open(chromium: Chromium, page: Path) -> None:
    """A failed node shows its steps at once, one that went well is folded."""
    document = chromium("--dump-dom", page.as_uri())

    assert {node: bool(mark) for mark, node in re.findall(CARD, document)} == {
        "win-1": True,
        "win-2": False,
        "win-3": True,
    }


@pytest.fixture
def asked(chromium: Chromium, tmp_path: Path) -> Callable[[Path], set[str]]:
    """What a page asks the network for, from the browser's own record of its requests."""

    def ask(page: Path) -> set[str]:
        record = tmp_path / "net.json"
        chromium(f"--log-net-log={record}", "--dump-dom", page.as_uri())
        return _addresses(json.loads(record.read_text(encoding="utf-8")))

    return ask


def test_the_page_asks_for_nothing(asked: Callable[[Path], set[str]], page: Path) -> None:
    """It can be opened on a machine without a network."""
    assert asked(page) == set()


def test_a_page_that_does_ask_would_be_noticed(asked: Callable[[Path], set[str]], page: Path) -> None:
    """The record is read rightly: a picture from elsewhere shows up in it."""
    text = page.read_text(encoding="utf-8").replace("<body>", '<body><img src="http://elsewhere.invalid/x">')
    page.write_text(text, encoding="utf-8")

    assert asked(page) == {"http://elsewhere.invalid/x"}


def _addresses(record: dict[str, list[dict[str, dict[str, object]]]]) -> set[str]:
    """Addresses of requests in a net log that belong to a page, not to the browser's own housekeeping."""
    found = (event.get("params", {}) for event in record["events"])
    return {
        str(params["url"])
        for params in found
        if "url" in params and str(params.get("initiator", "not an origin")) != "not an origin"
    }


KUBELET = (
    r"C:\k\kubelet.exe --config=C:\var\lib\kubelet\config.yaml --hostname-override=win-1 --v=2 "
    + " ".join(
        f"--some-long-flag-{n}=https://registry.corp.example:8443/a/path/without/any/space/{n}"
        for n in range(6)
    )
)
TOML = "version = 3\n[plugins.'io.containerd.cri.v1.images']\n  snapshotter = 'windows'\n" + "".join(
    f"  # line {n}: a comment that is as long as comments in configuration files come to be, when people explain\n"
    for n in range(6)
)
# Ten of every kind: there, absent, other; short and long; with a space to break at and without; a file; each flag.
KINDS: dict[str, Callable[[int], Difference]] = {
    "directories": lambda n: Difference(rf"folder C:\k\{n}", None, "there"),
    "firewall-rules": lambda n: Difference(f"firewall rule site {n}", "allow TCP 10250", None, policy=True),
    "system-settings": lambda n: Difference(f"registry value {n}", "0", "1", reboot=True),
    "kubelet": lambda n: Difference(
        f"service kubelet {n}: command line", KUBELET, KUBELET + f" --n={n}", disturbs=True
    ),
    "artifacts": lambda n: Difference(
        "file C:\\" + "\\".join(["a-folder-with-a-long-name"] * 9) + str(n), f"{n:064x}", "0" * 900
    ),
    "containerd-config": lambda n: Difference(
        rf"file C:\Program Files\containerd\config-{n}.toml: content",
        "9 lines, sha256 0123456789ab",
        "10 lines, sha256 ba9876543210",
        disrupts=True,
        was=TOML,
        will=TOML.replace("line 3", "x" * 400) + f"# {n}\n",
    ),
    "pod-network": lambda n: Difference(f"HNS network {n}: subnet", None, "(known after join)", unknown=True),
}


@pytest.fixture
def full_page(tmp_path: Path) -> Path:
    """A plan with ten differences of every kind, and everything else that may be wide, written."""
    long = "https://registry.corp.example/" + "v2/" * 80
    steps = tuple(
        StepReport(name, "would-change", 12, tuple(map(kind, range(10))), why=f"so that {name} is as wanted")
        for name, kind in KINDS.items()
    )
    bad = StepReport(
        "pause-image", "blocked", 3, (), Problem("ImagePull", f"{long} is away", long, f"{long}:3")
    )
    name = "win-" + "pool-with-a-long-name-" * 2 + "1"
    digests = Digests("1" * 64, "2" * 64, "3" * 64)
    node = NodeReport(
        name,
        "10.0.0.1",
        "2022",
        (*steps, bad),
        digests=digests,
        notes=(long,),
        needs=(Need("--drain", long),),
    )
    away = structs.replace(node, node="win-2", steps=(), failure=Failure("Unreachable", long, long, 69))
    finding = Finding("cluster-net", "error", long, long, nodes=tuple(f"win-{n}" for n in range(60)))
    report = replace(
        a_report(node, away, command="plan"),
        preflight=(finding,),
        by=f"somebody@{'host.' * 30}",
        plan="4" * 64,
    )
    path = tmp_path / "full.html"
    path.write_text(html(report), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [390, 1440])
def test_ten_differences_of_every_kind_need_no_sideways_scrolling(
    width: int, chromium: Chromium, full_page: Path, tmp_path: Path
) -> None:
    """On a telephone and on a wide screen. A frame has any width; a window of Chromium has at least 500 pixels."""
    frame = tmp_path / "frame.html"
    measured = "const w = this.contentDocument.documentElement; document.title = w.scrollWidth + ' of ' + w.clientWidth"
    frame.write_text(
        f'<iframe src="{full_page.name}" style="border: 0; width: {width}px; height: 30000px" onload="{measured}">',
        encoding="utf-8",
    )

    document = chromium("--allow-file-access-from-files", "--dump-dom", frame.as_uri())

    (found,) = re.findall(r"<title>(\d+) of (\d+)</title>", document)
    assert tuple(map(int, found)) == (width, width)


def test_a_picture_of_the_page_is_not_blank(chromium: Chromium, page: Path, tmp_path: Path) -> None:
    """One colour compresses to almost nothing; text does not."""
    picture = tmp_path / "page.png"
    chromium("--window-size=1200,900", f"--screenshot={picture}", page.as_uri())

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
