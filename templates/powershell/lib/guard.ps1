# Puts back what the machine had while somebody makes a network on its adapter, and at each start what a cut left undone.

function Get-GuardDifference {
    # A difference where the startup task should guard the machine's address and does not run; nothing where no adapter has
    # settings made by hand, or where nothing of the network is missing.
    param([hashtable]$Wanted)
    $own = @(Get-OwnInterface | ForEach-Object { Read-InterfaceIdentity -Own $_ } |
            Where-Object { Test-OwnSetting -Interface $_ })
    if ($own.Count -eq 0 -or -not (Test-OperatorAwaited -Wanted $Wanted)) { return }
    $task = @(Get-ScheduledTask -TaskName 'boot' -TaskPath '\winboot\' -ErrorAction SilentlyContinue)
    if ($task.Count -gt 0 -and $task[0].State.ToString() -eq 'Running') { return }
    $addresses = @($own | ForEach-Object { $_.addresses } | ForEach-Object { $_.ip })
    $what = "guard of the settings of $($own[0].name)"
    if ($addresses.Count -gt 0) { $what = "guard of the static address $($addresses -join ', ')" }
    New-Difference -Key 'guard' -What $what -Is 'nobody' -Want 'the startup task'
}

function Test-OwnSetting {
    # Whether somebody set something on an interface that a switch can take from it.
    param([object]$Interface)
    @($Interface.addresses).Count -gt 0 -or @($Interface.dns).Count -gt 0 -or @(Get-LastingRoute -Interface $Interface).Count -gt 0
}

function Get-LastingRoute {
    # The routes of an interface that somebody set for good. Nothing where there is none. Those of a cloud's metadata service
    # (169.254...) are the image's: it sets them at each start, for that one or for good.
    param([object]$Interface)
    $Interface.routes | Where-Object { $_.persistent -and $_.prefix -notlike '169.254.*' }
}

function Test-OperatorAwaited {
    # True while something is missing that only the network's owner makes.
    param([hashtable]$Wanted)
    @(Get-OperatorDifference -Wanted $Wanted | Where-Object { -not $_.policy }).Count -gt 0
}

function Save-NetworkRecord {
    # Notes how the interfaces are while the machine has its address: what a start of the machine may fall back on. A switch may take
    # the adapter meanwhile; what was read without the address is nothing to fall back on.
    $address = Get-NodeAddress
    if (-not $address -or $address.state -ne 'Preferred' -or $address.ip -like '169.254.*') { return }
    $snapshot = Read-NetworkSnapshot
    if ($snapshot.adapters | Where-Object { $_.name -eq $address.alias -and $_.settled }) { Write-StateJson -Name 'network.json' -Value $snapshot }
}

function Update-NetworkRecord {
    # The record as somebody's changes have it. A run right after a start may be there before the startup task: what ended with that
    # start is no change of anybody's, and comes back first. Returns nothing.
    $known = Read-StateJson -Name 'network.json'
    if ($known -and (Read-Member -Object $known -Names 'boot_id') -ne (Get-BootId)) { Restore-StartRoute -Ended }
    Save-NetworkRecord
}

function Read-NetworkRecord {
    # The interfaces of the last record; nothing where there is none that can be read.
    param([string]$Name = 'network.json')
    $record = Read-StateJson -Name $Name
    foreach ($was in Read-Item -Object $record -Name 'adapters') { if (Read-Member -Object $was -Names 'guid') { $was } }
}

function Get-RecordDifference {
    # A record that is missing, cannot be read or is older than what somebody changed since. Interfaces of one team or switch share
    # a MAC address, and one that a switch took over has another GUID since: known is what the record has with this MAC and these
    # settings.
    if (-not (Get-NodeAddress)) { return }
    $known = @(Read-NetworkRecord | ForEach-Object { "$($_.mac) $(ConvertTo-InterfaceText -Interface $_)" })
    $what = 'record of the network settings'
    if ($known.Count -eq 0) { New-Difference -Key 'record' -What $what -Is $null -Want 'current'; return }
    foreach ($own in Get-OwnInterface) {
        $is = Read-InterfaceIdentity -Own $own
        if ($known -ccontains "$($is.mac) $(ConvertTo-InterfaceText -Interface $is)") { continue }
        New-Difference -Key "record:$($is.guid)" -What "${what}: $($is.name)" -Is 'older' -Want 'current'
    }
}

function ConvertTo-InterfaceText {
    # What somebody set on an interface, as one text to compare.
    param([object]$Interface)
    $addresses = @($Interface.addresses | ForEach-Object { "$($_.ip)/$($_.prefix_length)" } | Sort-Object)
    $routes = @(Get-LastingRoute -Interface $Interface | ForEach-Object { "$($_.prefix) via $($_.next_hop) at $($_.metric)" } | Sort-Object)
    "dhcp $($Interface.dhcp); $($addresses -join ' '); $($Interface.dns -join ' '); $($routes -join ', ')"
}

function Test-CarryingInterface {
    # Whether this very interface is still there and carries IPv4: then nothing took its settings but a person.
    param([string]$Guid)
    foreach ($adapter in Get-NetAdapter -IncludeHidden | Where-Object { [string]$_.InterfaceGuid -eq $Guid }) {
        if (Get-NetIPInterface -InterfaceIndex $adapter.ifIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue) {
            return $true
        }
    }
    $false
}

function Test-LostInterface {
    # Whether a switch took the addresses of an interface: it carries none any more, and its successor has no good one.
    param([object]$Was)
    if (@($Was.addresses).Count -eq 0 -or (Test-CarryingInterface -Guid $Was.guid)) { return $false }
    foreach ($address in $Was.addresses) { if (Find-Address -Ip $address.ip) { return $false } }
    $index = Find-Successor -Was $Was
    # Another address that works is somebody's choice.
    $null -eq $index -or @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ }).Count -eq 0
}

function Test-MovedInterface {
    # Whether another interface carries now what this one carried, and nobody gave that one an address of its own.
    param([object]$Was)
    if (Test-CarryingInterface -Guid $Was.guid) { return $false }
    $null -ne (Find-Successor -Was $Was) -and -not (Test-OtherAddress -Was $Was)
}

function Test-OtherAddress {
    # Whether somebody gave what carries today the addresses of this interface another one. With a lease the address may be any.
    param([object]$Was)
    $own = @($Was.addresses | ForEach-Object { $_.ip })
    $index = Find-Successor -Was $Was
    if ($own.Count -eq 0 -or $null -eq $index) { return $false }
    $others = @(Read-InterfaceAddress -Index $index |
            Where-Object { (Test-UsableAddress -Address $_) -and $own -notcontains $_.IPAddress })
    $others.Count -gt 0
}

function Get-LostInterface {
    # What a rewiring before this start lost: known from the run that was cut off, else from the last record. Nothing
    # where none is lost.
    $known = @(Get-CutRecord)
    if ($known.Count -eq 0) { $known = @(Read-NetworkRecord) }
    $known | Where-Object { Test-LostInterface -Was $_ }
}

function Get-CurrentSnapshot {
    # How the interfaces are; those that lost their address as the last record knew them.
    $snapshot = Read-NetworkSnapshot
    $lost = @(Get-LostInterface)
    $here = @(Get-SuccessorGuid -Adapters $lost)
    $snapshot.adapters = @($snapshot.adapters | Where-Object { $here -notcontains $_.guid }) + $lost
    foreach ($was in $lost) {
        if ($was.routes | Where-Object { $_.prefix -eq '0.0.0.0/0' }) { $snapshot.default_route = $true }
    }
    $snapshot
}

function Restore-BootNetwork {
    # At the start of the machine: an adapter that lost its address to a rewiring gets it back. The start may have cut a
    # run off between two addresses, or before routes and DNS servers: its interfaces get all of it back, also where
    # Windows dropped the switch and gave the adapter its address. What a person changed stays.
    $intact = {
        $lost = @(Get-LostInterface)
        $cut = @(Get-CutRecord | Where-Object { -not (Test-OtherAddress -Was $_) })
        $taken = @{ adapters = $lost + $cut }
        (Invoke-NetworkRestore -Snapshot $taken) -and $lost.Count -eq 0 -and -not (Get-MissingAddress -Snapshot $taken)
    }
    if (Wait-Until -Test $intact -Seconds 120 -Pause 2000) { Restore-StartRoute }
}

function Restore-StartRoute {
    # Routes that end with a start of the machine: that of a cloud's metadata service (169.254.169.254) is in no store, and those of an
    # interface end with its switch where that does not outlive the boot. They come back while the machine has the address they go out by.
    # With Ended only the latter.
    param([switch]$Ended)
    foreach ($was in Read-NetworkRecord) {
        $index = Find-Successor -Was $was
        if ($null -eq $index) { continue }
        $gone = -not (Test-CarryingInterface -Guid $was.guid)
        if ($Ended -and -not $gone) { continue }
        $routes = @($was.routes | Where-Object { $gone -or (-not $_.persistent -and (Test-CidrMember -Cidr '169.254.0.0/16' -Address $_.prefix.Split('/')[0])) })
        # Another way out is somebody's choice.
        if (@(Get-DefaultRoute).Count -gt 0) { $routes = @($routes | Where-Object { $_.prefix -ne '0.0.0.0/0' }) }
        $near = @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ } | ForEach-Object { "$($_.IPAddress)/$($_.PrefixLength)" })
        $routes = @($routes | Where-Object {
                $hop = $_.next_hop
                $hop -eq '0.0.0.0' -or $hop.Contains(':') -or ($near | Where-Object { Test-CidrMember -Cidr $_ -Address $hop })
            })
        Restore-InterfaceRoute -Was @{ routes = $routes } -Index $index
    }
}

function Protect-Address {
    # Watches the interfaces while somebody makes a network on their adapter: what a switch takes from an interface is put
    # on its successor. It goes on until Awaited is false for two minutes, for Seconds at most. Returns nothing.
    param([scriptblock]$Awaited, [int]$Seconds)
    $known = Get-CurrentSnapshot
    if (-not ($known.adapters | Where-Object { Test-OwnSetting -Interface $_ })) { return }
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    $calm = [DateTime]::UtcNow.AddSeconds(120)
    for ($round = 0; [DateTime]::UtcNow -lt $until -and [DateTime]::UtcNow -lt $calm; $round++) {
        $waiting = $true
        try {
            $moved = @($known.adapters | Where-Object { Test-MovedInterface -Was $_ })
            $waiting = $moved.Count -gt 0
            if ($waiting) {
                Restore-NetworkSnapshot -Snapshot @{ adapters = $moved }
                if (-not (Get-MissingAddress -Snapshot @{ adapters = $moved })) { $known = Update-Snapshot -Known $known -Settled $moved }
            }
            elseif ($round % 5 -eq 0) {
                # The settings come first: where the rest of a round fails, they are known.
                $known = Update-Snapshot -Known $known
                $waiting = $true
                # What makes the network may be what did not start.
                [void]@(Start-FallenService)
                $script:Run.Cache = @{}
                $waiting = & $Awaited
            }
        }
        # HNS answers nobody for a while, or somebody holds a file: the next round may be the one that is needed.
        catch { Add-GuardTrouble -Caught $_ }
        if ($waiting) { $calm = [DateTime]::UtcNow.AddSeconds(120) }
        Start-Sleep -Seconds 2
    }
    Save-NetworkRecord
}

function Add-GuardTrouble {
    # Notes why a round of the watch failed, each reason once. Returns nothing.
    param([System.Management.Automation.ErrorRecord]$Caught)
    $problem = ConvertTo-Problem -Caught $Caught -OtherwiseId 'BootFailed'
    $known = "Guard $($problem.id)"
    if ($script:Run.ContainsKey($known)) { return }
    $script:Run[$known] = $true
    [void](New-EventLine -Fields @{ event = 'boot-failed'; step = 'address-guard'; problem = $problem })
}

function Update-Snapshot {
    # How the interfaces are now. One that a switch took since it was known is as it was, and what took it is left out, until it has
    # all of it: it is one of Settled, or somebody gave it another address.
    param([object]$Known, [object[]]$Settled = @())
    $fresh = Read-NetworkSnapshot
    $here = @($fresh.adapters | ForEach-Object { $_.guid })
    $done = @($Settled | ForEach-Object { $_.guid })
    $kept = @($Known.adapters | Where-Object { $here -notcontains $_.guid } | Where-Object {
            $settled = $done -contains $_.guid -or (Test-OtherAddress -Was $_)
            -not $settled -or -not (Get-SuccessorGuid -Adapters $_ | Where-Object { $here -contains $_ })
        })
    $taken = @(Get-SuccessorGuid -Adapters $kept)
    $fresh.adapters = @($fresh.adapters | Where-Object { $taken -notcontains $_.guid }) + $kept
    $fresh
}

function Get-MissingAddress {
    # The first address of a snapshot that no interface uses any more, as text. Nothing when none is missing.
    param([object]$Snapshot)
    foreach ($was in $Snapshot.adapters) {
        foreach ($address in $was.addresses) {
            if ($address.settled -and -not (Test-SettledAddress -Ip $address.ip)) { return "the address $($address.ip)" }
        }
        # With DHCP the lease may be another one; an adapter that nobody rewired is not looked at.
        if (-not $was.settled -or @($was.addresses).Count -gt 0 -or (Test-CarryingInterface -Guid $was.guid)) { continue }
        $index = Find-Successor -Was $was
        if ($null -eq $index -or -not (Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ })) {
            return "the address of $($was.name)"
        }
    }
}
