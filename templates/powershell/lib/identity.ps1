# SUMMARY Identifies this machine and its current boot.

function Get-MachineIdentity {
    # Which machine this is: boot id, SMBIOS UUID, build, name, model, and whether a domain has it.
    if (-not $script:Run.ContainsKey('Identity')) {
        $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
        $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'Model', 'PartOfDomain'
        $script:Run.Identity = @{
            BootId = Get-BootId
            # Kubelets before 1.31 (1.28.13, 1.29.8, 1.30.4) report this very value as systemUUID. Later ones read LastConfig of
            # SYSTEM\HardwareConfig, the UUID that Windows took from the same firmware table (kubernetes pull request 126012).
            Uuid   = [string](Get-CimInstance -ClassName 'Win32_ComputerSystemProduct' -Property 'UUID').UUID
            Build  = "$(Read-Registry -Path $version -Name 'CurrentBuildNumber').$(Read-Registry -Path $version -Name 'UBR')"
            Name   = [Environment]::MachineName
            Model  = [string]$system.Model
            Domain = [bool]$system.PartOfDomain
        }
    }
    $script:Run.Identity
}

function Get-MachineRecordDifference {
    # A difference where this machine is not noted as the one that joined. Without the note a copy of it looks like itself.
    $noted = Read-Member -Object (Read-StateJson -Name 'machine.json') -Names 'uuid'
    Compare-Wanted -Key 'machine:noted' -What 'UUID of the machine that joined' -Is $noted -Want (Get-MachineIdentity).Uuid -IgnoreCase
}

function Save-MachineRecord {
    # Notes the machine that the Node is on. Returns nothing. The registration was seen: the credentials are this machine's own.
    Write-StateJson -Name 'machine.json' -Value @{ uuid = (Get-MachineIdentity).Uuid; node = $script:Node.node }
}

function Get-CopyText {
    # Why this machine is a copy of one that joined, as a sentence; nothing on that machine itself, or without a note.
    $noted = Read-StateJson -Name 'machine.json'
    $uuid = Read-Member -Object $noted -Names 'uuid'
    if (-not $uuid) { return }
    $own = (Get-MachineIdentity).Uuid
    if (-not $own) {
        # The next call asks again.
        $script:Run.Remove('Identity')
        Stop-Step -Id 'NoMachineUuid' -Message 'Windows reports no UUID of this machine, so winboot cannot compare it with the machine that joined'
    }
    if ($uuid -eq $own) { return }
    "this machine ($own) is a copy of the node $(Read-Member -Object $noted -Names 'node') ($uuid), so winboot started no service"
}

function Wait-CopyText {
    # The answer of Get-CopyText, an empty text on the machine that joined. Throws if the machine is still unknown after Tries.
    param([int]$Tries)
    for ($try = 1; $true; $try++) {
        try { return "$(Get-CopyText)" }
        catch { if ($try -ge $Tries) { throw } }
        Start-Sleep -Seconds 5
    }
}

function Get-BootId {
    # The id of the machine's current boot: a GUID as text, never empty. LastBootUpTime would move with the clock.
    # It comes from the record that the event log writes at each start.
    $filter = @{ LogName = 'System'; ProviderName = 'EventLog'; Id = 6005 }
    foreach ($started in Get-WinEvent -FilterHashtable $filter -MaxEvents 1 -ErrorAction SilentlyContinue) {
        return ConvertTo-BootId -Seed "$($started.RecordId) $($started.TimeCreated.ToUniversalTime().ToString('o'))"
    }
    # The log was cleared, or has been overwritten since: the startup task noted the id, if it ran in this boot.
    $stamp = Get-BootStamp
    $noted = Read-StateJson -Name 'boot.json'
    if ((ConvertTo-TimeText -Time (Read-Member -Object $noted -Names 'stamp') -Format 'o') -eq $stamp) { return [string]$noted.boot_id }
    ConvertTo-BootId -Seed $stamp
}

function ConvertTo-BootId {
    # A GUID made of what is unique to one boot, and of this machine's own id.
    param([string]$Seed)
    $machine = Read-Registry -Path 'SOFTWARE\Microsoft\Cryptography' -Name 'MachineGuid'
    [Guid]::new((Get-TextHash -Text "$machine $Seed").Substring(0, 32)).ToString()
}

function Get-BootStamp {
    # When the System process (always 4) was created: once in a boot. A clock that is set later does not move it
    # (PsGetProcessCreateTimeQuadPart: "if the system time is changed, the value ... is unaffected").
    $system = Get-CimInstance -ClassName 'Win32_Process' -Filter 'ProcessId = 4' -Property 'CreationDate'
    if (-not $system -or -not $system.CreationDate) {
        Stop-Step -Id 'NoBootId' -Message 'neither the event log nor the System process says when this machine was started'
    }
    $system.CreationDate.ToUniversalTime().ToString('o')
}
