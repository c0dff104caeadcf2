"""Get-/Install-/Uninstall-WindowsFeature and Get-/Enable-WindowsOptionalFeature."""

from __future__ import annotations

from winboot_lab.windows.call import STRING, STRINGS, Call, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import enum, has_wildcard, wildcard
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record
from winboot_lab.windows.features import Feature

_MANAGER = "Microsoft.Windows.ServerManager.Commands"
_STATES = {"Available": 0, "Installed": 1, "Removed": 2, "InstallPending": 3, "UninstallPending": 4}
_OPTIONAL = {
    "Available": ("Disabled", 0),
    "Installed": ("Enabled", 2),
    "Removed": ("DisabledWithPayloadRemoved", 6),
    "InstallPending": ("EnablePending", 3),
    "UninstallPending": ("DisablePending", 1),
}
_NO_SOURCE = "The source files could not be found."


def _show(feature: Feature) -> Record:
    state = "Removed" if feature.state == "Available" and not feature.payload else feature.state
    return Record(
        f"{_MANAGER}.Feature",
        {
            "Name": feature.name,
            "DisplayName": feature.display,
            "Installed": feature.state in ("Installed", "UninstallPending"),
            "InstallState": enum(f"{_MANAGER}.InstallState", _STATES[state], state),
            "FeatureType": feature.kind,
            "PostConfigurationNeeded": False,
        },
        text=feature.name,
    )


def _wrong_name(call: Call, name: str) -> Problem:
    message = (
        "ArgumentNotValid: The role, role service, or feature name is not valid: "
        f"'{name}'. The name was not found."
    )
    return Problem(
        message,
        f"NameDoesNotExist,{_MANAGER}.{call.command.name.replace('-', '')}Command",
        "InvalidArgument",
        "System.Exception",
        target=name,
    )


@cmdlet(
    "Get-WindowsFeature",
    "ServerManager",
    parameter("Name", STRINGS, position=0, by_value=True),
)
def get_feature(call: Call) -> None:
    """Roles and features. A name that does not exist gives nothing, as on the real machine."""
    features = call.machine.features
    if not call.has("Name"):
        call.give(*(_show(f) for f in features.all()))
        return
    for name in call.texts("Name"):
        fits = wildcard(name)
        call.give(*(_show(f) for f in features.all() if fits(f.name)))


def _chosen(call: Call) -> list[Feature]:
    found: list[Feature] = []
    for name in call.texts("Name"):
        feature = call.machine.features.find(name)
        if feature is None:
            call.fail(_wrong_name(call, name))
        else:
            found.append(feature)
    return [] if call.result.errors else found


def _restart_needed(needed: bool) -> Plain:
    return enum(f"{_MANAGER}.RestartState", 2 if needed else 1, "Yes" if needed else "No")


def _result(call: Call, changed: list[Feature], *, success: bool, code: str, restart: bool) -> Record:
    numbers = {"Success": 0, "NoChangeNeeded": 1003, "SuccessRestartRequired": 3010, "Failed": 1000}
    return Record(
        f"{_MANAGER}.FeatureOperationResult",
        {
            "Success": success,
            "RestartNeeded": _restart_needed(restart),
            "FeatureResult": [_show(f) for f in changed],
            "ExitCode": enum(
                "Microsoft.Windows.ServerManager.Commands.FeatureOpExitCode", numbers[code], code
            ),
        },
    )


_NAME = Parameter("Name", STRINGS, sets=(InSet(mandatory=True, position=0, by_value=True),))


@cmdlet(
    "Install-WindowsFeature",
    "ServerManager",
    _NAME,
    switch("IncludeAllSubFeature"),
    switch("IncludeManagementTools"),
    switch("Restart"),
    parameter("Source", STRINGS),
    aliases=("Add-WindowsFeature",),
    should_process=True,
)
def install_feature(call: Call) -> None:
    """Turn features on; what needs a restart is pending until then."""
    chosen = _chosen(call)
    if not chosen:
        return
    features, source = call.machine.features, call.texts("Source")
    if call.flag("IncludeManagementTools") and any(f.name == "Hyper-V" for f in chosen):
        chosen += [f for f in (features.find("Hyper-V-PowerShell"),) if f is not None]
    changed: list[Feature] = []
    for feature in chosen:
        if feature.state in ("Installed", "InstallPending"):
            continue
        code = features.install(feature, source=source[0] if source else None)
        if code:
            _install_failed(call, feature, code)
            call.give(_result(call, [], success=False, code="Failed", restart=False))
            return
        changed.append(feature)
    pending = any(f.state == "InstallPending" for f in chosen)
    code_word = "SuccessRestartRequired" if pending else "Success" if changed else "NoChangeNeeded"
    call.give(_result(call, changed, success=True, code=code_word, restart=pending))
    if pending and changed:
        call.result.warnings.append("You must restart this server to finish the installation process.")
    if pending and call.flag("Restart"):
        call.machine.power.request_restart(2.0, "powershell.exe")


def _install_failed(call: Call, feature: Feature, code: int) -> None:
    words = {
        0x800F081F: _NO_SOURCE + ' Use the "Source" option to specify the location of the files.',
        0x800F0922: "The operation failed: the processor does not have required virtualization capabilities.",
    }
    message = f"The request to add or remove features on the specified server failed. {words[code]} Error: 0x{code:08x}"
    identifier = f"DISMAPI_Error__Failed_Reboot_Required,{_MANAGER}.AddWindowsFeatureCommand"
    if code == 0x800F081F:
        identifier = f"DISMAPI_Error__Cbs_Download_Failure,{_MANAGER}.AddWindowsFeatureCommand"
    call.fail(
        Problem(
            message, identifier, "InvalidOperation", "System.Exception", target=feature.name, hresult=code
        )
    )


@cmdlet(
    "Uninstall-WindowsFeature",
    "ServerManager",
    _NAME,
    switch("IncludeManagementTools"),
    switch("Restart"),
    aliases=("Remove-WindowsFeature",),
    should_process=True,
)
def uninstall_feature(call: Call) -> None:
    """Turn features off."""
    chosen = [f for f in _chosen(call) if f.state in ("Installed", "InstallPending")]
    for feature in chosen:
        call.machine.features.remove(feature)
    pending = any(f.state == "UninstallPending" for f in chosen)
    word = "SuccessRestartRequired" if pending else "Success" if chosen else "NoChangeNeeded"
    if not call.result.errors:
        call.give(_result(call, chosen, success=True, code=word, restart=pending))
    if pending and call.flag("Restart"):
        call.machine.power.request_restart(2.0, "powershell.exe")


# ---- DISM ----------------------------------------------------------------------------------------------

_DISM = "Microsoft.Dism.Commands"


def _show_optional(feature: Feature) -> Record:
    state = "Removed" if feature.state == "Available" and not feature.payload else feature.state
    word, number = _OPTIONAL[state]
    restart = "Possible" if feature.reboots else "No"
    return Record(
        f"{_DISM}.AdvancedFeatureObject",
        {
            "FeatureName": feature.optional_name,
            "DisplayName": feature.display,
            "State": enum(f"{_DISM}.FeatureState", number, word),
            "RestartRequired": enum(f"{_DISM}.DismRestartType", int(feature.reboots), restart),
            "RestartNeeded": feature.state in ("InstallPending", "UninstallPending"),
        },
    )


@cmdlet(
    "Get-WindowsOptionalFeature",
    "DISM",
    parameter("FeatureName", STRING, position=0),
    switch("Online"),
)
def get_optional(call: Call) -> None:
    """Features by their DISM names. An unknown one is an error, as for Enable-WindowsOptionalFeature."""
    if not call.flag("Online"):
        raise call.refuse("Path", "only the running system")
    wanted = call.text("FeatureName", "*")
    fits = wildcard(wanted)
    found = [f for f in call.machine.features.all() if fits(f.optional_name)]
    if not found and not has_wildcard(wanted):
        call.fail(
            Problem(
                f"Feature name {wanted} is unknown.",
                f"{_DISM}.GetWindowsOptionalFeatureCommand",
                "NotSpecified",
                "System.Runtime.InteropServices.COMException",
                target=wanted,
                hresult=0x800F080C,
            )
        )
    call.give(*(_show_optional(f) for f in found))


@cmdlet(
    "Enable-WindowsOptionalFeature",
    "DISM",
    parameter("FeatureName", STRINGS, position=0, mandatory=True, by_name=True),
    switch("Online"),
    switch("All"),
    switch("NoRestart"),
    switch("LimitAccess"),
    parameter("Source", STRINGS),
)
def enable_optional(call: Call) -> None:
    """Turn features on by their DISM names."""
    if not call.flag("Online"):
        raise call.refuse("Path", "only the running system")
    source = call.texts("Source")
    pending = False
    for name in call.texts("FeatureName"):
        feature = call.machine.features.optional(name)
        code = (
            0x800F080C
            if feature is None
            else call.machine.features.install(feature, source=source[0] if source else None)
        )
        if code:
            message = _NO_SOURCE if code == 0x800F081F else f"Feature name {name} is unknown."
            identifier = f"{_DISM}.EnableWindowsOptionalFeatureCommand"
            exception = "System.Runtime.InteropServices.COMException"
            call.fail(
                Problem(
                    message,
                    identifier,
                    "NotSpecified",
                    exception,
                    target=name,
                    terminating=True,
                    hresult=code,
                )
            )
            return
        assert feature is not None
        pending = pending or feature.state == "InstallPending"
    call.give(Record(f"{_DISM}.ImageObject", {"Path": "", "Online": True, "RestartNeeded": pending}))


@cmdlet(
    "Disable-WindowsOptionalFeature",
    "DISM",
    parameter("FeatureName", STRINGS, position=0, mandatory=True, by_name=True),
    switch("Online"),
    switch("NoRestart"),
    switch("Remove"),
)
def disable_optional(call: Call) -> None:
    """Turn features off by their DISM names; with -Remove their payload goes too."""
    if not call.flag("Online"):
        raise call.refuse("Path", "only the running system")
    pending = False
    for name in call.texts("FeatureName"):
        feature = call.machine.features.optional(name)
        if feature is None:
            call.fail(_unknown_optional(name))
            return
        call.machine.features.remove(feature)
        feature.payload = feature.payload and not call.flag("Remove")
        pending = pending or feature.state == "UninstallPending"
    call.give(Record(f"{_DISM}.ImageObject", {"Path": "", "Online": True, "RestartNeeded": pending}))


def _unknown_optional(name: str) -> Problem:
    return Problem(
        f"Feature name {name} is unknown.",
        f"{_DISM}.DisableWindowsOptionalFeatureCommand",
        "NotSpecified",
        "System.Runtime.InteropServices.COMException",
        target=name,
        terminating=True,
        hresult=0x800F080C,
    )
