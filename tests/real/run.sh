#!/bin/sh
# run.sh [PWSH [ARGUMENT ...]]: run.ps1 with that PowerShell and these arguments; 69 when there is none.
shell=${1:-pwsh}
[ $# -eq 0 ] || shift
if ! command -v "$shell" >/dev/null 2>&1; then
    echo "There is no PowerShell '$shell'. On Windows name powershell.exe; elsewhere install PowerShell 7" >&2
    echo "(https://aka.ms/powershell) and run: make real PWSH=/path/to/pwsh" >&2
    exit 69
fi
here=$(cd "$(dirname "$0")" && pwd)
# The lab's stand-in (winboot-lab-powershell) sees no file of this host; it is told which folder to bring along.
WINBOOT_LAB_FOLDER=$(cd "$here/../.." && pwd)
export WINBOOT_LAB_FOLDER
exec "$shell" -NoProfile -NonInteractive -File "$here/run.ps1" "$@"
