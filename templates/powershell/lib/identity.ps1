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
    # LastBootUpTime moves with the clock; the event log has a record of each boot, or the startup task noted it.
    $filter = @{ LogName = 'System'; ProviderName = 'EventLog'; Id = 6005 }
    foreach ($started in Get-WinEvent -FilterHashtable $filter -MaxEvents 1 -ErrorAction SilentlyContinue) {
        $time = $started.TimeCreated.ToUniversalTime().ToString('o')
        $seed = "$(Read-Registry 'SOFTWARE\Microsoft\Cryptography' 'MachineGuid') $($started.RecordId) $time"
        return [Guid]::new((Get-TextHash $seed).Substring(0, 32)).ToString()
    }
    [string](Read-Member (Read-StateJson 'boot.json') 'boot_id')
}
