# SUMMARY Lists and removes what an undo would restore, and winboot's things without a record.

function Get-RemovalDifference {
    # What an undo of the current step would do: a difference for each note, and for each winboot object without one.
    foreach ($note in Get-FormerLine) {
        if ($note.kind -eq 'CheckedFolder') { continue }
        $want = if (Test-FormerAbsence -Note $note) { $null } else { 'as it was before winboot' }
        New-Difference -Key "undo:$($note.kind):$($note.key)" -What "$(ConvertTo-KindText -Kind $note.kind) $($note.key)" -Is "winboot's" -Want $want `
            -Disrupts:(@('PodNetwork', 'CalicoNetwork', 'AgentNetwork') -contains $note.kind) -Reboot:(@('Feature', 'ComputerName', 'TestSigning') -contains $note.kind)
    }
    $first = $script:Run.Steps[0].Name -eq $script:Run.Step
    if ($first -and (Test-OtherNode)) {
        New-Difference -Key 'undo:other-tool' -What 'node of another tool' -Is "the machine is one, or was one before winboot" -Want 'it stays in the cluster' -Policy
        $former = Get-AdoptedRuntime -Maker (Get-NodeMaker)
        if ((Test-Adopted) -and $former -eq 'docker') { New-Difference -Key 'undo:docker' -What 'container runtime' -Is 'containerd' -Want 'docker' -Policy }
    }
    $state = (Get-StatePath).TrimEnd('\')
    if ($first -and [IO.Directory]::Exists($state)) {
        New-Difference -Key 'undo:state' -What "state folder $state" -Is "winboot's" -Want $null
    }
    foreach ($thing in Get-UnnotedThing) {
        New-Difference -Key "unnoted:$($thing.kind):$($thing.key)" -What "$(ConvertTo-KindText -Kind $thing.kind) $($thing.key)" `
            -Is 'here, and how it was before is not noted' -Want $null
    }
}

function ConvertTo-KindText {
    # What a person calls a kind of notes: "PodNetwork" is a pod network.
    param([string]$Kind)
    [regex]::Replace($Kind, '(?<=[a-z])(?=[A-Z])', ' ').ToLowerInvariant()
}

function Test-FormerAbsence {
    # Whether a thing was not there before winboot, by its note.
    param([object]$Note)
    $was = $Note.value
    if (@('Access', 'Aside', 'ComputerName', 'Feature', 'Forwarding', 'KeyAccess', 'PortRange', 'PowerPlan', 'ResetTask', 'RuleActive') -contains $Note.kind -or $null -eq $was) { return $false }
    foreach ($name in @('existed', 'exists')) {
        if ($was.PSObject.Properties[$name]) { return -not $was.$name }
    }
    switch ($Note.kind) {
        'File' { return $null -eq $was.bytes -and $null -eq $was.kept }
        'Registry' { return $null -eq $was.kind }
        'PodRoute' { return $null -eq $was.PSObject.Properties['hop'] }
    }
    # Rules, tasks, ranges, roots and exclusions are noted only where winboot made them.
    $true
}

function Get-UnnotedThing {
    # Things of the current step that carry winboot's mark, or lie where only winboot puts them, and that no note is about: kind and
    # key each, without what an undo has put back. Nothing on a machine without winboot's things.
    if ($script:Run.Steps[0].Name -eq $script:Run.Step) { Get-FirstBootThing }
    $step = @($script:Run.Steps | Where-Object { $_.Name -eq $script:Run.Step })
    if ($step.Count -ne 1 -or -not $step[0].ContainsKey('Ours')) { return }
    # Of what the controller names, some of what shows whose it is may be gone by now.
    if (@($script:Run.Facts.Unnoted).Count -eq 0 -and -not (Test-OwnMachine)) { return }
    $ours = $step[0].Ours
    $noted = @(Get-FormerLine | ForEach-Object { "$($_.kind):$($_.key)" }) + @(Get-RestoredThing)
    $found = @(
        foreach ($name in $ours['services']) { if (Test-OwnService -Name $name) { @{ kind = 'Service'; key = $name } } }
        foreach ($name in $ours['rules']) { if (Test-OwnRule -Name $name) { @{ kind = 'FirewallRule'; key = $name } } }
        # A file of another tool's node may lie in the same place, with the same content, and have no note for that reason.
        if (-not (Test-OtherNode)) { foreach ($path in $ours['files']) { Get-VersionPath -Path $path | ForEach-Object { @{ kind = 'File'; key = $_ } } } }
    )
    $found | Where-Object { $noted -notcontains "$($_.kind):$($_.key)" }
}

function Get-FirstBootThing {
    # What first boot left here: task, folder and event source, or nothing. A folder or link of a user is not winboot's.
    $folder = Get-FirstBootPath
    if ([IO.Directory]::Exists($folder) -and -not (Test-Link -Path $folder) -and -not (Get-UntrustedOwner -Path $folder)) {
        @{ kind = 'FirstBootFolder'; key = $folder }
    }
    if (Get-ScheduledTask -TaskName 'first-boot' -TaskPath '\winboot\' -ErrorAction SilentlyContinue) { @{ kind = 'Task'; key = 'first-boot' } }
    if (Test-RegistryKey -Path (Get-EventSourcePath -Name 'winboot')) { @{ kind = 'EventSource'; key = 'winboot' } }
}

function Get-FirstBootPath {
    # Where first boot puts its script and result.json (_first_boot_setup.ps1.j2).
    'C:\ProgramData\winboot-first-boot'
}

function Get-EventSourcePath {
    # The key of a source of the log Application (learn.microsoft.com/windows/win32/eventlog/eventlog-key).
    param([string]$Name)
    "SYSTEM\CurrentControlSet\Services\EventLog\Application\$Name"
}

function Get-VersionPath {
    # The file, and those of the same program in folders of other versions; nothing where none is there. Links are not followed.
    param([string]$Path)
    if ([IO.File]::Exists($Path)) { $Path }
    $parts = [regex]::Match($Path, '^(.+\\versions)\\([^\\]+)(\\.+)$')
    if (-not $parts.Success -or -not [IO.Directory]::Exists($parts.Groups[1].Value)) { return }
    foreach ($folder in [IO.Directory]::GetDirectories($parts.Groups[1].Value)) {
        $other = $folder + $parts.Groups[3].Value
        if ($other -ne $Path -and -not (Test-Link -Path $folder) -and [IO.File]::Exists($other)) { $other }
    }
}

function Test-OwnMachine {
    # Whether winboot was at work here: its state folder is there, or a service that it manages. A folder that goes with the next
    # start of the machine is what is left of an undo.
    $folder = (Get-StatePath).TrimEnd('\')
    if ([IO.Directory]::Exists($folder) -and @(Read-PendingRename) -notcontains "\??\$folder") { return $true }
    foreach ($step in $script:Run.Steps) {
        if (-not $step.ContainsKey('Ours')) { continue }
        foreach ($name in $step.Ours['services']) { if (Test-OwnService -Name $name) { return $true } }
    }
    $false
}

function Test-OwnService {
    # Whether a service of this name says that winboot manages it.
    param([string]$Name)
    "$(Read-Registry -Path (Get-ServicePath -Name $Name) -Name 'Description')" -like '*Managed by winboot.'
}

function Test-OwnRule {
    # Whether there is a firewall rule of this name and of winboot's group (EmbedCtxt, [MS-GPFAS] 2.2.2.19): an administrator may have
    # given another rule this name.
    param([string]$Name)
    $rules = 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules'
    "$(Read-Registry -Path $rules -Name $Name)" -like '*|EmbedCtxt=winboot|*'
}

function Remove-UnnotedThing {
    # Takes away what Get-UnnotedThing named, as if it had not been there before winboot. Returns nothing.
    param([object[]]$Things)
    foreach ($thing in $Things) {
        switch ($thing.kind) {
            'Service' { Restore-Service -Former @{ name = $thing.key; exists = $false } }
            'FirewallRule' { Restore-FirewallRule -Former @{ name = $thing.key } }
            'File' { Remove-File -Path $thing.key }
            'Task' { Remove-Task -Name $thing.key }
            'FirstBootFolder' { Remove-Folder -Path $thing.key }
            'EventSource' { [Microsoft.Win32.Registry]::LocalMachine.DeleteSubKeyTree((Get-EventSourcePath -Name $thing.key), $false) }
        }
    }
}
