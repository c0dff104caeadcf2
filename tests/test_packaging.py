"""The two distributions: what they declare is what they import, and the tool's wheel holds nothing of the lab."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.config.scene import GOOD, an_inventory

ROOT = Path(__file__).parent.parent
TOOL: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LAB: dict[str, Any] = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("ssh", "aws", "azure")


def _name(requirement: str) -> str:
    """`Foo_bar>=1,<2` as foo-bar."""
    return re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _declared(requirements: list[str]) -> set[str]:
    return {_name(one) for one in requirements}


def _imported(package: Path) -> Iterator[tuple[str, Path]]:
    """Every top-level module that a package imports, and where; its own and the standard library's are left out."""
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != package.name:
                    yield top, file


def _distributions(package: Path) -> set[str]:
    """The distributions that bring the modules that a package imports."""
    known = packages_distributions()
    found = set()
    for top, _ in _imported(package):
        found |= {_name(one) for one in known.get(top, [top])}
    return found


def _extras(project: dict[str, Any]) -> set[str]:
    return {
        name
        for extra in EXTRAS
        for name in _declared(project.get("optional-dependencies", {}).get(extra, []))
    }


def test_the_tool_declares_what_it_imports() -> None:
    """As a dependency or in an extra; nothing comes by chance with another distribution."""
    imported = _distributions(ROOT / "winboot")

    # Distributions that share a package (lightkube, azure) are all named for each of its modules.
    shared = {one for one in imported if one.startswith(("azure", "lightkube"))}
    missing = imported - shared - _declared(TOOL["dependencies"])
    assert missing <= _extras(TOOL), missing


def test_the_tool_imports_what_it_declares() -> None:
    """A dependency that nothing imports is a download and a licence for nothing; extras wait for their commands."""
    assert _declared(TOOL["dependencies"]) <= _distributions(ROOT / "winboot")


def test_the_lab_declares_what_it_imports_and_imports_what_it_declares() -> None:
    """The same for the lab; it brings the tool with it."""
    imported = _distributions(ROOT / "lab" / "winboot_lab")
    declared = _declared(LAB["dependencies"])

    assert imported - declared - _extras(LAB) == set()
    assert declared - imported == set()


@pytest.mark.parametrize("module", ["boto3", "botocore", "azure", "paramiko"])
def test_what_an_extra_brings_is_imported_by_the_module_that_owns_it(module: str) -> None:
    """At the top of a file that is not imported by the others, or inside a function."""
    owners = {file.relative_to(ROOT).parts[1:3] for top, file in _imported(ROOT / "winboot") if top == module}

    assert owners <= {("remote", "cloud"), ("remote", "transport")}


# `pip install winboot` would run a stranger's package of that name in a registry.
_BY_NAME = re.compile(r"pipx? install(?: -\S+| ['\"]?\.\S*)* ['\"]?winboot(?:-lab)?(?![\w./-])")


def test_no_text_installs_winboot_by_a_name() -> None:
    """From a checkout alone: `.` and `./lab` (a wheel by its path, too)."""
    files = [
        file
        for folder in ("winboot", "lab", "docs", "tests", "templates", ".github", ".ci")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".md", ".toml", ".yml", ".yaml", ".sh", ".j2", ".ps1", "")
        and file.is_file()
        and file != Path(__file__)
    ]
    texts = {
        file: file.read_text(encoding="utf-8") for file in (ROOT / "README.md", ROOT / "Makefile", *files)
    }

    assert [f"{file}: {m[0]}" for file, text in texts.items() for m in _BY_NAME.finditer(text)] == []
    for bad in ("pip install 'winboot[aws]'", "pip install winboot", "pipx install winboot-lab==0.1.0"):
        assert _BY_NAME.search(bad), bad


def test_no_extra_of_the_tool_is_asked_of_a_registry_by_its_own_name() -> None:
    """An extra that names winboot or the lab is resolved by name where it is installed alone."""
    asked = {one for extra in TOOL["optional-dependencies"].values() for one in _declared(extra)}

    assert asked & {"winboot", "winboot-lab"} == set()
    assert "urls" not in TOOL


def test_dev_brings_every_extra_but_kerberos() -> None:
    extras = TOOL["optional-dependencies"]

    assert set(extras["dev"]) >= {one for name in EXTRAS for one in extras[name]}


def test_the_wheel_of_the_tool_holds_nothing_of_the_lab(tmp_path: Path) -> None:
    """As hatchling collects its files; templates, examples and data are in it."""
    builder = WheelBuilder(str(ROOT))
    files = {file.distribution_path for file in builder.recurse_included_files()}
    files |= {file.distribution_path for file in builder.recurse_forced_files(builder.config.force_include)}

    assert not [one for one in files if "winboot_lab" in one or one.startswith(("lab/", "tests/"))]
    for wanted in (
        "winboot/cli/__init__.py",
        "winboot/config/compat/data/kubelet.json",
        "winboot/_templates/powershell/_script.ps1.j2",
        "winboot/_profiles/flannel-host-gw.yaml",
        "winboot/_inventories/canonical.yaml",
    ):
        assert wanted in files, wanted
    assert not [one for one in files if one.startswith("tools/")]


@pytest.mark.parametrize("project", [TOOL, LAB], ids=["winboot", "winboot-lab"])
def test_a_distribution_says_its_licence(project: dict[str, Any]) -> None:
    """Without a licence no user may use the package."""
    assert project["license"] == "Apache-2.0"
    assert project["description"]


# What the lab's own distribution would add is refused, as where it is not installed.
ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "winboot_lab":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
import winboot
from winboot.cli import run

assert winboot.__file__.startswith(sys.argv[1]), winboot.__file__
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tool, built by its own back end without a network, and unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(folder / "dist"), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.check
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["--help"], 0, "render"),
        (["check", "inventory.yaml"], 0, "good"),
        (["render", "-i", "inventory.yaml", "-l", "win-1"], 0, "#region Steps"),
        # It goes as far as to the machine, where nothing listens.
        (["plan", "-i", "inventory.yaml"], 69, "nothing answers"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_wheel_works_without_the_lab(
    command: list[str], code: int, says: str, unpacked: Path, tmp_path: Path
) -> None:
    """From the unpacked wheel alone: neither this checkout nor the lab is seen."""
    an_inventory(
        tmp_path,
        "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: {address: 127.0.0.1, "
        "connection: {port: 1, user: a, password: {env: WINBOOT_TEST_PASSWORD}}}}}}\n",
        GOOD.replace("kubeconfig: {file: kubeconfig}", "bootstrap_token: {env: WINBOOT_TEST_PASSWORD}"),
    )
    ended = subprocess.run(
        [sys.executable, "-c", ALONE, str(unpacked), *command],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(unpacked),
            "WINBOOT_STATE": str(tmp_path / "state"),
            "WINBOOT_TEST_PASSWORD": "x",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == code, ended.stdout + ended.stderr
    assert says in ended.stdout + ended.stderr
