"""The clouds' SDKs are heavy: only the modules of their name import them, and only when winboot calls that cloud."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import winboot
from winboot.base.errors import UsageError
from winboot.remote.cloud import connect
from winboot.remote.cloud.base import same_provider_id

PACKAGE = Path(winboot.__file__).parent
SDKS = ("boto3", "botocore", "azure", "msrest", "moto", "prometheus_client")


def imported_by(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def test_only_the_modules_of_a_cloud_import_its_sdk() -> None:
    owners = {"boto3": "aws", "botocore": "aws", "azure": "azure"}
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {sdk}"
        for file in PACKAGE.rglob("*.py")
        for sdk, owner in owners.items()
        if sdk in imported_by(file) and not (file.parent.name == "cloud" and file.name.startswith(owner))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "words",
    [["--help"], ["render", "--help"], ["check", "--help"], ["inventory", "--help"], ["steps"]],
    ids=lambda words: words[0],
)
def test_a_command_that_asks_no_cloud_imports_no_sdk(words: list[str]) -> None:
    program = (
        "import sys\nfrom winboot.cli import run\nimport winboot.remote.cloud\n"
        f"run({words!r})\n"
        f"print('IMPORTED', [name for name in {SDKS!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "IMPORTED []"


def test_a_missing_sdk_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winboot.base.extras.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        connect("aws", region="eu-west-1")
    assert "pip install '.[aws]'" in caught.value.hint


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("aws:///eu-west-1a/i-0a", "aws:///eu-west-1a/i-0a", True),
        ("aws:///eu-west-1a/i-0a", "aws:///eu-west-1a/i-0A", False),
        ("azure:///subscriptions/S/vm/N", "azure:///subscriptions/s/VM/n", True),
        ("", "", False),
    ],
)
def test_provider_ids_are_compared_as_their_cloud_does(one: str, other: str, same: bool) -> None:
    assert same_provider_id(one, other) is same
