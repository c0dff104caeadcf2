# SUMMARY Watches programs that create HNS networks, and restores the adapter settings they lose.
# It runs during a join and after each start of Windows, which may follow a cut run.

function Get-GuardDifference {
    # A difference where no task guards the machine's address while its network is missing; nothing where no adapter has settings made by
    # hand. Where the network stands the task comes back by itself within a minute.
    param([hashtable]$Wanted)
    $own = @(Get-SetInterface)
    if ($own.Count -eq 0 -or -not (Test-OperatorAwaited -Wanted $Wanted)) { return }
    if (Test-TaskRunning -Name 'guard') { return }
    $addresses = @($own | ForEach-Object { $_.addresses } | ForEach-Object { $_.ip })
    $what = "guard of the settings of $($own[0].name)"
    if ($addresses.Count -gt 0) { $what = "guard of the static address $($addresses -join ', ')" }
    New-Difference -Key 'guard' -What $what -Is 'nobody' -Want 'the task guard'
}

function Get-SetInterface {
    # The interfaces, as Read-InterfaceIdentity shows them, that have something that a switch can take. Returns nothing if none exists.
    Get-OwnInterface | ForEach-Object { Read-InterfaceIdentity -Own $_ } | Where-Object { Test-OwnSetting -Interface $_ }
}

function Test-OwnSetting {
    # Whether a user or program set something on an interface that a switch can take from it.
    param([object]$Interface)
    @($Interface.addresses).Count -gt 0 -or @($Interface.dns).Count -gt 0 -or @(Get-PersistentRoute -Interface $Interface).Count -gt 0
}

function Get-PersistentRoute {
    # The routes of an interface that were set for good. Returns nothing if none exists. Those of a cloud's metadata service
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
    # The record with others' changes in it. A run right after a start may be there before the startup task: what ended with that
    # start is not a change, and comes back first. Returns nothing.
    Restore-EndedRoute
    Save-NetworkRecord
}

function Restore-EndedRoute {
    # Puts back the routes that ended with this start, as the record of an earlier one has them. Returns nothing.
    if (Test-EarlierRecord) { Restore-StartRoute -Ended }
}

function Test-EarlierRecord {
    # Whether the record of the network settings is of a start before this one.
    $known = Read-StateJson -Name 'network.json'
    $null -ne $known -and (Read-Member -Object $known -Names 'boot_id') -ne (Get-BootId)
}

function Test-RouteAwaited {
    # Whether a route that ended with this start is still to come back on the adapter that had it, before an agent takes that one
    # over: it comes with the address, for which the startup task waits two minutes.
    $started = Get-BootTime
    if ($null -eq $started -or $started.AddSeconds(120) -lt [DateTime]::UtcNow -or -not (Test-EarlierRecord)) { return $false }
    $here = @(Get-NetRoute -ErrorAction SilentlyContinue | Where-Object { Test-OwnRoute -Route $_ } | ForEach-Object { $_.DestinationPrefix })
    foreach ($was in Read-NetworkRecord) {
        if (Test-CarryingInterface -Guid $was.guid) { continue }
        if (@(Get-PersistentRoute -Interface $was | Where-Object { $here -notcontains $_.prefix }).Count -gt 0) { return $true }
    }
    $false
}

function Read-NetworkRecord {
    # The interfaces of the last record; nothing where the guard can read none.
    param([string]$Name = 'network.json')
    $record = Read-StateJson -Name $Name
    foreach ($was in Read-Item -Object $record -Name 'adapters') { if (Read-Member -Object $was -Names 'guid') { $was } }
}

function Get-RecordDifference {
    # A record that is missing, cannot be read or is older than the last change by others. Interfaces of one team or switch share
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
    # What others set on an interface, as one text to compare.
    param([object]$Interface)
    $addresses = @($Interface.addresses | ForEach-Object { "$($_.ip)/$($_.prefix_length)" } | Sort-Object)
    $routes = @(Get-PersistentRoute -Interface $Interface | ForEach-Object { "$($_.prefix) via $($_.next_hop) at $($_.metric)" } | Sort-Object)
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
    # Whether a switch took the settings of an interface: it carries none any more, and its successor has no good address; where the
    # address is leased, the DNS servers and routes that others set are all gone.
    param([object]$Was)
    if (-not (Test-OwnSetting -Interface $Was) -or (Test-CarryingInterface -Guid $Was.guid)) { return $false }
    if (@($Was.addresses).Count -eq 0) { return (Test-LostSetting -Was $Was) }
    foreach ($address in $Was.addresses) { if (Find-Address -Ip $address.ip) { return $false } }
    $index = Find-Successor -Was $Was
    # Another address that works is an administrator's choice.
    $null -eq $index -or @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ }).Count -eq 0
}

function Test-LostSetting {
    # Whether all that others set besides a lease is missing on the interface that replaced this one.
    param([object]$Was)
    $index = Find-Successor -Was $Was
    if ($null -eq $index) { return $true }
    $guid = @(Get-NetAdapter -InterfaceIndex $index -IncludeHidden | ForEach-Object { [string]$_.InterfaceGuid })[0]
    if (@(Read-DnsServer -Guid $guid).Count -gt 0) { return $false }
    @(Get-NetRoute -InterfaceIndex $index -PolicyStore PersistentStore -ErrorAction SilentlyContinue).Count -eq 0
}

function Test-MovedInterface {
    # Whether another interface carries now what this one carried, without an address that an administrator gave it.
    param([object]$Was)
    if (Test-CarryingInterface -Guid $Was.guid) { return $false }
    $null -ne (Find-Successor -Was $Was) -and -not (Test-OtherAddress -Was $Was)
}

function Test-OtherAddress {
    # True if the interface that now holds this interface's addresses was given a different one. With a lease the address may be any.
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
    $known = @(Get-InterruptedRecord)
    if ($known.Count -eq 0) { $known = @(Read-NetworkRecord) }
    $known | Where-Object { Test-LostInterface -Was $_ }
}

function Get-CurrentSnapshot {
    # How the interfaces are; those that lost their address as the last record knew them.
    $snapshot = Read-NetworkSnapshot
    $lost = @(Get-LostInterface)
    $here = @(Get-SuccessorGuid -Adapters $lost)
    $snapshot.adapters = @($snapshot.adapters | Where-Object { $here -notcontains $_.guid }) + $lost
    $snapshot
}

function Restore-BootNetwork {
    # At the start of the machine: an adapter that lost its address to a rewiring gets it back. The start may have cut a
    # run off between two addresses, or before routes and DNS servers: its interfaces get all of it back, also where
    # Windows dropped the switch and gave the adapter its address. What a person changed stays.
    $intact = {
        $lost = @(Get-LostInterface)
        $cut = @(Get-InterruptedRecord | Where-Object { -not (Test-OtherAddress -Was $_) })
        $taken = @{ adapters = $lost + $cut }
        (Invoke-NetworkRestore -Snapshot $taken) -and $lost.Count -eq 0 -and -not (Get-MissingWay -Snapshot $taken)
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
        if (Test-OtherWayOut -Index $index) { $routes = @($routes | Where-Object { $_.prefix -ne '0.0.0.0/0' }) }
        $near = @(Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ } | ForEach-Object { "$($_.IPAddress)/$($_.PrefixLength)" })
        $routes = @($routes | Where-Object {
                $hop = $_.next_hop
                $hop -eq '0.0.0.0' -or $hop.Contains(':') -or ($near | Where-Object { Test-CidrMember -Cidr $_ -Address $hop })
            })
        Restore-InterfaceRoute -Was @{ routes = $routes } -Index $index
    }
}

function Test-OtherWayOut {
    # True if a person chose another way out since the record: this interface has a default route, or one has that had none.
    param([int]$Index)
    $had = @(Read-NetworkRecord | Where-Object { Read-Noted -Was $_ -Name 'way_out' } | ForEach-Object { Find-Successor -Was $_ })
    @(Get-DefaultRoute | Where-Object { $_.ifIndex -eq $Index -or $had -notcontains $_.ifIndex }).Count -gt 0
}

function New-GuardTask {
    # The task that guards the address and what the pods' network needs, as an object that Set-Task registers. It starts with the machine
    # and again and again: while it runs, Windows starts no second one (MultipleInstances IgnoreNew, the default). No time limit (PT0S).
    $minutes = if (@(Get-SetInterface).Count -gt 0) { 1 } else { 5 }
    $again = New-ScheduledTaskTrigger -Once -At ([DateTime]::new(2020, 1, 1)) -RepetitionInterval ([TimeSpan]::FromMinutes($minutes))
    New-SystemTask -Path (Get-BootScriptPath) -Text $script:Run.Text -Arguments '-Mode Guard' -Seconds 0 -Priority 4 `
        -Trigger @((New-ScheduledTaskTrigger -AtStartup), $again) `
        -Description 'winboot: keeps this machine its address while a network is made on its adapter, and starts what makes it.'
}

function Test-TaskRunning {
    # Whether one of winboot's tasks is at work now.
    param([string]$Name)
    @(Get-ScheduledTask -TaskName $Name -TaskPath '\winboot\' -ErrorAction SilentlyContinue | Where-Object { $_.State.ToString() -eq 'Running' }).Count -gt 0
}

function Start-Guard {
    # Starts the guard now, where it is registered. Returns nothing.
    foreach ($found in Get-ScheduledTask -TaskName 'guard' -TaskPath '\winboot\' -ErrorAction SilentlyContinue) {
        if ($found.State.ToString() -eq 'Ready') { Start-ScheduledTask -TaskName 'guard' -TaskPath '\winboot\' }
    }
}

function Invoke-Guard {
    # The task guard. It has no clock: where an adapter has settings made by hand it stays for the whole boot, elsewhere for as long as a
    # step's Guard block answers that its network may still come, and two minutes longer. It holds no mutex while it waits, and leaves
    # the network to a guarded run that is under way.
    $known = $false
    $watch = @{
        Known = $null; Round = 0; Busy = [DateTime]::UtcNow; Awaited = $true; Missing = $false
        Settings = ''; Read = [DateTime]::MinValue; Work = ''; Asked = [DateTime]::MinValue
    }
    while ($watch.Awaited -or (Test-BusyGuard -Watch $watch)) {
        # While nothing happens, a look every ten seconds: an address is back in less than half a minute.
        $pause = 2
        # HNS answers no process for a while, or another program holds a file: the next round may be the one that is needed.
        try {
            # A copy is no node: the agent has the certificate of another machine.
            if (-not $known -and (Get-CopyText)) { return }
            $known = $true
            Invoke-GuardRound -Watch $watch
            if (-not (Test-BusyGuard -Watch $watch)) { $pause = 10 }
        }
        catch {
            Add-GuardTrouble -Caught $_
            $watch.Awaited = $true
        }
        $watch.Round++
        Start-Sleep -Seconds $pause
    }
}

function Test-BusyGuard {
    # Whether something happened in the last two minutes, or this run of the guard began then.
    param([hashtable]$Watch)
    $Watch.Busy.AddSeconds(120) -gt [DateTime]::UtcNow
}

function Invoke-GuardRound {
    # One look of the guard, and what it has to put back. Every fifth one, every sixth after two quiet minutes, also sees whether something
    # else changed.
    param([hashtable]$Watch)
    $wide = $Watch.Round % $(if (Test-BusyGuard -Watch $Watch) { 5 } else { 6 }) -eq 0
    $moved = @(if ($null -ne $Watch.Known) { Get-MovedInterface -Adapters $Watch.Known.adapters })
    if (-not $wide -and $moved.Count -eq 0 -and $null -ne $Watch.Known) { return }
    # A guarded run puts back what it takes; what it leaves is how it is from then on.
    if (Get-RunningDetached) {
        $Watch.Known = $null
        $Watch.Busy = [DateTime]::UtcNow
        return
    }
    if ($null -eq $Watch.Known) {
        $Watch.Known = Get-CurrentSnapshot
        $moved = @(Get-MovedInterface -Adapters $Watch.Known.adapters)
    }
    if ($moved.Count -gt 0) {
        $Watch.Busy = [DateTime]::UtcNow
        Restore-MovedInterface -Watch $Watch -Moved $moved
        return
    }
    if (-not $wide) { return }
    $addresses = Read-AddressText
    # The settings come first: where the rest of a round fails, they are known.
    Update-GuardSetting -Watch $Watch -Addresses $addresses
    Update-GuardWork -Watch $Watch -Addresses $addresses
}

function Get-MovedInterface {
    # The interfaces whose settings a switch took. Returns nothing if none exists.
    param([object[]]$Adapters)
    $Adapters | Where-Object { (Test-OwnSetting -Interface $_) -and -not (Test-Undisturbed -Was $_) -and (Test-MovedInterface -Was $_) }
}

function Update-GuardSetting {
    # Reads the settings again that a switch can take, where one of them changed, and every five minutes. Returns nothing.
    param([hashtable]$Watch, [string]$Addresses)
    $settings = Read-SettingText -Addresses $Addresses -Adapters $Watch.Known.adapters
    if ($settings -ceq $Watch.Settings -and $Watch.Read.AddMinutes(5) -gt [DateTime]::UtcNow) { return }
    Restore-EndedRoute
    $Watch.Known = Update-Snapshot -Known $Watch.Known
    $Watch.Settings = $settings
    $Watch.Read = [DateTime]::UtcNow
}

function Update-GuardWork {
    # Asks the steps, which start programs for it: where something changed, while a network is missing (every minute after two quiet ones),
    # and every five minutes. Returns nothing.
    param([hashtable]$Watch, [string]$Addresses)
    $work = Read-WorkText -Addresses $Addresses
    $pause = if (-not $Watch.Missing) { 300 } elseif (Test-BusyGuard -Watch $Watch) { 0 } else { 60 }
    if ($work -ceq $Watch.Work -and $Watch.Asked.AddSeconds($pause) -gt [DateTime]::UtcNow) { return }
    $missing = Invoke-GuardWork
    # What begins now is looked at closely.
    if ($missing -and -not $Watch.Missing) { $Watch.Busy = [DateTime]::UtcNow }
    $Watch.Missing = $missing
    # Where an adapter has settings of others, a network may come at any time: an agent that ends and starts again, a plug-in, a person.
    $Watch.Awaited = $missing -or @($Watch.Known.adapters | Where-Object { Test-OwnSetting -Interface $_ }).Count -gt 0
    # Started again in mid-boot with nothing to do, it does not stay.
    if (-not $Watch.Awaited -and $Watch.Round -eq 0 -and -not (Test-Starting)) { $Watch.Busy = [DateTime]::MinValue }
    # As it was before: what the steps did is a change, too.
    $Watch.Work = $work
    $Watch.Asked = [DateTime]::UtcNow
}

function Test-Starting {
    # Whether this machine started in the last ten minutes, or does not know when.
    $started = Get-BootTime
    $null -eq $started -or $started.AddMinutes(10) -gt [DateTime]::UtcNow
}

function Read-AddressText {
    # All addresses of this machine and their state, as one text to compare.
    @(Get-NetIPAddress | ForEach-Object { "$($_.InterfaceIndex) $($_.IPAddress)/$($_.PrefixLength) $($_.AddressState)" } | Sort-Object) -join '; '
}

function Read-SettingText {
    # What others may set on an interface, as far as it is read at once, as one text to compare: a snapshot asks a dozen times for each.
    param([string]$Addresses, [object[]]$Adapters)
    $lines = @($Addresses)
    $lines += @(Get-NetIPInterface -AddressFamily IPv4 | ForEach-Object { "$($_.InterfaceIndex) $($_.Dhcp) $($_.InterfaceMetric) $($_.NlMtu)" } | Sort-Object)
    $lines += @(Get-NetRoute | Where-Object { $_.NextHop -ne '0.0.0.0' -and $_.NextHop -ne '::' } |
            ForEach-Object { "$($_.InterfaceIndex) $($_.DestinationPrefix) $($_.NextHop) $($_.RouteMetric)" } | Sort-Object)
    $lines += @($Adapters | ForEach-Object { "$($_.guid) $(@(Read-DnsServer -Guid $_.guid) -join ' ')" })
    $lines -join '; '
}

function Read-WorkText {
    # What shows the guard that the steps have something to do, as one text to compare: our services and HNS with their processes, the
    # networks of HNS, the addresses, and when the startup task noted what it did.
    param([string]$Addresses)
    $filter = @(@('hns') + @(Get-OwnService) | ForEach-Object { "Name='$_'" }) -join ' OR '
    $lines = @($Addresses)
    $lines += @(Get-CimInstance -ClassName 'Win32_Service' -Filter $filter -Property 'Name', 'State', 'ProcessId', 'ExitCode' |
            ForEach-Object { "$($_.Name) $($_.State) $($_.ProcessId) $($_.ExitCode)" } | Sort-Object)
    $lines += @(Get-HnsObject -Kind networks | ForEach-Object { "$($_.ID) $(Read-Member -Object $_ -Names 'Name')" } | Sort-Object)
    $lines += "$([IO.File]::GetLastWriteTimeUtc((Get-StatePath -Name 'started.json')).Ticks)"
    $lines -join '; '
}

function Test-Undisturbed {
    # Whether an interface has its settled address on itself: the one question that most rounds ask.
    param([object]$Was)
    foreach ($address in $Was.addresses) {
        if (-not $address.settled) { continue }
        $found = @(Find-Address -Ip $address.ip | Where-Object { $_.AddressState.ToString() -eq 'Preferred' })
        return $found.Count -gt 0 -and [string](Get-NetAdapter -InterfaceIndex $found[0].InterfaceIndex -IncludeHidden).InterfaceGuid -eq $Was.guid
    }
    $false
}

function Restore-MovedInterface {
    # Puts back what a switch took. Returns nothing. No run begins to change the machine meanwhile; it does not wait for one at work already.
    param([hashtable]$Watch, [object[]]$Moved)
    $lock = Wait-Mutex -Seconds 0
    try {
        Restore-NetworkSnapshot -Snapshot @{ adapters = $Moved }
        if (Get-MissingWay -Snapshot @{ adapters = $Moved }) { return }
        # With what ended with this start, which the record of the last one still has.
        Update-NetworkRecord
        $Watch.Known = Update-Snapshot -Known $Watch.Known -Settled $Moved
    }
    finally { if ($lock) { Exit-Run -Lock $lock } }
}

function Invoke-GuardWork {
    # What the steps have to do while the machine runs; whether one of them still waits for its network. One that fails keeps no other from it.
    $awaited = $false
    foreach ($step in $script:Run.Steps) {
        if (-not $step.ContainsKey('Guard')) { continue }
        $script:Run.Cache = @{}
        try { if (@(Invoke-Block -Step $step -Block 'Guard') -contains $true) { $awaited = $true } }
        catch {
            Add-GuardTrouble -Caught $_
            $awaited = $true
        }
    }
    # Services that fell at the start are the startup task's affair, as long as there is one.
    if ((Test-StartOver) -and @(Start-FailedService).Count -gt 0) { $awaited = $true }
    # What could not be done at the start of the machine is done once what it builds on is there.
    if (-not $awaited) { $awaited = Repair-Start }
    $awaited
}

function Repair-Start {
    # Does, every five minutes at most, what the startup task could not do for the steps in this start, or did not get to before it was
    # ended. Returns whether something is left.
    $noted = Read-StateJson -Name 'started.json'
    if (-not $noted) { return $false }
    $missed = (Read-Member -Object $noted -Names 'boot_id') -ne (Get-BootId)
    if ($missed -and -not (Test-StartOver)) { return $false }
    $names = @(if ($missed) { Get-UnreachedStep } else { Read-Item -Object $noted -Name 'failed' | ForEach-Object { $_.step } })
    if (-not $missed -and $names.Count -eq 0) { return $false }
    if ($script:Run.ContainsKey('StartTried') -and $script:Run.StartTried.AddMinutes(5) -gt [DateTime]::UtcNow) { return $true }
    $script:Run['StartTried'] = [DateTime]::UtcNow
    Invoke-UnderMutex -Work {
        $script:Run.Unmet = @{}
        $script:Run['BootFailed'] = @()
        foreach ($step in $script:Run.Steps | Where-Object { $names -contains $_.Name }) { Invoke-BootStep -Step $step }
        Save-Start -Failed $script:Run.BootFailed
    }
    $left = Read-StateJson -Name 'started.json'
    (Read-Member -Object $left -Names 'boot_id') -ne (Get-BootId) -or @(Read-Item -Object $left -Name 'failed').Count -gt 0
}

function Invoke-UnderMutex {
    # Does Work, which rewires or restarts something, while no other run changes this machine; later where one does. Returns nothing.
    param([scriptblock]$Work)
    $lock = Wait-Mutex -Seconds 0
    if (-not $lock) { return }
    try { [void]@(& $Work) } finally { Exit-Run -Lock $lock }
}

function Test-StartSettled {
    # Whether the startup task has dealt with what the last start cut off: before that nothing may begin that rewires.
    @(Read-DetachedRun | Where-Object { $_.state -eq 'running' -and $_.boot_id -ne (Get-BootId) }).Count -eq 0
}

function Watch-Agent {
    # Starts the agent that makes the network, and what depends on it: neither starts with the machine by itself, so that no switch
    # comes unwatched. Returns whether the network may still come. Dependents: names of services.
    param([hashtable]$Wanted, [string[]]$Dependents)
    if (-not (Test-FormerValue) -or (Get-AgentHold)) { return $false }
    if (-not (Test-StartSettled) -or (Test-RouteAwaited)) { return $true }
    # What it builds on comes first, by the startup task, which reports it: sc.exe would start that, too.
    if (@(Get-AwaitedService).Count -gt 0) { return $true }
    $stands = Test-PodNetwork -Wanted $Wanted
    if (-not $stands) {
        if (Test-HnsRestart -Name $Wanted.agent) { Invoke-UnderMutex -Work { Restart-OwnService -Name $Wanted.agent -Because 'hns-restarted' } }
        # flanneld writes its file once it has made network and endpoint (main.go of flannel: RegisterNetwork, then HandleSubnetFile).
        elseif ((Test-NetworkGone -Wanted $Wanted) -and (Test-Idle -Name $Wanted.agent -Made $Wanted.subnet_env)) { Restart-IdleAgent -Name $Wanted.agent }
    }
    $late = @(@($Wanted.agent) + $Dependents | Where-Object { Test-Unstarted -Name $_ })
    $now = @($late | Where-Object { $stands -or $_ -eq $Wanted.agent })
    if ($now.Count -gt 0) {
        Invoke-UnderMutex -Work { foreach ($name in $now) { Start-ProgramWithoutWait -Path (Get-SystemProgram -Name 'sc.exe') -Arguments @('start', $name) } }
    }
    # What a person stopped makes no network.
    $late.Count -gt 0 -or (-not $stands -and (Get-ServiceState -Name $Wanted.agent) -ne 'Stopped')
}

function Test-Unstarted {
    # Whether a service was not tried in this boot (1077, ERROR_SERVICE_NEVER_STARTED of Windows' system error codes), or the
    # control manager gave up on starting it (as in Test-ServiceFailed).
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -ne 'Stopped') { return $false }
    $found = Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='$Name'" -Property 'ExitCode', 'StartMode'
    $null -ne $found -and $found.StartMode -ne 'Disabled' -and @(2, 3, 1053, 1068, 1070, 1077) -contains [int]$found.ExitCode
}

function Test-HnsRestart {
    # Whether a service has run since before HNS started: what it wrote to HNS is gone then. AKS restarts kube-proxy for it ("HNS service may
    # crash and HNS policies will be purged after it is restarted", AgentBaker, hnsremediator.ps1). False where either does not run.
    # Unsourced: that hns has a process of its own; in a shared svchost a restart would go unseen (`sc.exe queryex hns` shows it).
    param([string]$Name)
    if ((Get-ServiceState -Name $Name) -ne 'Running' -or (Get-ServiceState -Name 'hns') -ne 'Running') { return $false }
    $id = [int](Get-CimInstance -ClassName 'Win32_Service' -Filter "Name='hns'" -Property 'ProcessId').ProcessId
    $hns = @(Read-Process | Where-Object { $_.ProcessId -eq $id })
    # NSSM may have started the program again since.
    $own = @(Get-ServiceProcess -Name $Name | ForEach-Object { $_.Started } | Sort-Object -Descending)
    $hns.Count -gt 0 -and $own.Count -gt 0 -and $own[0] -lt $hns[0].CreationDate
}

function Restart-OwnService {
    # Stops a service and starts it again, with what depends on it. Returns nothing; the journal says that it was done, and why.
    param([string]$Name, [string]$Because)
    $running = @($Name) + @((Get-Service -Name $Name).DependentServices | Where-Object { $_.Status.ToString() -eq 'Running' } | ForEach-Object { $_.Name })
    [void](New-EventLine -Fields @{ event = $Because; service = $Name })
    Stop-RunningService -Name $Name
    foreach ($one in $running) { Start-CurrentService -Name $one }
}

function Restart-IdleAgent {
    # Starts an agent again whose network another program removed, every five minutes at most: it looks for its network only when it starts.
    # Returns nothing.
    param([string]$Name)
    $key = "Restarted $Name"
    if ($script:Run.ContainsKey($key) -and $script:Run[$key].AddMinutes(5) -gt [DateTime]::UtcNow) { return }
    Invoke-UnderMutex -Work {
        $script:Run[$key] = [DateTime]::UtcNow
        Restart-OwnService -Name $Name -Because 'network-gone'
    }
}

function Test-LateWithPod {
    # Whether the guard does what belongs to a start, and a pod is on the network by now: then it works, and a join asks before it takes
    # it away. Own is the host's own endpoint there. Those of kube-proxy have no name: the source address and remote ones.
    param([string]$Network, [string]$Own = '')
    if ($script:Run.Mode -ne 'Guard') { return $false }
    $ids = @(Get-HnsObject -Kind networks -Name $Network | ForEach-Object { $_.ID })
    @(Get-HnsObject -Kind endpoints | Where-Object {
            $ids -contains (Read-Member -Object $_ -Names 'VirtualNetwork') -and @('', $Own) -notcontains "$(Read-Member -Object $_ -Names 'Name')"
        }).Count -gt 0
}

function Test-NetworkGone {
    # Whether the network, or the endpoint that its agent makes with it, is not there at all.
    param([hashtable]$Wanted)
    # While HNS starts or stops it names nothing.
    if ((Get-ServiceState -Name 'hns') -ne 'Running') { return $false }
    if (@(Get-HnsObject -Kind networks -Name $Wanted.name).Count -eq 0) { return $true }
    $Wanted.endpoint -ne '' -and @(Get-HnsObject -Kind endpoints -Name $Wanted.endpoint).Count -eq 0
}

function Test-Idle {
    # Whether an agent runs that has done its work: it wrote the file Made since it started; where it writes none, it has had five minutes.
    param([string]$Name, [string]$Made = '')
    if ((Get-ServiceState -Name $Name) -ne 'Running') { return $false }
    $started = @(Get-ServiceProcess -Name $Name | ForEach-Object { $_.Started.ToUniversalTime() } | Sort-Object -Descending)
    if ($started.Count -eq 0) { return $false }
    if ($Made -ne '') { return [IO.File]::Exists($Made) -and [IO.File]::GetLastWriteTimeUtc($Made) -gt $started[0] }
    $started[0].AddMinutes(5) -lt [DateTime]::UtcNow
}

function Watch-AgentNetwork {
    # Has an agent of Calico or OVN-Kubernetes make its network again that is gone. Returns whether it is still missing.
    param([hashtable]$Wanted, [string]$Service)
    if (-not (Test-FormerValue) -or -not (Test-StartSettled) -or -not (Test-NetworkGone -Wanted $Wanted)) { return $false }
    if (Test-Idle -Name $Service) { Restart-IdleAgent -Name $Service }
    # What a person stopped makes no network.
    (Get-ServiceState -Name $Service) -ne 'Stopped'
}

function Watch-Proxy {
    # Has kube-proxy write its rules again where HNS lost them. Returns nothing.
    param([string]$Name)
    if (Test-HnsRestart -Name $Name) { Invoke-UnderMutex -Work { Restart-OwnService -Name $Name -Because 'hns-restarted' } }
}

function Watch-OwnNetwork {
    # Makes a network of winboot's again that is gone. Returns whether it has to be tried again.
    param([hashtable]$Wanted, [object]$Guard)
    if (-not (Test-FormerValue) -or -not (Test-StartSettled)) { return $false }
    # What belongs to it is known only while the API server answers; the startup task has its own turn.
    if (Test-PodNetwork -Wanted $Wanted) { return $false }
    if ($null -eq (Expand-Known -Text $Wanted.subnets[0].prefix)) { return @(Get-HnsObject -Kind networks -Name $Wanted.name).Count -eq 0 }
    # One that is there and otherwise than wanted may carry pods: a join asks before it is made again.
    if (@(Get-HnsObject -Kind networks -Name $Wanted.name).Count -gt 0 -and (Test-WrongNetwork -Wanted $Wanted)) { return $false }
    if (-not (Test-TaskRunning -Name 'boot')) { Repair-PodNetwork -Wanted $Wanted -Guard $Guard -Seconds 20 }
    -not (Test-PodNetwork -Wanted $Wanted)
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
    # all of it: it is one of Settled, or an administrator gave it another address.
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

function Get-MissingWay {
    # The first address, else the first default route, that the interfaces of a snapshot do not have any more, as text. Nothing when none is
    # missing.
    param([object]$Snapshot)
    $missing = Get-MissingAddress -Snapshot $Snapshot
    if ($missing) { return $missing }
    $ways = @(Get-DefaultRoute | ForEach-Object { $_.ifIndex })
    foreach ($was in $Snapshot.adapters) {
        if ((Read-Noted -Was $was -Name 'way_out') -and $ways -notcontains (Find-Successor -Was $was)) { return "the default route of $($was.name)" }
    }
}

function Get-MissingAddress {
    # The first address of a snapshot that no interface uses any more, as text. Nothing when none is missing.
    param([object]$Snapshot)
    foreach ($was in $Snapshot.adapters) {
        foreach ($address in $was.addresses) {
            if ($address.settled -and -not (Test-SettledAddress -Ip $address.ip)) { return "the address $($address.ip)" }
        }
        # With DHCP the lease may be another one; an adapter without a rewiring is not looked at.
        if (-not $was.settled -or @($was.addresses).Count -gt 0 -or (Test-CarryingInterface -Guid $was.guid)) { continue }
        $index = Find-Successor -Was $was
        if ($null -eq $index -or -not (Read-InterfaceAddress -Index $index | Where-Object { Test-UsableAddress -Address $_ })) {
            return "the address of $($was.name)"
        }
    }
}
