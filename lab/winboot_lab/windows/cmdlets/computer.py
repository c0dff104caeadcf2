"""Rename-Computer, Restart-Computer, Get-HotFix, Get-TimeZone, Get-Volume, Get-BitLockerVolume."""

from __future__ import annotations

import re
from datetime import timedelta

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import SYSTEM
from winboot_lab.windows.call import STRINGS, Call, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import enum, instance, uint64
from winboot_lab.windows.door import Problem, Record
from winboot_lab.windows.primitives.system import zone_id

_MODULE = "Microsoft.PowerShell.Management"
# The folder of the modules that come with Windows (learn.microsoft.com, about_PSModulePath: $PSHOME\\Modules).
_ACTIVE_DIRECTORY = r"C:\Windows\System32\WindowsPowerShell\v1.0\Modules\ActiveDirectory"
_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9-]{1,63}")


@cmdlet(
    "Rename-Computer",
    _MODULE,
    parameter("NewName", position=0, mandatory=True, by_name=True),
    switch("Force"),
    switch("PassThru"),
    switch("Restart"),
    should_process=True,
)
def rename_computer(call: Call) -> None:
    """Take a new name with the next boot."""
    name = call.text("NewName")
    machine = call.machine
    if not _NAME.fullmatch(name):
        message = f"Skip computer '{machine.name}' with new name '{name}' because the new name is not valid."
        identifier = "InvalidNewName,Microsoft.PowerShell.Commands.RenameComputerCommand"
        call.fail(
            Problem(message, identifier, "InvalidArgument", "System.InvalidOperationException", target=name)
        )
        return
    if name.upper() == machine.name:
        message = f"Skip computer '{machine.name}' with new name '{name}' because the new name is the same as the current name."
        identifier = "NewNameIsOldName,Microsoft.PowerShell.Commands.RenameComputerCommand"
        call.fail(
            Problem(message, identifier, "InvalidOperation", "System.InvalidOperationException", target=name)
        )
        return
    machine.power.rename(name)
    if not call.flag("Restart"):
        call.result.warnings.append(
            f"The changes will take effect after you restart the computer {machine.name}."
        )
    if call.flag("PassThru"):
        call.give(
            Record(
                "Microsoft.PowerShell.Commands.RenameComputerChangeInfo",
                {"HasSucceeded": True, "NewComputerName": name, "OldComputerName": machine.name},
            )
        )
    if call.flag("Restart"):
        machine.power.request_restart(1.0, "powershell.exe")


@cmdlet("Test-ComputerSecureChannel", _MODULE, should_process=True)
def test_channel(call: Call) -> None:
    """Whether the domain takes the machine's password: True or False (learn.microsoft.com, Test-ComputerSecureChannel). A
    terminating error if Netlogon cannot verify it (VerifySecureChannel of Microsoft.PowerShell.Commands.Management.dll 3.0).
    The sentence around Windows' words has no source."""
    power = call.machine.power
    if not power.domain:
        raise Refusal("command", "Test-ComputerSecureChannel", "outside a domain")
    if power.channel_error:
        identifier = "FailToTestSecureChannel,Microsoft.PowerShell.Commands.TestComputerSecureChannelCommand"
        error = "System.InvalidOperationException"
        call.fail(Problem(power.channel_error, identifier, "OperationStopped", error, terminating=True))
        return
    call.give(call.machine.power.is_trusted)


@cmdlet(
    "Test-ADServiceAccount",
    "ActiveDirectory",
    parameter("Identity", position=0, mandatory=True, by_value=True),
)
def test_service_account(call: Call) -> None:
    """True if this machine may use a managed account. An error where no controller has the web services of the module
    (learn.microsoft.com, Test-ADServiceAccount; Active Directory Web Services: TCP 9389)."""
    machine, name = call.machine, call.text("Identity")
    if not machine.files.is_directory(_ACTIVE_DIRECTORY):
        raise Refusal("command", "Test-ADServiceAccount", "without the feature RSAT-AD-PowerShell")
    if call.session.token.sid != SYSTEM:
        raise Refusal("command", "Test-ADServiceAccount", "as another account than SYSTEM: a second hop")
    if (machine.world.names.get(machine.power.domain, ""), 9389) not in machine.world.servers:
        message = "Unable to find a default server with Active Directory Web Services running."
        error = "Microsoft.ActiveDirectory.Management.ADServerDownException"
        call.fail(Problem(message, "", "ResourceUnavailable", error, target=name, terminating=True))
        return
    if name not in machine.power.managed:
        raise call.refuse("Identity", "an account that the domain does not have")
    if not machine.power.managed[name]:
        call.result.warnings.append(f"Test failed for Managed Service Account {name}.")
    call.give(machine.power.managed[name])


@cmdlet("Restart-Computer", _MODULE, switch("Force", aliases=("f",)), should_process=True)
def restart_computer(call: Call) -> None:
    """Restart this machine; the session lives on for a moment."""
    call.machine.power.request_restart(2.0, "wmiprvse.exe")


@cmdlet("Get-HotFix", _MODULE, parameter("Id", STRINGS, position=0, aliases=("HFID",)))
def get_hotfix(call: Call) -> None:
    """Installed updates."""
    machine = call.machine
    wanted = [w.upper() for w in call.texts("Id")]
    for missing in [w for w in wanted if w not in machine.hardware.kbs]:
        message = f"Cannot find the requested hotfix on the '{machine.name}' computer. "
        message += "Verify the input and run the command again."
        identifier = "GetHotFixNoEntriesFound,Microsoft.PowerShell.Commands.GetHotFixCommand"
        call.fail(Problem(message, identifier, "ObjectNotFound", "System.ArgumentException", target=missing))
    for kb in machine.hardware.kbs:
        if not wanted or kb in wanted:
            call.give(
                Record(
                    "System.Management.ManagementObject#root\\cimv2\\Win32_QuickFixEngineering",
                    {
                        "HotFixID": kb,
                        "Description": "Security Update",
                        "InstalledBy": "NT AUTHORITY\\SYSTEM",
                        "InstalledOn": machine.local(machine.time.start - timedelta(days=14)),
                        "PSComputerName": machine.name,
                    },
                )
            )


@cmdlet("Get-TimeZone", _MODULE)
def get_time_zone(call: Call) -> None:
    """The machine's time zone."""
    minutes = call.machine.zone_minutes
    name = zone_id(minutes)
    call.give(
        Record(
            "System.TimeZoneInfo",
            {
                "Id": name,
                "DisplayName": name,
                "StandardName": name,
                "BaseUtcOffset": timedelta(minutes=minutes),
                "SupportsDaylightSavingTime": False,
            },
            text=name,
        )
    )


@cmdlet(
    "Get-Volume",
    "Storage",
    parameter("DriveLetter", "System.Char[]", position=0),
    kind="Function",
)
def get_volume(call: Call) -> None:
    """Drives with their sizes."""
    wanted = [w.upper() for w in call.texts("DriveLetter")]
    for drive, volume in call.machine.files.volumes.items():
        if not wanted or drive[0] in wanted:
            call.give(
                instance(
                    "MSFT_Volume",
                    {
                        "DriveLetter": drive[0],
                        "FileSystem": volume.format,
                        "FileSystemLabel": volume.label,
                        "Size": uint64(volume.total),
                        "SizeRemaining": uint64(volume.free),
                        "DriveType": "Fixed",
                        "HealthStatus": "Healthy",
                    },
                )
            )


@cmdlet("Get-BitLockerVolume", "BitLocker", parameter("MountPoint", STRINGS, position=0), kind="Function")
def get_bitlocker(call: Call) -> None:
    """Whether drives are encrypted; the module comes with the feature."""
    if call.machine.hardware.bitlocker == "Missing":
        raise call.refuse("MountPoint", "BitLocker is not installed")
    on = call.machine.hardware.bitlocker == "On"
    kind = "Microsoft.BitLocker.Structures"
    wanted = [w.rstrip("\\").upper() for w in call.texts("MountPoint")] or list(call.machine.files.volumes)
    for drive in wanted:
        call.give(
            Record(
                f"{kind}.BitLockerVolume",
                {
                    "MountPoint": drive,
                    "ProtectionStatus": enum(
                        f"{kind}.BitLockerVolumeProtectionStatus", int(on), "On" if on else "Off"
                    ),
                    "VolumeStatus": enum(
                        f"{kind}.BitLockerVolumeStatus", int(on), "FullyEncrypted" if on else "FullyDecrypted"
                    ),
                },
            )
        )
