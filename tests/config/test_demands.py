"""What profiles and inventories have this computer run and read is found in them, whatever key says it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.config.scene import an_inventory
from tests.every import assert_none_wrong, differs
from winboot.config.demands import Demand, demands, files_of
from winboot.config.inventory import HostKeys, load_inventory
from winboot.config.profile import Profile
from winboot.config.source import Table, compose

FILE: Final = Path("somewhere/profile.yaml")


def found(text: str, file: Path = FILE) -> list[Demand]:
    return list(demands({file: compose(text, str(file))}))


def said(text: str, file: Path = FILE) -> list[str]:
    return [f"{one.path} {one.says}" for one in found(text, file)]


# -- every key that names something to run or read, from the published schemas, which know nothing of demands.py

REFERENCES: Final = ("Reference", "LoginReference")
SCHEMAS: Final = {model: model.model_json_schema() for model in (Profile, HostKeys)}


def places(schema: dict[str, Any], at: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The keys that name a reference or a file: a line of YAML, and the path."""
    if "$ref" in at:
        name = at["$ref"].rpartition("/")[2]
        if name in REFERENCES:
            for key, value in (("command", "[a, b]"), ("env", "A"), ("file", "/etc/x")):
                yield f"{path}: {{{key}: {value}}}", f"{path}.{key}"
            return
        yield from places(schema, schema["$defs"][name], path)
    if at.get("format") == "path":
        yield f"{path}: /etc/x", path
    for one in (*at.get("anyOf", ()), *at.get("oneOf", ()), *at.get("allOf", ())):
        yield from places(schema, one, path)
    if isinstance(at.get("items"), dict):
        yield from places(schema, at["items"], f"{path}[0]")
    if isinstance(at.get("additionalProperties"), dict):
        yield from places(schema, at["additionalProperties"], f"{path}.any")
    for key, value in at.get("properties", {}).items():
        yield from places(schema, value, f"{path}.{key}" if path else key)


def as_yaml(line: str) -> str:
    """`a.b[0].c: {…}` as nested flow YAML."""
    path, _, value = line.partition(": ")
    for part in reversed(path.replace("[0]", ".[").split(".")):
        value = f"[{value}]" if part == "[" else f"{{{part}: {value}}}"
    return value


KEYS: Final = [one for model, schema in SCHEMAS.items() for one in places(schema, schema)]


def test_every_key_that_names_something_is_found() -> None:
    assert_none_wrong(
        {line: differs([one.path for one in found(as_yaml(line))], [path]) for line, path in KEYS}
    )


def test_the_schemas_have_such_keys() -> None:
    names = {path.replace("[0]", "") for _, path in KEYS}
    assert {
        "cluster.kubeconfig.command",
        "windows.trust_roots.file",
        "connection.password.env",
        "connection.proxy_jump.known_hosts",
        "runtime.registries.any.password.command",
        "steps.look",
        "kubernetes.overlay",
    } <= names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "connection: {tunnel: 'ssh -L {local_port}:a:1 b'}",
            "connection.tunnel runs ssh -L {local_port}:a:1 b",
        ),
        ("connection: {transport: local}", "connection.transport runs the script on this computer"),
        ("connection: {password: {ec2_key: /k.pem}}", "connection.password.ec2_key reads the file /k.pem"),
        ("connection: {password: {command: pass}}", "connection.password.command runs pass"),
        (
            "cluster: {kubeconfig: {command: [sh, -c, 'a b']}}",
            "cluster.kubeconfig.command runs sh -c 'a b'",
        ),
        # What turns the direction of text would show another command than the one that runs.
        ('cluster: {ca: {command: ["a\\u202eb"]}}', "cluster.ca.command runs 'a\\u202eb'"),
    ],
)
def test_what_is_run_is_shown(text: str, says: str) -> None:
    assert said(text) == [says]


@pytest.mark.parametrize(
    "text",
    [
        "node: {labels: {env: prod, file: /etc/passwd, command: x}}",
        "kubelet: {config: {file: /etc/passwd}}",
        "cluster: {ca: {file: ca.crt}}",
        "cluster: {ca: {file: below/ca.crt}}",
        "cluster: {ca: null, bootstrap_token: mint}",
        "connection: {transport: ssh, password: null}",
        "cluster: [a]",
        "a: {command: x}",
    ],
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert said(text) == []


def test_each_layer_of_an_inventory_is_looked_at() -> None:
    secret = "{password: {env: A}}"
    text = f"""
defaults: {{connection: {secret}}}
groups:
  g:
    profile: /other/profile.yaml
    connection: {secret}
    hosts: {{h: {{connection: {secret}, cluster: {{ca: {{env: B}}}}}}}}
settings: {{s: {{connection: {secret}, profile: ../p.yaml}}}}
profile: p.yaml
"""
    assert [one.path for one in found(text)] == [
        "defaults.connection.password.env",
        "groups.g.profile",
        "groups.g.connection.password.env",
        "groups.g.hosts.h.connection.password.env",
        "groups.g.hosts.h.cluster.ca.env",
        "settings.s.connection.password.env",
        "settings.s.profile",
    ]


def test_a_link_that_leads_out_of_the_folder_is_outside_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "profile"
    folder.mkdir()
    (tmp_path / "key").write_text("secret")
    (folder / "inside").symlink_to(tmp_path / "key")
    (folder / "round").symlink_to("round")

    text = "cluster: {ca: {file: inside}, kubeconfig: {file: round}}"

    assert [one.path for one in found(text, folder / "p.yaml")] == [
        "cluster.ca.file",
        "cluster.kubeconfig.file",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_kubeconfig_shows_its_programs_in_each_encoding_that_is_read(encoding: str, tmp_path: Path) -> None:
    """PowerShell's `>` writes UTF-16, and what is read there is run, too."""
    text = "users: [{name: a, user: {exec: {command: kubelogin}}}]"
    (tmp_path / "kubeconfig").write_text(text, encoding=encoding)

    (one,) = found("cluster: {kubeconfig: {file: kubeconfig}}", tmp_path / "p.yaml")

    assert one.says == "runs kubelogin"


def test_the_programs_and_files_of_a_kubeconfig_are_its_own_demands(tmp_path: Path) -> None:
    """A kubeconfig next to a profile is data that runs a program."""
    config = tmp_path / "kubeconfig"
    config.write_text(
        """
users:
- name: a
  user:
    exec: {command: aws, args: [eks, get-token], env: [{name: LD_PRELOAD, value: /tmp/x.so}]}
- {name: b, user: {tokenFile: /etc/token, client-key: key.pem}}
clusters:
- {name: c, cluster: {certificate-authority: ../ca.crt}}
""",
        encoding="utf-8",
    )

    all_of_it = found("cluster: {kubeconfig: {file: kubeconfig}}", tmp_path / "p.yaml")

    assert [one.says for one in all_of_it] == [
        "runs LD_PRELOAD=/tmp/x.so aws eks get-token",
        "reads the file /etc/token",
        f"reads the file {tmp_path / '../ca.crt'}",
    ]
    assert {one.file for one in all_of_it} == {config}


def test_the_files_of_an_inventory_are_those_that_were_loaded(tmp_path: Path) -> None:
    """What was judged is what is used: another text may be there a moment later."""
    text = "groups: {p: {profile: profile.yaml, os: '2022', hosts: {win-1: {connection: {user: u, password: {env: A}}}}}}\n"
    path = an_inventory(tmp_path, text)

    loaded = load_inventory(path)

    assert set(loaded.tables) == set(files_of(path)) == {path, tmp_path / "profile.yaml"}
    assert [one.path for one in demands(loaded.tables)] == ["groups.p.hosts.win-1.connection.password.env"]


def test_a_file_that_cannot_be_read_has_no_demands(tmp_path: Path) -> None:
    """The code that loads the file reports the error."""
    (tmp_path / "i.yaml").write_text("{[", encoding="utf-8")

    assert files_of(tmp_path / "i.yaml") == {}
    assert demands({FILE: Table(compose("a: b", "f").place)}) == ()


@pytest.mark.parametrize(
    ("password", "lacks"),
    [
        ("{env: UNSET}", ", which is not set here: plan and join need it"),
        ("{env: EMPTY}", ", which is not set here: plan and join need it"),
        ("{env: SET}", ""),
        (
            "{command: [no-such-program, x]}",
            ", which is not a program on this computer: plan and join need it",
        ),
        ("{command: [sh, -c, x]}", ""),
    ],
)
def test_check_says_what_this_computer_does_not_have(
    password: str, lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """operator N13: both passed without a word. No warning: files are also checked on computers without the passwords."""
    monkeypatch.delenv("UNSET", raising=False)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("SET", "x")
    group = f"{{profile: p.yaml, connection: {{password: {password}}}, hosts: {{}}}}"
    (tmp_path / "i.yaml").write_text(f"groups: {{g: {group}}}\n", encoding="utf-8")

    (found,) = demands(files_of(tmp_path / "i.yaml"))

    assert found.lacks == lacks
    assert (found.complaint().level, found.complaint().wrong) == ("info", found.says + lacks)
