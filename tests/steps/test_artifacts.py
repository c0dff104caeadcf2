"""Download the programs, check their hashes and put them in their places."""

import pytest

from tests.steps.builders import a_spec
from winboot.steps.artifacts import ARTIFACTS, _matches


def artifact(name: str) -> dict:
    return next(one for one in ARTIFACTS.inputs(a_spec())["artifacts"] if one["name"] == name)


def test_each_program_names_the_services_that_must_start_anew_when_it_is_replaced():
    services = {member["destination"]: member["services"] for member in artifact("kubernetes")["members"]}

    assert services[r"C:\k\kubelet.exe"] == ["kubelet"]
    assert services[r"C:\k\kube-log-runner.exe"] == ["kubelet", "kube-proxy"]


def test_what_only_the_container_runtime_starts_restarts_nothing():
    shim = [member for member in artifact("containerd")["members"] if "shim" in member["destination"]]

    assert [member["services"] for member in shim] == [[]]


def test_downloads_take_the_proxy_of_the_profile():
    assert artifact("containerd")["proxy"] == "http://proxy.corp.example:3128"


@pytest.mark.parametrize(
    ("host", "entry", "covered"),
    [
        ("mirror.corp.example", ".corp.example", True),
        ("corp.example", ".corp.example", True),
        ("notcorp.example", ".corp.example", False),
        ("mirror.corp.example", "corp.example", True),
        ("10.0.0.7", "10.0.0.0/8", True),
        ("11.0.0.7", "10.0.0.0/8", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("dl.k8s.io", "10.0.0.0/8", False),
    ],
)
def test_no_proxy_is_read_as_go_programs_read_it(host: str, entry: str, covered: bool):
    assert _matches(host, entry) is covered
