"""The password that EC2 keeps for a Windows instance: fetched when the first session is opened, decrypted here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from winboot_lab.aws import REGION, AwsSite

from tests.cloud.test_aws_inventory import a_pool
from winboot.base.errors import CloudError, InvalidInput
from winboot.config.inventory import load_inventory
from winboot.config.node_spec import NodeSpec, resolve
from winboot.remote.cloud.aws import AwsCloud
from winboot.remote.cloud.aws_calls import Calls
from winboot.remote.cloud.passwords import Passwords
from winboot.remote.cloud.pool import load_pool


def the_specs(aws: AwsSite, key: Path | None = None) -> list[NodeSpec]:
    path = a_pool(aws)
    text = path.read_text().replace("{env: WINBOOT_PASSWORD}", f"{{ec2_key: {key or aws.key_file}}}")
    path.write_text(text, encoding="utf-8")
    return [resolve(machine.profile, machine) for machine in load_pool(path)]


def a_spec(aws: AwsSite, key: Path | None = None) -> NodeSpec:
    (spec,) = the_specs(aws, key)
    return spec


def read(spec: NodeSpec, passwords: Passwords) -> str:
    reference = passwords.connection(spec).password
    assert reference is not None
    return reference.read("test").reveal()


def test_it_is_decrypted_with_the_key_pairs_private_key(aws: AwsSite) -> None:
    aws.instance(aws.network(), cluster="owned")

    assert read(a_spec(aws), Passwords()) == aws.password


def test_a_machine_that_still_starts_is_waited_for(aws: AwsSite) -> None:
    aws.booting.add(aws.instance(aws.network(), cluster="owned")["InstanceId"])
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            aws.booting.clear()
        return False

    assert read(a_spec(aws), Passwords(timeout=60, wait=wait)) == aws.password
    assert waits == [15, 15, 15]


def test_the_wait_is_bounded_by_the_clock_and_names_the_machine(aws: AwsSite) -> None:
    """An AWS that takes half a minute for each answer makes it fewer questions, not a longer wait."""
    made = aws.instance(aws.network(), cluster="owned")["InstanceId"]
    aws.booting.add(made)
    now, waits = [0.0], []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        now[0] += seconds + 30
        return False

    cloud = AwsCloud(Calls(), (REGION,), clock=lambda: now[0])
    host = cloud.host(made)
    assert host is not None
    with pytest.raises(CloudError) as caught:
        cloud.password(host, aws.key_file, timeout=50, wait=wait)

    assert f"{made} has no password after 50 s" in caught.value.problem
    assert waits == [15, 5]


def test_machines_of_a_region_share_one_session_of_the_sdk(
    aws: AwsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session asks for credentials: hundreds at once are throttled by a machine's metadata service."""
    subnet, passwords, opened = aws.network(), Passwords(), []
    plain = boto3.session.Session

    def session(**settings: Any) -> Any:
        opened.append(settings)
        return plain(**settings)

    for _ in range(3):
        aws.instance(subnet, cluster="owned")
    specs = the_specs(aws)
    monkeypatch.setattr(boto3.session, "Session", session)

    assert [read(spec, passwords) for spec in (*specs, *specs)] == [aws.password] * 6
    assert len(opened) == 1


def test_another_key_is_named(aws: AwsSite, tmp_path: Path) -> None:
    aws.instance(aws.network(), cluster="owned")
    other = tmp_path / "other.pem"
    other.write_bytes(
        rsa.generate_private_key(65537, 2048).private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
    )
    spec = a_spec(aws, other)

    # PKCS#1 v1.5 with implicit rejection gives random bytes instead of an error: those are no UTF-8, or no password.
    try:
        assert read(spec, Passwords()) != aws.password
    except CloudError as error:
        assert "cannot be decrypted" in error.problem


def test_a_file_that_is_no_key_is_named(aws: AwsSite, tmp_path: Path) -> None:
    aws.instance(aws.network(), cluster="owned")
    (tmp_path / "text.pem").write_text("no key")

    with pytest.raises(InvalidInput) as caught:
        read(a_spec(aws, tmp_path / "text.pem"), Passwords())

    assert "text.pem" in caught.value.problem


def test_a_host_without_a_provider_id_has_no_such_password(aws: AwsSite) -> None:
    path = aws.folder / "inventory.yaml"
    path.write_text(
        "groups: {p: {profile: profile.yaml, os: '2022', connection: {user: a, password: {ec2_key: pair.pem}},"
        " hosts: {win-1: }}}",
        encoding="utf-8",
    )
    (machine,) = load_inventory(path)

    with pytest.raises(InvalidInput) as caught:
        read(resolve(machine.profile, machine), Passwords())

    assert "provider id" in caught.value.problem
