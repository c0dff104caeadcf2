"""Ansible inventories, unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.scene import CA, FILE, GOOD
from winboot.base.errors import InvalidInput
from winboot.cli import run
from winboot.config.ansible import is_ansibles, open_inventory, read_ansible
from winboot.config.inventory import Inventory, check_inventory, load_inventory
from winboot.config.profile import Profile

INI = """\
# An example site.
[linux]
db-[a:c].corp.example

[rack_a]
win-[01:03]  ansible_host=10.0.1.1 winboot_node_ip=10.0.2.1
win-07 ansible_host=10.0.1.7 ansible_port=5985 # the old one

[rack_b]
win-10:5985 ansible_host="10.0.1.10"

[windows:children]
rack_a
rack_b

[windows:vars]
ansible_user=CORP\\winboot
ansible_connection=psrp
ansible_psrp_auth=ntlm
ansible_password={{ lookup('env', 'CORP_PASSWORD') }}
winboot_os=2022

[rack_b:vars]
winboot_os = 2019
"""
YAML = """\
all:
  hosts: {db-1: {}}
  children:
    windows:
      vars: {winboot_os: "2022", ansible_user: a, ansible_winrm_transport: kerberos}
      children:
        rack_a:
          hosts:
            win-[1:2]: {}
            win-3: {ansible_host: 10.0.1.3, winboot_os: 2025, ansible_winrm_scheme: http}
"""


def a_file(folder: Path, text: str, name: str = "hosts.ini") -> Path:
    (folder / FILE).write_text(GOOD, encoding="utf-8")
    (folder / "ca.crt").write_text(CA, encoding="utf-8")
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str, name: str = "hosts.ini") -> Inventory:
    return load_inventory(a_file(folder, text, name))


def one_each(text: str) -> str:
    """The range's hosts with an address of their own each."""
    return text.replace(
        "win-[01:03]  ansible_host=10.0.1.1 winboot_node_ip=10.0.2.1",
        "\n".join(f"win-0{n} ansible_host=10.0.1.{n}" for n in (1, 2, 3)),
    )


def test_hosts_groups_and_variables_of_an_ini_file_are_taken(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, one_each(INI))

    assert [machine.name for machine in inventory] == ["win-01", "win-02", "win-03", "win-07", "win-10"]
    assert inventory["win-07"].groups == ("rack_a", "windows")
    assert {inventory[name].os for name in ("win-01", "win-07")} == {"2022"}
    assert inventory["win-10"].os == "2019"
    assert inventory["win-10"].connection.port_number == 5985
    connection = inventory["win-01"].connection
    assert (connection.transport, connection.auth, connection.user) == ("winrm", "ntlm", "CORP\\winboot")
    assert str(connection.password) == "env CORP_PASSWORD"


@pytest.mark.parametrize(("name", "text"), [("hosts", INI), ("hosts.ini", INI), ("hosts.yml", YAML)])
def test_a_byte_order_mark_is_no_part_of_an_inventory(name: str, text: str, tmp_path: Path) -> None:
    """Editors of Windows write it. ansible-core reads such a YAML file, and refuses such an INI file."""
    plain = loaded(tmp_path, one_each(text), name)
    marked = loaded(tmp_path, f"\ufeff{one_each(text)}", name)

    assert [(one.name, one.group) for one in marked] == [(one.name, one.group) for one in plain]


def test_hosts_that_are_not_windows_are_left_out_with_a_word(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, one_each(INI))

    said = [str(one) for one in inventory.warnings if "winboot_os" in str(one)]
    assert len(said) == 1
    assert "db-a.corp.example, db-b.corp.example, db-c.corp.example: left out" in said[0]


def test_a_yaml_file_means_the_same(tmp_path: Path) -> None:
    inventory = loaded(tmp_path, YAML, "hosts.yml")

    assert [machine.name for machine in inventory] == ["win-1", "win-2", "win-3"]
    assert inventory["win-1"].connection.auth == "kerberos"
    assert (inventory["win-3"].os, inventory["win-3"].address) == ("2025", "10.0.1.3")
    assert inventory["win-3"].connection.https is False
    assert inventory["win-2"].groups == ("windows", "rack_a")


def test_commands_take_it_and_limit_by_its_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_file(tmp_path, one_each(INI))

    assert run(["check", str(path)]) == 0
    assert run(["inventory", "-i", str(path), "--limit", "windows:!rack_a"]) == 0
    assert "win-10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        ("win-1 ansible_host", ":2:7: ", "name=value"),
        ("win-1 ansible_password=secret", ":2:7: ", "the password itself"),
        ("win-1 ansible_port=many", ":2:20: ", "connection.port"),
        ("win-1 ansible_connection=telnet", ":2:26: ", "winrm | psrp"),
        ("win-1 ansible_winrm_transport=credssp", ":2:31: ", "ntlm | kerberos"),
        ("win-1 ansible_host={{x}}", ":2:20: ", "`ansible win-1 -i FILE -m debug -a var=ansible_host`"),
        ("win-1 winboot_ost=2022", ":2:7: ", "did you mean 'winboot_os'"),
        ("win-[3:1]", ":2:1: ", "the range [3:1]"),
        ("win-[1:99999]", ":2:1: ", "at most 10000 hosts"),
        ("win-1 x='", ":2:1: ", "quotes"),
        ("[windows:machines]", ":2:1: ", "group:children"),
        ("[windows:children]\nwindows", ":3:1: ", "windows: these groups are children of each other"),
        ("[edge:children]\nrack\n[rack:children]\nedge", ":3:1: ", "edge, rack: these groups"),
        ("[pool", ":2:1: ", "is not a section"),
        ("WIN_1", ":2:1: ", "WIN_1"),
        ("win-1 winboot_profile=nowhere.yaml", ":2:23: ", "there is no file"),
    ],
)
def test_what_is_wrong_has_its_place(line: str, place: str, said: str, tmp_path: Path) -> None:
    text = f"[windows]\n{line}\n[windows:vars]\nwinboot_os=2022\n"

    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, text)

    told = "\n".join(map(str, caught.value.problems))
    assert said in told
    assert f"hosts.ini{place}" in told
    assert "secret" not in told


def test_a_file_without_windows_machines_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, "[web]\na-1\n")

    assert "winboot_os=2022" in str(caught.value.problems[0])


def test_a_certificate_that_ansible_ignores_is_warned_of(tmp_path: Path) -> None:
    text = "win-1 winboot_os=2022 ansible_winrm_server_cert_validation=ignore\n"

    (warning,) = [one for one in loaded(tmp_path, text).warnings if "ignore" in str(one)]
    assert "winboot_fingerprint" in str(warning)


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("hosts", INI, True),
        ("hosts", "win-1 a=b\n", True),
        ("hosts", YAML, True),
        ("hosts.ini", "", True),
        ("site.yml", YAML, True),
        ("site.yml", "windows: {hosts: {a: {}}}\n", True),
        ("inventory.yaml", "groups: {p: {hosts: {a: {}}}}\n", False),
        ("profile.yaml", GOOD, False),
    ],
)
def test_which_files_are_ansibles(name: str, text: str, is_one: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    assert is_ansibles(open_inventory(path)) is is_one


def _beside(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return a_file(
        folder,
        "[rack_a]\nwin-1 ansible_host=10.0.1.1\nwin-2 ansible_host=10.0.1.2\n[rack_a:vars]\nansible_port=1\n",
    )


def test_group_vars_and_host_vars_are_read_in_ansibles_order(tmp_path: Path) -> None:
    """A group's file wins over its variables in the inventory, a deeper group over all, a host's file over its line."""
    path = _beside(
        tmp_path,
        {
            "group_vars/all.yml": "winboot_os: 2019\nansible_user: unused\nansible_port: 2\n",
            "group_vars/rack_a/10-way.yaml": "ansible_user: CORP\\ops\nansible_port: 5985\npackages: [a, {b: c}]\n",
            "group_vars/rack_a/20-os": "winboot_os: 2022\n",
            "group_vars/rack_a/.hidden.yml": "ansible_port: 9\n",
            "host_vars/win-2.json": '{"ansible_host": "10.0.1.9", "winboot_os": "2025"}',
            "host_vars/nobody.yml": "[not a map]\n",
        },
    )

    machines = load_inventory(path)

    assert {one.name: (one.os, one.address) for one in machines} == {
        "win-1": ("2022", "10.0.1.1"),
        "win-2": ("2025", "10.0.1.9"),
    }
    assert {(one.connection.user, one.connection.port) for one in machines} == {("CORP\\ops", 5985)}


def test_a_name_that_is_a_path_has_no_files_of_variables(tmp_path: Path) -> None:
    """Ansible skips such names: its files are those below group_vars and host_vars."""
    (tmp_path / "stranger").write_text("ansible_host: 10.9.9.9\n", encoding="utf-8")
    path = a_file(tmp_path, f"{tmp_path}/stranger\n/\n[all:vars]\nwinboot_os=2022\n")

    assert "10.9.9.9" not in str(read_ansible(path, open_inventory(path)))


VAULTED = "$ANSIBLE_VAULT;1.1;AES256\n6638\n"


def test_a_vault_is_named_and_stays_closed(tmp_path: Path) -> None:
    """A value of another program may be encrypted; one that is needed is refused with what to do, at its place."""
    inline = "!vault |\n  " + VAULTED.replace("\n", "\n  ").rstrip()
    path = _beside(
        tmp_path,
        {
            "group_vars/all/vars.yml": f"winboot_os: 2022\napp_key: {inline}\n",
            "group_vars/all/vault.yml": VAULTED,
        },
    )
    loaded = load_inventory(path)
    assert [str(one) for one in loaded.warnings if "vault.yml:1:1" in str(one) and "Vault" in str(one)]

    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "win-1.yml").write_text(f"ansible_password: {inline}\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        load_inventory(path)

    (said,) = [str(one) for one in caught.value.problems if "ansible_password" in str(one)]
    assert "win-1.yml:1:1" in said
    assert "Ansible Vault" in said
    assert "winboot_password_env=NAME" in said
    assert "6638" not in said


def test_a_wrong_file_of_variables_has_its_place(tmp_path: Path) -> None:
    path = _beside(tmp_path, {"group_vars/rack_a.yml": "winboot_os: 2022\nansible_port: [1\n"})

    with pytest.raises(InvalidInput) as caught:
        load_inventory(path)

    assert "rack_a.yml:3:1" in str(caught.value.problems[0])


def complaints_of(folder: Path, line: str) -> list[str]:
    """The findings about one host, each line with its level, as `winboot check` prints them."""
    path = a_file(
        folder, f"win-1 ansible_host=10.0.1.1 winboot_os=2022 ansible_user=a winboot_password_env=P {line}\n"
    )
    return [str(one) for one in check_inventory(path)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ansible_connection=psrp ansible_psrp_proxy=http://p:3128", "ansible_psrp_proxy: without it"),
        ("ansible_connection=psrp ansible_psrp_configuration_name=Ops", "configuration_name: without it"),
        ("ansible_connection=winrm ansible_winrm_path=/other", "ansible_winrm_path: without it"),
        ("ansible_connection=winrm ansible_winrm_cert_pem=a.pem", "client certificate"),
        (
            """ansible_connection=ssh ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p b"'""",
            "proxy_jump",
        ),
        ("ansible_connection=ssh ansible_ssh_common_args='-C -Jbastion'", "proxy_jump"),
        ("ansible_connection=ssh ansible_ssh_extra_args='-4p 2222'", "proxy_jump"),
        ("ansible_connection=ssh ansible_ssh_args='-o User=b'", "proxy_jump"),
        ("ansible_connection=ssh ansible_ssh_args='-F site.conf'", "proxy_jump"),
        ("ansible_connection=ssh ansible_ssh_executable=/opt/ssh", "proxy_jump"),
        ("ansible_connection=ssh ansible_ssh_private_key=abc", "the secret itself"),
        (
            "ansible_connection=psrp ansible_psrp_auth=kerberos,ntlm,credssp",
            "winboot does not support this value",
        ),
    ],
)
def test_what_would_reach_another_machine_or_user_is_refused(line: str, said: str, tmp_path: Path) -> None:
    (wrong,) = [one for one in complaints_of(tmp_path, line) if "warning: " not in one]

    assert "hosts.ini:1:" in wrong
    assert said in wrong


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ansible_connection=psrp ansible_psrp_message_encryption=never", "encrypts messages"),
        ("ansible_connection=psrp ansible_psrp_negotiate_send_cbt=false", "binds the login"),
        ("ansible_connection=winrm ansible_winrm_kerberos_delegation=yes", "delegates Kerberos tickets"),
        ("ansible_connection=ssh ansible_host_key_checking=false", "winboot_host_key"),
        (
            "ansible_connection=ssh ansible_ssh_common_args='-o StrictHostKeyChecking=no -oControlPath=x'",
            "start ssh",
        ),
        ("ansible_connection=ssh ansible_ssh_args='-F /dev/null -C'", "start ssh"),
        ("ansible_connection=psrp ansible_become=true", "user of the login"),
        ("ansible_connection=winrm ansible_winrm_hots=10.0.0.9", "did you mean 'ansible_winrm_host'"),
        ("", "no ansible_connection"),
    ],
)
def test_what_winboot_does_in_its_own_way_is_warned_of(line: str, said: str, tmp_path: Path) -> None:
    (warning,) = [one for one in complaints_of(tmp_path, line) if "hosts.ini" in one]

    assert "hosts.ini:1:" in warning
    assert "warning: " in warning
    assert said in warning


@pytest.mark.parametrize(
    "line",
    [
        "ansible_connection=psrp ansible_psrp_path=wsman ansible_psrp_configuration_name=Microsoft.PowerShell",
        "ansible_connection=psrp ansible_psrp_cert_validation=validate ansible_psrp_negotiate_send_cbt=True",
        "ansible_connection=winrm ansible_winrm_path=/wsman ansible_winrm_kerberos_delegation=false ansible_become=no",
        "ansible_connection=psrp ansible_winrm_path=/other ansible_ssh_common_args='-J bastion'",
        "ansible_connection=psrp ansible_psrp_read_timeout=90 ansible_psrp_operation_timeout=60 http_port=80",
    ],
)
def test_defaults_and_other_plugins_variables_are_fine(line: str, tmp_path: Path) -> None:
    assert [one for one in complaints_of(tmp_path, line) if "hosts.ini" in one] == []


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("ansible_psrp_negotiate_hostname_override=w.corp.example", "spn", "host/w.corp.example"),
        (
            "ansible_psrp_negotiate_service=HTTP ansible_psrp_negotiate_hostname_override=w.corp.example",
            "spn",
            "HTTP/w.corp.example",
        ),
        ("ansible_psrp_negotiate_service=HTTP", "spn", "HTTP/10.0.1.1"),
        ("ansible_psrp_negotiate_service=HTTP ansible_psrp_auth=ntlm", "spn", None),
        ("ansible_psrp_connection_timeout=90", "connect_timeout_s", 90),
    ],
)
def test_a_value_has_winboots_key(line: str, key: str, value: object, tmp_path: Path) -> None:
    text = f"win-1 ansible_connection=psrp ansible_host=10.0.1.1 winboot_os=2022 ansible_user=a winboot_password_env=P {line}\n"

    assert getattr(loaded(tmp_path, text)["win-1"].connection, key) == value


def test_a_list_of_ways_to_log_in_is_tried_in_turn(tmp_path: Path) -> None:
    text = "win-1 ansible_connection=winrm winboot_os=2022 ansible_user=a winboot_password_env=P ansible_winrm_transport={}\n"

    def auth(words: str) -> str:
        return loaded(tmp_path, text.format(words))["win-1"].connection.auth

    assert auth("kerberos,ntlm") == "negotiate"
    assert auth("\"['ntlm']\"") == "ntlm"
    assert auth("ssl") == "negotiate"


@pytest.mark.parametrize("section", sorted({*Profile.model_fields, "groups", "defaults"}))
def test_check_reads_a_group_with_the_name_of_a_section(
    section: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = "{ansible_host: 10.0.0.1, ansible_connection: psrp, winboot_os: 2022, ansible_user: a, winboot_password_env: P}"
    path = a_file(tmp_path, f"{section}:\n  hosts:\n    win-1: {host}\n", "hosts.yml")

    assert run(["check", str(path)]) == 0
    assert run(["inventory", "-i", str(path)]) == 0
    assert f"|--@{section}:" in capsys.readouterr().out


def test_a_vault_in_the_inventory_itself_stays_closed(tmp_path: Path) -> None:
    text = f"""\
windows:
  hosts: {{win-1: {{ansible_host: 10.0.0.1}}}}
  vars:
    ansible_connection: psrp
    ansible_user: a
    winboot_os: 2022
    ansible_password: !vault |
      {VAULTED.splitlines()[0]}
      {VAULTED.splitlines()[1]}
"""
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, text, "hosts.yml")

    (said,) = map(str, caught.value.problems)
    assert "hosts.yml:7:5: ansible_password: Ansible Vault encrypts the value" in said
    assert "6638" not in said
    inventory = loaded(tmp_path, text + "    winboot_password_env: PW\n", "hosts.yml")
    assert str(inventory["win-1"].connection.password) == "env PW"


def test_a_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_inventory(tmp_path)

    assert "is a folder" in caught.value.problem
    assert "one of its files" in caught.value.hint


def test_winboots_own_files_take_no_tags_and_no_key_twice(tmp_path: Path) -> None:
    text = "groups:\n  p:\n    profile: profile.yaml\n    os: 2022\n    os: 2019\n    hosts: {a: {}}\n"

    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, text, "inventory.yaml")

    assert "duplicate key" in str(caught.value.problems[0])


def test_the_computer_name_is_the_first_label_of_a_full_name(tmp_path: Path) -> None:
    text = "winsrv01.corp.example winboot_os=2022 ansible_user=a winboot_password_env=P\n"

    assert loaded(tmp_path, text)["winsrv01.corp.example"].computer_name == "WINSRV01"
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, text.replace("winsrv01.corp.example", "10.0.0.1"))
    assert "winboot_computer_name" in "".join(map(str, caught.value.problems))
