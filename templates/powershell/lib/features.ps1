# SUMMARY Checks, enables and restores Windows features.

function Get-FeatureDifference {
    # Which features are not on. Asking DISM takes seconds; for Containers a file that only the feature brings is proof enough.
    param([string[]]$Features)
    foreach ($feature in $Features) {
        if ($feature -eq 'Containers' -and (Test-ContainerFeature)) { continue }
        $state = Get-FeatureState -Feature $feature
        if ($state -ne 'Enabled') { New-Difference -Key "feature:$feature" -What "feature $feature" -Is $state -Want 'Enabled' -Reboot }
        elseif ($feature -eq 'Containers' -and $script:Run.Mode -eq 'Change') {
            Write-StateJson -Name 'features.json' -Value @{ enabled = @($feature) }
        }
    }
}

function Test-ContainerFeature {
    # Whether Containers is on for certain: DISM has said so once, its services are there, nothing else that brings them
    # (Hyper-V, whose service is vmms) is, and no servicing waits for a restart, without which it does not go.
    $noted = @(Read-Item -Object (Read-StateJson -Name 'features.json') -Name 'enabled')
    if ($noted -notcontains 'Containers') { return $false }
    if (Test-RegistryKey -Path 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending') {
        return $false
    }
    $services = 'SYSTEM\CurrentControlSet\Services'
    (Test-RegistryKey -Path "$services\hns") -and (Test-RegistryKey -Path "$services\vmcompute") -and -not (Test-RegistryKey -Path "$services\vmms")
}

function Get-FeatureState {
    # The state of a feature as DISM names it; nothing for one that this Windows does not know (0x800f080c).
    param([string]$Feature)
    try { foreach ($found in Get-WindowsOptionalFeature -Online -FeatureName $Feature) { $found.State.ToString() } }
    catch { if ('{0:x8}' -f $_.Exception.HResult -ne '800f080c') { throw } }
}

function Enable-Feature {
    # Turns the features on that are off, and asks for the restart.
    param([string[]]$Features, [string]$Source)
    foreach ($feature in $Features) {
        $state = Get-FeatureState -Feature $feature
        if ($null -eq $state) { Stop-Step -Id 'NoFeature' -Message "Windows knows no feature $feature" }
        if ($state -eq 'Enabled') { continue }
        Save-FormerValue -Kind 'Feature' -Key $feature -Value @{ name = $feature; state = $state }
        if ($state -ne 'EnablePending') { Enable-OneFeature -Feature $feature -Source $Source }
    }
    New-Reboot
}

function Enable-OneFeature {
    # Turns one feature on without a restart, from Source where one is given.
    param([string]$Feature, [string]$Source)
    $wanted = @{ Online = $true; FeatureName = $Feature; All = $true; NoRestart = $true }
    if ($Source) { $wanted += @{ Source = $Source; LimitAccess = $true } }
    try { [void](Enable-WindowsOptionalFeature @wanted -WarningAction SilentlyContinue) }
    catch {
        switch ('{0:x8}' -f $_.Exception.HResult) {
            '800f081f' { Stop-Step -Id 'FeatureSource' -Message "the files of feature $Feature are not on this machine (0x800f081f)" }
            '800f0922' { Stop-Step -Id 'FeatureBlocked' -Message "feature $Feature could not be staged (0x800f0922)" }
        }
        throw
    }
}

function Restore-Feature {
    # Turns a feature off that was off before.
    param([object]$Former)
    if ($Former.state -ne 'Disabled' -or (Get-FeatureState -Feature $Former.name) -ne 'Enabled') { return }
    [void](Disable-WindowsOptionalFeature -Online -FeatureName $Former.name -NoRestart -WarningAction SilentlyContinue)
    New-Reboot
}
