# SUMMARY Sets the host route policy of an HNS network through the HCN interface.
# The first interface (HNS) cannot change the policies of a network. Calls and JSON: microsoft/hcsshim,
# hcn/hcnnetwork.go (modifyNetwork, AddPolicy).

function Get-HostRouteDifference {
    # Whether an overlay lacks the policy HostRoute, without which the node does not reach its own pods: kubelet's
    # probes of them time out (flannel-io/flannel#1170). flanneld and Calico add it to theirs.
    param([string]$Network)
    $networks = @(Get-HnsObject -Kind networks -Name $Network)
    $is = $null
    if ($networks.Count -gt 0 -and (Test-HostRoute -Network $networks[0])) { $is = 'HostRoute' }
    Compare-Wanted -Key 'host-route' -What "HNS network ${Network}: way to its own pods" -Is $is -Want 'HostRoute'
}

function Set-HostRoute {
    # Adds the policy where it is missing. It goes with the network, so nothing is noted.
    param([string]$Network)
    foreach ($found in Get-HnsObject -Kind networks -Name $Network) {
        if (Test-HostRoute -Network $found) { continue }
        $request = @{
            ResourceType = 'Policy'
            RequestType  = 'Add'
            Settings     = @{ Policies = @(@{ Type = 'HostRoute'; Settings = @{} }) }
        }
        Edit-HcnNetwork -Id $found.ID -Request $request
    }
}

function Watch-HostRoute {
    # Adds the policy to a network that was made again while the machine runs. Returns nothing.
    param([string]$Network)
    $lacking = @(Get-HnsObject -Kind networks -Name $Network | Where-Object { -not (Test-HostRoute -Network $_) })
    if ($lacking.Count -gt 0) { Invoke-UnderMutex -Work { Set-HostRoute -Network $Network } }
}

function Test-HostRoute {
    # Whether an HNS network has the policy. The first version shows it among the network's policies as well (Get-HnsNetwork
    # in knabben.github.io/2021/0903), so that of a healthy node no second declaration is compiled. Where it does not, the second decides.
    param([object]$Network)
    if (Test-HostRoutePolicy -Properties $Network) { return $true }
    Test-HostRoutePolicy -Properties (Read-HcnNetwork -Id $Network.ID)
}

function Test-HostRoutePolicy {
    # Whether the policy is in the properties of a network.
    param([object]$Properties)
    @(Read-Item -Object $Properties -Name 'Policies' | Where-Object { (Read-Member -Object $_ -Names 'Type') -eq 'HostRoute' }).Count -gt 0
}

function Read-HcnNetwork {
    # The properties of a network, as the second version gives them. Nothing where the answer is empty.
    param([string]$Id)
    Import-Hcn
    $query = '{"SchemaVersion":{"Major":2,"Minor":0}}'
    try { $text = [Winboot.Hcn]::Query($Id, $query, 60) }
    catch [TimeoutException] { Stop-Step -Id 'HnsHangs' -Message "HNS has not shown the network $Id within 60 seconds" }
    catch [InvalidOperationException] { Stop-Step -Id 'HnsRefused' -Message "HNS does not show the network ${Id}: $($_.Exception.Message)" }
    ConvertFrom-Json -InputObject $text
}

function Edit-HcnNetwork {
    # Changes a network as the request says. Returns nothing.
    param([string]$Id, [hashtable]$Request)
    Import-Hcn
    $text = ConvertTo-Json -InputObject $Request -Depth 10 -Compress
    try { [Winboot.Hcn]::Modify($Id, $text, 60) }
    catch [TimeoutException] { Stop-Step -Id 'HnsHangs' -Message "HNS has not changed the network $Id within 60 seconds" }
    catch [InvalidOperationException] {
        Stop-Step -Id 'HnsRefused' -Message "HNS refused to change the network ${Id}: $($_.Exception.Message)"
    }
}

function Import-Hcn {
    # Compiles the declaration below, once in a session.
    if (-not ('Winboot.Hcn' -as [type])) { Add-Type -TypeDefinition (Get-HcnDeclaration) -Language CSharp }
}

function Get-HcnDeclaration {
    # The C# that calls computenetwork.dll. Texts that it gives back are freed by the runtime (CoTaskMemFree). A call that
    # hangs is left behind with its thread, as those of the first version are.
    @'
    using System;
    using System.Runtime.InteropServices;
    using System.Threading;

    namespace Winboot
    {
        public static class Hcn
        {
            [DllImport("computenetwork.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcnOpenNetwork(ref Guid id, out IntPtr network, out string error);

            [DllImport("computenetwork.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcnQueryNetworkProperties(IntPtr network, string query, out string properties, out string error);

            [DllImport("computenetwork.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcnModifyNetwork(IntPtr network, string settings, out string error);

            [DllImport("computenetwork.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcnCloseNetwork(IntPtr network);

            public static string Query(string id, string query, int seconds)
            {
                string properties = null;
                Run(id, seconds, delegate(IntPtr network)
                {
                    string error;
                    Check(HcnQueryNetworkProperties(network, query, out properties, out error), error);
                });
                return properties;
            }

            public static void Modify(string id, string settings, int seconds)
            {
                Run(id, seconds, delegate(IntPtr network)
                {
                    string error;
                    Check(HcnModifyNetwork(network, settings, out error), error);
                });
            }

            private static void Run(string id, int seconds, Action<IntPtr> work)
            {
                Exception failure = null;
                Thread call = new Thread(delegate()
                {
                    // What leaves a thread uncaught would end the process.
                    try { WithNetwork(new Guid(id), work); }
                    catch (Exception caught) { failure = caught; }
                });
                call.IsBackground = true;
                call.Start();
                if (!call.Join(seconds * 1000)) { throw new TimeoutException(); }
                if (failure != null) { throw failure; }
            }

            private static void WithNetwork(Guid id, Action<IntPtr> work)
            {
                IntPtr network;
                string error;
                Check(HcnOpenNetwork(ref id, out network, out error), error);
                try { work(network); }
                finally { HcnCloseNetwork(network); }
            }

            private static void Check(int result, string error)
            {
                if (result < 0) { throw new InvalidOperationException("0x" + result.ToString("X8") + " " + error); }
            }
        }
    }
'@
}
