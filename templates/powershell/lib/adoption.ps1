# SUMMARY Recognises the tool that made this machine a node, takes the node over, and gives it back.

function Get-NodeMaker {
    # The tool that made this machine a node, as a table: id, what a person calls it, and the runtime of its kubelet (docker, containerd
    # or ''). Nothing where winboot did, or where the machine is not a node. Sources: kubernetes-sigs/sig-windows-tools
    # hostprocess/PrepareNode.ps1 and kubeadm/scripts/PrepareNode.ps1, which has rancher-wins; image-builder images/capi/ansible/windows,
    # roles kubernetes (sc.yml, nssm.yml) and runtimes; Azure/aks-engine parts/k8s/windowskubeletfunc.ps1 (New-NSSMService).
    $start = "$(Read-Registry -Path (Get-ServicePath -Name 'kubelet') -Name 'ImagePath')"
    if ((Test-OwnService -Name 'kubelet') -or (Test-FormerNote -Kind 'Service' -Key 'kubelet' -Step 'kubelet')) { return }
    $managed = if (Test-NssmService -Name 'kubelet') { 'NSSM' } else { 'a Windows service' }
    $start += " $(Read-ServiceParameter -Service 'kubelet' -Name 'AppParameters')"
    $id, $what = switch -Regex ($start) {
        'kubeletstart\.ps1' { 'aks-engine', 'AKS Engine'; break }
        default { Get-MakerOfFile -Managed $managed }
    }
    if (-not $id -and $start.Trim()) { $id, $what = 'other', "another tool, with $managed" }
    if (-not $id) { return }
    @{ id = $id; what = $what; runtime = (Get-FormerRuntime) }
}

function Get-MakerOfFile {
    # Id and name of the tool whose files are here; nothing if none exists.
    param([string]$Managed)
    $kubeadm = [IO.File]::Exists('C:\var\lib\kubelet\kubeadm-flags.env')
    if ([IO.File]::Exists('C:\AzureData\CustomDataSetupScript.ps1')) { 'aks', 'AKS' }
    elseif ([IO.File]::Exists('C:\Program Files\Amazon\EKS\Start-EKSBootstrap.ps1')) { 'eks', 'EKS' }
    elseif ([IO.File]::Exists('C:\image-builder-release.txt') -or [IO.File]::Exists('C:\k\RestartKubelet.ps1')) {
        $(if ($Managed -eq 'NSSM') { 'image-builder-nssm' } else { 'image-builder-service' }), "kubeadm on an image of image-builder, with $Managed"
    }
    elseif ([IO.File]::Exists('C:\k\StartKubelet.ps1')) {
        $wins = if (Get-ServiceState -Name 'rancher-wins') { ' and rancher_wins' } else { '' }
        'kubeadm-prepare-node', "kubeadm with PrepareNode.ps1$wins, StartKubelet.ps1 and $Managed"
    }
    elseif ($kubeadm -or [IO.File]::Exists('C:\etc\kubernetes\kubelet.conf')) { 'kubeadm', "kubeadm, with $Managed" }
    elseif (Get-ServiceState -Name 'rancher-wins') { 'rancher-wins', 'rancher_wins' }
}

function Get-FormerRuntime {
    # The runtime of a kubelet that is not winboot's: docker, containerd, or '' where neither is here. Its service depends on it, except
    # on images of image-builder with NSSM, which have one of the two.
    $depends = @((Read-Service -Name 'kubelet').depends)
    foreach ($name in @('docker', 'containerd')) { if ($depends -contains $name) { return $name } }
    foreach ($name in @('containerd', 'docker')) { if (Get-ServiceState -Name $name) { return $name } }
    ''
}

function Get-AdoptionDifference {
    # What an adoption changes about the node as a whole, Docker that is to end, and files that kubeadm wrote since. Credential is the
    # kubelet's; LeavesDocker: the profile's runtime is another. Nothing on a node that winboot made.
    param([hashtable]$Credential, [bool]$LeavesDocker, [string]$Root)
    $maker = Get-NodeMaker
    if ($maker -and -not (Test-FormerNote -Kind 'Adoption' -Key 'kubelet')) {
        $is = "made by $($maker.what)" + $(if ($maker.runtime) { ", runs $($maker.runtime)" })
        New-Difference -Key 'adoption:maker' -What 'node' -Is $is -Want "winboot's, with the same name and service"
        $space = Get-MoveSpace -Root $Root
        if ($LeavesDocker -and $space) {
            New-Difference -Key 'adoption:space' -What "drive $($space.Drive) room for both image stores" -Is "$($space.Free) free" -Want "$($space.Need) or more"
        }
    }
    if (Test-KeptIdentity -Credential $Credential) {
        New-Difference -Key 'adoption:identity' -What 'kubelet identity' -Is (Get-KubeadmCredential) -Want "the same certificate, by $($Credential.kubeconfig)"
    }
    if ($LeavesDocker -and (Get-AdoptedRuntime -Maker $maker) -eq 'docker') { Get-DockerDifference }
    if ($maker -or (Test-Adopted)) {
        foreach ($task in Get-ResetTask) {
            New-Difference -Key 'adoption:task' -What "scheduled task \$($task.TaskName): state" -Is $task.State.ToString() -Want 'Disabled'
        }
    }
    foreach ($path in Get-KubeadmConflict) {
        New-Difference -Key "adoption:$path" -What "file ${path}: written" -Is 'by kubeadm, since winboot took the node over' -Want 'noted'
    }
}

function Set-Adoption {
    # Notes what an undo starts again, remembers kubeadm's files, gives winboot's kubelet the identity of the former one, and ends
    # Docker where the node leaves it. Returns nothing.
    param([hashtable]$Credential, [bool]$LeavesDocker, [string[]]$Services)
    $maker = Get-NodeMaker
    if ($maker) {
        $running = @(@('docker') + $Services + @('Kubeproxy') | Where-Object { (Get-ServiceState -Name $_) -eq 'Running' })
        $serving = @(Get-ServingCertificate -Folder $Credential.pki)
        # Once: a later run may come after the drain.
        if (-not (Test-Adopted)) { Write-StateJson -Name 'pod-images.json' -Value @(Get-MovedImage -LeavesDocker $LeavesDocker) }
        Save-FormerValue -Kind 'Adoption' -Key 'kubelet' -Value @{ maker = $maker.id; runtime = $maker.runtime; running = $running; pki = $Credential.pki; serving = $serving }
    }
    if (Test-Adopted) { Disable-ResetTask }
    Write-StateJson -Name 'adoption.json' -Value @(Get-KubeadmMark)
    if (Test-KeptIdentity -Credential $Credential) {
        # It names the certificate by its path, which stays: the one that the kubelet renews.
        $kubeconfig = Read-FileText -Path (Get-KubeadmCredential)
        Save-SecretFile -Path $Credential.kubeconfig
        Write-FileText -Path $Credential.kubeconfig -Text $kubeconfig -Private
    }
    if ($LeavesDocker -and (Get-AdoptedRuntime -Maker $maker) -eq 'docker') { Stop-Docker }
}

function Get-ResetTask {
    # The enabled task of AKS Engine that runs windowsnodereset.ps1 at each start, which deletes HNS networks (Azure/aks-engine
    # parts/k8s/kuberneteswindowsfunctions.ps1, Register-NodeResetScriptTask, and windowsnodereset.ps1). Nothing if none exists.
    Get-ScheduledTask -TaskName 'k8s-restart-job' -TaskPath '\' -ErrorAction SilentlyContinue | Where-Object { $_.State.ToString() -ne 'Disabled' }
}

function Disable-ResetTask {
    # Keeps AKS Engine's task from deleting winboot's networks, until an undo. Returns nothing.
    foreach ($task in Get-ResetTask) {
        Save-FormerValue -Kind 'ResetTask' -Key $task.TaskName -Value @{ name = $task.TaskName }
        [void](Disable-ScheduledTask -TaskName $task.TaskName -TaskPath '\')
    }
}

function Restore-ResetTask {
    # Lets AKS Engine's task run again; one that was deleted since stays away. Returns nothing.
    param([object]$Former)
    if (Get-ScheduledTask -TaskName $Former.name -TaskPath '\' -ErrorAction SilentlyContinue) {
        [void](Enable-ScheduledTask -TaskName $Former.name -TaskPath '\')
    }
}

function Get-AdoptedRuntime {
    # The runtime of the node before winboot: that of its maker, or of the note about the adoption; nothing where neither is known.
    param([hashtable]$Maker)
    if ($Maker) { return $Maker.runtime }
    foreach ($line in Get-FormerLine -Step 'adoption' -Key 'kubelet') {
        if ($line.kind -eq 'Adoption') { return "$(Read-Member -Object $line.value -Names 'runtime')" }
    }
}

function Get-DockerDifference {
    # Docker's services that run or start by themselves, and the networks that it makes for itself.
    foreach ($name in Get-DockerService) {
        $is = "$(Get-ServiceState -Name $name), starts $((Read-Service -Name $name).start)"
        Compare-Wanted -Key "adoption:service:$name" -What "service ${name}: use" -Is $is -Want 'Stopped, starts demand' -Disturbs
    }
    foreach ($network in Get-DockerNetwork) {
        New-Difference -Key "adoption:network:$($network.Name)" -What "HNS network $($network.Name): Docker's" -Is 'present' -Want $null -Disrupts
    }
    $layers = @(Get-DockerLayer)
    $want = if ($script:Run.Facts.Purge) { $null } else { 'kept until --purge' }
    if ($layers) {
        New-Difference -Key 'adoption:images' -What "folder $(Get-DockerRoot): images" -Is "$($layers.Count) layers" -Want $want -Policy:(-not $script:Run.Facts.Purge)
    }
}

function Get-DockerLayer {
    # The layers of Docker's images by path; nothing if none exists.
    $store = "$(Get-DockerRoot)\windowsfilter"
    if ([IO.Directory]::Exists($store)) { [IO.Directory]::GetDirectories($store) }
}

function Get-MovedImage {
    # The images that the pods of a node that leaves Docker need again: those that the controller found before the move, and those that
    # the adoption noted until they are pulled. Nothing on another node.
    param([bool]$LeavesDocker)
    if (Test-Adopted) { Read-StateJson -Name 'pod-images.json' | ForEach-Object { $_ } }
    elseif ($LeavesDocker -and (Get-AdoptedRuntime -Maker (Get-NodeMaker)) -eq 'docker') { $script:Run.Facts.PodImages }
}

function Install-MovedImage {
    # Pulls the images that pods need again, so that they start without a wait. An image that winboot cannot pull is the kubelet's to
    # pull, which has the pods' logins. Returns nothing.
    param([bool]$LeavesDocker)
    foreach ($image in Get-MissingImage -Images @(Get-MovedImage -LeavesDocker $LeavesDocker)) {
        $ended = Start-ImagePull -Image $image
        if ($ended.ExitCode -ne 0) { [void](New-EventLine -Fields @{ event = 'image-left'; image = $image; problem = $ended.ErrorOutput.Trim() }) }
    }
    Remove-File -Path (Get-StatePath -Name 'pod-images.json')
}

function Get-DockerSize {
    # The size of Docker's images in bytes. Docker notes that of each layer (moby layer/filestore.go, SetSize).
    $sum = [long]0
    $known = "$(Get-DockerRoot)\image\windowsfilter\layerdb\sha256"
    if (-not [IO.Directory]::Exists($known)) { return $sum }
    foreach ($layer in [IO.Directory]::GetDirectories($known)) {
        $found = [regex]::Match("$(Read-FileText -Path "$layer\size")", '^\d{1,15}$')
        if ($found.Success) { $sum += [long]$found.Value }
    }
    $sum
}

function Get-MoveSpace {
    # What the same images need on the drive of the new store, as a table: drive, what is free and needed in words, and whether it is
    # enough. Docker's images stay next to it. Nothing on a node without Docker's images, and where --purge deletes them first.
    param([string]$Root)
    $drive = [IO.DriveInfo]::new($Root.Substring(0, 1))
    if ($script:Run.Facts.Purge -or (Get-AdoptedRuntime -Maker (Get-NodeMaker)) -ne 'docker' -or -not [IO.Directory]::Exists($drive.Name)) { return }
    $need = Get-DockerSize
    if ($need -eq 0) { return }
    $free = $drive.AvailableFreeSpace
    @{
        Drive = $drive.Name; Enough = ($free -ge $need)
        Free = "$([Math]::Floor($free / 1GB)) GiB"; Need = "$([Math]::Ceiling($need / 1GB)) GiB"
    }
}

function Test-MoveSpace {
    # A fault where a node that is to leave Docker has no room for its images in a second store. Nothing once the move has begun.
    param([string]$Root)
    if (-not $script:Run.Facts.Adopt -or (Test-Adopted)) { return }
    $space = Get-MoveSpace -Root $Root
    if (-not $space -or $space.Enough) { return }
    New-Fault -Id 'MoveSpace' -Message "$($space.Drive) has $($space.Free) free, and Docker's images need $($space.Need) there a second time"
}

function Get-DockerRoot {
    # Docker's folder: data-root of its service's flags or of its daemon.json, which dockerd refuses to have both, or its default
    # (docker/cli docs/reference/dockerd.md).
    $line = "$((Read-Service -Name 'docker').command_line)"
    $flag = [regex]::Match($line, '"--data-root=([^"]+)"|--data-root[= ]"([^"]+)"|--data-root[= ]([^\s"]+)')
    if ($flag.Success) { return $flag.Groups[1].Value + $flag.Groups[2].Value + $flag.Groups[3].Value }
    $found = [regex]::Match("$(Read-FileText -Path 'C:\ProgramData\docker\config\daemon.json')", '"data-root"\s*:\s*("[^"]+")')
    if ($found.Success) { "$(ConvertFrom-Json -InputObject $found.Groups[1].Value)" } else { 'C:\ProgramData\docker' }
}

function Remove-DockerLayer {
    # Removes the layers of Docker's images by the host compute service, which alone can, and then the list of its images. Returns nothing.
    param([string[]]$Layers)
    $failed = @(foreach ($layer in $Layers) { Remove-Layer -Path $layer })
    if ($failed) { Stop-Step -Id 'LayerLeft' -Message "layers of Docker's images cannot be removed: $($failed -join ', ')" }
    foreach ($name in @('windowsfilter', 'image')) { Remove-Folder -Path "$(Get-DockerRoot)\$name" }
}

function Get-DockerService {
    # The services of a Docker node that work against containerd: the engine, and AKS Engine's kube-proxy. Nothing if none exists.
    foreach ($name in @('docker', 'Kubeproxy')) { if (Test-RegistryKey -Path (Get-ServicePath -Name $name)) { $name } }
}

function Get-DockerNetwork {
    # The HNS networks that dockerd makes: nat by itself, and host, which PrepareNode.ps1 asks it for. Those that it found in HNS are
    # others' (moby daemon/daemon_windows.go, initNetworkController, initBridgeDriver). Nothing if none exists.
    foreach ($name in @('nat', 'host')) { Get-HnsObject -Kind networks -Name $name | Where-Object { $_.Type -ieq 'NAT' } }
}

function Stop-Docker {
    # Stops the kubelet and Docker, with its containers, and keeps Docker from starting by itself. Its images stay. Returns nothing.
    Stop-RunningService -Name 'kubelet'
    foreach ($name in Get-DockerService) {
        Save-FormerService -Name $name
        Stop-RunningService -Name $name
        # Not disabled: an undo starts it by the kubelet that depends on it.
        Invoke-ServiceControl -Arguments @('config', $name, 'start=', 'demand')
    }
    $layers = @(Get-DockerLayer)
    if ($script:Run.Facts.Purge -and $layers) { Remove-DockerLayer -Layers $layers }
}

function Remove-DockerNetwork {
    # Removes Docker's own networks. The pods' network stays, whose switch carries this machine's address. Returns nothing.
    foreach ($network in Get-DockerNetwork) { Remove-PodNetwork -Name $network.Name }
}

function Restore-Adoption {
    # Starts what ran before the adoption, when everything below it is back, and deletes serving certificates that came since. Returns
    # nothing.
    param([object]$Former)
    foreach ($path in Get-ServingCertificate -Folder $Former.pki) { if (@($Former.serving) -notcontains $path) { Remove-File -Path $path } }
    # What runs may have been started with files that this undo has replaced since.
    foreach ($name in @($Former.running)) { Stop-RunningService -Name $name }
    foreach ($name in @($Former.running)) { Start-CurrentService -Name $name }
}

function Get-AdoptedService {
    # The services that an undo starts last, for another tool. Nothing on a node that winboot made.
    foreach ($line in Get-FormerLine -Step 'adoption' -Key 'kubelet') {
        if ($line.kind -eq 'Adoption') { Read-Item -Object $line.value -Name 'running' }
    }
}

function Test-Adopted {
    # Whether an undo gives this node back to another tool, and therefore starts its services last.
    Test-FormerNote -Kind 'Adoption' -Key 'kubelet' -Step 'adoption'
}

function Test-OtherNode {
    # Whether another tool made this node, before winboot took it over or after an undo gave it back.
    (Test-Adopted) -or $null -ne (Get-NodeMaker)
}

function Get-ServingCertificate {
    # The kubelet's serving certificates by path; nothing without the folder.
    param([string]$Folder)
    if ([IO.Directory]::Exists($Folder)) { [IO.Directory]::GetFiles($Folder, 'kubelet-server-*') }
}

function Get-KubeadmCredential {
    # The kubeconfig of a kubelet that kubeadm joined (kubernetes cmd/kubeadm/app/constants, KubeletKubeConfigFileName).
    'C:\etc\kubernetes\kubelet.conf'
}

function Test-KeptIdentity {
    # Whether winboot's kubelet has no credential, and may continue with that of kubeadm's kubelet: same node, same cluster, still valid.
    param([hashtable]$Credential)
    $theirs = $Credential.Clone()
    $theirs.kubeconfig = Get-KubeadmCredential
    [IO.File]::Exists($theirs.kubeconfig) -and $null -ne (Get-CredentialFault -Credential $Credential) -and $null -eq (Get-CredentialFault -Credential $theirs)
}

function Get-KubeadmMark {
    # The files that `kubeadm join`, `upgrade node` and `reset` write or delete and winboot does not: path and time of the last write
    # in ticks as text, empty where the file is missing (kubernetes cmd/kubeadm/app/phases/kubelet/flags.go, config.go; cmd/reset.go).
    foreach ($path in @('C:\var\lib\kubelet\kubeadm-flags.env', 'C:\var\lib\kubelet\instance-config.yaml', (Get-KubeadmCredential))) {
        @{ path = $path; written = $(if ([IO.File]::Exists($path)) { "$([IO.File]::GetLastWriteTimeUtc($path).Ticks)" } else { '' }) }
    }
}

function Get-KubeadmConflict {
    # The paths of kubeadm's files that changed since winboot took the node over. Nothing on a node that it did not take over.
    $now = @(Get-KubeadmMark)
    foreach ($mark in Read-StateJson -Name 'adoption.json' | ForEach-Object { $_ }) {
        if (@($now | Where-Object { $_.path -eq $mark.path -and $_.written -ne "$($mark.written)" })) { $mark.path }
    }
}
