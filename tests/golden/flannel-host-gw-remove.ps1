# winboot 0.1.0: undoes what winboot did on the machine win-a1.
#
# This script CANNOT RUN YET: run `winboot init` to find the missing values; until then join refuses.
#   missing  artifacts.sha256: containerd/2.3.6/containerd-2.3.6-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubernetes/1.36.5/kubernetes-node-windows-amd64.tar.gz
#   missing  artifacts.sha256: kubectl/1.36.5/kubectl.exe
#   missing  artifacts.sha256: crictl/1.36.0/crictl-v1.36.0-windows-amd64.tar.gz
#   missing  artifacts.sha256: cni-plugins/1.9.1/cni-plugins-windows-amd64-v1.9.1.tgz
#   missing  artifacts.sha256: flannel-cni/1.9.1-flannel1/cni-plugin-flannel-windows-amd64-v1.9.1-flannel1.tgz
#   missing  artifacts.sha256: flannel/0.28.9/flanneld.exe
#
# Settings  2c208c39f905e9934ebfc1c4a8072083fa2619bee3dedc77acde1f0fd2d00214
# Library   <library>
# The settings are this machine's values and steps, down to "#region Library". The library after that line is the same
# text for every node of this winboot version. If you have reviewed a library with this SHA-256, skip it here.
#
# winboot undoes the steps in this order. The reason of each step was:
#   kube-proxy           without kube-proxy, services are unreachable on this node; kube-proxy starts after its HNS
#                        network exists
#   kube-proxy-config    services fail on this node unless kube-proxy has the exact names of HNS network, host endpoint
#                        and node
#   cni-config           the node becomes Ready when the CNI configuration exists, so winboot writes it after the pod
#                        network
#   ipam-reservations    host-local could give a pod the host endpoint's address, and it keeps the addresses of pods
#                        lost in a restart
#   pod-network          a new HNS network rewires the adapter: connections break, and static address, DNS servers and
#                        routes can get lost
#   flanneld             flanneld makes the pod network, maintains the routes to other nodes, and renews the lease of
#                        its subnet
#   flanneld-config      flanneld reads its network from a file; the CNI configuration and kube-proxy must use the same
#                        network name
#   registration         the pod network needs the Node's pod CIDR, and `kubectl logs` and `kubectl exec` need the
#                        serving certificate
#   kubelet              the kubelet makes the machine a node; it must run without a logon, restart after a crash, and
#                        write a log
#   kubelet-config       several defaults of the kubelet suit only Linux: on Windows they end the kubelet or break each
#                        pod
#   kubelet-credentials  the kubelet logs in with a client certificate; a kubelet without a valid one requests it with a
#                        short-lived token
#   pause-image          every pod needs the pause image; an early pull finds a wrong registry, proxy or Windows build
#                        before a pod hangs
#   containerd           the kubelet starts no pod without a container runtime, and containerd writes a log only if a
#                        log file is set
#   containerd-config    by default containerd reads CNI files from another folder, and the pause image must match this
#                        Windows build
#   artifacts            only a program's hash proves which program it is; a version string or a date can be wrong
#   log-rotation         containerd's log has no size limit, and NSSM and kube-log-runner never delete old logs: the
#                        disk fills up
#   postboot-task        after a restart, routes are missing and address leases are stale; the machine repairs them
#                        without winboot's host
#   firewall-rules       the control plane connects to the kubelet, and other nodes connect to the pods, only through
#                        open ports
#   adoption             a node that another tool made keeps its name and certificate, and an undo starts its former
#                        services again
#   directories          each folder gets its access rules before a program writes the first secret into the folder
#   dynamic-ports        each load-balanced service reserves client ports in blocks; the default range is small and
#                        overlaps the NodePorts
#   system-settings      wrong time, no page file or surprise updates make a node fail in ways that are hard to trace
#   windows-features     containerd cannot start a container until the Containers feature is on and the machine has
#                        restarted
#   computer-name        the computer name distinguishes the logs and certificates of clones; the kubelet also gets the
#                        node's name
#   download-sources     winboot finds a proxy, mirror or registry that does not answer before it renames or restarts
#                        the machine
#   node-preflight       winboot finds a wrong build, a missing right or an unreachable API server before it changes
#                        anything
#
# winboot removes the objects that it made, and restores the objects that it found and recorded:
#   HNS networks        cbr0, External
#   Windows features    Containers
#   computer name       WIN-A1 (unless the machine is in a domain)
#   files               C:\k\kube-proxy.yaml, C:\k\kube-proxy.kubeconfig, C:\etc\cni\net.d\10-flannel.conflist,
#                       C:\etc\kube-flannel\net-conf.json, C:\k\flanneld.kubeconfig, C:\var\lib\kubelet\config.yaml,
#                       C:\etc\kubernetes\pki\ca.crt, C:\ProgramData\containerd\certs.d\docker.io\hosts.toml,
#                       C:\Program Files\containerd\config.toml, C:\k\crictl.yaml
#   files with secrets  C:\k\kubeconfig, C:\var\lib\kubelet\pki\kubelet-*
#   firewall rules      winboot-kubelet (in, TCP 10250), winboot-kube-proxy-health (in, TCP 10256),
#                       winboot-node-ports-tcp (in, TCP 30000-32767), winboot-node-ports-udp (in, UDP 30000-32767)
#   folders             C:\k, C:\k\versions, C:\var\lib\kubelet\pki, C:\ProgramData\containerd,
#                       C:\ProgramData\containerd\certs.d, C:\ProgramData\containerd\root,
#                       C:\ProgramData\containerd\state, C:\var\lib\kubelet,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1, C:\k\versions\containerd-2.3.6,
#                       C:\Program Files\containerd, C:\Program Files\containerd\conf.d, C:\etc\kubernetes\pki,
#                       C:\etc\cni\net.d, C:\etc\kube-flannel, C:\var\lib\cni, C:\var\lib\cni\networks, C:\run\flannel,
#                       C:\var\log\pods, C:\var\log\containers, C:\var\log\containerd, C:\var\log\kubelet,
#                       C:\var\log\flanneld, C:\var\log\kube-proxy
#   images              registry.k8s.io/pause:3.10.2
#   page file           managed by Windows, if the machine has no page file
#   ports are open to   any address
#   ports of clients    33000-65535 (tcp and udp)
#   programs            C:\k\versions\containerd-2.3.6\containerd.exe, C:\k\versions\containerd-2.3.6\ctr.exe,
#                       C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe,
#                       C:\k\versions\kubernetes-1.36.5\kubelet.exe, C:\k\versions\kubernetes-1.36.5\kube-proxy.exe,
#                       C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe, C:\k\versions\kubectl-1.36.5\kubectl.exe,
#                       C:\k\versions\crictl-1.36.0\crictl.exe, C:\k\versions\nssm-2.24\nssm.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe,
#                       C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe,
#                       C:\k\versions\flannel-0.28.9\flanneld.exe
#   scheduled tasks     \winboot\logs (every hour), \winboot\boot (at each start of the machine),
#                       \winboot\guard (while networks are made)
#   services            kube-proxy, flanneld, kubelet, containerd
#   state               C:\ProgramData\winboot (journal, former values, this script for the tasks)
#
# <<name>> is a value that the script reads from this machine or its Node object (function Expand-Known):
#   <<pod_cidr>>     the IPv4 network of this node's pods, from the Node object
#   <<pod_gateway>>  the pods' gateway: the first address of <<pod_cidr>>
#
# Mode Look reports what would be put back, and changes nothing. Undo puts back what was there before winboot first changed
# it, as it was noted then; what is winboot's and was not noted goes only where the controller says so (Unnoted).
# Detached is for the task that takes a network back, Rescue for the task that corrects what a killed Detached left.
# Secrets come with this text, in the parameter Secrets. Everything this script says is JSON, one event a line.
param(
    [string]$Mode = 'Look',
    [hashtable]$Secrets = @{},
    [string]$RunId = '',
    [hashtable]$Facts = @{},
    # Which detached run this is. A task starts this file with -File, which passes text alone.
    [string]$Detached = '',
    # The whole text of this script, where a loader runs its parts.
    [string]$Whole = ''
)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
# Functions of modules obey the global preference only.
$global:ErrorActionPreference = 'Stop'
# Progress bars would be sent to the controller, and cost more than the work.
$ProgressPreference = 'SilentlyContinue'

$plan = @{
    Winboot = '0.1.0'
    Node    = 'win-a1'
    Profile = 'flannel-host-gw'
    Digest  = '2c208c39f905e9934ebfc1c4a8072083fa2619bee3dedc77acde1f0fd2d00214'
    Library = '<library>'
    Modes   = @('Look', 'Undo', 'Detached', 'Rescue')
}

# What most steps have to know of this node.
$script:Node = @{ node = 'win-a1'; startup_taint = 'winboot.io/starting'; node_ip = ''; server_host = '10.0.0.10'; server_port = 6443
    pod_cidrs = @('10.244.0.0/16'); kubectl = 'C:\k\versions\kubectl-1.36.5\kubectl.exe'; kubeconfig = 'C:\k\kubeconfig'
    crictl = 'C:\k\versions\crictl-1.36.0\crictl.exe'; crictl_config = 'C:\k\crictl.yaml'; runtime = 'containerd'
    artifacts = @(@{ name = 'containerd'; version = '2.3.6'
            url = 'https://github.com/containerd/containerd/releases/download/v2.3.6/containerd-2.3.6-windows-amd64.tar.gz'
            members = @(@{ path = 'bin/containerd.exe'; to = 'C:\k\versions\containerd-2.3.6\containerd.exe'; asks = @('--version')
                    services = @('containerd') },
                @{ path = 'bin/ctr.exe'; to = 'C:\k\versions\containerd-2.3.6\ctr.exe' },
                @{ path = 'bin/containerd-shim-runhcs-v1.exe'
                    to = 'C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe' }) },
        @{ name = 'kubernetes'; version = '1.36.5'; url = 'https://dl.k8s.io/v1.36.5/kubernetes-node-windows-amd64.tar.gz'
            members = @(@{ path = 'kubernetes/node/bin/kubelet.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kubelet.exe'
                    asks = @('--version'); services = @('kubelet')
                    takes = @{ arguments = @('--config=C:\var\lib\kubelet\config.yaml', '--bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig',
                            '--kubeconfig=C:\k\kubeconfig', '--cert-dir=C:\var\lib\kubelet\pki', '--root-dir=C:\var\lib\kubelet',
                            '--hostname-override=win-a1', '--node-ip=', '--windows-service=true', '--v=2',
                            '--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS') } },
                @{ path = 'kubernetes/node/bin/kube-proxy.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kube-proxy.exe'
                    asks = @('--version'); services = @('kube-proxy')
                    takes = @{ arguments = @('--config=C:\k\kube-proxy.yaml', '--windows-service=true', '--v=2') } },
                @{ path = 'kubernetes/node/bin/kube-log-runner.exe'; to = 'C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe'
                    services = @('kubelet', 'kube-proxy') }) },
        @{ name = 'kubectl'; version = '1.36.5'; url = 'https://dl.k8s.io/v1.36.5/bin/windows/amd64/kubectl.exe'
            members = @(@{ path = 'kubectl.exe'; to = 'C:\k\versions\kubectl-1.36.5\kubectl.exe'; asks = @('version', '--client') }) },
        @{ name = 'crictl'; version = '1.36.0'
            url = 'https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz'
            members = @(@{ path = 'crictl.exe'; to = 'C:\k\versions\crictl-1.36.0\crictl.exe'; asks = @('--version') }) },
        @{ name = 'nssm'; version = '2.24'; url = 'https://nssm.cc/release/nssm-2.24.zip'
            sha256 = '727d1e42275c605e0f04aba98095c38a8e1e46def453cdffce42869428aa6743'
            members = @(@{ path = 'nssm-2.24/win64/nssm.exe'; to = 'C:\k\versions\nssm-2.24\nssm.exe'; services = @('flanneld') }) },
        @{ name = 'cni-plugins'; version = '1.9.1'
            url = 'https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-windows-amd64-v1.9.1.tgz'
            members = @(@{ path = 'win-bridge.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe' },
                @{ path = 'host-local.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe' }) },
        @{ name = 'flannel-cni'; version = '1.9.1-flannel1'
            url = 'https://github.com/flannel-io/cni-plugin/releases/download/v1.9.1-flannel1/cni-plugin-flannel-windows-amd64-v1.9.1-flannel1.tgz'
            members = @(@{ path = 'flannel-amd64.exe'; to = 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe' }) },
        @{ name = 'flannel'; version = '0.28.9'
            url = 'https://github.com/flannel-io/flannel/releases/download/v0.28.9/flanneld.exe'
            members = @(@{ path = 'flanneld.exe'; to = 'C:\k\versions\flannel-0.28.9\flanneld.exe'; asks = @('--version')
                    services = @('flanneld') }) })
    keep_versions = 2 }

#region Steps, in their order. Each has its needs, the values it works with, and how to look and to change.
# The functions that they call are in the library below.
$steps = @(
# ---- node-preflight: winboot finds a wrong build, a missing right or an unreachable API server before it changes
# anything
@{
Name = 'node-preflight'
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- download-sources: winboot finds a proxy, mirror or registry that does not answer before it renames or restarts
# the machine
@{
Name = 'download-sources'
Needs = @('node-preflight')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- computer-name: the computer name distinguishes the logs and certificates of clones; the kubelet also gets the
# node's name
@{
Name = 'computer-name'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- windows-features: containerd cannot start a container until the Containers feature is on and the machine has
# restarted
@{
Name = 'windows-features'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- system-settings: wrong time, no page file or surprise updates make a node fail in ways that are hard to trace
@{
Name = 'system-settings'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- dynamic-ports: each load-balanced service reserves client ports in blocks; the default range is small and
# overlaps the NodePorts
@{
Name = 'dynamic-ports'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- directories: each folder gets its access rules before a program writes the first secret into the folder
@{
Name = 'directories'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- adoption: a node that another tool made keeps its name and certificate, and an undo starts its former services
# again
@{
Name = 'adoption'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- firewall-rules: the control plane connects to the kubelet, and other nodes connect to the pods, only through open
# ports
@{
Name = 'firewall-rules'
Needs = @('node-preflight', 'download-sources')
Values = {
}
Ours = @{ rules = @('winboot-kubelet', 'winboot-kube-proxy-health', 'winboot-node-ports-tcp', 'winboot-node-ports-udp') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- postboot-task: after a restart, routes are missing and address leases are stale; the machine repairs them without
# winboot's host
@{
Name = 'postboot-task'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- log-rotation: containerd's log has no size limit, and NSSM and kube-log-runner never delete old logs: the disk
# fills up
@{
Name = 'log-rotation'
Needs = @('directories')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- artifacts: only a program's hash proves which program it is; a version string or a date can be wrong
@{
Name = 'artifacts'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\k\versions\containerd-2.3.6\containerd.exe', 'C:\k\versions\containerd-2.3.6\ctr.exe',
            'C:\k\versions\containerd-2.3.6\containerd-shim-runhcs-v1.exe', 'C:\k\versions\kubernetes-1.36.5\kubelet.exe',
            'C:\k\versions\kubernetes-1.36.5\kube-proxy.exe', 'C:\k\versions\kubernetes-1.36.5\kube-log-runner.exe',
            'C:\k\versions\kubectl-1.36.5\kubectl.exe', 'C:\k\versions\crictl-1.36.0\crictl.exe',
            'C:\k\versions\nssm-2.24\nssm.exe', 'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\win-bridge.exe',
            'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\host-local.exe',
            'C:\k\versions\cni-plugins-1.9.1+flannel-cni-1.9.1-flannel1\flannel.exe',
            'C:\k\versions\flannel-0.28.9\flanneld.exe') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- containerd-config: by default containerd reads CNI files from another folder, and the pause image must match this
# Windows build
@{
Name = 'containerd-config'
Needs = @('artifacts', 'directories')
Values = {
}
Ours = @{ files = @('C:\Program Files\containerd\config.toml', 'C:\k\crictl.yaml') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- containerd: the kubelet starts no pod without a container runtime, and containerd writes a log only if a log file
# is set
@{
Name = 'containerd'
Needs = @('containerd-config', 'windows-features')
Values = {
}
Ours = @{ services = @('containerd') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- pause-image: every pod needs the pause image; an early pull finds a wrong registry, proxy or Windows build before
# a pod hangs
@{
Name = 'pause-image'
Needs = @('containerd')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    # An image that was pulled harms nothing; the kubelet's own collection removes it.
}
}

# ---- kubelet-credentials: the kubelet logs in with a client certificate; a kubelet without a valid one requests it
# with a short-lived token
@{
Name = 'kubelet-credentials'
Needs = @('directories', 'computer-name', 'adoption')
Secrets = @('bootstrap-token')
Values = {
}
Ours = @{ files = @('C:\etc\kubernetes\pki\ca.crt', 'C:\k\kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kubelet-config: several defaults of the kubelet suit only Linux: on Windows they end the kubelet or break each
# pod
@{
Name = 'kubelet-config'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\var\lib\kubelet\config.yaml') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kubelet: the kubelet makes the machine a node; it must run without a logon, restart after a crash, and write a
# log
@{
Name = 'kubelet'
Needs = @('kubelet-config', 'kubelet-credentials', 'containerd', 'artifacts', 'firewall-rules')
Values = {
}
Ours = @{ services = @('kubelet') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- registration: the pod network needs the Node's pod CIDR, and `kubectl logs` and `kubectl exec` need the serving
# certificate
@{
Name = 'registration'
Needs = @('kubelet')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    # Nothing of the machine was changed here; the Node object is the cluster's.
}
}

# ---- flanneld-config: flanneld reads its network from a file; the CNI configuration and kube-proxy must use the same
# network name
@{
Name = 'flanneld-config'
Needs = @('directories')
Values = {
}
Ours = @{ files = @('C:\etc\kube-flannel\net-conf.json', 'C:\k\flanneld.kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- flanneld: flanneld makes the pod network, maintains the routes to other nodes, and renews the lease of its subnet
@{
Name = 'flanneld'
Needs = @('flanneld-config', 'registration', 'artifacts')
Values = {
}
Ours = @{ services = @('flanneld') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- pod-network: a new HNS network rewires the adapter: connections break, and static address, DNS servers and routes
# can get lost
@{
Name = 'pod-network'
Needs = @('flanneld-config', 'flanneld', 'registration', 'windows-features')
Values = {
    $network = @{ name = 'cbr0'; type = 'L2Bridge'; subnets = @(@{ prefix = '<<pod_cidr>>'; gateway = '<<pod_gateway>>' }); empty = $false
        vni = 0; endpoint = 'cbr0_ep'; endpoint_v6 = ''; subnet_env = 'C:\run\flannel\subnet.env'; agent = 'flanneld'
        log = 'C:\var\log\flanneld\flanneld.log'
        first = @{ name = 'External'; type = 'L2Bridge'; subnets = @(@{ prefix = '192.168.255.0/30'; gateway = '192.168.255.1' })
            empty = $true; vni = 0; endpoint = ''; endpoint_v6 = ''; subnet_env = ''; agent = ''; log = ''; first = $null } }
    $guard = @{ management_port = 5986; agent = 'flanneld'; networks = @('cbr0', 'External') }
}
Look = {
    Get-RemovalDifference
}
Undo = {
    if (Get-OwnNetwork -Wanted $network) {
        # It would make the network again.
        Remove-Task -Name 'guard'
        Start-DetachedRun -Guard $guard -Seconds 480
    }
    else { Restore-FormerValue }
}
Detached = {
    Stop-PodNetwork -Wanted $network
}
}

# ---- ipam-reservations: host-local could give a pod the host endpoint's address, and it keeps the addresses of pods
# lost in a restart
@{
Name = 'ipam-reservations'
Needs = @('registration', 'containerd')
Values = {
}
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- cni-config: the node becomes Ready when the CNI configuration exists, so winboot writes it after the pod network
@{
Name = 'cni-config'
Needs = @('registration', 'ipam-reservations', 'pod-network')
Values = {
}
Ours = @{ files = @('C:\etc\cni\net.d\10-flannel.conflist') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kube-proxy-config: services fail on this node unless kube-proxy has the exact names of HNS network, host endpoint
# and node
@{
Name = 'kube-proxy-config'
Needs = @('directories', 'registration', 'ipam-reservations', 'pod-network')
Values = {
}
Ours = @{ files = @('C:\k\kube-proxy.yaml', 'C:\k\kube-proxy.kubeconfig') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

# ---- kube-proxy: without kube-proxy, services are unreachable on this node; kube-proxy starts after its HNS network
# exists
@{
Name = 'kube-proxy'
Needs = @('kube-proxy-config', 'pod-network', 'artifacts', 'firewall-rules')
Values = {
}
Ours = @{ services = @('kube-proxy') }
Look = {
    Get-RemovalDifference
}
Undo = {
    Restore-FormerValue
}
}

)
#endregion

