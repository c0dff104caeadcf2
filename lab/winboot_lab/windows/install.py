"""What is there after the installation: Windows' own folders, programs, registry values, services and rules."""

from __future__ import annotations

import hashlib

from winboot_lab.windows import acl
from winboot_lab.windows.accounts import SYSTEM
from winboot_lab.windows.boot import TCPIP, WINLOGON
from winboot_lab.windows.firewall import POLICY, FirewallRule
from winboot_lab.windows.programs_api import image_bytes
from winboot_lab.windows.registry import ENVIRONMENT, HKLM, SERVICES, SESSION_MANAGER
from winboot_lab.windows.session import Computer

# Programs in System32, by the name in their image.
IN_BOX = [
    "arp",
    "bcdedit",
    "cmd",
    "certutil",
    "curl",
    "dism",
    "fltmc",
    "fsutil",
    "hostname",
    "icacls",
    "ipconfig",
    "net",
    "netsh",
    "netstat",
    "nltest",
    "ping",
    "powercfg",
    "reg",
    "route",
    "sc",
    "schtasks",
    "shutdown",
    "systeminfo",
    "takeown",
    "tar",
    "taskkill",
    "tasklist",
    "w32tm",
    "wevtutil",
    "where",
    "whoami",
]

_FOLDERS = (
    r"C:\Program Files\Common Files",
    r"C:\Program Files (x86)",
    r"C:\ProgramData\Microsoft",
    r"C:\ProgramData\ssh",
    r"C:\Users\Public",
    r"C:\Users\Administrator\AppData\Local\Temp",
    r"C:\Users\Administrator\AppData\Roaming",
    r"C:\Users\Administrator\Documents",
    r"C:\Windows\TEMP",
    r"C:\Windows\System32\drivers\etc",
    r"C:\Windows\System32\WindowsPowerShell\v1.0",
    # Unsourced: modules-of-storage.
    *(
        rf"C:\Windows\System32\WindowsPowerShell\v1.0\Modules\{name}"
        for name in ("iSCSI", "SmbShare", "Storage")
    ),
    r"C:\Windows\System32\config\systemprofile\AppData\Local\Temp",
    r"C:\Windows\System32\config\systemprofile\AppData\Roaming",
    r"C:\Windows\System32\LogFiles\Firewall",
)

# Services of Windows: name, display name, start, depends on. 2 automatic, 3 on demand, 4 disabled.
_SERVICES: tuple[tuple[str, str, int, tuple[str, ...]], ...] = (
    ("RpcSs", "Remote Procedure Call (RPC)", 2, ()),
    ("DcomLaunch", "DCOM Server Process Launcher", 2, ()),
    ("nsi", "Network Store Interface Service", 2, ("RpcSs",)),
    ("Dhcp", "DHCP Client", 2, ("nsi",)),
    ("Dnscache", "DNS Client", 2, ("nsi",)),
    ("EventLog", "Windows Event Log", 2, ()),
    ("Schedule", "Task Scheduler", 2, ("RpcSs", "EventLog")),
    ("LanmanServer", "Server", 2, ("SamSS",)),
    ("LanmanWorkstation", "Workstation", 2, ("nsi",)),
    ("BFE", "Base Filtering Engine", 2, ("RpcSs",)),
    # mpsdrv and bfe in a recorded list of services (chef/chef, spec of windows_service); mpsdrv is a driver.
    ("mpssvc", "Windows Defender Firewall", 2, ("BFE",)),
    ("NlaSvc", "Network Location Awareness", 2, ("nsi", "RpcSs", "EventLog")),
    ("SamSS", "Security Accounts Manager", 2, ("RpcSs",)),
    ("W32Time", "Windows Time", 3, ()),
    ("WinDefend", "Microsoft Defender Antivirus Service", 2, ("RpcSs",)),
    ("Winmgmt", "Windows Management Instrumentation", 2, ("RpcSs",)),
    ("WinRM", "Windows Remote Management (WS-Management)", 2, ("RpcSs",)),
    ("wuauserv", "Windows Update", 3, ("RpcSs",)),
    ("UsoSvc", "Update Orchestrator Service", 2, ("RpcSs",)),
    ("WaaSMedicSvc", "Windows Update Medic Service", 3, ("RpcSs",)),
    ("TrustedInstaller", "Windows Modules Installer", 3, ()),
    ("BITS", "Background Intelligent Transfer Service", 3, ("RpcSs",)),
    ("CryptSvc", "Cryptographic Services", 2, ("RpcSs",)),
    ("MSiSCSI", "Microsoft iSCSI Initiator Service", 3, ()),
    ("Netlogon", "Netlogon", 3, ("LanmanWorkstation",)),
    ("Spooler", "Print Spooler", 2, ("RpcSs",)),
)

_POWER_BALANCED = "381b4222-f694-41f0-9685-ff5bb260df2e"
POWER_SCHEMES = HKLM + r"\SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes"
SCHEMES = {
    _POWER_BALANCED: "Balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "High performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "Power saver",
}


def install(machine: Computer, name: str) -> None:
    """Fill a bare machine."""
    _registry(machine, name)
    _files(machine)
    _services(machine)
    _firewall(machine)
    machine.registry.sealed = True


def _files(machine: Computer) -> None:
    files = machine.files
    for folder, rules in (
        (r"C:\Windows", acl.program_files()),
        (r"C:\Program Files", acl.program_files()),
        (r"C:\ProgramData", None),
        (r"C:\Users", acl.program_files()),
    ):
        files.make_directory(folder, security=rules)
    for folder in _FOLDERS:
        files.make_directory(folder)
    system = r"C:\Windows\System32"
    version = f"10.0.{machine.build}.{machine.release.ubr}"
    for program in IN_BOX:
        files.write(rf"{system}\{program}.exe", image_bytes(program, version))
    for program, path in (
        ("powershell", rf"{system}\WindowsPowerShell\v1.0\powershell.exe"),
        ("wsmprovhost", rf"{system}\wsmprovhost.exe"),
        ("svchost", rf"{system}\svchost.exe"),
        ("services", rf"{system}\services.exe"),
    ):
        files.write(path, image_bytes(program, version))
    files.write(rf"{system}\drivers\etc\hosts", b"# Copyright (c) 1993-2009 Microsoft Corp.\r\n")


def _registry(machine: Computer, name: str) -> None:
    registry, release, hardware = machine.registry, machine.release, machine.hardware
    for hive in ("SOFTWARE", "SYSTEM", "HARDWARE", "SAM", "SECURITY", "BCD00000000"):
        registry.create(f"{HKLM}\\{hive}")
    registry.create(HKLM + r"\SOFTWARE\Classes")
    registry.create(HKLM + r"\SOFTWARE\Policies\Microsoft\Windows")
    for sid in (".DEFAULT", SYSTEM, machine.accounts.users["administrator"].sid):
        registry.create(f"HKEY_USERS\\{sid}\\Environment")
        registry.create(f"HKEY_USERS\\{sid}\\SOFTWARE")
    registry.set(WINLOGON, "CurrentBuildNumber", "String", str(release.build))
    registry.set(WINLOGON, "CurrentBuild", "String", str(release.build))
    registry.set(WINLOGON, "UBR", "DWord", release.ubr)
    registry.set(WINLOGON, "ProductName", "String", release.product)
    registry.set(WINLOGON, "InstallationType", "String", hardware.installation)
    registry.set(WINLOGON, "EditionID", "String", "ServerDatacenter")
    registry.set(WINLOGON, "ReleaseId", "String", "1809" if release.build == 17763 else "2009")
    registry.set(WINLOGON, "CurrentMajorVersionNumber", "DWord", 10)
    registry.set(WINLOGON, "CurrentMinorVersionNumber", "DWord", 0)
    if release.build > 17763:
        registry.set(WINLOGON, "DisplayVersion", "String", release.display_version)
    machine.power.install_name(name)
    machine.power.take_options()
    registry.set(TCPIP, "NV Domain", "String", "")
    registry.set(TCPIP, "SearchList", "String", "")
    registry.set(TCPIP, "IPEnableRouter", "DWord", 0)
    registry.set(TCPIP, "DataBasePath", "ExpandString", r"%SystemRoot%\System32\drivers\etc")
    _environment(machine)
    memory = SESSION_MANAGER + r"\Memory Management"
    registry.set(memory, "PagingFiles", "MultiString", ["?:\\pagefile.sys"])
    control = HKLM + r"\SYSTEM\CurrentControlSet\Control"
    registry.set(control + r"\CrashControl", "CrashDumpEnabled", "DWord", 7)
    registry.set(control + r"\CrashControl", "AutoReboot", "DWord", 1)
    registry.set(control + r"\CrashControl", "DumpFile", "ExpandString", r"%SystemRoot%\MEMORY.DMP")
    registry.set(control + r"\FileSystem", "LongPathsEnabled", "DWord", 0)
    registry.set(control + r"\TimeZoneInformation", "TimeZoneKeyName", "String", "UTC")
    registry.set(POWER_SCHEMES, "ActivePowerScheme", "String", _POWER_BALANCED)
    registry.set(SERVICES + r"\W32Time\Parameters", "Type", "String", "NTP")
    registry.set(SERVICES + r"\W32Time\Parameters", "NtpServer", "String", "time.windows.com,0x8")
    cryptography = HKLM + r"\SOFTWARE\Microsoft\Cryptography"
    registry.set(cryptography, "MachineGuid", "String", hashlib.md5(hardware.uuid.encode()).hexdigest())
    registry.create(HKLM + r"\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing")
    registry.create(HKLM + r"\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update")
    bios = HKLM + r"\HARDWARE\DESCRIPTION\System\BIOS"
    registry.set(bios, "SystemManufacturer", "String", hardware.manufacturer)
    registry.set(bios, "SystemProductName", "String", hardware.model)
    for log in ("Application", "System", "Security"):
        registry.create(rf"{SERVICES}\EventLog\{log}")
    registry.set(
        HKLM + r"\SOFTWARE\Microsoft\PowerShell\3\PowerShellEngine",
        "PowerShellVersion",
        "String",
        f"5.1.{release.build}.{release.ubr}",
    )
    registry.set(HKLM + r"\SOFTWARE\Microsoft\NET Framework Setup\NDP\v4\Full", "Release", "DWord", 528449)


def _environment(machine: Computer) -> None:
    registry = machine.registry
    path = (
        r"%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\Wbem;"
        r"%SystemRoot%\System32\WindowsPowerShell\v1.0\;%SystemRoot%\System32\OpenSSH\ "
    )
    registry.set(ENVIRONMENT, "Path", "ExpandString", path.strip())
    registry.set(ENVIRONMENT, "ComSpec", "ExpandString", r"%SystemRoot%\system32\cmd.exe")
    registry.set(ENVIRONMENT, "PATHEXT", "String", ".COM;.EXE;.BAT;.CMD;.VBS;.VBE;.JS;.JSE;.WSF;.WSH;.MSC")
    registry.set(ENVIRONMENT, "windir", "ExpandString", r"%SystemRoot%")
    registry.set(ENVIRONMENT, "OS", "String", "Windows_NT")
    registry.set(ENVIRONMENT, "PROCESSOR_ARCHITECTURE", "String", "AMD64")
    registry.set(ENVIRONMENT, "NUMBER_OF_PROCESSORS", "String", str(machine.hardware.processors))
    registry.set(
        ENVIRONMENT,
        "PSModulePath",
        "ExpandString",
        r"%ProgramFiles%\WindowsPowerShell\Modules;%SystemRoot%\system32\WindowsPowerShell\v1.0\Modules",
    )
    registry.set(ENVIRONMENT, "TEMP", "ExpandString", r"%SystemRoot%\TEMP")
    registry.set(ENVIRONMENT, "TMP", "ExpandString", r"%SystemRoot%\TEMP")


def _services(machine: Computer) -> None:
    for name, display, start, depends in _SERVICES:
        image = rf"%SystemRoot%\system32\svchost.exe -k {name}Group -p"
        if name == "WinDefend":
            image = r'"C:\ProgramData\Microsoft\Windows Defender\Platform\4.18.25070.5-0\MsMpEng.exe"'
        machine.services.create(
            name, image, display=display, start=start, depends=list(depends), builtin=True
        )


def _firewall(machine: Computer) -> None:
    for profile in ("DomainProfile", "StandardProfile", "PublicProfile"):
        machine.registry.set(f"{POLICY}\\{profile}", "EnableFirewall", "DWord", 1)
    remote = "@FirewallAPI.dll,-30252"
    rules = [
        FirewallRule(
            "WINRM-HTTP-In-TCP",
            "Windows Remote Management (HTTP-In)",
            protocol="TCP",
            local_ports=["5985"],
            profiles=["Domain", "Private"],
            group=remote,
        ),
        FirewallRule(
            "WINRM-HTTP-In-TCP-PUBLIC",
            "Windows Remote Management (HTTP-In)",
            protocol="TCP",
            local_ports=["5985"],
            profiles=["Public"],
            group=remote,
        ),
        FirewallRule(
            "WINRM-HTTPS-In-TCP", "Windows Remote Management (HTTPS-In)", protocol="TCP", local_ports=["5986"]
        ),
        FirewallRule(
            "CoreNet-DHCP-In",
            "Core Networking - DHCP (DHCP-In)",
            protocol="UDP",
            local_ports=["68"],
            remote_ports=["67"],
            group="@FirewallAPI.dll,-25000",
        ),
        FirewallRule(
            "RemoteDesktop-UserMode-In-TCP",
            "Remote Desktop - User Mode (TCP-In)",
            enabled=False,
            protocol="TCP",
            local_ports=["3389"],
            group="@FirewallAPI.dll,-28752",
        ),
        # Unsourced: iscsi-rules-off.
        *(
            FirewallRule(
                f"MsiScsi-{way}-TCP",
                f"iSCSI Service (TCP-{way})",
                enabled=False,
                direction="Inbound" if way == "In" else "Outbound",
                protocol="TCP",
                service="Msiscsi",
            )
            for way in ("In", "Out")
        ),
    ]
    for rule in rules:
        machine.firewall.save(rule)
