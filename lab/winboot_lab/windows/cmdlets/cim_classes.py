"""The CIM classes in use: instances, what may be written, and methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import pagefile
from winboot_lab.windows.call import as_int, as_text
from winboot_lab.windows.cmdlets.shapes import instance, uint16, uint32, uint64
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.install import POWER_SCHEMES, SCHEMES
from winboot_lab.windows.processes import PRIORITIES
from winboot_lab.windows.scm import AUTO, DEMAND, DISABLED, Service
from winboot_lab.windows.session import Computer, Session

Arguments = Mapping[str, Plain]
Method = Callable[["Session", Record | None, Arguments], dict[str, Plain]]


@dataclass(frozen=True, slots=True)
class CimClass:
    """One class: how to list its instances, and what may be done with them."""

    name: str
    keys: tuple[str, ...]
    instances: Callable[[Computer], list[Record]]
    namespace: str = r"root\cimv2"
    # Where it is not, not even its name space exists.
    present: Callable[[Computer], bool] = lambda machine: True
    writable: tuple[str, ...] = ()
    change: Callable[[Computer, Record, dict[str, Plain]], None] | None = None
    create: Callable[[Computer, Arguments], Record | None] | None = None
    remove: Callable[[Computer, Record], None] | None = None
    methods: Mapping[str, Method] = field(default_factory=dict)


# ---- the computer --------------------------------------------------------------------------------------


def _computer_system(machine: Computer) -> list[Record]:
    power, hardware = machine.power, machine.hardware
    return [
        instance(
            "Win32_ComputerSystem",
            {
                "Name": machine.name,
                "DNSHostName": machine.name,
                "Domain": power.domain or power.workgroup,
                "Workgroup": None if power.domain else power.workgroup,
                "PartOfDomain": bool(power.domain),
                "DomainRole": uint16(3 if power.domain else 2),
                "Manufacturer": hardware.manufacturer,
                "Model": hardware.model,
                "NumberOfProcessors": uint32(1),
                "NumberOfLogicalProcessors": uint32(hardware.processors),
                "TotalPhysicalMemory": uint64(hardware.memory),
                "HypervisorPresent": hardware.hypervisor != "none" or machine.features.installed("Hyper-V"),
                "AutomaticManagedPagefile": pagefile.automatic(machine),
                "SystemType": "x64-based PC",
            },
        )
    ]


def _change_computer(machine: Computer, record: Record, wanted: dict[str, Plain]) -> None:
    for value in wanted.values():
        pagefile.set_automatic(machine, bool(value))


def _operating_system(machine: Computer) -> list[Record]:
    now = machine.local(machine.now())
    memory = machine.hardware.memory // 1024
    return [
        instance(
            "Win32_OperatingSystem",
            {
                "Name": f"Microsoft {machine.release.product}",
                "Caption": f"Microsoft {machine.release.product}",
                "Version": f"10.0.{machine.build}",
                "BuildNumber": str(machine.build),
                "CSName": machine.name,
                "OSArchitecture": "64-bit",
                "ProductType": uint32(3),
                "SystemDirectory": r"C:\Windows\system32",
                "WindowsDirectory": r"C:\Windows",
                "LastBootUpTime": machine.local(machine.power.boot_time),
                "LocalDateTime": now,
                "CurrentTimeZone": machine.zone_minutes,
                "TotalVisibleMemorySize": uint64(memory),
                "FreePhysicalMemory": uint64(memory * 3 // 4),
                "TotalVirtualMemorySize": uint64(
                    memory + sum(p.initial for p in pagefile.in_use(machine)) * 1024
                ),
            },
        )
    ]


def _reboot(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    session.machine.power.request_restart(2.0, "wmiprvse.exe")
    return {"ReturnValue": 0}


def _shutdown(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    flags = as_int(_argument(arguments, "Flags", ("Flags", "Reserved")))
    if flags & ~4 != 2:
        raise Refusal("value", f"Win32Shutdown Flags {flags}", "only a restart (2, 6)")
    return _reboot(session, record, arguments)


def _product(machine: Computer) -> list[Record]:
    return [
        instance(
            "Win32_ComputerSystemProduct",
            {
                "UUID": machine.hardware.uuid,
                "IdentifyingNumber": machine.hardware.serial,
                "Name": machine.hardware.model,
                "Vendor": machine.hardware.manufacturer,
                "Version": "7.0",
            },
        )
    ]


def _bios(machine: Computer) -> list[Record]:
    properties: dict[str, Plain] = {
        "Manufacturer": machine.hardware.manufacturer,
        "SerialNumber": machine.hardware.serial,
        "Name": "Hyper-V UEFI Release v4.1",
    }
    return [instance("Win32_BIOS", properties)]


def _processor(machine: Computer) -> list[Record]:
    return [
        instance(
            "Win32_Processor",
            {
                "DeviceID": "CPU0",
                "NumberOfCores": uint32(machine.hardware.processors),
                "NumberOfLogicalProcessors": uint32(machine.hardware.processors),
                "VirtualizationFirmwareEnabled": machine.hardware.virtualization,
                "SecondLevelAddressTranslationExtensions": machine.hardware.virtualization,
            },
        )
    ]


def _logical_disk(machine: Computer) -> list[Record]:
    return [
        instance(
            "Win32_LogicalDisk",
            {
                "DeviceID": drive,
                "DriveType": uint32(3),
                "FileSystem": "NTFS",
                "VolumeName": volume.label,
                "Size": uint64(volume.total),
                "FreeSpace": uint64(volume.free),
            },
        )
        for drive, volume in machine.files.volumes.items()
    ]


def _encryptable(machine: Computer) -> list[Record]:
    on = machine.hardware.bitlocker == "On"
    return [
        instance(
            "Win32_EncryptableVolume",
            {
                "DeviceID": f"\\\\?\\Volume{{{machine.hardware.uuid.lower()}}}\\",
                "DriveLetter": drive,
                "ProtectionStatus": uint32(int(on)),
                "ConversionStatus": uint32(int(on)),
                "EncryptionMethod": uint32(7 if on else 0),
            },
        )
        for drive in machine.files.volumes
    ]


def _has_bitlocker(machine: Computer) -> bool:
    return machine.hardware.bitlocker != "Missing"


# ---- page files ----------------------------------------------------------------------------------------


def _show_page_file(file: pagefile.PageFile) -> Record:
    return instance(
        "Win32_PageFileSetting",
        {
            "Name": file.name,
            "Caption": file.name.replace("\\", "\\ '", 1),
            "InitialSize": uint32(file.initial),
            "MaximumSize": uint32(file.maximum),
        },
    )


def _page_settings(machine: Computer) -> list[Record]:
    return [_show_page_file(f) for f in pagefile.settings(machine)]


def _change_page_file(machine: Computer, record: Record, wanted: dict[str, Plain]) -> None:
    files = pagefile.settings(machine)
    for file in files:
        if file.name == record["Name"]:
            file.initial = as_int(wanted.get("InitialSize", file.initial))
            file.maximum = as_int(wanted.get("MaximumSize", file.maximum))
    pagefile.store(machine, files)


def _create_page_file(machine: Computer, arguments: Arguments) -> Record | None:
    name = as_text(_argument(arguments, "Name", ("Name", "InitialSize", "MaximumSize")))
    files = pagefile.settings(machine)
    if any(f.name.lower() == name.lower() for f in files):
        return None
    initial, maximum = (as_int(arguments.get(k) or 0) for k in ("InitialSize", "MaximumSize"))
    made = pagefile.PageFile(name, initial, maximum)
    pagefile.store(machine, [*files, made])
    return _show_page_file(made)


def _remove_page_file(machine: Computer, record: Record) -> None:
    pagefile.store(machine, [f for f in pagefile.settings(machine) if f.name != record["Name"]])


def _page_usage(machine: Computer) -> list[Record]:
    return [
        instance(
            "Win32_PageFileUsage",
            {"Name": f.name, "AllocatedBaseSize": uint32(f.initial), "CurrentUsage": uint32(0)},
        )
        for f in pagefile.in_use(machine)
    ]


# ---- services ------------------------------------------------------------------------------------------

_STATES = {"StartPending": "Start Pending", "StopPending": "Stop Pending"}
_MODES = {0: "Boot", 1: "System", 2: "Auto", 3: "Manual", 4: "Disabled"}
_MODE_NUMBERS = {"automatic": AUTO, "auto": AUTO, "manual": DEMAND, "disabled": DISABLED}
# What the methods return for the service manager's errors.
_RETURNS = {
    5: 2,
    1051: 3,
    1052: 4,
    1053: 7,
    2: 9,
    1056: 10,
    1058: 14,
    1068: 13,
    1069: 15,
    1072: 16,
    1057: 22,
    1062: 5,
    1060: 5,
    1075: 13,
    1078: 20,
    1073: 23,
    1061: 5,
}


def _show_service(machine: Computer, service: Service) -> Record:
    description = machine.registry.text(service.key, "Description")
    return instance(
        "Win32_Service",
        {
            "Name": service.name,
            "DisplayName": service.display,
            "Caption": service.display,
            "Description": description or None,
            "PathName": machine.registry.expand(service.image_path),
            "State": _STATES.get(service.status, service.status),
            "Status": "OK",
            "Started": service.status != "Stopped",
            "StartMode": _MODES[service.start],
            "StartName": service.account,
            "DelayedAutoStart": service.delayed,
            "ProcessId": uint32(service.pid),
            "ExitCode": uint32(service.exit_code),
            "ServiceSpecificExitCode": uint32(service.specific_code),
            "ServiceType": "Own Process",
            "ErrorControl": "Normal",
            "AcceptStop": service.status == "Running",
        },
        text=f'Win32_Service: {service.display} (Name = "{service.name}")',
    )


def _services(machine: Computer) -> list[Record]:
    return [_show_service(machine, s) for s in machine.services]


def _service(session: Session, record: Record | None) -> Service:
    if record is None:
        raise Refusal("member", "Win32_Service", "the method needs an instance")
    return session.machine.services.need(as_text(record["Name"]))


def _answer(action: Callable[[], object]) -> dict[str, Plain]:
    try:
        action()
    except Failure as failed:
        return {"ReturnValue": _RETURNS.get(failed.win32, 8)}
    return {"ReturnValue": 0}


def _argument(arguments: Arguments, name: str, known: tuple[str, ...]) -> Plain:
    lower = {k.lower(): v for k, v in arguments.items()}
    for key in lower:
        if key not in {k.lower() for k in known}:
            raise Refusal("parameter", key, "an argument of a CIM method")
    return lower.get(name.lower())


_CHANGE = (
    "DisplayName",
    "PathName",
    "ServiceType",
    "ErrorControl",
    "StartMode",
    "DesktopInteract",
    "StartName",
    "StartPassword",
    "LoadOrderGroup",
    "LoadOrderGroupDependencies",
    "ServiceDependencies",
)


def _change_service(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    service = _service(session, record)

    def text(name: str) -> str | None:
        value = _argument(arguments, name, _CHANGE)
        return None if value is None else as_text(value)

    for name in ("ServiceType", "DesktopInteract", "LoadOrderGroup", "LoadOrderGroupDependencies"):
        if _argument(arguments, name, _CHANGE) is not None:
            raise Refusal("parameter", f"Win32_Service.Change {name}")
    mode = text("StartMode")
    if mode is not None and mode.lower() not in _MODE_NUMBERS:
        return {"ReturnValue": 21}
    depends = _argument(arguments, "ServiceDependencies", _CHANGE)
    listed = [as_text(d) for d in depends] if isinstance(depends, list) else None
    return _answer(
        lambda: session.machine.services.change(
            service,
            display=text("DisplayName"),
            image_path=text("PathName"),
            start=None if mode is None else _MODE_NUMBERS[mode.lower()],
            depends=None if listed is None else [d for d in listed if d],
            account=text("StartName"),
            password=text("StartPassword"),
        )
    )


def _change_start_mode(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    service = _service(session, record)
    mode = as_text(_argument(arguments, "StartMode", ("StartMode",))).lower()
    if mode not in _MODE_NUMBERS:
        return {"ReturnValue": 21}
    return _answer(lambda: session.machine.services.change(service, start=_MODE_NUMBERS[mode]))


def _start_service(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    service = _service(session, record)
    return _answer(lambda: session.machine.services.start(service))


def _stop_service(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    service = _service(session, record)
    return _answer(lambda: session.machine.services.stop(service))


def _delete_service(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    service = _service(session, record)
    return _answer(lambda: session.machine.services.delete(service))


# ---- processes -----------------------------------------------------------------------------------------


def _processes(machine: Computer) -> list[Record]:
    return [
        instance(
            "Win32_Process",
            {
                "Name": p.path.rpartition("\\")[2] or p.name,
                "ProcessId": uint32(p.pid),
                "Handle": str(p.pid),
                "ParentProcessId": uint32(p.parent),
                "ExecutablePath": p.path if p.path[1:2] == ":" else None,
                "CommandLine": p.command_line,
                "CreationDate": machine.local(p.started),
                "SessionId": uint32(p.session),
                "Priority": uint32(PRIORITIES[p.priority]),
            },
        )
        for p in machine.processes.all()
    ]


def _create_process(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    known = ("CommandLine", "CurrentDirectory", "ProcessStartupInformation")
    line = as_text(_argument(arguments, "CommandLine", known))
    folder = _argument(arguments, "CurrentDirectory", known)
    processes = session.machine.processes
    try:
        process = processes.spawn(
            line, token=session.token, directory=None if folder is None else as_text(folder)
        )
    except Failure as failed:
        return {"ProcessId": None, "ReturnValue": {5: 2, 2: 9}.get(failed.win32, 8)}
    # The process belongs to WMI, not to the session: it lives on when the session ends.
    processes.serve(process)
    return {"ProcessId": uint32(process.pid), "ReturnValue": 0}


def _terminate(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    if record is None:
        raise Refusal("member", "Win32_Process.Terminate()", "the method needs an instance")
    return {"ReturnValue": 0 if session.machine.processes.kill(as_int(record["ProcessId"])) else 8}


# ---- power plans ---------------------------------------------------------------------------------------


def _power_plans(machine: Computer) -> list[Record]:
    active = machine.registry.text(POWER_SCHEMES, "ActivePowerScheme")
    return [
        instance(
            "Win32_PowerPlan",
            {
                "InstanceID": f"Microsoft:PowerPlan\\{{{guid}}}",
                "ElementName": name,
                "IsActive": guid == active,
            },
        )
        for guid, name in SCHEMES.items()
    ]


def _activate_plan(session: Session, record: Record | None, arguments: Arguments) -> dict[str, Plain]:
    assert record is not None
    guid = as_text(record["InstanceID"]).partition("{")[2].rstrip("}")
    session.machine.registry.set(POWER_SCHEMES, "ActivePowerScheme", "String", guid)
    return {"ReturnValue": 0}


CLASSES: dict[str, CimClass] = {
    c.name.lower(): c
    for c in (
        CimClass(
            "Win32_ComputerSystem",
            ("Name",),
            _computer_system,
            writable=("AutomaticManagedPagefile",),
            change=_change_computer,
        ),
        CimClass(
            "Win32_OperatingSystem",
            ("Name",),
            _operating_system,
            methods={"Reboot": _reboot, "Win32Shutdown": _shutdown},
        ),
        CimClass("Win32_ComputerSystemProduct", ("IdentifyingNumber", "Name", "Version"), _product),
        CimClass("Win32_BIOS", ("Name",), _bios),
        CimClass("Win32_Processor", ("DeviceID",), _processor),
        CimClass("Win32_LogicalDisk", ("DeviceID",), _logical_disk),
        CimClass(
            "Win32_EncryptableVolume",
            ("DeviceID",),
            _encryptable,
            namespace=r"root\cimv2\Security\MicrosoftVolumeEncryption",
            present=_has_bitlocker,
        ),
        CimClass(
            "Win32_PageFileSetting",
            ("Name",),
            _page_settings,
            writable=("InitialSize", "MaximumSize"),
            change=_change_page_file,
            create=_create_page_file,
            remove=_remove_page_file,
        ),
        CimClass("Win32_PageFileUsage", ("Name",), _page_usage),
        CimClass(
            "Win32_Service",
            ("Name",),
            _services,
            methods={
                "Change": _change_service,
                "ChangeStartMode": _change_start_mode,
                "StartService": _start_service,
                "StopService": _stop_service,
                "Delete": _delete_service,
            },
        ),
        CimClass(
            "Win32_Process",
            ("Handle",),
            _processes,
            methods={"Create": _create_process, "Terminate": _terminate},
        ),
        CimClass(
            "Win32_PowerPlan",
            ("InstanceID",),
            _power_plans,
            namespace=r"root\cimv2\power",
            methods={"Activate": _activate_plan},
        ),
    )
}
