"""What people, other programs and bad luck do to a node, in one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import yaml
from winboot_lab.cluster.authority import CLIENT_AUTH, Authority, Subject
from winboot_lab.programs.wrappers import join
from winboot_lab.windows.accounts import USERS
from winboot_lab.windows.acl import READ_EXECUTE, Rule
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.registry import HKLM

from tests.lab.site import Site
from winboot.report.events import RunStarted

SYSTEM32 = r"C:\Windows\System32"
SERVICES = r"SYSTEM\CurrentControlSet\Services"
STATE = r"C:\ProgramData\winboot"
PKI = r"C:\var\lib\kubelet\pki"
CLIENT = rf"{PKI}\kubelet-client-current.pem"
KUBECONFIG = r"C:\k\kubeconfig"

Hand = Callable[[Site], None]


def program(site: Site, *words: str) -> Exit:
    """Run a console program to its end."""
    machine = site.machine
    with machine.lock:
        process = machine.processes.spawn(join(list(words)))
        return machine.processes.run(process, b"")


def guard_away(site: Site) -> None:
    """The guard's task is disabled and ended: what is damaged stays so."""
    guard = site.machine.tasks.find("guard", "\\winboot\\")
    assert guard is not None
    guard.enabled = False
    site.machine.tasks.stop(guard)


def system(name: str, *words: str) -> Hand:
    """A program of Windows itself, which must succeed."""

    def hand(site: Site) -> None:
        ended = program(site, rf"{SYSTEM32}\{name}.exe", *words)
        assert ended.code == 0, ended

    return hand


def sc(*words: str) -> Hand:
    """sc.exe; stopping waits until the service is down."""

    def hand(site: Site) -> None:
        system("sc", *words)(site)
        site.settle(3)

    return hand


def stop(name: str) -> Hand:
    """Stop-Service -Force: the service, and what depends on it."""

    def hand(site: Site) -> None:
        services = site.machine.services
        with site.machine.lock:
            services.stop_with_dependents(services.need(name))
        site.settle(5)

    return hand


def all_of(*hands: Hand) -> Hand:
    """One after the other."""

    def hand(site: Site) -> None:
        for each in hands:
            each(site)

    return hand


def wait(seconds: float) -> Hand:
    """Let time pass."""
    return lambda site: site.settle(seconds)


# ---- registry ------------------------------------------------------------------------------------------


def regedit(path: str, name: str, kind: Any, data: Any) -> Hand:
    """Write a value below HKEY_LOCAL_MACHINE."""
    return lambda site: site.machine.registry.set(rf"{HKLM}\{path}", name, kind, data)


def unset(path: str, name: str) -> Hand:
    """Remove a value."""
    return lambda site: site.machine.registry.forget(rf"{HKLM}\{path}", name)


# ---- files ---------------------------------------------------------------------------------------------


def write(path: str, content: str | bytes) -> Hand:
    """Other content; the file's rules stay."""
    raw = content.encode() if isinstance(content, str) else content

    def hand(site: Site) -> None:
        files = site.machine.files
        found = files.find(path)
        if found is None:
            files.make_directory(path.rpartition("\\")[0])
            files.write(path, raw)
        else:
            # This writes below the lock of a running program's file: a disk error ignores locks.
            found[1].content = raw

    return hand


def change(path: str, edit: Callable[[bytes], bytes]) -> Hand:
    """The same file, somewhat different."""
    return lambda site: write(path, edit(site.machine.files.read(path, share=7)))(site)


def append(path: str, text: str) -> Hand:
    """A line more."""
    return change(path, lambda raw: raw + text.encode())


def replace(path: str, old: str, new: str) -> Hand:
    """One word otherwise."""

    def edit(raw: bytes) -> bytes:
        assert old.encode() in raw, f"{path} has no {old!r}"
        return raw.replace(old.encode(), new.encode())

    return change(path, edit)


def with_bom(path: str) -> Hand:
    """As PowerShell's Set-Content -Encoding UTF8 writes it."""
    return change(path, lambda raw: b"\xef\xbb\xbf" + raw)


def delete(path: str) -> Hand:
    """Gone."""
    return lambda site: site.machine.files.delete(path)


def delete_folder(path: str) -> Hand:
    """Gone, with everything in it."""
    return lambda site: site.machine.files.delete_directory(path, recurse=True)


def let_in(path: str, sid: str = USERS) -> Hand:
    """Allow an account to read a file that it must not read."""

    def hand(site: Site) -> None:
        _, node = site.machine.files.need(path)
        rules = node.acl.copy()
        rules.explicit.append(Rule(sid, READ_EXECUTE, inheritance=3 if node.directory else 0))
        site.machine.files.set_acl(path, rules)

    return hand


# ---- the cluster ---------------------------------------------------------------------------------------


def patch_node(patch: Mapping[str, Any]) -> Hand:
    """kubectl patch node."""
    return lambda site: site.admin(
        "PATCH", "/api/v1/nodes/win-1", patch, content_type="application/merge-patch+json"
    )


def patch_status(patch: Mapping[str, Any]) -> Hand:
    """Write the Node's status as an administrator."""
    return lambda site: site.admin(
        "PATCH",
        "/api/v1/nodes/win-1/status",
        {"status": patch},
        content_type="application/strategic-merge-patch+json",
    )


def delete_node(site: Site) -> None:
    """kubectl delete node."""
    site.admin("DELETE", "/api/v1/nodes/win-1")


def taints(site: Site) -> list[dict[str, str]]:
    """The Node's taints."""
    found: list[dict[str, str]] = site.node()["spec"].get("taints") or []
    return found


def certificate(
    *,
    name: str = "system:node:win-1",
    age: timedelta = timedelta(0),
    days: int = 365,
    ca: Authority | None = None,
) -> Hand:
    """Another client certificate for the kubelet, which must restart to notice."""

    def hand(site: Site) -> None:
        authority = ca or site.cluster.authority
        now = site.time.datetime() - age
        subject = Subject(name, ("system:nodes",))
        pair = authority.issue(subject, (CLIENT_AUTH,), (now, now + timedelta(days=days)))
        write(CLIENT, pair.certificate + pair.key)(site)

    return hand


def kubeconfig(edit: Callable[[dict[str, Any]], object]) -> Hand:
    """Other words in the kubelet's kubeconfig."""

    def hand(site: Site) -> None:
        data = yaml.safe_load(site.machine.files.text(KUBECONFIG))
        edit(data)
        write(KUBECONFIG, yaml.safe_dump(data))(site)

    return hand


def boot_id(site: Site) -> str:
    """The machine's boot id, from the last run's events."""
    started = [e for c in site.controllers for e in c.ears.events if isinstance(e, RunStarted)]
    return started[-1].boot_id


# ---- the Host Network Service ---------------------------------------------------------------------------


def network(edit: Callable[[dict[str, Any]], object], name: str = "cbr0") -> Hand:
    """An HNS network that is not as it was made."""

    def hand(site: Site) -> None:
        hns = site.machine.hns
        found = hns.by_name(hns.networks, name)
        assert found is not None
        edit(found)

    return hand


def remove_network(name: str = "cbr0") -> Hand:
    """Get-HnsNetwork | Remove-HnsNetwork."""

    def hand(site: Site) -> None:
        hns = site.machine.hns
        found = hns.by_name(hns.networks, name)
        assert found is not None
        hns.remove_network(found)
        site.settle(2)

    return hand


def endpoint(act: Callable[[Any, dict[str, Any]], object], name: str = "cbr0_ep") -> Hand:
    """Something happens to an endpoint; `act` gets HNS and the endpoint."""

    def hand(site: Site) -> None:
        hns = site.machine.hns
        found = hns.by_name(hns.endpoints, name)
        assert found is not None
        act(hns, found)

    return hand


def forwarding_off(address: str) -> Hand:
    """Forwarding is turned off on the interface that has an address."""

    def hand(site: Site) -> None:
        adapter = site.machine.network.holder(address)
        assert adapter is not None
        adapter.forwarding = False

    return hand
