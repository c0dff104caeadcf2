# SUMMARY Finds a node that another tool made, before the first write.
# winboot leaves such a node alone unless it is to be adopted.

function Test-ForeignNode {
    # Faults for what makes this machine a node that is not winboot's. Services is a table of names and descriptions, as
    # winboot gives them; Server is the API server of the cluster to join.
    param([hashtable]$Services, [string]$Server)
    $agents = @(Get-ForeignAgent)
    # It starts its own kubelet again and again: there is nothing to adopt while it runs.
    foreach ($agent in $agents) {
        New-Fault -Id 'ForeignAgent' -Message "the service $agent makes this machine a node of another cluster"
    }
    if ($script:Run.Facts.Adopt -or $agents) { return }
    $found = @(
        foreach ($name in $Services.Keys | Sort-Object) {
            if (Test-ForeignService -Name $name -Description $Services[$name]) { "the service $name" }
        }
        Get-ForeignTrace -Server $Server
    )
    $maker = Get-NodeMaker
    if ($maker -and -not $found) { $found = @("$($maker.what)") }
    if ($found) {
        $by = if ($maker) { " ($($maker.what))" } else { '' }
        New-Fault -Id 'ForeignNode' -Message "this machine is a node that winboot did not make${by}: $($found -join ', ')"
    }
    $changed = @(Get-KubeadmConflict)
    if ($changed) { New-Fault -Id 'KubeadmConflict' -Message "kubeadm changed this node after winboot took it over: $($changed -join ', ')" }
}

function Get-ForeignAgent {
    # Services of other tools that run a kubelet as their own child: RKE2 and K3s, k0s, and OpenShift's agent.
    # docs.rke2.io/install/windows, docs.k0sproject.io/stable/experimental-windows,
    # openshift/windows-machine-config-operator. Returns nothing if none exists.
    foreach ($name in @('rke2', 'k3s', 'k0sworker', 'windows-instance-config-daemon')) {
        if (Get-ServiceState -Name $name) { $name }
    }
}

function Test-ForeignService {
    # Whether a service of that name is there which winboot has neither made nor adopted.
    param([string]$Name, [string]$Description)
    $path = Get-ServicePath -Name $Name
    if (-not (Test-RegistryKey -Path $path) -or (Read-Registry -Path $path -Name 'Description') -ceq $Description) {
        return $false
    }
    -not (Test-FormerNote -Kind 'Service' -Key $Name -Step $Name)
}

function Get-ForeignTrace {
    # What kubeadm, AKS and EKS leave, and a kubeconfig of another cluster that winboot did not write. Returns nothing if
    # none exists.
    param([string]$Server)
    foreach ($path in @('C:\var\lib\kubelet\kubeadm-flags.env', 'C:\etc\kubernetes\kubelet.conf', 'C:\AzureData\CustomDataSetupScript.ps1',
            'C:\Program Files\Amazon\EKS\Start-EKSBootstrap.ps1')) {
        if ([IO.File]::Exists($path) -and -not (Test-FormerNote -Kind 'Service' -Key 'kubelet' -Step 'kubelet')) { $path }
    }
    $kubeconfig = $script:Node.kubeconfig
    $is = Read-KubeconfigServer -Path $kubeconfig
    if ($is -and $is -cne $Server -and -not (Test-FormerNote -Kind 'File' -Key $kubeconfig -Step 'kubelet-credentials')) {
        "$kubeconfig of $is"
    }
}
