"""sc.exe, nssm.exe and kube-log-runner.exe behave like the real ones, down to the codes a script looks at."""

from __future__ import annotations

import pytest
from winboot_lab.mirror import program
from winboot_lab.programs.wrappers import join
from winboot_lab.windows.processes import split_arguments

from lab_programs.conftest import Node

SC = r"C:\Windows\System32\sc.exe"
NSSM = r"C:\k\nssm.exe"
CONTAINERD = join([r"C:\Program Files\containerd\bin\containerd.exe", "--run-service"])


@pytest.fixture
def prepared(node: Node) -> Node:
    node.binaries()
    node.configuration()
    return node


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["create", "x", "binPath=", "C:\\x.exe"], 0),
        (["create", "x", "binPath=C:\\x.exe"], 1639),
        (["create", "x"], 1639),
        (["create", "x", "binPath=", "C:\\x.exe", "start=", "sometimes"], 1639),
        (["config", "x", "start=", "auto"], 1060),
        (["query", "x"], 1060),
        (["start", "x"], 1060),
        (["delete", "x"], 1060),
        (["failure", "hns", "reset=", "60"], 1639),
        (["failure", "hns", "reset=", "60", "actions=", "restart"], 1639),
        (["failureflag", "hns", "1"], 0),
        (["query", "hns"], 0),
        (["start", "hns"], 1056),
    ],
)
def test_sc_answers_with_the_code_of_the_real_one(node: Node, words: list[str], code: int) -> None:
    assert node.sc(*words) == code


def test_sc_writes_what_the_registry_should_hold(prepared: Node) -> None:
    assert (
        prepared.sc("create", "a", "binPath=", "C:\\a.exe", "start=", "delayed-auto", "DisplayName=", "The A")
        == 0
    )
    assert prepared.sc("create", "b", "binPath=", "C:\\b.exe", "depend=", "a/hns") == 0
    assert (
        prepared.sc("failure", "a", "reset=", "900", "actions=", "restart/10000/restart/30000/restart/60000")
        == 0
    )
    assert prepared.sc("description", "a", "what it is") == 0
    registry, a, b = (
        prepared.machine.registry,
        prepared.machine.services.need("a"),
        prepared.machine.services.need("b"),
    )

    assert registry.number(a.key, "Start") == 2 and registry.number(a.key, "DelayedAutostart") == 1
    assert (
        registry.text(a.key, "DisplayName") == "The A" and registry.text(a.key, "Description") == "what it is"
    )
    assert prepared.machine.services.recovery(a).actions == ((1, 10000), (1, 30000), (1, 60000))
    assert registry.strings(b.key, "DependOnService") == ["a", "hns"]
    assert prepared.sc("config", "b", "depend=", "/") == 0
    assert registry.strings(b.key, "DependOnService") == []


def test_a_service_that_exists_or_is_to_go_is_named_by_code(prepared: Node) -> None:
    assert prepared.sc("create", "containerd", "binPath=", CONTAINERD) == 0
    assert prepared.sc("create", "containerd", "binPath=", CONTAINERD) == 1073
    prepared.sc("start", "containerd")
    prepared.machine.services.need("containerd").held_by.add("services.msc")
    prepared.sc("stop", "containerd")
    assert prepared.sc("delete", "containerd") == 0
    assert prepared.sc("create", "containerd", "binPath=", CONTAINERD) == 1072


def test_a_missing_program_and_a_failing_dependency_have_their_codes(prepared: Node) -> None:
    prepared.sc("create", "gone", "binPath=", "C:\\gone.exe")
    prepared.sc("create", "above", "binPath=", CONTAINERD, "depend=", "gone")

    assert prepared.sc("start", "gone") == 2
    assert prepared.sc("start", "above") == 1068
    assert prepared.sc("stop", "gone") == 1062


def test_containerd_registers_itself_with_its_recovery(prepared: Node) -> None:
    log = r"C:\var\log\containerd\containerd.log"
    exe = r"C:\Program Files\containerd\bin\containerd.exe"

    registered = prepared.run(
        exe, "--register-service", "--config", r"C:\Program Files\containerd\config.toml", "--log-file", log
    )

    service = prepared.machine.services.need("containerd")
    assert registered.code == 0
    assert service.image_path.endswith("--run-service") and service.image_path.startswith(f'"{exe}"')
    assert prepared.machine.services.recovery(service).actions[0] == (1, 15000)
    assert prepared.sc("start", "containerd") == 0


def test_nssm_speaks_utf_16_and_keeps_its_values_in_the_registry(prepared: Node) -> None:
    installed = prepared.run(NSSM, "install", "f", r"C:\k\flanneld.exe", "--iface=10.0.0.21", "with space")
    asked = prepared.run(NSSM, "get", "f", "AppParameters")
    key = prepared.machine.services.need("f").key + r"\Parameters"

    assert installed.stdout.decode("utf-16-le") == 'Service "f" installed successfully!\r\n'
    assert asked.stdout.decode("utf-16-le").strip() == "--iface=10.0.0.21 with space"
    assert prepared.machine.registry.text(key, "Application") == r"C:\k\flanneld.exe"


def test_nssm_passes_environment_and_depends_each_word(prepared: Node) -> None:
    prepared.run(NSSM, "install", "f", r"C:\k\flanneld.exe")
    prepared.run(NSSM, "set", "f", "AppEnvironmentExtra", "A=1", "B=2")
    prepared.run(NSSM, "set", "f", "DependOnService", "hns", "containerd")

    service = prepared.machine.services.need("f")
    assert prepared.machine.registry.strings(service.key + r"\Parameters", "AppEnvironmentExtra") == [
        "A=1",
        "B=2",
    ]
    assert service.depends == ["hns", "containerd"]


def test_nssm_shows_a_program_that_dies_at_once_as_paused_and_tries_again(prepared: Node) -> None:
    prepared.run(NSSM, "install", "f", r"C:\k\flanneld.exe", "--kube-subnet-mgr=1")
    prepared.run(NSSM, "set", "f", "AppStderr", r"C:\var\log\f.log")
    assert prepared.sc("start", "f") == 0
    prepared.settle(4)

    paused = prepared.machine.services.need("f").status
    prepared.settle(60)

    assert paused == "Paused"
    assert prepared.read(r"C:\var\log\f.log").count("POD_NAME and POD_NAMESPACE") > 2


def test_nssm_whose_program_is_missing_stops(prepared: Node) -> None:
    prepared.run(NSSM, "install", "f", r"C:\k\nothing.exe")
    prepared.sc("start", "f")

    assert prepared.machine.services.need("f").status == "Stopped"


def test_a_log_runner_ends_with_its_program(prepared: Node) -> None:
    prepared.containerd()
    prepared.kubelet("--no-such-flag")

    assert prepared.machine.services.need("kubelet").status == "Stopped"
    assert "unknown flag: --no-such-flag" in prepared.log("kubelet")


def test_stopping_a_wrapped_service_leaves_no_process(prepared: Node) -> None:
    prepared.containerd()
    prepared.kubelet()
    prepared.sc("stop", "kubelet")

    names = {p.name for p in prepared.machine.processes.all()}

    assert not names & {"kubelet", "kube-log-runner"}


def test_a_program_of_no_service_under_the_log_runner_does_not_count_either(prepared: Node) -> None:
    prepared.file(r"C:\k\flanneld.exe", program("flanneld", "0.27.4"))

    assert prepared.service("f", r"C:\k\kube-log-runner.exe", r"C:\k\flanneld.exe") == 1053


@pytest.mark.parametrize(
    "words", [["a"], ["a b", 'c"d'], ["C:\\with space\\", "x"], [""], ['\\\\"'], ["a\\\\b"]]
)
def test_joined_words_split_into_the_same_words(words: list[str]) -> None:
    assert split_arguments("program.exe " + join(words))[1:] == words


@pytest.mark.parametrize(("skip", "lives"), [(0, False), (1, True)])
def test_a_stop_by_nssm_ends_the_shims_of_containerd_unless_it_skips_the_ctrl_c(
    prepared: Node, skip: int, lives: bool
) -> None:
    """kill_console of NSSM's process.cpp: GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0), to all on the console."""
    prepared.run(NSSM, "install", "c", r"C:\Program Files\containerd\bin\containerd.exe")
    prepared.run(NSSM, "set", "c", "AppStopMethodSkip", str(skip))
    prepared.run(NSSM, "start", "c")
    containerd = prepared.machine.processes.named("containerd")[-1]
    shim = r"C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe"
    prepared.machine.processes.spawn(f'"{shim}" -namespace k8s.io -id 1', parent=containerd.pid)

    prepared.run(NSSM, "stop", "c")

    assert prepared.machine.processes.named("containerd") == []
    assert bool(prepared.machine.processes.named("containerd-shim-runhcs-v1")) is lives
