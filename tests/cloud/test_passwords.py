"""The password that EC2 keeps for a Windows instance: fetched when the first session is opened, decrypted here."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from winboot_lab.aws import AwsSite

from tests.cloud.test_aws_inventory import a_pool
from winboot.cloud.passwords import Passwords
from winboot.cloud.pool import load_pool
from winboot.errors import CloudError, InvalidInput
from winboot.inventory import load_inventory
from winboot.spec import NodeSpec, resolve


def a_spec(aws: AwsSite, key: Path | None = None) -> NodeSpec:
    path = a_pool(aws)
    text = path.read_text().replace("{env: WINBOOT_PASSWORD}", f"{{ec2_key: {key or aws.key_file}}}")
    path.write_text(text, encoding="utf-8")
    (machine,) = load_pool(path)
    return resolve(machine.profile, machine)


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


def test_the_wait_is_bounded_and_names_the_machine(aws: AwsSite) -> None:
    made = aws.instance(aws.network(), cluster="owned")["InstanceId"]
    aws.booting.add(made)

    with pytest.raises(CloudError) as caught:
        read(a_spec(aws), Passwords(timeout=40, wait=lambda seconds: False))

    assert f"{made} has no password after 40 s" in caught.value.problem


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

    assert "without a provider id" in caught.value.problem
