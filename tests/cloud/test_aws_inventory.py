"""Inventories of EC2 instances: which, what they are called, which groups they are in, and what becomes of them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.aws import REGION, AwsSite

from winboot.base.errors import CloudError, CloudRefused, InvalidInput
from winboot.cli import run
from winboot.config.inventory import check_inventory
from winboot.config.node_spec import resolve
from winboot.remote.cloud.pool import Pool, ansible_list, frozen_text, load_pool

POOL = """
plugin: aws_ec2
regions: [eu-west-1]
cluster: prod
profile: profile.yaml
defaults:
  os: "2022"
  connection: {user: admin, password: {env: WINBOOT_PASSWORD}}
"""


def a_pool(aws: AwsSite, more: str = "") -> Path:
    path = aws.folder / "pool.aws.yaml"
    path.write_text(POOL + more, encoding="utf-8")
    return path


def names(path: Path) -> list[str]:
    return [machine.name for machine in load_pool(path)]


def test_the_running_windows_machines_of_the_cluster_are_the_inventory(aws: AwsSite) -> None:
    subnet = aws.network()
    mine = aws.instance(subnet, cluster="owned")
    aws.instance(subnet, cluster="owned", windows=False)
    aws.instance(subnet, Name="not of the cluster")
    stopped = aws.instance(subnet, cluster="owned")
    aws.client("ec2").stop_instances(InstanceIds=[stopped["InstanceId"]])

    (machine,) = load_pool(a_pool(aws))

    assert machine.name == mine["PrivateDnsName"].lower()
    assert machine.address == machine.node_ip == mine["PrivateIpAddress"]
    assert machine.provider_id == f"aws:///{REGION}a/{mine['InstanceId']}"
    spec = resolve(machine.profile, machine)
    assert spec.kubelet.config["providerID"] == machine.provider_id
    assert spec.kubelet.arguments["hostname-override"] == machine.name


def test_more_machines_than_a_page_holds_are_all_found(aws: AwsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    subnet = aws.network()
    for _ in range(7):
        aws.instance(subnet, cluster="owned")
    pages: list[Any] = []
    pool = Pool.read(a_pool(aws))
    provider: Any = pool.provider
    provider.calls.events().register("before-call.ec2.DescribeInstances", lambda **given: pages.append(given))
    monkeypatch.setattr("winboot.remote.cloud.aws.PAGE", 5)

    assert len(pool.asked()) == 7
    assert len(pages) == 2


def test_names_variables_and_groups_follow_ansibles_words(aws: AwsSite) -> None:
    subnet = aws.network()
    aws.instance(subnet, cluster="owned", Name="Web-1", role="web", release="2025")
    aws.instance(subnet, cluster="owned", Name="Gpu-1", role="gpu node", release="2019")
    path = a_pool(
        aws,
        """
hostnames: [{name: "tag:Name", prefix: "tag:nothing"}, private-dns-name]
compose: {os: tags.release, port: "5985 if tags.role == 'web' else 5986"}
groups: {old: "tags.release == '2019'"}
keyed_groups:
  - {key: tags.role, prefix: role}
  - {key: placement.availability_zone, parent_group: zones}
settings:
  role_web: {node: {labels: {pool: web}}}
  zones: {connection: {connect_timeout_s: 7}}
""",
    )

    gpu, web = load_pool(path)

    assert (gpu.name, web.name) == ("gpu-1", "web-1")
    assert (gpu.os, web.os) == ("2019", "2025")
    assert (gpu.connection.port, web.connection.port) == (5986, 5985)
    assert set(web.groups) == {"aws_ec2", "role_web", "eu_west_1a", "zones"}
    assert set(gpu.groups) == {"aws_ec2", "old", "role_gpu_node", "eu_west_1a", "zones"}
    assert web.profile.node.labels["pool"] == "web" and "pool" not in gpu.profile.node.labels
    assert web.connection.connect_timeout_s == 7


def test_a_profile_of_aws_is_not_taken_for_winboots(aws: AwsSite) -> None:
    """Ansible's `profile` is one of ~/.aws/config. It was missed after the cloud's answer alone."""
    path = a_pool(aws)
    path.write_text(path.read_text(encoding="utf-8").replace("profile.yaml", "prod"), encoding="utf-8")

    with pytest.raises(InvalidInput) as caught:
        Pool.read(path)

    assert "there is no file prod" in str(caught.value.problems[0])
    assert "aws_profile" in str(caught.value.problems[0])


def test_tags_have_the_name_of_newer_collections_too(aws: AwsSite) -> None:
    """amazon.aws 11.2.0 calls them ec2_tags."""
    aws.instance(aws.network(), cluster="owned", role="web")
    path = a_pool(aws, "strict: true\nkeyed_groups: [{key: ec2_tags.role, prefix: role}]\n")

    assert [one.groups for one in load_pool(path)] == [("aws_ec2", "role_web")]


def test_include_and_exclude_filters_add_and_leave_out(aws: AwsSite) -> None:
    subnet = aws.network()
    kept = {aws.instance(subnet, cluster="owned", pool=pool)["PrivateDnsName"] for pool in ("a", "b")}
    aws.instance(subnet, cluster="owned", pool="a", retired="yes")
    aws.instance(subnet, cluster="owned", pool="c")

    path = a_pool(
        aws,
        "filters: {'tag:pool': a}\ninclude_filters: [{'tag:pool': [b]}]\nexclude_filters: [{'tag:retired': ['*']}]\n",
    )

    assert set(names(path)) == kept


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compose: {os: 'tags.['}", "a Jinja expression"),
        ("platform: linux", "windows | any"),
        ("region: eu-west-1", "did you mean 'regions'"),
        ("aws_secret_key: x", "credentials come from the environment"),
        ("session_token: x", "credentials come from the environment"),
        ("compose: {ansible_connection: \"'ssh'\"}", "`connection` under `defaults`"),
        ("compose: {ansible_winrm_transport: \"'kerberos'\"}", "`connection` under `defaults`"),
        ("keyed_groups: [{prefix: a}]", "this key is missing"),
        ("groups: {web: {os: '2022'}}", "a condition"),
        ("plugin: gcp_compute", "aws_ec2"),
    ],
)
def test_a_wrong_file_is_named_with_line_and_column(aws: AwsSite, line: str, said: str) -> None:
    path = aws.folder / "pool.aws.yaml"
    path.write_text(POOL.replace("plugin: aws_ec2\n", "") + line + "\n", encoding="utf-8")

    with pytest.raises(InvalidInput) as caught:
        Pool.read(path)

    (complaint,) = caught.value.problems
    assert f"{path}:8:" in str(complaint)
    assert said in str(complaint)


def test_expressions_reach_nothing_but_the_machines_description(aws: AwsSite) -> None:
    aws.instance(aws.network(), cluster="owned")
    path = a_pool(aws, 'strict: true\ncompose: {os: "().__class__.__mro__[1].__subclasses__() | length"}\n')

    with pytest.raises(InvalidInput) as caught:
        load_pool(path)

    assert "unsafe" in str(caught.value.problems[0])


def test_an_expression_that_a_machine_cannot_satisfy_is_a_warning_and_strict_an_error(aws: AwsSite) -> None:
    aws.instance(aws.network(), cluster="owned")
    said: list[str] = []

    load_pool(a_pool(aws, "compose: {x: tags.nothing}\n"), warn=said.append)

    assert len(said) == 1 and "compose.x" in said[0] and "tags.nothing" in said[0]
    with pytest.raises(InvalidInput):
        load_pool(a_pool(aws, "strict: true\ncompose: {x: tags.nothing}\n"))


def test_two_machines_of_one_name_are_refused(aws: AwsSite) -> None:
    subnet = aws.network()
    for _ in range(2):
        aws.instance(subnet, cluster="owned", Name="same")

    with pytest.raises(InvalidInput) as caught:
        load_pool(a_pool(aws, "hostnames: ['tag:Name']\n"))

    assert "both named 'same'" in str(caught.value.problems[0])


def test_the_cache_is_its_owners_alone_and_answers_while_it_is_young(aws: AwsSite) -> None:
    subnet = aws.network()
    aws.instance(subnet, cluster="owned")
    path = a_pool(aws, "cache: true\ncache_timeout: 600\n")
    assert len(names(path)) == 1
    aws.instance(subnet, cluster="owned")

    assert len(names(path)) == 1
    assert len(load_pool(path, refresh=True)) == 2
    (kept,) = (aws.folder / "state" / "cache").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_a_cloud_that_does_not_answer_leaves_the_last_answer_with_a_warning(
    aws: AwsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.instance(aws.network(), cluster="owned")
    path = a_pool(aws)
    before = names(path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("winboot.remote.cloud.aws_calls.CONFIG", None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    said: list[str] = []

    assert [one.name for one in load_pool(path, warn=said.append)] == before
    assert len(said) == 1 and "0 s ago" in said[0]
    with pytest.raises(CloudError):
        load_pool(path, refresh=True)


def test_a_region_that_refuses_is_an_error_or_a_warning(aws: AwsSite) -> None:
    aws.instance(aws.network(), cluster="owned")

    def refusing(more: str) -> Pool:
        pool = Pool.read(a_pool(aws, more))
        provider: Any = pool.provider
        answer = type(
            "Answer", (), {"status_code": 403, "headers": {}, "content": REFUSAL, "raw": None, "text": ""}
        )
        provider.calls.events().register("before-send.ec2.DescribeInstances", lambda **given: answer())
        return pool

    said: list[str] = []
    assert refusing("strict_permissions: false\n").asked(warn=said.append) == []
    assert len(said) == 1 and "UnauthorizedOperation" in said[0]
    with pytest.raises(CloudRefused) as caught:
        refusing("").asked()
    assert caught.value.exit_code == 77
    assert "winboot cloud policy aws" in caught.value.hint


REFUSAL = (
    b"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors>"
    b"<RequestID>1</RequestID></Response>"
)


def test_a_throttled_call_is_repeated(aws: AwsSite) -> None:
    aws.instance(aws.network(), cluster="owned")
    pool = Pool.read(a_pool(aws))
    provider: Any = pool.provider
    left = [2]

    def throttle(**given: Any) -> Any:
        if not left[0]:
            return None
        left[0] -= 1
        content = REFUSAL.replace(b"UnauthorizedOperation", b"RequestLimitExceeded")
        return type(
            "Answer", (), {"status_code": 503, "headers": {}, "content": content, "raw": None, "text": ""}
        )()

    provider.calls.events().register("before-send.ec2.DescribeInstances", throttle)

    assert len(pool.asked()) == 1
    assert left == [0]


def test_ansible_reads_the_list_as_it_is(aws: AwsSite) -> None:
    subnet = aws.network()
    aws.instance(subnet, cluster="owned", role="web")
    pool = Pool.read(a_pool(aws, "keyed_groups: [{key: tags.role, prefix: role}]\n"))
    members = pool.members(pool.asked())
    program = aws.folder / "winboot-inventory"
    answer = json.dumps(ansible_list(pool, members))
    program.write_text(f"#!{sys.executable}\nprint({answer!r})\n", encoding="utf-8")
    program.chmod(0o755)

    reader = (
        "import json, sys\nfrom ansible.parsing.dataloader import DataLoader\n"
        "from ansible.inventory.manager import InventoryManager\n"
        "found = InventoryManager(loader=DataLoader(), sources=[sys.argv[1]])\n"
        "print(json.dumps({'groups': found.get_groups_dict(), 'vars':"
        " {host.name: dict(host.vars) for host in found.get_hosts()}}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", reader, str(program)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=aws.folder,
    )

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    (member,) = members
    assert seen["groups"]["role_web"] == seen["groups"]["aws_ec2"] == [member.name]
    assert seen["vars"][member.name]["ansible_host"] == member.host.private_ip
    assert seen["vars"][member.name]["provider_id"] == member.identity.provider_id


def test_a_frozen_inventory_is_the_same_one_without_the_cloud(aws: AwsSite) -> None:
    subnet = aws.network()
    for release in ("2019", "2022"):
        aws.instance(subnet, cluster="owned", release=release)
    path = a_pool(aws, "compose: {os: tags.release}\nkeyed_groups: [{key: tags.release, prefix: os}]\n")
    pool = Pool.read(path)
    frozen = aws.folder / "frozen.yaml"
    frozen.write_text(frozen_text(pool, pool.members(pool.asked())), encoding="utf-8")

    from winboot.config.inventory import load_inventory

    complaints = [one for one in check_inventory(frozen) if one.level == "error"]
    assert complaints == []
    seen = [(m.name, m.os, m.address, m.provider_id, m.groups) for m in load_inventory(frozen)]
    assert seen == [(m.name, m.os, m.address, m.provider_id, m.groups) for m in load_pool(path)]


def test_the_command_shows_lists_and_freezes(aws: AwsSite, capsys: pytest.CaptureFixture[str]) -> None:
    made = aws.instance(aws.network(), cluster="owned")
    path = a_pool(aws)

    assert run(["inventory", "-i", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "|--@aws_ec2:" in shown and made["InstanceId"] in shown
    assert run(["inventory", "-i", str(path), "--list"]) == 0
    assert made["PrivateDnsName"].lower() in json.loads(capsys.readouterr().out)["_meta"]["hostvars"]
    assert run(["inventory", "-i", str(path), "--freeze", str(aws.folder / "f.yaml")]) == 0
    capsys.readouterr()
    assert run(["inventory", "-i", str(aws.folder / "f.yaml"), "--list"]) == 0
    assert made["PrivateDnsName"].lower() in json.loads(capsys.readouterr().out)["_meta"]["hostvars"]
    assert run(["check", str(path)]) == 0
    assert run(["inventory", "-i", str(path), "--freeze", str(aws.folder / "sub" / "f.yaml")]) == 64


def test_render_takes_a_cloud_inventory(aws: AwsSite, capsys: pytest.CaptureFixture[str]) -> None:
    made = aws.instance(aws.network(), cluster="owned")

    # The CA of the test's profile is a stand-in, and its downloads have no hashes: render says so and still shows all.
    assert run(["render", "-i", str(a_pool(aws))]) == 0
    assert made["InstanceId"] in capsys.readouterr().out
