"""A plan shows a file's lines, and never a secret: what is there may be another tool's."""

from __future__ import annotations

import pytest

from tests.steps.bench import Bench
from tests.steps.library import call

FILE = r"C:\var\lib\kubelet\config.yaml"
SECRETS = [
    "password: canary",
    "Password = canary",
    '"password": "canary"',
    "pwd=canary",
    "passwd canary:\n  passwd: canary",
    "token: canary",
    "  token: 'canary'",
    '{"token":"canary"}',
    "bootstrap_token = canary",
    "client-key-data: Y2FuYXJ5",
    "client-certificate-data: Y2FuYXJ5",
    '"auth": "Y2FuYXJ5"',
    "auth = canary",
    "-----BEGIN PRIVATE KEY-----\ncanary",
    "-----BEGIN RSA PRIVATE KEY-----\ncanary",
    "clientSecret: canary",
    "secret=canary",
    "Authorization: Bearer: canary",
    "Authorization: Bearer canary",
    'authorization = "Basic Y2FuYXJ5"',
    "Authorization:\n- basic  Y2FuYXJ5",
    "proxy: http://user:canary@10.0.0.1:3128",
    "credential: canary",
]


def test_the_lines_of_a_file_that_differs_travel_with_the_difference() -> None:
    bench = Bench()
    bench.run("directories", "kubelet-config")
    wanted = (bench.file(FILE) or b"").decode()
    bench.write(FILE, wanted.replace("maxPods: ", "# maxPods was ").encode() + b"# by hand\n")

    (found,) = [
        one for one in bench.look("kubelet-config").step("kubelet-config")["differences"] if "will" in one
    ]

    assert found["will"] == wanted
    assert found["was"].endswith("# by hand\n")


def test_a_file_with_what_may_be_a_secret_is_not_shown() -> None:
    bench = Bench()
    forms = ", ".join("'" + text.replace("'", "''") + "'" for text in SECRETS)

    answer = call(bench, f"foreach ($one in @({forms})) {{ (Get-ShownText -Was $one -Will 'x').Count }}")

    assert answer.objects == [0] * len(SECRETS)
    assert call(bench, "(Get-ShownText -Was 'maxPods: 1' -Will 'maxPods: 2').Count").objects == [2]
    assert call(bench, "(Get-ShownText -Was ('x' * 40001) -Will 'x').Count").objects == [0]


@pytest.mark.parametrize("forbidden", [True, False])
def test_a_step_that_needs_a_restart_waits_where_none_is_allowed(forbidden: bool) -> None:
    bench = Bench()

    told = bench.run("windows-features", facts={"NoRestart": forbidden})

    assert told.states == {"windows-features": "blocked" if forbidden else "changed"}
    assert told.ended == ("complete" if forbidden else "reboot")
    if forbidden:
        assert told.problem("windows-features").id == "NeedsRestart"
