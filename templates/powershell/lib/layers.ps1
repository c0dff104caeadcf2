# SUMMARY Records, finds and removes container image layers that containerd does not know.
# Only the host compute service can remove these folders (k3s-io/k3s#9296,
# microsoft/hcsshim#166). containerd's records of them go last: without these a new containerd begins to count at 1, where
# a layer still is, and can unpack nothing (microsoft/hcsshim#536).

function Save-FormerLayer {
    # Notes that there were no layers below containerd's root yet: all that will be there may go with an undo.
    param([string]$Root)
    if (-not [IO.Directory]::Exists((Get-LayerStore -Root $Root))) {
        Save-FormerValue -Kind 'Layer' -Key $Root -Value @{ root = $Root }
    }
}

function Get-LayerDifference {
    # A difference where there are layers of which no containerd knows. No containerd can use them, and a new one
    # can unpack nothing next to them. Nothing otherwise.
    param([string]$Root)
    $store = Get-LayerStore -Root $Root
    if (Test-LayerUnknown -Store $store) {
        New-Difference -Key "layers:$store" -What "folder ${store}: layers that no containerd knows" -Is 'present' -Want 'set aside'
    }
}

function Test-LayerUnknown {
    # Whether layers are there without the snapshotter's records, which it makes before the first of them
    # (containerd: plugins/snapshots/windows/common.go, NewMetaStore).
    param([string]$Store)
    $records = [IO.Path]::Combine([IO.Path]::GetDirectoryName($Store), 'metadata.db')
    [IO.Directory]::Exists($Store) -and [IO.Directory]::GetFileSystemEntries($Store).Count -gt 0 -and -not [IO.File]::Exists($records)
}

function Clear-UnknownLayer {
    # Sets layers aside of which no containerd knows. Before the service is made: it must not start with them there.
    param([string]$Root)
    $store = Get-LayerStore -Root $Root
    if (Test-LayerUnknown -Store $store) { Move-Aside -Path $store }
}

function Get-ImageRootDifference {
    # A difference where config.toml names another root: its pods and images would be lost to a containerd that restarts with it.
    param([string]$Path, [string]$Root)
    $is = @(Read-TomlSetting -Text "$(Read-FileText -Path $Path)" | Where-Object { $_.name -eq 'root' } | ForEach-Object { $_.value })
    if ($is.Count -eq 0 -or $is[0] -eq $Root) { return }
    New-Difference -Key 'containerd:root' -What 'containerd root' -Is $is[0] -Want $Root -Disturbs
}

function Get-FormerImageRoot {
    # The roots that containerd had here before and that still hold layers, by its notes. Nothing where none do.
    param([string]$Root)
    $noted = @(Get-FormerLine | Where-Object { $_.kind -eq 'Layer' } | ForEach-Object { $_.value.root } | Sort-Object -Unique)
    $noted | Where-Object { $_ -ne $Root -and [IO.Directory]::Exists((Get-LayerStore -Root $_)) }
}

function Get-FormerImageRootDifference {
    # A difference for each of them: its images take space, and no containerd uses them.
    param([string]$Root)
    foreach ($path in Get-FormerImageRoot -Root $Root) {
        New-Difference -Key "former-root:$path" -What "folder ${path}: images of a former root" -Is 'present' -Want $null -Disturbs
    }
}

function Clear-FormerImageRoot {
    # Removes the pods, and what containerd had in former roots. It may still run with one of them: then it removes what it can
    # itself. The folders go where winboot made them.
    param([string]$Root)
    $former = @(Get-FormerImageRoot -Root $Root)
    if ($former.Count -eq 0) { return }
    Stop-RunningService -Name 'kubelet'
    foreach ($path in $former) {
        Restore-Layer -Former @{ root = $path }
        foreach ($folder in [IO.Directory]::GetDirectories($path, 'io.containerd.*')) { Remove-Folder -Path $folder }
        foreach ($folder in @($path, "$path-temp")) {
            $notes = @(Get-FormerLine -Step 'directories' -Key $folder | Where-Object { $_.kind -eq 'Folder' -and $_.value.path -eq $folder })
            foreach ($note in $notes) { Restore-Folder -Former $note.value }
        }
    }
}

function Get-LayerStore {
    # Where containerd's snapshotter for Windows has a folder for each layer.
    param([string]$Root)
    "$Root\io.containerd.snapshotter.v1.windows\snapshots"
}

function Restore-Layer {
    # Removes pods and images by the runtime while it runs, then what is left of the layers by the host compute service.
    param([object]$Former)
    Remove-AllPod
    [void](Invoke-Crictl -Arguments @('rmi', '--all') -Seconds 600)
    Stop-RunningService -Name 'containerd'
    Remove-LayerStore -Store (Get-LayerStore -Root $Former.root)
}

function Remove-LayerStore {
    # Removes all layers of a folder, or stops the step. Returns nothing.
    param([string]$Store)
    if (-not [IO.Directory]::Exists($Store)) { return }
    $failed = @(foreach ($layer in [IO.Directory]::GetDirectories($Store)) { Remove-Layer -Path $layer })
    if ($failed) { Stop-Step -Id 'LayerLeft' -Message "layers of container images cannot be removed: $($failed -join ', ')" }
}

function Remove-Layer {
    # Removes one layer; gives its path with the reason if that fails. 0x80070002 and 3: it is gone.
    param([string]$Path)
    Import-Layer
    $result = '{0:x8}' -f [Winboot.Layer]::Destroy($Path)
    if (@('00000000', '80070002', '80070003') -notcontains $result) { "$Path (0x$result)" }
}

function Import-Layer {
    # Compiles the declaration below, once in a session.
    if (-not ('Winboot.Layer' -as [type])) { Add-Type -TypeDefinition (Get-LayerDeclaration) -Language CSharp }
}

function Get-LayerDeclaration {
    # The C# that calls computestorage.dll, which is part of Windows Server 2019 and later
    # (learn.microsoft.com/virtualization/api/hcs/reference/hcsdestroylayer; microsoft/hcsshim computestorage/storage.go).
    @'
    using System.Runtime.InteropServices;

    namespace Winboot
    {
        public static class Layer
        {
            [DllImport("computestorage.dll", ExactSpelling = true, CharSet = CharSet.Unicode)]
            private static extern int HcsDestroyLayer(string layerPath);

            public static int Destroy(string layerPath)
            {
                return HcsDestroyLayer(layerPath);
            }
        }
    }
'@
}
