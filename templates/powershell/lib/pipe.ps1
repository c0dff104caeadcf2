# SUMMARY Looks which program serves a named pipe.

function Get-PipeDifference {
    # A difference where another program than Service serves the pipe on which its clients look for it; nothing while the service
    # runs: it starts only where it is the first to open it (Microsoft/go-winio pipe.go, FILE_FLAG_FIRST_PIPE_INSTANCE).
    param([string]$Service, [string]$Path)
    if (Test-PipeTaken -Service $Service -Path $Path) {
        New-Difference -Key "pipe:$Path" -What "pipe $Path" -Is "served by another program than $Service" -Want $null
    }
}

function Test-PipeTaken {
    # Whether the pipe is there though the service does not run.
    param([string]$Service, [string]$Path)
    (Get-ServiceState -Name $Service) -ne 'Running' -and (Test-Pipe -Path $Path)
}

function Test-Pipe {
    # Whether a pipe is there. Listed, not opened: a program that opens it takes one of its instances.
    param([string]$Path)
    # .NET before 4.6.2 takes no names with characters that files cannot have.
    try { [IO.Directory]::GetFiles('\\.\pipe\') -contains $Path }
    catch [ArgumentException] { $false }
}

function Assert-PipeFree {
    # Stops the step before the service is started where another program has its pipe: any user can be the first to make one.
    param([string]$Service, [string]$Path)
    # A service that was stopped a moment ago has it until its process has ended.
    if (-not (Wait-Until -Test { -not (Test-PipeTaken -Service $Service -Path $Path) } -Seconds 20)) {
        Stop-Step -Id 'PipeTaken' -Message "another program than $Service serves $Path, where its clients look for it"
    }
}

function Wait-Pipe {
    # Returns nothing when the pipe is there, or stops the step: the service runs and does not serve it.
    param([string]$Service, [string]$Path)
    if (-not (Wait-Until -Test { Test-Pipe -Path $Path } -Seconds 30)) {
        Stop-Step -Id 'PipeMissing' -Message "$Service runs and does not serve $Path"
    }
}
