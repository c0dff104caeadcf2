# SUMMARY Adds and restores Defender exclusions.

function Get-ExclusionDifference {
    # A difference for each process and path that Defender still scans.
    param([string[]]$Processes, [string[]]$Paths)
    # Without Defender there is nothing to exclude from.
    if ((Get-ServiceState -Name 'WinDefend') -ne 'Running') { return }
    $preference = Get-MpPreference
    foreach ($pair in @(@('process', 'ExclusionProcess', $Processes), @('path', 'ExclusionPath', $Paths))) {
        $is = @($preference.($pair[1]))
        # Exclusions that a Group Policy locks come back only to users that may read them; then ours are its business.
        $locked = 1 -eq (Read-Registry -Path 'SOFTWARE\Policies\Microsoft\Windows Defender' -Name 'DisableLocalAdminMerge')
        foreach ($want in $pair[2]) {
            if ($is -notcontains $want) {
                $what = "Defender exclusion $($pair[0]) $want"
                New-Difference -Key "exclusion:$($pair[0]):$want" -What $what -Is $null -Want 'present' -Policy:$locked
            }
        }
    }
}

function Add-Exclusion {
    # Adds what is missing (undone by Restore-Exclusion). Tamper protection refuses silently: the look after the change shows it.
    param([string[]]$Processes, [string[]]$Paths)
    $preference = Get-MpPreference
    foreach ($want in $Processes) {
        if (@($preference.ExclusionProcess) -contains $want) { continue }
        Save-FormerValue -Kind 'Exclusion' -Key "process $want" -Value @{ process = $want; path = $null }
        Add-MpPreference -ExclusionProcess $want
    }
    foreach ($want in $Paths) {
        if (@($preference.ExclusionPath) -contains $want) { continue }
        Save-FormerValue -Kind 'Exclusion' -Key "path $want" -Value @{ process = $null; path = $want }
        Add-MpPreference -ExclusionPath $want
    }
}

function Restore-Exclusion {
    # Takes back an exclusion that winboot added.
    param([object]$Former)
    if ((Get-ServiceState -Name 'WinDefend') -ne 'Running') { return }
    if ($null -ne $Former.process) { Remove-MpPreference -ExclusionProcess $Former.process }
    if ($null -ne $Former.path) { Remove-MpPreference -ExclusionPath $Former.path }
}
