function Get-SystemFact {
    # Build, names, start, page file and PATH of this machine, and why a restart is pending.
    $version = 'SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $memory = 'SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management'
    $started = @(Get-BootTime)
    @{
        name = [Environment]::MachineName; build = [int](Read-Registry -Path $version -Name 'CurrentBuildNumber'); revision = (Get-Revision)
        booted = $(if ($started.Count -gt 0) { $started[0].ToString('o') } else { '' }); pending = "$(Get-PendingReboot)"
        page_file = "$(ConvertTo-Shown -Value (Read-Registry -Path $memory -Name 'PagingFiles'))"; servicing = "$(Get-ServicingState)"
        path = [Environment]::GetEnvironmentVariable('Path', 'Machine').Length; containers = $(if (Test-ContainerFeature) { 'Enabled' } else { "$(Get-FeatureState -Feature 'Containers')" })
        ignored = @(Get-PolicyProfile)
    }
}

function Get-WindowsServiceFact {
    # The definition of each service that a node needs or must not have: state, start type, how it ended, files that it needs and lacks.
    foreach ($one in $script:Wanted.known) {
        $name = $one.name
        $path = Get-ServicePath -Name $name
        if (-not (Test-RegistryKey -Path $path)) {
            @{ name = $name; state = ''; start = ''; end = ''; missing = @(); deleted = $false; waits = @() }
            continue
        }
        $is = Read-Service -Name $name
        @{
            name = $name; state = "$(Get-ServiceState -Name $name)"; start = "$($is.start)"; end = (Get-ServiceEnd -Name $name).Trim()
            missing = @($one.files | Where-Object { -not [IO.File]::Exists($_) }); deleted = (1 -eq (Read-Registry -Path $path -Name 'DeleteFlag'))
            waits = @($is.depends | Where-Object { (Get-ServiceState -Name $_) -ne 'Running' })
        }
    }
}

function Get-EventFact {
    # How often each event of interest came in the last Seconds: low memory 2004, unexpected restart 6008, a service that ended 7031 and
    # 7034, that did not start 7000 and 7009. A property names the service: the first, and of 7009 the second (its message has %1 for the time).
    param([int]$Seconds)
    $since = [DateTime]::Now.AddSeconds(-$Seconds)
    # The property is a display name, which Windows has in its own language.
    $names = @{}
    foreach ($service in Get-Service -ErrorAction SilentlyContinue) { $names[$service.DisplayName] = $service.Name }
    $wanted = @(
        @{ Provider = 'Service Control Manager'; Ids = @(7000, 7009, 7031, 7034) }
        @{ Provider = 'Microsoft-Windows-Resource-Exhaustion-Detector'; Ids = @(2004) }
        @{ Provider = 'EventLog'; Ids = @(6008) }
    )
    foreach ($one in $wanted) {
        $filter = @{ LogName = 'System'; ProviderName = $one.Provider; Id = $one.Ids; StartTime = $since }
        $found = Get-WinEvent -FilterHashtable $filter -MaxEvents 200 -ErrorAction SilentlyContinue
        $counts = @{}
        foreach ($event in $found) {
            $subject = "$(if ($one.Provider -like 'Service*') { Read-Subject -Event $event })"
            $key = "$($event.Id)|$(if ($names.ContainsKey($subject)) { $names[$subject] } else { $subject })"
            $counts[$key] = 1 + [int]$counts[$key]
        }
        foreach ($key in $counts.Keys) {
            $id, $subject = $key.Split('|')
            @{ id = [int]$id; subject = $subject; count = $counts[$key] }
        }
    }
}

function Read-Subject {
    # The service that an event of the Service Control Manager names; '' where it has no such property.
    param([object]$Event)
    $index = if ($Event.Id -eq 7009) { 1 } else { 0 }
    if (@($Event.Properties).Count -gt $index) { "$($Event.Properties[$index].Value)" } else { '' }
}

function Get-SignatureFact {
    # How many of the last 256 KiB of a log's lines contain each known text. The lines themselves stay on the machine.
    foreach ($log in $script:Wanted.logs) {
        $text = Read-LogEnd -Path $log.path -From 0 -Most 262144
        foreach ($signature in $log.signatures) {
            $count = [regex]::Matches($text, [regex]::Escape($signature.text)).Count
            if ($count -gt 0) { @{ service = $log.service; id = $signature.id; count = $count } }
        }
    }
}

function Get-CniFact {
    # The files from which containerd takes the first: name, byte order mark, and the names inside.
    $folder = $script:Wanted.cni_conf
    if (-not [IO.Directory]::Exists($folder)) { return }
    foreach ($path in [IO.Directory]::GetFiles($folder) | Where-Object { $_ -match '\.(conf|conflist|json)$' } | Sort-Object) {
        $bytes = Read-AnyFileByte -Path $path
        $mark = ($bytes.Length -ge 3 -and $bytes[0] -eq 0xEF -and $bytes[1] -eq 0xBB -and $bytes[2] -eq 0xBF)
        $config = $null
        try { $config = ConvertFrom-Json -InputObject ([Text.Encoding]::UTF8.GetString($bytes)).TrimStart([char]0xFEFF) } catch [ArgumentException] { $config = $null }
        $plugins = @(Read-Item -Object $config -Name 'plugins')
        @{
            file = [IO.Path]::GetFileName($path); mark = $mark; valid = ($null -ne $config); network = "$(Read-Member -Object $config -Names 'name')"
            plugins = @($plugins + @($config) | ForEach-Object { "$(Read-Member -Object $_ -Names 'type')" } | Where-Object { $_ })
        }
    }
}

function Get-SubnetFact {
    # The keys of flanneld's subnet.env, without quotes; nothing where there is no such file.
    if (-not $script:Wanted.subnet_env) { return }
    $text = Read-FileText -Path $script:Wanted.subnet_env
    if ($null -eq $text) { return }
    $keys = @{ network = ''; subnet = '' }
    foreach ($match in [regex]::Matches($text, '(?m)^FLANNEL_(NETWORK|SUBNET)=(\S+)')) { $keys[$match.Groups[1].Value.ToLowerInvariant()] = $match.Groups[2].Value }
    $keys
}

function Get-AdapterFact {
    # Each IPv4 address with its interface, state and origin, and the DNS servers of that interface.
    foreach ($address in Get-NetIPAddress -AddressFamily IPv4 -ErrorAction SilentlyContinue) {
        $servers = @(Get-DnsClientServerAddress -InterfaceIndex $address.InterfaceIndex -AddressFamily IPv4 -ErrorAction SilentlyContinue | ForEach-Object { $_.ServerAddresses })
        @{ alias = $address.InterfaceAlias; address = $address.IPAddress; state = $address.AddressState.ToString(); servers = @($servers | Where-Object { $_ }) }
    }
}

function Get-GatewayFact {
    # The machine's own default routes, and the host route to the metadata service where there is one.
    foreach ($one in Get-DefaultRoute) { @{ prefix = '0.0.0.0/0'; hop = $one.NextHop; alias = $one.InterfaceAlias } }
    foreach ($one in Get-NetRoute -DestinationPrefix '169.254.169.254/32' -AddressFamily IPv4 -ErrorAction SilentlyContinue) {
        @{ prefix = '169.254.169.254/32'; hop = $one.NextHop; alias = $one.InterfaceAlias }
    }
}

function Get-StoreFact {
    # How many addresses the IPAM store has given out, the one of kube-proxy, and how many pod sandboxes and shims there are.
    $entries = @(if ($script:Wanted.store) { Get-StoreFile -Store $script:Wanted.store | ForEach-Object { Read-StoreEntry -Path $_ } })
    $said = Invoke-Crictl -Arguments @('pods', '--output', 'json')
    $pods = @(if ($said) { Read-Item -Object (ConvertFrom-Json -InputObject $said) -Name 'items' })
    @{
        used = $entries.Count; vip = "$($entries | Where-Object { $_.interface -eq 'source-vip' } | Select-Object -First 1 | ForEach-Object { $_.address })"
        sandboxes = $(if ($said) { $pods.Count } else { -1 }); shims = @(Get-CimInstance -ClassName 'Win32_Process' -Filter "Name='containerd-shim-runhcs-v1.exe'" -Property 'ProcessId').Count
    }
}

function Get-CredentialFact {
    # What is wrong with the kubelet's client certificate, in words, and which files it could join with.
    $credential = $script:Wanted.credential
    @{
        fault = "$(Get-CredentialFault -Credential $credential)"; bootstrap = [IO.File]::Exists($credential.bootstrap_path)
        broken = ([IO.File]::Exists($credential.certificate) -and $null -eq (Read-PemCertificate -Path $credential.certificate))
        serving = [IO.File]::Exists($script:Wanted.serving)
    }
}

function Get-FileFact {
    # Size and age of files whose presence means something.
    foreach ($path in $script:Wanted.files) {
        if (-not [IO.File]::Exists($path)) { continue }
        $file = [IO.FileInfo]::new($path)
        @{ path = $path; size = $file.Length; written = $file.LastWriteTimeUtc.ToString('o') }
    }
}

$more = @(
    @{ Name = 'system'; Read = { Get-SystemFact } }
    @{ Name = 'known'; Read = { Get-WindowsServiceFact } }
    @{ Name = 'events'; Read = { Get-EventFact -Seconds $Seconds } }
    @{ Name = 'signatures'; Read = { Get-SignatureFact } }
    @{ Name = 'cni'; Read = { Get-CniFact } }
    @{ Name = 'subnet'; Read = { Get-SubnetFact } }
    @{ Name = 'adapters'; Read = { Get-AdapterFact } }
    @{ Name = 'gateways'; Read = { Get-GatewayFact } }
    @{ Name = 'store'; Seconds = 4; Read = { Get-StoreFact } }
    @{ Name = 'credentials'; Read = { Get-CredentialFact } }
    @{ Name = 'files'; Read = { Get-FileFact } }
)
