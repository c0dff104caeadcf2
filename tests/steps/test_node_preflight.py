"""Look whether the machine can become this node at all, before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from winboot_lab.windows.network import Route
from winboot_lab.windows.snapshot import diff

from tests.steps.bench import Bench
from tests.steps.builders import a_spec_of
from tests.steps.ways import host_endpoint
from winboot.report.hints import HINTS, hint_for


def test_a_machine_that_fits_passes(bench: Bench):
    told = bench.look()

    assert told.step("node-preflight")["state"] == "ok"
    assert told.events[0]["build"].startswith("20348.")


def test_a_build_that_is_not_the_declared_one_stops_the_node():
    told = Bench(release="2025").look("directories")

    assert told.states == {"node-preflight": "failed", "directories": "blocked"}
    problem = told.step("node-preflight")["problem"]
    assert problem["id"] == "WrongBuild"
    assert "26100" in problem["message"]
    assert "inventory" in hint_for(problem["id"], problem["hint"])


def test_an_api_server_that_does_not_answer_is_named(bench: Bench):
    bench.world.close("10.0.0.10", 6443)

    problem = bench.look().step("node-preflight")["problem"]

    assert problem["id"] == "NoServer"
    assert "10.0.0.10:6443" in problem["message"]


def test_a_pending_restart_that_is_not_ours_is_named_before_the_first_write(bench: Bench):
    bench.machine.console.invoke(
        "registry.create",
        {
            "key": r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired"
        },
    )

    told = bench.look()

    assert told.differences("node-preflight")["pending restart"] == ("Windows Update", None)
    assert told.step("node-preflight")["state"] == "ok", "reported, not counted"


@pytest.mark.parametrize(
    ("sign", "said"),
    [
        ("RebootInProgress", "a restart of servicing is in progress"),
        ("PackagesPending", "packages are pending"),
    ],
)
def test_servicing_in_progress_is_named_before_the_first_write(bench: Bench, sign: str, said: str):
    servicing = r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing"
    bench.machine.console.invoke("registry.create", {"key": rf"{servicing}\{sign}"})

    told = bench.look()

    assert told.differences("node-preflight")["servicing in progress"] == (said, None)
    assert told.step("node-preflight")["state"] == "ok", "reported, not counted"


def test_a_look_leaves_the_machine_as_it_was(bench: Bench):
    bench.look("directories")
    before = bench.machine.snapshot()
    bench.look("directories", "firewall-rules", "system-settings", "windows-features")

    assert diff(before, bench.machine.snapshot()) == []


def revise(bench: Bench, revision: int) -> None:
    """Another cumulative update is in."""
    key = r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
    bench.machine.console.invoke(
        "registry.set", {"key": key, "name": "UBR", "kind": "DWord", "value": revision}
    )


def test_an_update_that_the_network_needs_and_that_is_not_in_stops_the_node():
    bench = Bench(release="2019", spec=a_spec_of("flannel-vxlan", "2019"))
    revise(bench, 300)

    problem = bench.look().step("node-preflight")["problem"]

    assert problem["id"] == "UpdateMissing"
    assert "revision 300 of Windows is older than 379 (KB4489899)" in problem["message"]


@pytest.mark.parametrize("revision", [999, 1432, 5499, 33296])
def test_revisions_of_three_to_five_digits_compare_as_numbers(revision: int):
    """Server 2025 has five since 2026 (26100.33296): as text 33296 would come before 379, and 999 after 1432."""
    bench = Bench(release="2019", spec=a_spec_of("flannel-vxlan", "2019"))
    revise(bench, revision)
    needs = [one.revision for one in bench.spec.updates]

    told = bench.look().step("node-preflight")

    late = any(revision < need for need in needs)
    assert ((told["problem"] or {}).get("id") == "UpdateMissing") is late


def test_an_update_that_is_known_to_be_bad_is_reported_with_the_one_that_mends_it(bench: Bench):
    revise(bench, 2600)

    told = bench.look()

    is_, want = told.differences("node-preflight")["Windows update KB5040437"]
    assert is_ == "revision 2600: the update of July 2024 broke container networking"
    assert want == "revision 2762 or later (KB5044281)"
    assert told.step("node-preflight")["state"] == "ok", "reported, not counted"


def test_pods_of_a_bridge_need_a_hypervisor_that_lets_their_mac_addresses_pass():
    what = "hypervisor port: other MAC addresses"

    bridge = Bench(spec=a_spec_of("win-bridge")).look().differences("node-preflight")
    overlay = Bench(spec=a_spec_of("win-overlay")).look().differences("node-preflight")

    assert (what in bridge, what in overlay) == (True, False)


def told_of(bench: Bench) -> dict[str, tuple[str | None, str | None]]:
    told = bench.look()
    assert told.step("node-preflight")["state"] == "ok", "reported, not counted"
    return told.differences("node-preflight")


def on(hypervisor: Any) -> Bench:
    """A virtual machine of any hypervisor, with pods on a bridge."""
    bench = Bench(spec=a_spec_of("win-bridge"))
    bench.machine.hardware.hypervisor = hypervisor
    return bench


@pytest.mark.parametrize(
    ("hypervisor", "setting"),
    [
        ("hyper-v", "MacAddressSpoofing on"),
        ("vmware", "forged transmits, MAC address changes, and promiscuous mode or MAC learning"),
    ],
)
def test_the_setting_of_the_port_is_named_as_its_hypervisor_names_it(hypervisor: str, setting: str):
    assert setting in str(told_of(on(hypervisor))["hypervisor port: other MAC addresses"][1])


def test_hardware_has_no_port_of_a_hypervisor():
    assert "hypervisor port: other MAC addresses" not in told_of(on("none"))


@pytest.mark.parametrize(("state", "says"), [("Missing", "not installed"), ("Off", "off"), ("On", None)])
def test_keys_on_a_disk_without_encryption_are_reported(bench: Bench, state: Any, says: str | None):
    bench.machine.hardware.bitlocker = state

    found = told_of(bench)

    assert found["BitLocker"][0] == says if says else "BitLocker" not in found


def test_another_virus_scanner_is_named_and_defender_is_not(bench: Bench):
    for name in ("WdFilter", "OtherFilter"):
        key = rf"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\{name}"
        bench.machine.registry.set(key, "Group", "String", "FSFilter Anti-Virus")

    found = told_of(bench)

    assert [what for what in found if "scanner" in what] == ["competing software: virus scanner OtherFilter"]


def test_a_team_of_adapters_is_named(bench: Bench):
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.description = "Microsoft Network Adapter Multiplexor Driver"

    assert told_of(bench)["competing software: NIC team"][0] == "LBFO"


def test_a_running_node_gets_no_second_report_of_its_surroundings(bench: Bench):
    found = bench.run(mode="Look", facts={"NodeIsLive": True}).differences("node-preflight")

    assert "BitLocker" not in found


VERSION = r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion"


def client(bench: Bench) -> None:
    bench.machine.registry.set(VERSION, "InstallationType", "String", "Client")


def second_way_out(bench: Bench) -> None:
    network = bench.machine.network
    adapter = network.add_adapter("Ethernet 2", "a second card")
    network.add_route(Route("0.0.0.0/0", "10.1.0.1", adapter.index))


def second_way_to_the_server(bench: Bench) -> None:
    bench.machine.network.plug_in_another("Second", "10.0.2.11", 16)


def no_way_out(bench: Bench) -> None:
    bench.world.close("10.0.0.10", 6443)
    bench.machine.network.routes.clear()


def address_of_another(bench: Bench) -> None:
    uplink = bench.machine.network.management()
    assert uplink is not None
    uplink.ipv4[0].state = "Duplicate"


@pytest.mark.parametrize(
    ("do", "id_", "message", "next_step"),
    [
        (client, "NotServer", "this is Windows Client, not Windows Server", "Windows Server only"),
        (
            second_way_out,
            "DefaultRoutes",
            "default routes lead through 2 adapters: Ethernet by 10.0.0.1 (metric 271) and Ethernet 2 by 10.1.0.1 (metric 271)",
            "node_ip: ADDRESS",
        ),
        (
            second_way_to_the_server,
            "SeveralWays",
            "routes lead to the API server 10.0.0.10 from 10.0.0.21 (Ethernet) and 10.0.2.11 (Second), "
            "and no node_ip says which is the node's",
            "node_ip: 10.0.1.11",
        ),
        (no_way_out, "NoAddress", "no IPv4 address of this machine can be the node address", "node_ip"),
        (
            address_of_another,
            "AddressState",
            "the address 10.0.0.21 is Duplicate; 10.0.0.10:6443 does not answer by TCP from this machine",
            "Wait for DHCP",
        ),
    ],
    ids=["a client Windows", "two gateways", "two ways", "no address", "an address that another machine has"],
)
def test_a_machine_that_cannot_become_a_node_says_why(
    bench: Bench, do: Callable[[Bench], None], id_: str, message: str, next_step: str
):
    do(bench)

    problem = bench.look().problem("node-preflight")

    assert (problem.id, problem.message) == (id_, message)
    assert next_step in problem.hint


@pytest.mark.parametrize(
    ("name", "address", "gateway"),
    [
        ("vEthernet (cbr0_ep)", "10.244.1.2", "10.244.1.1"),
        ("vEthernet (Calico_ep)", "10.244.66.194", "10.244.66.193"),
        ("vEthernet (host)", "10.244.1.2", "10.244.1.1"),
        ("vEthernet (azure_ep)", "10.0.0.77", "10.0.0.1"),
    ],
)
def test_a_default_route_through_the_hosts_endpoint_is_no_way_out(
    bench: Bench, name: str, address: str, gateway: str
):
    host_endpoint(bench, name, address, gateway)

    assert bench.look().step("node-preflight")["problem"] is None


def test_a_machine_whose_own_default_route_is_gone_does_not_take_the_pods_address(bench: Bench):
    """The connection to the server leaves by the host's endpoint then."""
    host_endpoint(bench, "vEthernet (cbr0_ep)", "10.244.1.2", "10.244.1.1")
    bench.machine.network.source = lambda ip: "10.244.1.2"  # type: ignore[method-assign]

    told = bench.look("kubelet")

    assert told.step("node-preflight")["problem"] is None
    assert "10.244.1.2" not in str(told.events)


def test_with_a_node_ip_or_without_a_route_a_second_adapter_does_not_matter(bench: Bench):
    bench.machine.network.plug_in_another("Storage", "172.20.0.5")
    alone = bench.look().step("node-preflight")["problem"]
    second_way_to_the_server(bench)
    bench.spec = replace(bench.spec, machine=replace(bench.spec.machine, node_ip="10.0.0.21"))
    named = bench.look().step("node-preflight")["problem"]

    assert (alone, named) == (None, None)


@pytest.mark.parametrize(
    ("node_ip", "facts"), [("10.0.0.21", {}), (None, {"NodeIsLive": True})], ids=["node_ip", "a live node"]
)
def test_a_second_gateway_is_a_notice_where_the_nodes_address_is_settled(
    bench: Bench, node_ip: str | None, facts: dict[str, object]
):
    """A card for backups gets one by DHCP (apache/cloudstack#2213)."""
    second_way_out(bench)
    bench.spec = replace(bench.spec, machine=replace(bench.spec.machine, node_ip=node_ip))

    told = bench.run(mode="Look", facts=facts).step("node-preflight")

    routes = {one["what"]: (one["is"], one["policy"]) for one in told["differences"]}["default routes"]
    assert told["problem"] is None
    assert routes == ("Ethernet by 10.0.0.1 (metric 271) and Ethernet 2 by 10.1.0.1 (metric 271)", True)


def firewall_service(bench: Bench, name: str, *, start: int, running: bool) -> None:
    service = bench.machine.services.need(name)
    service.status = "Running" if running else "Stopped"
    bench.machine.services.change(service, start=start)


OFF_SERVICES = (
    ("mpssvc", 4, False, "service mpssvc is disabled"),
    ("BFE", 4, False, "service BFE is disabled"),
    # A join restarts the machine, and then it is off.
    ("mpssvc", 4, True, "service mpssvc is disabled"),
    ("mpssvc", 2, False, "service mpssvc does not run"),
)


@pytest.mark.parametrize(("name", "start", "running", "message"), OFF_SERVICES)
def test_a_machine_without_the_firewalls_service_is_not_changed(
    bench: Bench, name: str, start: int, running: bool, message: str
):
    firewall_service(bench, name, start=start, running=running)

    told = bench.look("directories")

    problem = told.problem("node-preflight")
    assert (problem.id, problem.message) == ("FirewallServiceOff", f"Windows Firewall: {message}")
    assert "profiles instead" in problem.hint
    assert told.states["directories"] == "blocked"


@pytest.mark.parametrize(("name", "start", "running", "message"), OFF_SERVICES)
def test_a_live_node_without_the_firewalls_service_is_a_notice(
    bench: Bench, name: str, start: int, running: bool, message: str
):
    firewall_service(bench, name, start=start, running=running)

    told = bench.run(mode="Look", facts={"NodeIsLive": True}).step("node-preflight")

    assert told["problem"] is None
    notices = {one["what"]: (one["is"], one["policy"]) for one in told["differences"]}
    assert notices["firewall service"] == (f"Windows Firewall: {message}", True)


ROOT = r"C:\ProgramData\containerd\root"


@pytest.mark.parametrize(
    ("attributes", "format", "message"),
    [
        (
            0x800,
            "NTFS",
            r"C:\ProgramData is compressed, and so would be the disks of containers in C:\ProgramData\containerd\root",
        ),
        (
            0x4000,
            "NTFS",
            r"C:\ProgramData is encrypted, and so would be the disks of containers in C:\ProgramData\containerd\root",
        ),
        (0, "ReFS", "C:\\ has the file system ReFS, and images need NTFS"),
    ],
)
def test_images_do_not_go_where_their_disks_would_not_start(
    bench: Bench, attributes: int, format: str, message: str
):
    files = bench.machine.files
    files.need(r"C:\ProgramData")[1].attributes |= attributes
    files.volumes["C:"].format = format

    told = bench.look("directories")

    problem = told.problem("node-preflight")
    assert (problem.id, problem.message) == ("FileSystem", message)
    assert problem.hint == HINTS["FileSystem"]
    assert told.states["directories"] == "blocked"
    # Existing layers have their disks next to them.
    files.make_directory(rf"{ROOT}\io.containerd.snapshotter.v1.windows\snapshots")
    assert bench.look().step("node-preflight")["problem"] is None


def test_all_that_is_wrong_is_reported_at_once_each_with_its_next_step(bench: Bench):
    client(bench)
    second_way_out(bench)

    problem = bench.look().problem("node-preflight")

    assert problem.id == "NotServer"
    assert "; default routes lead through 2 adapters" in problem.message
    assert HINTS["NotServer"] in problem.hint
    assert HINTS["DefaultRoutes"] in problem.hint


def test_a_login_whose_token_was_filtered_is_named(bench: Bench):
    filtered = bench.machine.accounts.token("Administrator", elevated=False)

    told = bench.run_text(bench.text(), mode="Look", token=filtered)

    problem = told.problem("node-preflight")
    assert problem.id == "NotAdministrator"
    assert "has no administrator token here" in problem.message
    assert "LocalAccountTokenFilterPolicy" in problem.hint


def test_a_32_bit_powershell_sees_another_windows(bench: Bench):
    text = bench.text().replace("[Environment]::Is64BitProcess", "$false")

    assert bench.run_text(text, mode="Look").problem("node-preflight").id == "Not64Bit"


def adopting(bench: Bench, *names: str) -> Any:
    return bench.run(*names, mode="Look", facts={"Adopt": True}).step("node-preflight")


@pytest.mark.parametrize("name", ["kubelet", "containerd"])
def test_a_service_that_winboot_did_not_make_is_named_and_left_alone(bench: Bench, name: str):
    bench.machine.services.create(name, rf"C:\old\{name}.exe --foo", display="By hand")
    before = bench.machine.snapshot()

    told = bench.run("directories", facts={"Adopt": False})

    assert told.states == {"node-preflight": "failed", "directories": "blocked"}
    assert told.problem("node-preflight").id == "ForeignNode"
    assert f"the service {name}" in told.problem("node-preflight").message
    ours = ("winboot", "events", "processes")
    changed = [
        line for line in diff(before, bench.machine.snapshot()) if not any(word in line for word in ours)
    ]
    assert changed == []
    assert adopting(bench)["state"] == "ok"


@pytest.mark.parametrize(
    "path",
    [
        r"C:\var\lib\kubelet\kubeadm-flags.env",
        r"C:\etc\kubernetes\kubelet.conf",
        r"C:\AzureData\CustomDataSetupScript.ps1",
        r"C:\Program Files\Amazon\EKS\Start-EKSBootstrap.ps1",
    ],
)
def test_what_another_tool_leaves_is_named(bench: Bench, path: str):
    bench.write(path, b"x")
    found = bench.run(mode="Look", facts={"Adopt": False}).problem("node-preflight")

    assert found.id == "ForeignNode"
    assert path in found.message
    assert adopting(bench)["state"] == "ok"


def test_a_kubeconfig_of_another_cluster_is_named(bench: Bench):
    bench.write(r"C:\k\kubeconfig", b"clusters:\n- cluster:\n    server: https://other.example:6443\n")
    found = bench.run(mode="Look", facts={"Adopt": False}).problem("node-preflight")

    assert found.id == "ForeignNode"
    assert r"C:\k\kubeconfig of https://other.example:6443" in found.message
    assert adopting(bench)["state"] == "ok"


@pytest.mark.parametrize("name", ["rke2", "k3s", "k0sworker", "windows-instance-config-daemon"])
def test_an_agent_that_runs_a_kubelet_of_its_own_cannot_be_adopted(bench: Bench, name: str):
    bench.machine.services.create(name, rf"C:\x\{name}.exe")

    assert bench.run(mode="Look", facts={"Adopt": True}).problem("node-preflight").id == "ForeignAgent"


def test_a_service_that_winboot_has_adopted_is_its_own_from_then_on(bench: Bench):
    bench.write(
        r"C:\ProgramData\winboot\former\kubelet.jsonl", b'\n{"kind":"Service","key":"kubelet","value":null}\n'
    )
    bench.machine.services.create("kubelet", r"C:\old\kubelet.exe --foo")

    assert bench.run(mode="Look", facts={"Adopt": False}).step("node-preflight")["state"] == "ok"


def test_a_service_of_winboot_is_known_when_its_notes_are_lost(bench: Bench):
    description = bench.spec.services["kubelet"].description
    bench.machine.services.create("kubelet", r"C:\k\kubelet.exe", description=description)

    assert bench.run(mode="Look", facts={"Adopt": False}).step("node-preflight")["state"] == "ok"
