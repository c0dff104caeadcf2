# SUMMARY Reads, creates and removes HNS networks and endpoints.
# Windows has no cmdlet for writing them.

function Get-HnsObject {
    # The HNS objects of a kind (networks, endpoints, policylists), or those of one name. Returns nothing if none exists.
    param([string]$Kind, [string]$Name = '')
    # Persistent networks are there even while it does not run.
    if ((Get-ServiceState -Name 'hns') -eq 'Stopped' -and $script:Run.Mode -ne 'Look') { Start-Service -Name 'hns' }
    if ((Get-ServiceState -Name 'hns') -ne 'Running') { return }
    foreach ($found in Read-HnsKind -Kind $Kind) {
        # What kube-proxy makes for other nodes' pods needs no name.
        if ($Name -eq '' -or (Read-Member -Object $found -Names 'Name') -eq $Name) { $found }
    }
}

function Read-HnsKind {
    # All objects of a kind. Returns nothing if none exists. Windows' own commands (Get-HnsNetwork) have no limit, and compile such a
    # declaration as well (Get-VmComputeNativeMethods in hns.psm1 of microsoft/SDN).
    param([string]$Kind)
    Get-Fact -Fact "HNS $Kind" -Ask { foreach ($found in Invoke-HnsRequest -Method GET -Path "/$Kind/") { $found } }
}

function Invoke-HnsRequest {
    # One call of HNS; what it answers with. It fails after a minute without an answer; a question of a look or of the guard after 15
    # seconds, and for as long no other one is tried: for the one a person waits, and from the other an address may be missing.
    param([string]$Method, [string]$Path, [object]$Request = $null)
    $seconds = 60
    if ($Method -eq 'GET' -and @('Look', 'Guard') -contains $script:Run.Mode) {
        $seconds = 15
        if ($script:Run.ContainsKey('HnsSilent') -and $script:Run.HnsSilent -gt [DateTime]::UtcNow) {
            Stop-Step -Id 'HnsHangs' -Message "HNS did not answer a moment ago; $Method $Path was not asked"
        }
    }
    Import-HnsDeclaration
    $body = if ($Request) { ConvertTo-Json -InputObject $Request -Depth 10 -Compress } else { '' }
    try { $text = [Winboot.Hns]::Call($Method, $Path, $body, $seconds) }
    catch [TimeoutException] {
        $script:Run['HnsSilent'] = [DateTime]::UtcNow.AddSeconds(15)
        Stop-Step -Id 'HnsHangs' -Message "HNS has not answered $Method $Path within $seconds seconds"
    }
    ConvertFrom-HnsAnswer -Text $text -Call "$Method $Path"
}

function ConvertFrom-HnsAnswer {
    # What a call of HNS gives, from the JSON of its answer: Success, Error and Output (hnsResponse of microsoft/hcsshim
    # internal/hns). A list comes as one object; nothing where there is no output.
    param([string]$Text, [string]$Call)
    $answer = ConvertFrom-Json -InputObject $Text
    if (-not (Read-Member -Object $answer -Names 'Success')) {
        $refused = New-Fault -Id 'HnsRefused' -Message "HNS refused ${Call}: $(Read-Member -Object $answer -Names 'Error')"
        Assert-NoFault -Problems @(Test-FirewallService -Now; $refused)
    }
    Read-Member -Object $answer -Names 'Output'
}

function New-HnsObject {
    # Makes an object and gives it as HNS has it.
    param([string]$Kind, [object]$Request)
    Invoke-HnsRequest -Method POST -Path "/$Kind/" -Request $Request
}

function Remove-HnsObject {
    # Removes the object with this id.
    param([string]$Kind, [string]$Id)
    [void](Invoke-HnsRequest -Method DELETE -Path "/$Kind/$Id")
}

function Import-HnsDeclaration {
    # Compiles the declaration below, once in a session.
    if (-not ('Winboot.Hns' -as [type])) { Add-Type -TypeDefinition (Get-HnsDeclaration) -Language CSharp }
}

function Get-HnsDeclaration {
    # The C# that calls HNS. It hangs at times, so the call has a thread that can be left behind, as in Azure's CNI (hnswrapper).
    @'
    using System;
    using System.Runtime.InteropServices;
    using System.Threading;

    namespace Winboot
    {
        public static class Hns
        {
            [DllImport("vmcompute.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HNSCall(string method, string path, string request, out string response);

            public static string Call(string method, string path, string request, int seconds)
            {
                string response = null;
                Exception failure = null;
                Thread call = new Thread(delegate()
                {
                    // What leaves a thread uncaught would end the process.
                    try
                    {
                        int result = HNSCall(method, path, request, out response);
                        if (response == null) { Marshal.ThrowExceptionForHR(result); }
                    }
                    catch (Exception caught) { failure = caught; }
                });
                call.IsBackground = true;
                call.Start();
                if (!call.Join(seconds * 1000)) { throw new TimeoutException(); }
                if (failure != null) { throw failure; }
                return response;
            }
        }
    }
'@
}
