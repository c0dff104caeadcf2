# SUMMARY Compares and clears the files in which azure-vnet keeps endpoints and addresses of pods.

function Get-BootTime {
    # When this machine started, by the record that the event log writes then; nothing when the log was cleared.
    $filter = @{ LogName = 'System'; ProviderName = 'EventLog'; Id = 6005 }
    foreach ($started in Get-WinEvent -FilterHashtable $filter -MaxEvents 1 -ErrorAction SilentlyContinue) {
        $started.TimeCreated.ToUniversalTime()
    }
}

function Get-AzureStateFile {
    # The files that Azure's plug-in keeps, their locks among them; nothing if none exist.
    param([string[]]$Folders)
    foreach ($folder in $Folders) {
        if (-not [IO.Directory]::Exists($folder)) { continue }
        foreach ($path in [IO.Directory]::GetFiles($folder, 'azure-vnet*.json*')) {
            if ($path -match '\.json(\.lock)?$') { $path }
        }
    }
}

function Get-AzureStateDifference {
    # Files without a write since the start of the machine speak of pods before it.
    param([string[]]$Folders, [string]$Network)
    $started = Get-BootTime
    if ($null -eq $started) { return }
    foreach ($path in Get-AzureStateFile -Folders $Folders) {
        if ($path -like '*.lock' -or [IO.File]::GetLastWriteTimeUtc($path) -ge $started) { continue }
        New-Difference -Key "file:$path" -What "file ${path}: state of pods before the restart" -Is 'present' -Want $null
    }
}

function Clear-AzureState {
    # Removes the files together with the plugin's network, while no kubelet starts a pod. The network comes back with
    # the next pod; the first switch below it stays, so the adapter is not rewired.
    param([string[]]$Folders, [string]$Network, [switch]$All)
    # Stopping the kubelet stops kube-proxy as well, which depends on it.
    $running = @(@('kubelet', 'kube-proxy') | Where-Object { (Get-ServiceState -Name $_) -eq 'Running' })
    Stop-RunningService -Name 'kubelet'
    Remove-PodNetwork -Name $Network
    foreach ($path in Get-AzureStateFile -Folders $Folders) { Remove-File -Path $path }
    if ($All) { return }
    foreach ($name in $running) { Start-CurrentService -Name $name }
}
