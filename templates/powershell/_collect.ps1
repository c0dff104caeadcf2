function Get-MachineFact {
    # What Windows this is and on which hardware: enough to model the machine.
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    foreach ($one in Get-CimInstance -ClassName 'Win32_ComputerSystem') {
        @{
            name = $one.Name; manufacturer = "$($one.Manufacturer)"; model = "$($one.Model)"; memory = [long]$one.TotalPhysicalMemory
            processors = [int]$one.NumberOfLogicalProcessors; domain = [bool]$one.PartOfDomain; build = [int](Read-Registry -Path $version -Name 'CurrentBuildNumber')
            revision = (Get-Revision); product = "$(Read-Registry -Path $version -Name 'ProductName')"
            installation = "$(Read-Registry -Path $version -Name 'InstallationType')"; updates = @(Get-HotFix | ForEach-Object { "$($_.HotFixID)" })
        }
    }
}

function Get-AddressFact {
    # Each IPv4 address with its adapter, prefix length and origin, and the adapter's driver and state.
    $adapters = @(Get-NetAdapter -IncludeHidden)
    foreach ($one in Get-NetIPAddress -AddressFamily IPv4 -ErrorAction SilentlyContinue) {
        $adapter = @($adapters | Where-Object { $_.ifIndex -eq $one.InterfaceIndex })
        @{
            alias = $one.InterfaceAlias; address = $one.IPAddress; prefix = [int]$one.PrefixLength; origin = $one.PrefixOrigin.ToString()
            driver = "$($adapter | ForEach-Object { $_.InterfaceDescription })"; state = "$($adapter | ForEach-Object { $_.Status })"
        }
    }
}

function Get-ProgramFact {
    # How many processes of each name there are. Their command lines may hold secrets and are not read.
    $counts = @{}
    foreach ($one in Get-CimInstance -ClassName 'Win32_Process' -Property 'Name') { $counts["$($one.Name)"] = 1 + [int]$counts["$($one.Name)"] }
    foreach ($name in $counts.Keys | Sort-Object) { @{ name = $name; count = $counts[$name] } }
}

function Get-ConfigurationFact {
    # The values of listed keys at the start of a line of configuration files. Nothing behind the value is read, and no URL: it may
    # hold a password.
    foreach ($file in $script:Wanted.settings) {
        $bytes = Read-AnyFileByte -Path $file.path
        if ($null -eq $bytes) { continue }
        $pattern = '(?m)^[ \t]*"?(' + ($file.keys -join '|') + ')"?[ \t]*[:=][ \t]*["'']?([^"''#,{}\[\]\r\n]*)'
        foreach ($match in [regex]::Matches([Text.Encoding]::UTF8.GetString($bytes), $pattern)) {
            $value = $match.Groups[2].Value.Trim()
            if ($value.Length -le 200 -and -not $value.Contains('://')) { @{ file = $file.path; key = $match.Groups[1].Value; value = $value } }
        }
    }
}

function Get-EnvironmentFact {
    # Of the environment of services: the values of listed variables, and of proxies only that they are set.
    foreach ($service in $script:Wanted.services) {
        $path = Get-ServicePath -Name $service.name
        $lines = @(Read-Registry -Path $path -Name 'Environment') + @(Read-Registry -Path "$path\Parameters" -Name 'AppEnvironmentExtra')
        foreach ($line in $lines | ForEach-Object { $_ } | Where-Object { $_ }) {
            $name, $value = "$line" -split '=', 2
            if ($script:Wanted.variables -contains $name) { @{ service = $service.name; name = $name; value = "$value" } }
            elseif ($name -like '*_PROXY') { @{ service = $service.name; name = $name; value = 'set' } }
        }
    }
}

function Get-LogText {
    # The end of a log, as it is.
    param([string]$Path, [long]$Most = 1MB)
    @{ text = (Read-LogEnd -Path $Path -From 0 -Most $Most); truncated = ((Get-LogSize -Path $Path) -gt $Most) }
}

function Get-EventText {
    # The newest events of a log in the last Seconds, with their messages; nothing where Windows has no such log.
    param([string]$Log, [int]$Seconds)
    $filter = @{ LogName = $Log; StartTime = [DateTime]::Now.AddSeconds(-$Seconds) }
    foreach ($one in Get-WinEvent -FilterHashtable $filter -MaxEvents 500 -ErrorAction SilentlyContinue) {
        @{ time = $one.TimeCreated.ToUniversalTime().ToString('o'); id = [int]$one.Id; provider = "$($one.ProviderName)"; message = "$($one.Message)" }
    }
}

$more += @(
    @{ Name = 'machine'; Seconds = 20; Read = { Get-MachineFact } }
    @{ Name = 'addresses'; Seconds = 10; Read = { Get-AddressFact } }
    @{ Name = 'programs'; Seconds = 10; Read = { Get-ProgramFact } }
    @{ Name = 'configuration'; Seconds = 5; Read = { Get-ConfigurationFact } }
    @{ Name = 'environment'; Seconds = 5; Read = { Get-EnvironmentFact } }
)
foreach ($log in $script:Wanted.texts) {
    $more += @{ Name = "log-$($log.service)"; Seconds = 10; Path = $log.path; Read = { Get-LogText -Path $subject.Path } }
}
foreach ($log in $script:Wanted.event_logs) {
    $more += @{ Name = "events-$log"; Seconds = 30; Log = $log; Read = { Get-EventText -Log $subject.Log -Seconds $Seconds } }
}
