"""One reader of kubeconfigs: for the API client, for `init`, and for the credential that goes to a node."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.remote.cluster.kubeconfig import Kubeconfig

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
INLINE = base64.b64encode(CA.encode()).decode()


def a_config(**cluster: Any) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "there", "context": {"cluster": "d", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://c:6443"} | cluster},
            {"name": "d", "cluster": {"server": "https://d:6443", "certificate-authority-data": INLINE}},
        ],
        "users": [{"name": "u", "user": {"token": "hunter2"}}],
    }


def read(config: Any) -> Kubeconfig:
    return Kubeconfig.from_text(Secret(yaml.safe_dump(config)), "the kubeconfig")


def test_a_context_names_server_ca_and_user() -> None:
    config = read(a_config())

    assert (config.context(None), config.server(None)) == ("here", "https://c:6443")
    assert (config.context("there"), config.server("there"), config.ca_pem("there")) == (
        "there",
        "https://d:6443",
        CA,
    )
    assert config.user(None) == {"token": "hunter2"}


def test_a_ca_file_is_meant_from_the_kubeconfigs_folder(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(CA)
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(a_config(**{"certificate-authority": "ca.crt"})))

    assert Kubeconfig.from_file(file).ca_pem(None) == CA


@pytest.mark.parametrize(
    ("server", "more", "url"),
    [
        ("10.0.0.10:6443", {"insecure-skip-tls-verify": True}, "https://10.0.0.10:6443"),
        ("k.example", {"certificate-authority-data": INLINE}, "https://k.example"),
        ("localhost:8080", {}, "http://localhost:8080"),
        ("HTTPS://K.example:6443", {}, "HTTPS://K.example:6443"),
        ("https://[fd00::1]:6443", {}, "https://[fd00::1]:6443"),
        ("https://rancher.example/k8s/clusters/c-1", {}, "https://rancher.example/k8s/clusters/c-1"),
    ],
)
def test_a_server_without_a_scheme_gets_the_one_of_client_go(
    server: str, more: dict[str, Any], url: str
) -> None:
    assert read(a_config(server=server, **more)).server(None) == url


@pytest.mark.parametrize(
    "server", ["${endpoint}", "{{ server }}", "https://<IP>:6443", "ftp://k", "https://"]
)
def test_a_server_that_is_still_a_template_is_refused(server: str) -> None:
    """init took it for the server's address, and asked for what it could not read there."""
    with pytest.raises(InvalidInput, match="the server of its cluster is not a URL"):
        read(a_config(server=server)).judge(None)


def test_a_ca_in_a_block_or_with_remarks_is_read(tmp_path: Path) -> None:
    """As client-go does: a block of YAML ends with a line break, and bundles name their certificates in any language."""
    remark = "# Aussteller: Müller AG\n"
    broken = "\n".join(INLINE[at : at + 20] for at in range(0, len(INLINE), 20)) + "\n"
    assert read(a_config(**{"certificate-authority-data": broken})).ca_pem(None) == CA
    inline = base64.b64encode(f"{remark}{CA}".encode()).decode()
    assert CA in read(a_config(**{"certificate-authority-data": inline})).ca_pem(None)
    (tmp_path / "ca.crt").write_text(remark + CA, encoding="utf-8")
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(a_config(**{"certificate-authority": "ca.crt"})))
    found = Kubeconfig.from_file(file).ca_pem(None)
    assert CA in found
    assert found.isascii()


@pytest.mark.parametrize(
    "damage",
    [
        lambda config: config.pop("current-context"),
        lambda config: config.update(contexts=[]),
        lambda config: config.update(contexts={"a": 1}),
        lambda config: config["contexts"][0]["context"].pop("cluster"),
        lambda config: config.update(clusters=None),
        lambda config: config["clusters"][0].update(cluster="x"),
        lambda config: config["clusters"][0]["cluster"].pop("server"),
        lambda config: config["clusters"][0]["cluster"].update({"certificate-authority-data": "%%%"}),
        lambda config: config["clusters"][0]["cluster"].update(
            {"certificate-authority-data": "DATA+OMITTED"}
        ),
        lambda config: config["clusters"][0]["cluster"].update({"certificate-authority": "nowhere.crt"}),
    ],
)
def test_what_is_missing_is_named_and_no_text_is_quoted(damage: Any) -> None:
    config = a_config()
    damage(config)
    kubeconfig = read(config)

    with pytest.raises(InvalidInput, match="the kubeconfig") as refused:
        kubeconfig.server(None)
        kubeconfig.ca_pem(None)

    assert "hunter2" not in refused.value.problem


@pytest.mark.parametrize("content", [b"", b"[]", b"a: {", b"\xff\xfe", b"\x00"])
def test_a_file_that_is_no_kubeconfig_is_refused_by_its_path(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broken"
    file.write_bytes(content)

    with pytest.raises(InvalidInput, match="broken"):
        Kubeconfig.from_file(file)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2_000,
        "{a: " * 5_000,
        "&a [*a]",
        "a: 2026-99-99",
        "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 9)),
    ],
    ids=["lists in lists", "maps in maps", "a list in itself", "no date", "an alias of nothing"],
)
def test_a_hostile_text_is_no_kubeconfig(text: str) -> None:
    """Deep nesting is the user's error, not a bug in winboot."""
    with pytest.raises(InvalidInput, match="it is not a kubeconfig"):
        Kubeconfig.from_text(Secret(text), "here").user(None)


def test_a_text_that_no_header_can_hold_is_no_kubeconfig() -> None:
    config = a_config()
    config["users"][0]["user"]["as"] = "\ud800"

    with pytest.raises(InvalidInput, match="it is not a kubeconfig"):
        read(config).impersonation(None)


def test_aliases_that_multiply_cost_nothing() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]

    with pytest.raises(InvalidInput, match="not a kubeconfig with a current context"):
        Kubeconfig.from_text(Secret("\n".join(lines)), "here").user(None)


def test_a_kubeconfig_without_an_end_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a regular file"):
        Kubeconfig.from_file(Path("/dev/zero"))
    large = tmp_path / "large"
    large.write_bytes(b"#" * (5 << 20))
    with pytest.raises(InvalidInput, match="larger than 4 MiB"):
        Kubeconfig.from_file(large)
