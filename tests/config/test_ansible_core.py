"""winboot's reading of Ansible's files, held against the ansible-core that is installed."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.config.scene import CA, FILE, GOOD
from winboot.base.errors import InvalidInput
from winboot.config.ansible_options import EXTRAS, NAMES, PLUGINS, Effect
from winboot.config.inventory import Inventory, load_inventory

FOUND = importlib.util.find_spec("ansible")
pytestmark = pytest.mark.skipif(FOUND is None, reason="ansible-core is not installed")

OURS = "winboot_os=2022 winboot_password_env=PW"
# The options that say which machine, port, user and login a plug-in takes.
WAY = {
    "winrm": {"host": "remote_addr", "port": "port", "user": "remote_user", "scheme": "scheme"},
    "psrp": {"host": "remote_addr", "port": "port", "user": "remote_user", "scheme": "protocol"},
    "ssh": {"host": "host", "port": "port", "user": "remote_user"},
    "paramiko_ssh": {"host": "remote_addr", "port": "port", "user": "remote_user"},
}


def options_of(plugin: str) -> dict[str, list[str]]:
    """The options of a plug-in with the variables of each, in their order, as its documentation has them."""
    assert FOUND is not None
    assert FOUND.origin is not None
    text = (Path(FOUND.origin).parent / "plugins" / "connection" / f"{plugin}.py").read_text(encoding="utf-8")
    documentation = re.search(r'DOCUMENTATION = r?"""(.*?)"""', text, re.DOTALL)
    assert documentation is not None
    read: Mapping[str, Any] = yaml.safe_load(documentation[1])
    pipelined = "connection_pipelining" in read.get("extends_documentation_fragment", [])
    shared = {"pipelining": ["ansible_pipelining"]} if pipelined else {}
    return shared | {
        name: [one["name"] for one in option.get("vars", []) if is_of_a_file(one["name"])]
        for name, option in read["options"].items()
    }


def is_of_a_file(name: str) -> bool:
    """Whether an inventory can set a variable: a host's name is no variable there, and delegation is a task's."""
    return name != "inventory_hostname" and not name.startswith("delegated_vars")


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_every_variable_of_a_plugin_has_exactly_one_class(plugin: str) -> None:
    """An option that a newer ansible-core adds fails here, until the table says what it means."""
    theirs = {name: names for name, names in options_of(plugin).items() if names}
    extras = EXTRAS if plugin == "winrm" else {}
    ours = {name: list(one.names) for name, one in PLUGINS[plugin].items() if name not in extras}
    if plugin == "local":
        assert ours.pop("remote_addr") == ["ansible_host"]

    # Older releases have fewer options, and no other order.
    assert set(theirs) <= set(ours)
    assert {name: [one for one in ours[name] if one in names] for name, names in theirs.items()} == theirs


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_a_variable_belongs_to_one_option_of_a_plugin(plugin: str) -> None:
    names = [name for option in PLUGINS[plugin].values() for name in option.names]

    assert len(names) == len(set(names))
    for option in PLUGINS[plugin].values():
        assert bool(option.path) is (option.effect in (Effect.MAPPED, Effect.SECRET))
        assert bool(option.says) is (option.effect in (Effect.REFUSED, Effect.WARNED))


def ansible_variables(inventory: Path) -> dict[str, dict[str, Any]]:
    """What `ansible-inventory` gives each host of a file."""
    program = Path(sys.executable).parent / "ansible-inventory"
    assert program.exists() or shutil.which("ansible-inventory")
    done = subprocess.run(
        [str(program) if program.exists() else "ansible-inventory", "-i", str(inventory), "--list"],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(inventory.parent),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
            "ANSIBLE_LOCAL_TEMP": str(inventory.parent / ".tmp"),
        },
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    listed: dict[str, Any] = json.loads(done.stdout)
    hosts = {host for group in listed.values() for host in group.get("hosts", [])}
    return {host: listed["_meta"]["hostvars"].get(host, {}) for host in sorted(hosts)}


def ansible_way(host: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Machine, port, user and scheme that Ansible's plug-in takes for a host, by its own documentation."""
    plugin = str(variables["ansible_connection"]).rpartition(".")[2]
    options, way = options_of(plugin), WAY[plugin]

    def value(what: str) -> Any:
        names = options[way[what]] if what in way else []
        values = [variables[one] for one in names if variables.get(one) is not None]
        last = values[-1] if values else None
        return last["__ansible_unsafe"] if isinstance(last, dict) else last

    scheme, port = value("scheme"), value("port")
    if plugin == "winrm":
        port = port or 5986
        scheme = scheme or ("http" if int(port) == 5985 else "https")
    elif plugin == "psrp":
        scheme = scheme or ("http" if port is not None and int(port) == 5985 else "https")
        port = port or (5985 if scheme == "http" else 5986)
    return {
        "host": str(value("host") or host),
        "port": int(port or 22),
        "user": str(value("user") or ""),
        "https": scheme == "https" if scheme else None,
    }


def winboot_way(inventory: Inventory, host: str) -> dict[str, Any]:
    connection = inventory[host].connection
    return {
        "host": connection.host,
        "port": connection.port_number,
        "user": connection.user,
        "https": connection.https if connection.transport == "winrm" else None,
    }


def a_folder(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with files, a profile and a CA; the path of the first file."""
    for name, text in {**files, FILE: GOOD, "ca.crt": CA, "id": "key"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / next(iter(files))


NAMES_OF_PLUGINS = """\
[all:vars]
winboot_os=2022
winboot_password_env=PW

[windows]
w1 ansible_host=10.0.0.1 ansible_psrp_port=5985 ansible_connection=psrp ansible_user=a
w2 ansible_winrm_host=10.0.0.2 ansible_winrm_port=15985 ansible_winrm_scheme=http ansible_winrm_user=s ansible_connection=winrm
w3 ansible_psrp_host=10.0.0.3 ansible_psrp_user=svc@CORP ansible_psrp_protocol=http ansible_connection=psrp
w4 ansible_connection=ssh ansible_ssh_host=10.0.0.4 ansible_ssh_port=2222 ansible_user=b ansible_ssh_private_key_file=id
w5 ansible_connection=ansible.builtin.psrp ansible_host=10.0.0.5 ansible_psrp_host=10.0.1.5 ansible_user=x ansible_psrp_user=y
w6 ansible_connection=psrp ansible_host=10.0.0.6 ansible_winrm_host=10.0.9.6 ansible_winrm_port=1 ansible_user=a
w7 ansible_connection=winrm ansible_host=10.0.0.7 ansible_winrm_scheme=http ansible_user=a
w8 ansible_connection=winrm ansible_port=5985 ansible_host=10.0.0.8 ansible_user=a ansible_winrm_transport=kerberos,ntlm
w9 ansible_connection=paramiko_ssh ansible_ssh_host=1.1.1.1 ansible_paramiko_host=10.0.0.9 ansible_paramiko_user=p
"""
QUOTING = f"""\
[windows:vars]
{OURS.replace(" ", chr(10))}
ansible_connection = "psrp"
ansible_port=5986 # HTTPS
ansible_user='CORP\\\\svc'

[windows]
w1:5985 ansible_host="10.0.0.1"
w2 ansible_host='10.0.0.2' ansible_port='"5985"' # remark
w3 ansible_host=10.0.0.3 ansible_user="CORP\\\\ops"
w-[08:10] ansible_psrp_port=0x1F90
[windows]
w3:77
"""
PRIORITIES = f"""\
[all:vars]
{OURS.replace(" ", chr(10))}
ansible_connection=psrp
[a_first]
w1 ansible_host=10.0.0.1
w2 ansible_host=10.0.0.2
[z_last]
w1
w2
[a_first:vars]
ansible_group_priority=10
ansible_port=5985
ansible_user=first
[z_last:vars]
ansible_port=1
ansible_user=last
[over:children]
a_first
[over:vars]
ansible_port=2
ansible_psrp_protocol=http
"""
SAMPLES: Mapping[str, Mapping[str, str]] = {
    "the plug-ins' own names": {"hosts.ini": NAMES_OF_PLUGINS},
    "quotes, remarks and literals": {"hosts.ini": QUOTING},
    "priorities of groups": {"hosts.ini": PRIORITIES},
    "the first example of Ansible's documentation": {
        "hosts": f"mail.example.com\n\n[windows]\nw1 ansible_connection=psrp ansible_host=10.0.0.1 ansible_user=a {OURS}\n"
    },
    "an INI file of another name": {
        "inventory.txt": f"w1 ansible_connection=psrp ansible_host=10.0.0.1 ansible_user=a {OURS}\n[linux]\nl1\n"
    },
    "bare hosts alone": {
        "prod.hosts": "w1\nw2\n",
        "group_vars/all.yml": "{ansible_connection: winrm, ansible_user: a, winboot_os: 2022, winboot_password_env: PW}",
        "host_vars/w1.yml": "ansible_winrm_host: 10.0.0.1",
    },
    "an empty group and groups with winboot's words": {
        "hosts.yml": """\
linux:
ungrouped: {}
defaults:
  hosts: {w1: {ansible_host: 10.0.0.1}}
groups:
  hosts: {w2: {ansible_host: 10.0.0.2}}
  vars: {ansible_psrp_protocol: http}
windows:
  children: {defaults: , groups: }
  vars: {ansible_connection: psrp, ansible_user: a, winboot_os: 2022, winboot_password_env: PW}
"""
    },
    "a vault and keys twice in the inventory itself": {
        "hosts.yml": """\
windows:
  hosts:
    w1: {ansible_host: 10.0.0.1, ansible_psrp_port: 1, ansible_psrp_port: 5985}
  vars:
    ansible_connection: psrp
    ansible_user: !unsafe a
    app: {x: 1, x: 2}
    motd: |
      several
      lines
    winboot_os: 2022
    winboot_password_env: PW
"""
    },
    "the first file of variables alone": {
        "hosts.ini": "[windows]\nw1\n",
        "group_vars/windows/b.yml": "{ansible_user: folder, ansible_connection: psrp, winboot_os: 2022}",
        "group_vars/windows/a.d/x.yml": "{ansible_user: no}",
        "group_vars/windows/sub/y.yml": "{ansible_psrp_host: 10.0.0.9}",
        "group_vars/windows.yml": "{ansible_user: beside}",
        "group_vars/ungrouped.yml": "{ansible_user: nobody}",
    },
    "ungrouped hosts": {
        "hosts.yml": "all: {hosts: {w1: {ansible_connection: psrp, winboot_os: 2022, winboot_password_env: PW}}}",
        "group_vars/ungrouped.yml": "{ansible_user: alone, ansible_host: 10.0.0.1}",
    },
    "a variable without a value": {
        "hosts.yml": """\
windows:
  hosts:
    w1: {ansible_host: 10.0.0.1, ansible_psrp_host: null, ansible_user: a, ansible_psrp_user: ~, ansible_connection: psrp,
         winboot_os: 2022, winboot_password_env: PW}
"""
    },
}


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_machine_port_user_and_scheme_are_those_of_ansible(sample: str, tmp_path: Path) -> None:
    path = a_folder(tmp_path, SAMPLES[sample])
    theirs = {
        host: ansible_way(host, variables)
        for host, variables in ansible_variables(path).items()
        if "winboot_os" in variables
    }

    inventory = load_inventory(path)

    assert theirs
    assert {one.name: winboot_way(inventory, one.name) for one in inventory} == theirs


REFUSED = [
    ("[windows]\nw1\n[linux:vars]\nx=1\n", "hosts.ini"),
    ("[windows:children]\nnowhere\n", "hosts.ini"),
    ("[two words]\nw1\n", "hosts.ini"),
    ("w-[01:100]\n", "hosts.ini"),
    ("w-[b:a]\n", "hosts.ini"),
    ("[windows]\nw1 x\n", "hosts.ini"),
    ("[windows:vars]\nx\n", "hosts.ini"),
    ("windows: {hosts: [a]}\n", "hosts.yml"),
]


@pytest.mark.parametrize(("text", "name"), REFUSED)
def test_what_ansible_refuses_is_refused(text: str, name: str, tmp_path: Path) -> None:
    path = a_folder(tmp_path, {name: text, "group_vars/all.yml": "winboot_os: 2022"})

    with pytest.raises(subprocess.CalledProcessError):
        ansible_variables(path)
    with pytest.raises(InvalidInput):
        load_inventory(path)


def test_names_that_decide_the_way_are_known() -> None:
    """A variable that could lead elsewhere is in the table of its plug-in, or ansible-core does not have it."""
    theirs = {name for plugin in PLUGINS for names in options_of(plugin).values() for name in names}

    assert theirs <= NAMES


ASKED = """\
import json, sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.vars.manager import VariableManager
init_plugin_loader()
for line in sys.stdin:
    try:
        loader = DataLoader()
        inventory = InventoryManager(loader=loader, sources=[line.strip()])
        variables = VariableManager(loader=loader, inventory=inventory)
        found = {
            host.name: {
                key: str(value) if isinstance(value, str) else value
                for key, value in variables.get_vars(host=host, include_hostvars=False).items()
                if key.startswith(("ansible_psrp", "ansible_winrm", "ansible_ssh", "winboot"))
                or key in ("ansible_host", "ansible_port", "ansible_user", "ansible_connection")
            }
            for host in inventory.get_hosts()
        }
    except Exception:
        found = None
    print(json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Any]]:
    """ansible-core as a process of its own: the variables of each host of a file, None for a file that it refuses."""
    home = tmp_path_factory.mktemp("ansible")
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "ANSIBLE_LOCAL_TEMP": str(home / ".tmp"),
    }
    with subprocess.Popen(
        [sys.executable, "-c", ASKED],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(path: Path) -> Any:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


GROUPS = ("a", "b", "c", "windows")
PORTS = ("5985", "5986 # HTTPS", "'5987'", '"5988"', "0x10", "'59' '85'", "None", "09", "1.50")
USERS = ("ops", "'CORP\\\\ops'", "CORP\\ops", "true", "'a # b'", "a;b", "x=y", '"a b"', "")
ADDRESSES = ("10.0.0.1", "'10.0.0.2'", "10.0.0.3 # one", "None", '"10.0.0.4"', "{}", "[1, 2]")
SCHEMES = ("http", "'https'", "None")
VALUES = {
    **dict.fromkeys(("ansible_port", "ansible_psrp_port", "ansible_winrm_port"), PORTS),
    **dict.fromkeys(("ansible_user", "ansible_psrp_user", "ansible_winrm_user"), USERS),
    **dict.fromkeys(("ansible_psrp_host", "ansible_winrm_host"), ADDRESSES),
    **dict.fromkeys(("ansible_psrp_protocol", "ansible_winrm_scheme"), SCHEMES),
    "ansible_group_priority": ("2", "'3'", "0"),
    "motd": ("'a", "{{ x }}", "a: b"),
}
GROUP = st.sampled_from(GROUPS)
HOST = st.sampled_from(("w1", "w2", "w3", "w4", "w[1:2]", "w1:5985", "w[01:02]:77"))
PAIR = st.sampled_from([(name, value) for name, values in VALUES.items() for value in values])
LINE = st.builds(lambda pair, gap: f"{gap}{pair[0]}{gap}={gap}{pair[1]}", PAIR, st.sampled_from(("", " ")))
WORDS = st.lists(PAIR.map("=".join), max_size=2)
SECTIONS = st.one_of(
    st.builds(lambda name, host, words: f"[{name}]\n{' '.join([host, *words])}", GROUP, HOST, WORDS),
    st.builds(lambda name, lines: "\n".join([f"[{name}:vars]", *lines]), GROUP, st.lists(LINE, max_size=3)),
    st.builds(lambda name, child: f"[{name}:children]\n{child}", GROUP, GROUP),
)
# Every group is defined, and every host has an address of its own.
ALL = "".join(f"[{name}]\nw{at} ansible_host=10.0.1.{at}\n" for at, name in enumerate(GROUPS, 1)) + (
    "[all:vars]\nwinboot_os=2022\nwinboot_password_env=PW\nansible_user=all\n"
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(SECTIONS, min_size=1, max_size=5), st.sampled_from(["psrp", "winrm", "ansible.builtin.psrp"]))
def test_any_ini_file_is_read_as_ansible_reads_it_or_refused(
    ansible: Callable[[Path], Any], tmp_path: Path, sections: list[str], connection: str
) -> None:
    """What Ansible refuses, winboot refuses; what winboot reads, Ansible reads the same."""
    path = a_folder(
        tmp_path, {"hosts.ini": "\n".join([*sections, ALL, f"ansible_connection={connection}\n"])}
    )
    theirs = ansible(path)
    try:
        inventory = load_inventory(path)
    except InvalidInput as refusal:
        event("refused by both" if theirs is None else "refused by winboot")
        assert refusal.problem
        return
    event("read")
    assert theirs is not None
    assert {one.name: winboot_way(inventory, one.name) for one in inventory} == {
        host: ansible_way(host, variables) for host, variables in theirs.items()
    }
