# SUMMARY Asks a program which flags and feature gates it accepts.
# No table covers a vendor's build, or a minor released after it.

function Assert-ProgramFlag {
    # Stops the step where a program does not take what its service starts it with: the arguments, and the feature gates of its
    # configuration as Takes has them. A program with a remembered hash runs for this once while neither changes. Returns nothing.
    param([string]$Path, [hashtable]$Takes)
    $question = (@($Takes.arguments) + @($Takes['gates'])) -join "`n"
    $known = (Get-HashMemory)[$Path]
    if ($known -and [string]::Equals("$($known.takes)", $question, [StringComparison]::Ordinal)) { return }
    # What does not even say its version is another trouble, which has its own name.
    $version = Invoke-Program -Path $Path -Arguments '--version'
    if ($version.ExitCode -ne 0) { return }
    $name = "$([IO.Path]::GetFileName($Path)) ($($version.Output.Trim()))"
    $refused = @(Get-RefusedArgument -Path $Path -Arguments $Takes.arguments)
    if ($refused) { Stop-Step -Id 'FlagRefused' -Message "$name does not take $($refused -join '; ')" }
    $refused = @(Get-RefusedGate -Path $Path -Gates $Takes['gates'])
    if ($refused) { Stop-Step -Id 'GateRefused' -Message "$name does not take the feature gates $($refused -join ', ')" }
    if ($known) {
        $known.takes = $question
        $script:Run.HashesDiffer = $true
    }
}

function Get-RefusedArgument {
    # The arguments that a kubelet or kube-proxy does not take, each with what it says; nothing where it takes them all. Nothing
    # starts: --version is answered when the flags are read, and before anything else is (verflag.PrintAndExitIfRequested in
    # cmd/kubelet/app/server.go and cmd/kube-proxy/app/server.go of kubernetes). Halved until the culprits are alone.
    param([string]$Path, [string[]]$Arguments)
    if (-not $Arguments) { return }
    $ended = Invoke-Program -Path $Path -Arguments ($Arguments + '--version')
    if ($ended.ExitCode -eq 0) { return }
    if ($Arguments.Count -eq 1) {
        # The last line of the error, since some print their whole help before it, without klog's time, process and place.
        $said = @("$($ended.ErrorOutput)".Trim() -split "`r?`n")[-1] -creplace '^[IWEF]\d{4} [\d:.]+ +\d+ \S+\] ', ''
        return "$Arguments ($($said.Substring(0, [Math]::Min($said.Length, 200))))"
    }
    $middle = [int][Math]::Floor($Arguments.Count / 2)
    Get-RefusedArgument -Path $Path -Arguments $Arguments[0..($middle - 1)]
    Get-RefusedArgument -Path $Path -Arguments $Arguments[$middle..($Arguments.Count - 1)]
}

function Get-RefusedGate {
    # Those of Gates (Name=true) that a kubelet or kube-proxy does not know, or has locked to the other value; nothing where it
    # takes them all. Halved as in Get-RefusedArgument. Of one that ends otherwise without any gate, too, nothing is believed.
    param([string]$Path, [string[]]$Gates)
    if (-not $Gates -or (Test-Gate -Path $Path -Gates $Gates)) { return }
    if ($Gates.Count -eq 1) {
        if (Test-Gate -Path $Path -Gates @()) { $Gates }
        return
    }
    $middle = [int][Math]::Floor($Gates.Count / 2)
    Get-RefusedGate -Path $Path -Gates $Gates[0..($middle - 1)]
    Get-RefusedGate -Path $Path -Gates $Gates[$middle..($Gates.Count - 1)]
}

function Test-Gate {
    # Whether a kubelet or kube-proxy takes these gates together. Neither starts: kube-proxy only writes its configuration, and NUL
    # is nowhere (Options.Run); a kubelet ends at a configuration that is not there, which it reads after it has set its gates
    # and names in its error (loadConfigFile). A gate that it does not take ends it before that.
    param([string]$Path, [string[]]$Gates)
    $arguments = @(if ($Gates) { "--feature-gates=$($Gates -join ',')" })
    if ([IO.Path]::GetFileName($Path) -eq 'kube-proxy.exe') {
        return (Invoke-Program -Path $Path -Arguments ($arguments + '--write-config-to=NUL')).ExitCode -eq 0
    }
    $absent = 'winboot-asks-for-gates.yaml'
    $ended = Invoke-Program -Path $Path -Arguments ($arguments + "--config=$absent")
    "$($ended.Output) $($ended.ErrorOutput)".Contains($absent)
}
