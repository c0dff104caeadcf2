"""Get-/Add-/Set-/Remove-MpPreference and Get-MpComputerStatus."""

from __future__ import annotations

from winboot_lab.windows.call import STRINGS, Call, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import hresult_error, instance, uint8
from winboot_lab.windows.door import Plain, Typed

_MODULE = "Defender"
_KINDS = ("ExclusionPath", "ExclusionProcess", "ExclusionExtension")
_LISTS = tuple(parameter(name, STRINGS) for name in _KINDS)


def _absent(call: Call) -> bool:
    # Without its service Defender's provider cannot be loaded.
    if call.machine.defender.present:
        return False
    message = "Operation failed with the following error: 0x800106ba"
    call.fail(hresult_error(call, 0x800106BA, message, target="MSFT_MpPreference"))
    return True


@cmdlet("Get-MpPreference", _MODULE, kind="Function")
def get_preference(call: Call) -> None:
    """Exclusions and settings; an empty list is null."""
    if _absent(call):
        return
    properties: dict[str, Plain] = {}
    for kind in _KINDS:
        names = call.machine.defender.exclusions(kind)
        properties[kind] = [*names] if names else None
    properties |= {
        "DisableRealtimeMonitoring": False,
        "MAPSReporting": uint8(2),
        "SubmitSamplesConsent": uint8(1),
    }
    call.give(instance("MSFT_MpPreference", properties))


@cmdlet("Add-MpPreference", _MODULE, *_LISTS, switch("Force"), kind="Function")
def add_preference(call: Call) -> None:
    """Exclude more; tamper protection may swallow it."""
    if not _absent(call):
        for kind in _KINDS:
            call.machine.defender.add(kind, call.texts(kind))


@cmdlet("Remove-MpPreference", _MODULE, *_LISTS, switch("Force"), kind="Function")
def remove_preference(call: Call) -> None:
    """Exclude less."""
    if not _absent(call):
        for kind in _KINDS:
            call.machine.defender.drop(kind, call.texts(kind))


@cmdlet("Set-MpPreference", _MODULE, *_LISTS, switch("Force"), kind="Function")
def set_preference(call: Call) -> None:
    """Replace exclusion lists."""
    if _absent(call):
        return
    defender = call.machine.defender
    for kind in _KINDS:
        if call.has(kind):
            defender.drop(kind, defender.exclusions(kind))
            defender.add(kind, call.texts(kind))


@cmdlet("Get-MpComputerStatus", _MODULE, kind="Function")
def get_status(call: Call) -> None:
    """How Defender runs."""
    if _absent(call):
        return
    state = call.machine.defender.state
    running = state.mode == "Normal"
    call.give(
        instance(
            "MSFT_MpComputerStatus",
            {
                "AMRunningMode": "Passive Mode" if state.mode == "Passive" else state.mode,
                "AMServiceEnabled": True,
                "AntivirusEnabled": running,
                "RealTimeProtectionEnabled": running,
                "IsTamperProtected": state.tamper_protected,
                "AMProductVersion": "4.18.25070.5",
                "ComputerState": Typed("System.UInt32", 0),
            },
        )
    )
