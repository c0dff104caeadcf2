"""`make test CHANGED=1` runs what a change can break nearby, and says so within seconds."""

from __future__ import annotations

import pytest

from tests.changed import ALWAYS, MADE, ROOT, WHOLE_JOINS, chosen_for, module_of, path_of


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("winboot/node/drain.py", {"tests/join/test_drain.py"}),
        (
            "winboot/remote/cluster/requests.py",
            {"tests/cluster/test_requests.py", "tests/cluster/test_cluster.py"},
        ),
        ("winboot/script/steps/kubelet.py", {"tests/steps/test_kubelet.py", "tests/test_plan.py"}),
        ("templates/powershell/steps/kubelet.ps1.j2", {"tests/steps/test_kubelet.py", *MADE}),
        (
            "templates/powershell/lib/drive.ps1",
            {"tests/steps/test_drive.py", "tests/steps/test_detached.py", *MADE},
        ),
        ("winboot/config/compat/data/windows.json", {"tests/compat/test_platform.py"}),
        ("lab/winboot_lab/windows/acl.py", {"tests/steps/test_directories.py"}),
        ("tests/steps/bench.py", {"tests/steps/test_directories.py", "tests/steps/test_kubelet.py"}),
        ("tests/lab/test_promises.py", {"tests/lab/test_promises.py"}),
        ("docs/security.md", set()),
        ("winboot/a_module_that_is_gone.py", set()),
    ],
)
def test_a_change_runs_the_chosen_for_what_it_touches(changed: str, runs: set[str]) -> None:
    found = chosen_for([changed])

    assert {*runs, *ALWAYS} <= set(found)
    assert [one for one in found if one.startswith(WHOLE_JOINS) and one != changed] == []
    assert [one for one in found if not (ROOT / one).exists()] == []


@pytest.mark.parametrize("folder", ["winboot", "lab/winboot_lab", "tests", "lab/tests"])
def test_each_file_of_ours_has_a_module_and_back(folder: str) -> None:
    files = {str(one.relative_to(ROOT)) for one in (ROOT / folder).rglob("*.py") if one.name != "__init__.py"}

    assert {path: path_of(module_of(path)) for path in files} == {path: path for path in files}


def test_a_new_line_in_the_list_of_steps_runs_few_files() -> None:
    """Also with its damage: the doctor's tests of damages join sites, and have nothing to do with it."""
    steps = "winboot/script/steps"
    found = chosen_for([f"{steps}/__init__.py", f"{steps}/dynamic_ports.py", "tests/lab/damages.py"])

    assert "tests/steps/test_catalogue.py" in found
    assert "tests/doctor/test_damages.py" not in found
    assert len(found) <= len(ALWAYS) + 8
