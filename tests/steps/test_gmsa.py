"""What a machine needs for group managed service accounts: its domain, a controller that answers, or a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.engine.types import hns, privilege
from winboot_lab.windows.accounts import ADMINISTRATORS, SYSTEM, SYSTEM_TOKEN, TRUSTED_INSTALLER
from winboot_lab.windows.acl import FULL, Acl, Rule
from winboot_lab.windows.files import Files
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.registry import HKLM

from tests.lab.site import Site, only
from tests.steps.bench import Bench
from tests.steps.library import call
from tests.steps.test_directories import ordinary
from winboot.config.node_spec.node import GmsaAccount, GmsaSpec
from winboot.script.library import functions

STEP = "gmsa"
DOMAIN = "corp.example"
GUID = "CCC2A336-D7F3-4818-A213-272B7924213E"
APP = "557110E1-88BC-4583-8281-6AAC6F708584"
CLASSES = rf"{HKLM}\SYSTEM\CurrentControlSet\Control\CCG\COMClasses\{{{GUID}}}"
COM = rf"{HKLM}\SOFTWARE\Classes\CLSID\{{{GUID}}}\InprocServer32"
LIBRARY = r"C:\Windows\System32\CCGAKVPlugin.dll"
MODULE = r"C:\Windows\System32\WindowsPowerShell\v1.0\Modules\ActiveDirectory"
PROVIDER = "331CCC5F-7C20-4FF8-B3A9-62EF90DCC870"
PLACED, MANIFEST = r"C:\k\gmsa\plugin.dll", r"C:\k\gmsa\plugin.man"
WINEVT = rf"{HKLM}\SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT"
PUBLISHER = rf"{WINEVT}\Publishers\{{{PROVIDER}}}"
LOG = rf"{WINEVT}\Channels\Microsoft-AKSGMSAPlugin/Admin"
SPEC = GmsaSpec(DOMAIN, "CORP", DOMAIN, "S-1-5-21-1-2-3", GUID, (), None, "", "")


def with_controller(machine: Machine, *ports: int) -> None:
    machine.world.name(DOMAIN, "10.0.0.53")
    for port in ports:
        machine.world.listen("10.0.0.53", port)


@pytest.fixture
def member(bench: Bench) -> Bench:
    """A member of the domain, whose controller answers."""
    bench.spec = replace(bench.spec, gmsa=SPEC)
    bench.machine.power.join_domain(DOMAIN, netbios="CORP")
    with_controller(bench.machine, 88, 389, 445)
    return bench


@pytest.fixture
def outside(bench: Bench) -> Bench:
    """A machine outside the domain, with a plug-in."""
    bench.spec = replace(bench.spec, gmsa=replace(SPEC, plugin_guid=GUID))
    with_controller(bench.machine, 88, 389, 445)
    bench.machine.registry.create(CLASSES)
    bench.machine.registry.set(COM, "", "String", LIBRARY)
    bench.machine.files.write(LIBRARY, b"MZ")
    return bench


def notices(bench: Bench, **facts: object) -> dict[str, str | None]:
    """What the step reports, as notices: the state of a node that joins without them is `ok`."""
    told = bench.run(STEP, mode="Look", facts=facts or None)
    assert told.states == {STEP: "ok"}
    differences = told.step(STEP)["differences"]
    assert all(one["policy"] for one in differences)
    return {one["what"]: one["is"] for one in differences}


def test_a_member_whose_controller_answers_has_no_notice(member: Bench) -> None:
    assert notices(member) == {}


def test_a_plugin_takes_the_place_of_membership(outside: Bench) -> None:
    assert notices(outside) == {}


def _leave(machine: Machine) -> None:
    machine.power.domain = ""


def _another(machine: Machine) -> None:
    machine.power.domain = "other.example"


def _untrusted(machine: Machine) -> None:
    machine.power.is_trusted = False


UNVERIFIED = "not verified: The specified domain either does not exist or could not be contacted"


def _unverified(machine: Machine) -> None:
    machine.power.channel_error = UNVERIFIED.partition(": ")[2]


def _no_kerberos(machine: Machine) -> None:
    machine.world.close("10.0.0.53", 88)


@pytest.mark.parametrize(
    ("damage", "what", "is_"),
    [
        (_leave, "gmsa: domain of this machine", "none"),
        (_another, "gmsa: domain of this machine", "other.example"),
        (_untrusted, "gmsa: secure channel to the domain", "broken"),
        (_no_kerberos, "gmsa: domain controllers of corp.example", "silent on TCP 88"),
        (_unverified, "gmsa: secure channel to the domain", UNVERIFIED),
    ],
)
def test_what_a_member_lacks_is_a_notice(
    member: Bench, damage: Callable[[Machine], Any], what: str, is_: str
) -> None:
    damage(member.machine)

    assert notices(member) == {what: is_}


def test_a_clock_that_kerberos_does_not_take_is_a_notice(member: Bench) -> None:
    found = notices(member, Now=0, NodeIsLive=True)

    assert "ahead of the API server's" in (found["gmsa: clock"] or "")


@pytest.fixture
def tested(member: Bench) -> Bench:
    """A member with the module ActiveDirectory that may use the account WebApp, before its first start as a node."""
    accounts = tuple(GmsaAccount(spec, "WebApp", (), None) for spec in ("shop", "bills"))
    member.spec = replace(member.spec, gmsa=replace(SPEC, accounts=accounts))
    member.machine.files.make_directory(MODULE)
    member.machine.power.managed["WebApp"] = True
    with_controller(member.machine, 9389)
    member.run("postboot-task")
    return member


def start(bench: Bench) -> None:
    """What the startup task does for the step, as SYSTEM."""
    bench.run_text(bench.text(STEP), mode="Boot", token=SYSTEM_TOKEN)


@pytest.mark.parametrize(
    ("damage", "is_"),
    [
        (lambda machine: None, None),
        (
            lambda machine: machine.power.managed.update(WebApp=False),
            "this machine may not read its password",
        ),
        (
            lambda machine: machine.world.close("10.0.0.53", 9389),
            "error: Unable to find a default server with Active Directory Web Services running.",
        ),
    ],
    ids=["usable", "not in the group", "no web services"],
)
def test_the_startup_task_tests_the_accounts_as_system(
    tested: Bench, damage: Callable[[Machine], Any], is_: str | None
) -> None:
    damage(tested.machine)
    start(tested)

    assert notices(tested) == ({} if is_ is None else {"gmsa: account WebApp": is_})


def test_an_account_counts_as_tested_until_the_next_start(tested: Bench) -> None:
    untested = {"gmsa: account WebApp": "not tested since the start of the machine"}

    assert notices(tested) == untested
    start(tested)
    assert notices(tested) == {}
    tested.reboot()
    assert notices(tested) == untested


@pytest.mark.parametrize(
    "lacks", [lambda machine: machine.files.delete_directory(MODULE), _leave], ids=["module", "domain"]
)
def test_accounts_are_tested_only_where_a_member_has_the_module(
    tested: Bench, lacks: Callable[[Machine], Any]
) -> None:
    lacks(tested.machine)
    start(tested)

    assert tested.state("gmsa.json") is None
    assert "gmsa: account WebApp" not in notices(tested)


@pytest.mark.parametrize(
    ("damage", "is_"),
    [
        (lambda machine: machine.registry.delete_key(CLASSES), "unknown to Container Credential Guard"),
        (lambda machine: machine.registry.forget(COM, ""), "unknown to COM"),
        (lambda machine: machine.files.delete(LIBRARY), f"without its library {LIBRARY}"),
    ],
)
def test_what_a_plugin_lacks_is_a_notice(outside: Bench, damage: Callable[[Machine], Any], is_: str) -> None:
    damage(outside.machine)

    assert notices(outside) == {f"gmsa: plug-in {{{GUID}}}": is_}


def test_a_class_of_net_is_found_by_its_own_library(outside: Bench) -> None:
    """Rancher's plug-in, which regsvcs registers."""
    library = r"C:\Program Files\RanchergMSACredentialProvider\RanchergMSACredentialProvider.dll"
    registry = outside.machine.registry
    registry.set(COM, "", "String", "mscoree.dll")
    registry.set(COM, "CodeBase", "String", f"file:///{library.replace(chr(92), '/')}")

    assert notices(outside) == {f"gmsa: plug-in {{{GUID}}}": f"without its library {library}"}
    outside.write(library, b"MZ")
    assert notices(outside) == {}
    registry.forget(COM, "CodeBase")
    outside.machine.files.write(r"C:\Windows\System32\mscoree.dll", b"MZ")
    assert notices(outside) == {}


@pytest.fixture
def installing(outside: Bench) -> Bench:
    """The same, with a plug-in that winboot installs: its library is placed, and nothing is registered."""
    outside.spec = replace(outside.spec, gmsa=replace(SPEC, plugin_guid=GUID, app_id=APP))
    outside.write(PLACED, b"MZ")
    outside.machine.registry.delete_key(CLASSES)
    outside.machine.registry.delete_key(COM.rpartition("\\")[0], recurse=True)
    return outside


def guarded(machine: Machine) -> Acl:
    """Windows' own key as the installers of plug-ins expect it: administrators may read it alone."""
    rules = [Rule(SYSTEM, 0xF003F, inheritance=1), Rule(ADMINISTRATORS, 0x20019, inheritance=1)]
    acl = Acl(TRUSTED_INSTALLER, SYSTEM, protected=True, explicit=rules)
    key = CLASSES.rpartition("\\")[0]
    machine.registry.create(key)
    machine.registry.set_acl(key, acl, privileged=True)
    return acl


@pytest.mark.parametrize("guards", [False, True])
def test_the_plugin_is_registered_once_and_undone(installing: Bench, guards: bool) -> None:
    registry = installing.machine.registry
    acl = guarded(installing.machine) if guards else None
    before = registry.tree()

    assert installing.run(STEP).states == {STEP: "changed"}
    assert installing.run(STEP).states == {STEP: "ok"}
    assert registry.exists(CLASSES)
    assert registry.text(COM, "") == r"C:\k\gmsa\plugin.dll"
    assert registry.text(COM.rpartition("\\")[0], "AppID") == f"{{{APP}}}"
    # COM starts the library in a process of its own only where the value is there.
    assert registry.value(rf"{HKLM}\SOFTWARE\Classes\AppID\{{{APP}}}", "DllSurrogate") is not None

    installing.undo(STEP)
    assert registry.tree() == before
    if acl is not None:
        now = registry.acl(CLASSES.rpartition("\\")[0])
        assert (now.owner, now.protected, set(now.explicit)) == (TRUSTED_INSTALLER, True, set(acl.explicit))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (
            lambda machine: machine.registry.delete_key(CLASSES),
            f"gmsa: class {{{GUID}}} of Container Credential Guard",
        ),
        (
            lambda machine: machine.registry.set(COM, "", "String", r"C:\Temp\other.dll"),
            rf"gmsa: HKLM\SOFTWARE\Classes\CLSID\{{{GUID}}}\InprocServer32: ",
        ),
    ],
)
def test_what_becomes_of_the_plugin_is_repaired(
    installing: Bench, damage: Callable[[Machine], Any], what: str
) -> None:
    installing.run(STEP)
    damage(installing.machine)

    assert set(installing.look(STEP).differences(STEP)) == {what}
    installing.run(STEP)
    assert installing.look(STEP).differences(STEP) == {}


def test_services_may_read_the_library(installing: Bench) -> None:
    """Windows runs it as the account that asks for it. A downloaded file comes with the rules of a private folder."""
    installing.run("directories")
    close_file(installing.machine.files, PLACED)

    installing.run(STEP)
    assert installing.machine.files.read(PLACED, ordinary(installing)) == b"MZ"

    close_file(installing.machine.files, PLACED)
    assert set(installing.look(STEP).differences(STEP)) == {f"gmsa: library {PLACED}: readable by services"}


def test_the_owner_is_restored_when_the_write_fails(installing: Bench) -> None:
    guarded(installing.machine)
    call(
        installing,
        "try { Invoke-OwnerWork -Key (Get-ClassPath) -Work { throw 'full' } } catch { [void]$_ }",
    )

    now = installing.machine.registry.acl(CLASSES.rpartition("\\")[0])
    assert (now.owner, {one.rights for one in now.explicit if one.sid == ADMINISTRATORS}) == (
        TRUSTED_INSTALLER,
        {0x20019},
    )


@pytest.mark.parametrize("undone", [False, True])
def test_a_key_that_a_killed_run_left_open_is_given_back(installing: Bench, undone: bool) -> None:
    registry, key = installing.machine.registry, CLASSES.rpartition("\\")[0]
    acl = guarded(installing.machine)
    installing.run(STEP)
    rules = [Rule(ADMINISTRATORS, 0xF003F, inheritance=1), *acl.explicit]
    opened = Acl(ADMINISTRATORS, SYSTEM, protected=True, explicit=rules)
    registry.set_acl(key, opened, privileged=True)

    if undone:
        installing.undo(STEP)
    else:
        assert set(installing.look(STEP).differences(STEP)) == {
            r"registry HKLM\SYSTEM\CurrentControlSet\Control\CCG\COMClasses: owner and rules"
        }
        assert installing.run(STEP).states == {STEP: "changed"}

    now = registry.acl(key)
    assert (now.owner, set(now.explicit)) == (TRUSTED_INSTALLER, set(acl.explicit))


@pytest.fixture
def telling(installing: Bench) -> Bench:
    """The same, with the manifest of its events, in the form that the Azure plug-in's has."""
    manifest = f"""<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>
    <provider guid="{{{PROVIDER}}}" name="Microsoft-AKSGMSAPlugin" resourceFileName="{LIBRARY}" messageFileName="{LIBRARY}">
    <channels><channel name="Microsoft-AKSGMSAPlugin/Admin"/></channels>
    </provider></events></instrumentation></instrumentationManifest>"""
    assert installing.spec.gmsa is not None
    installing.spec = replace(installing.spec, gmsa=replace(installing.spec.gmsa, provider=PROVIDER))
    installing.write(MANIFEST, manifest.encode("utf-16"))
    for key in ("Publishers", "Channels"):
        installing.machine.registry.create(rf"{WINEVT}\{key}")
    return installing


def close_file(files: Files, path: str) -> None:
    acl = files.need(path)[1].acl
    acl.protect(preserve=False)
    acl.explicit = [Rule(sid, FULL) for sid in (SYSTEM, ADMINISTRATORS)]


def of_azure(machine: Machine) -> None:
    """Another program registered the provider, with its own library."""
    machine.registry.set(PUBLISHER, "", "String", "Microsoft-AKSGMSAPlugin")
    for name in ("ResourceFileName", "MessageFileName"):
        machine.registry.set(PUBLISHER, name, "ExpandString", LIBRARY)


@pytest.mark.parametrize("before", [lambda machine: None, of_azure], ids=["none", "of another"])
def test_the_event_provider_is_registered_once_and_undone(
    telling: Bench, before: Callable[[Machine], Any]
) -> None:
    registry = telling.machine.registry
    before(telling.machine)
    tree = registry.tree()

    assert telling.run(STEP).states == {STEP: "changed"}
    assert telling.run(STEP).states == {STEP: "ok"}
    assert {registry.text(PUBLISHER, f"{one}FileName") for one in ("Message", "Resource")} == {PLACED}

    telling.undo(STEP)
    assert registry.tree() == tree


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda registry: (registry.wipe(PUBLISHER), registry.wipe(LOG)), ("Message", "Resource")),
        (lambda registry: registry.set(PUBLISHER, "MessageFileName", "String", LIBRARY), ("Message",)),
    ],
)
def test_what_becomes_of_the_event_provider_is_repaired(
    telling: Bench, damage: Callable[[Any], Any], names: tuple[str, ...]
) -> None:
    telling.run(STEP)
    damage(telling.machine.registry)

    found = {f"gmsa: event provider {{{PROVIDER}}}: {one}FileName" for one in names}
    assert set(telling.look(STEP).differences(STEP)) == found
    telling.run(STEP)
    assert telling.look(STEP).differences(STEP) == {}


def test_a_manifest_of_another_provider_is_refused_and_leaves_nothing(telling: Bench) -> None:
    assert telling.spec.gmsa is not None
    telling.spec = replace(telling.spec, gmsa=replace(telling.spec.gmsa, provider=GUID))

    told = telling.run(STEP)

    assert told.problem(STEP).id == "ProviderMissing"
    assert not telling.machine.registry.exists(PUBLISHER)
    assert telling.undo(STEP).ended == "complete"


def test_remove_names_an_event_provider_whose_manifest_is_gone(telling: Bench) -> None:
    telling.run(STEP)
    telling.machine.files.delete(MANIFEST)

    told = telling.undo(STEP)

    assert told.differences(STEP)[f"gmsa: event manifest {MANIFEST}"] == ("absent", "there for wevtutil um")
    assert telling.machine.registry.exists(PUBLISHER)


def test_the_lab_knows_the_declaration_by_its_text() -> None:
    text = functions()["Get-PrivilegeDeclaration"].text

    assert hns.digest(text.partition("@'\n")[2].partition("\n'@")[0]) == privilege.DECLARATION


def test_a_machine_without_its_domain_joins(tmp_path: Path) -> None:
    """A notice, and the node carries other pods."""
    domain = {"dns_name": DOMAIN, "netbios_name": "CORP", "sid": "S-1-5-21-1-2-3", "guid": GUID}
    node = only(Site(tmp_path, wishes={"gmsa": {"domain": domain}}).join())

    assert (node.outcome, node.ready) == ("changed", True)
    (step,) = [one for one in node.steps if one.name == STEP]
    assert "gmsa: domain of this machine" in {one.what for one in step.differences}
