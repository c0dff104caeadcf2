function Get-FeatureDifference {
    param([string[]]$Features)
    foreach ($feature in $Features) {
        $state = Get-FeatureState $feature
        if ($state -ne 'Enabled') { New-Difference -What "feature $feature" -Is $state -Want 'Enabled' -Reboot }
    }
}

function Get-FeatureState {
    param([string]$Feature)
    foreach ($found in Get-WindowsOptionalFeature -Online -FeatureName $Feature) { $found.State.ToString() }
}

function Enable-Feature {
    param([string[]]$Features, [string]$Source)
    foreach ($feature in $Features) {
        $state = Get-FeatureState $feature
        if ($null -eq $state) { Stop-Step 'NoFeature' "Windows knows no feature $feature" }
        if ($state -eq 'Enabled') { continue }
        Save-FormerValue 'Feature' $feature @{ name = $feature; state = $state }
        if ($state -ne 'EnablePending') { Enable-OneFeature $feature $Source }
    }
    New-Reboot
}

function Enable-OneFeature {
    param([string]$Feature, [string]$Source)
    $wanted = @{ Online = $true; FeatureName = $Feature; All = $true; NoRestart = $true }
    if ($Source) { $wanted += @{ Source = $Source; LimitAccess = $true } }
    try { [void](Enable-WindowsOptionalFeature @wanted -WarningAction SilentlyContinue) }
    catch {
        switch ('{0:x8}' -f $_.Exception.HResult) {
            '800f081f' { Stop-Step 'FeatureSource' "the files of feature $Feature are not on this machine (0x800f081f)" }
            '800f0922' { Stop-Step 'FeatureBlocked' "feature $Feature could not be staged (0x800f0922)" }
        }
        throw
    }
}

function Restore-Feature {
    param([object]$Former)
    if ($Former.state -ne 'Disabled' -or (Get-FeatureState $Former.name) -ne 'Enabled') { return }
    [void](Disable-WindowsOptionalFeature -Online -FeatureName $Former.name -NoRestart -WarningAction SilentlyContinue)
    New-Reboot
}
