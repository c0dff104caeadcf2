# SUMMARY Copies Azure's scheduled events for this machine to its Node object.
# Only the machine itself reaches the service that reports them, and a spot machine has 30 seconds
# (azure-compute-docs: windows/scheduled-events.md).

function Read-MetadataText {
    # What Azure's metadata service answers, as text. It answers no request that comes through a proxy.
    param([string]$Path, [int]$Seconds)
    $request = [Net.WebRequest]::Create("http://169.254.169.254/metadata/$Path")
    $request.Timeout = 1000 * $Seconds
    $request.Proxy = $null
    $request.Headers.Add('Metadata', 'true')
    $response = $request.GetResponse()
    try {
        $reader = [IO.StreamReader]::new($response.GetResponseStream())
        try { $reader.ReadToEnd() } finally { $reader.Dispose() }
    }
    finally { $response.Close() }
}

function Get-ScheduledEventText {
    # Those events of the service's document that name this machine, each as kind|status|id|time, in one line; '' for none.
    param([string]$Document, [string]$Machine)
    $found = foreach ($one in (ConvertFrom-Json -InputObject $Document).Events) {
        if (@($one.Resources) -contains $Machine) { "$($one.EventType)|$($one.EventStatus)|$($one.EventId)|$($one.NotBefore)" }
    }
    @($found | Sort-Object) -join ';'
}

function Invoke-EventRound {
    # One question; it reports what is new to the Node. State is the last report and how this machine is called in events.
    param([hashtable]$State, [string]$Kubectl, [string]$Kubeconfig, [string]$Cache, [string]$Node)
    if (-not $State.Machine) { $State.Machine = Read-MetadataText -Path 'instance/compute/name?api-version=2021-02-01&format=text' -Seconds 10 }
    # "A delayed response in your first call of up to two minutes": Azure reports to this machine only after its first question.
    $text = Get-ScheduledEventText -Document (Read-MetadataText -Path 'scheduledevents?api-version=2020-07-01' -Seconds 130) -Machine $State.Machine
    if ($text -ceq $State.Told) { return }
    # A kubelet may annotate its own Node, and may not taint it (NodeRestriction).
    $change = if ($text) { "winboot.io/scheduled-event=$text" } else { 'winboot.io/scheduled-event-' }
    $ended = Invoke-Program -Path $Kubectl -Reads $Kubeconfig -Seconds 30 -Arguments @('--kubeconfig', $Kubeconfig, '--request-timeout=10s',
        "--cache-dir=$Cache", 'annotate', 'node', $Node, '--overwrite', $change)
    # What the API server did not take comes again.
    if ($ended.ExitCode -eq 0) { $State.Told = $text }
}

function Watch-ScheduledEvent {
    # The task events: once a second for as long as the machine runs.
    param([string]$Kubectl, [string]$Kubeconfig, [string]$Cache, [string]$Node)
    $state = @{ Machine = ''; Told = $null }
    while ($true) {
        $pause = 1
        try { Invoke-EventRound -State $state -Kubectl $Kubectl -Kubeconfig $Kubeconfig -Cache $Cache -Node $Node }
        # No route to the service, an answer cut short, a kubectl that hangs or is not believed: each may be otherwise soon. What is
        # wrong with the script itself ends it, and the task with an exit code.
        catch [InvalidOperationException], [IO.IOException], [ArgumentException] { $pause = 5 }
        Start-Sleep -Seconds $pause
    }
}

function Get-EventScript {
    # The text of the script that the task runs: Functions, which are Watch-ScheduledEvent and what it uses, and one call.
    param([string[]]$Functions)
    $values = foreach ($one in @(
            @('Kubectl', $script:Node.kubectl), @('Kubeconfig', $script:Node.kubeconfig),
            @('Cache', (Get-StatePath -Name 'events')), @('Node', $script:Node.node))) {
        "-$($one[0]) '$("$($one[1])".Replace("'", "''"))'"
    }
    "$(Get-FunctionText -Names $Functions)Watch-ScheduledEvent $($values -join ' ')`n"
}

function New-EventTask {
    # The task that runs this script from each start of the machine on, and again where it has ended.
    param([string]$Text)
    $again = New-ScheduledTaskTrigger -Once -At ([DateTime]::new(2020, 1, 1)) -RepetitionInterval ([TimeSpan]::FromMinutes(1))
    New-SystemTask -Path (Get-StatePath -Name 'events.ps1') -Text $Text -Seconds 0 -Trigger @((New-ScheduledTaskTrigger -AtStartup), $again) `
        -Description 'winboot: reports to the cluster what Azure is going to do to this machine.'
}

function Get-EventTaskDifference {
    # How script and task differ from what is wanted.
    param([string]$Text)
    Get-FileDifference -Path (Get-StatePath -Name 'events.ps1') -Text (ConvertTo-ScriptFile -Text $Text)
    Get-TaskDifference -Name 'events' -Task (New-EventTask -Text $Text)
}

function Set-EventTask {
    # Writes the script, registers the task and starts it.
    param([string]$Text)
    Save-FormerValue -Kind 'EventTask' -Key 'events' -Value @{ name = 'events' }
    # One that runs has the older script.
    Remove-Task -Name 'events'
    Write-FileText -Path (Get-StatePath -Name 'events.ps1') -Text (ConvertTo-ScriptFile -Text $Text) -Private
    Set-Task -Name 'events' -Task (New-EventTask -Text $Text)
    Start-ScheduledTask -TaskName 'events' -TaskPath '\winboot\'
}

function Restore-EventTask {
    # Removes both, and what kubectl keeps.
    param([object]$Former)
    Remove-Task -Name $Former.name
    Remove-File -Path (Get-StatePath -Name 'events.ps1')
    $cache = Get-StatePath -Name 'events'
    if ([IO.Directory]::Exists($cache)) { [IO.Directory]::Delete($cache, $true) }
}
