# For writing Windows has no cmdlet.

function Get-HnsObject {
    param([string]$Kind, [string]$Name = '')
    $commands = @{ networks = 'Get-HnsNetwork'; endpoints = 'Get-HnsEndpoint'; policylists = 'Get-HnsPolicyList' }
    # Persistent networks are there even while it does not run.
    if ((Get-ServiceState 'hns') -eq 'Stopped' -and $script:Run.Mode -ne 'Look') { Start-Service -Name 'hns' }
    if ((Get-ServiceState 'hns') -ne 'Running') { return }
    # Community modules have commands of the same names.
    foreach ($found in & ('HostNetworkingService\' + $commands[$Kind])) {
        # What kube-proxy makes for other nodes' pods needs no name.
        if ($Name -eq '' -or (Read-Member $found 'Name') -eq $Name) { $found }
    }
}

function Invoke-HnsRequest {
    param([string]$Method, [string]$Path, $Request = $null)
    if (-not ('Winboot.Hns' -as [type])) { Add-Type -TypeDefinition (Get-HnsDeclaration) -Language CSharp }
    $body = if ($Request) { ConvertTo-Json -InputObject $Request -Depth 10 -Compress } else { '' }
    $answer = ConvertFrom-Json -InputObject ([Winboot.Hns]::Call($Method, $Path, $body))
    if (-not $answer.Success) { Stop-Step 'HnsRefused' "HNS refused $Method ${Path}: $($answer.Error)" }
    Read-Member $answer 'Output'
}

function New-HnsObject {
    param([string]$Kind, $Request)
    Invoke-HnsRequest POST "/$Kind/" -Request $Request
}

function Remove-HnsObject {
    param([string]$Kind, [string]$Id)
    [void](Invoke-HnsRequest DELETE "/$Kind/$Id")
}

function Get-HnsDeclaration {
    @'
    using System.Runtime.InteropServices;

    namespace Winboot
    {
        public static class Hns
        {
            [DllImport("vmcompute.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern void HNSCall(string method, string path, string request, out string response);

            public static string Call(string method, string path, string request)
            {
                string response;
                HNSCall(method, path, request, out response);
                return response;
            }
        }
    }
'@
}
