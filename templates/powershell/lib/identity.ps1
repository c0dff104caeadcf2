function Get-MachineIdentity {
    if (-not $script:Run.ContainsKey('Identity')) {
        $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
        $system = Get-CimInstance -ClassName 'Win32_ComputerSystem' -Property 'Model', 'PartOfDomain'
        $script:Run.Identity = @{
            BootId = Get-BootId
            Uuid   = [string](Get-CimInstance -ClassName 'Win32_ComputerSystemProduct' -Property 'UUID').UUID
            Build  = "$(Read-Registry $version 'CurrentBuildNumber').$(Read-Registry $version 'UBR')"
            Name   = [Environment]::MachineName
            Model  = [string]$system.Model
            Domain = [bool]$system.PartOfDomain
        }
    }
    $script:Run.Identity
}

function Get-BootId {
    # LastBootUpTime moves with the clock; the event log has one record (6005) per boot. Where that was cleared, the id
    # noted by the startup task counts.
    $filter = @{ LogName = 'System'; ProviderName = 'EventLog'; Id = 6005 }
    $started = @(Get-WinEvent -FilterHashtable $filter -MaxEvents 1 -ErrorAction SilentlyContinue)
    if ($started.Count -eq 0) {
        $noted = Read-StateJson 'boot.json'
        if ($null -eq $noted) { return '' }
        return [string]$noted.boot_id
    }
    $time = $started[0].TimeCreated.ToUniversalTime().ToString('o', [Globalization.CultureInfo]::InvariantCulture)
    $seed = '{0} {1} {2}' -f (Read-Registry 'SOFTWARE\Microsoft\Cryptography' 'MachineGuid'), $started[0].RecordId, $time
    $hash = Get-TextHash $seed
    "$($hash.Substring(0, 8))-$($hash.Substring(8, 4))-$($hash.Substring(12, 4))-$($hash.Substring(16, 4))-$($hash.Substring(20, 12))"
}
