#!/bin/sh
# run.sh PWSH: run.ps1 with that PowerShell; 69 when there is none.
shell=${1:-pwsh}
if ! command -v "$shell" >/dev/null 2>&1; then
    echo "There is no PowerShell '$shell'. On Windows name powershell.exe; elsewhere install PowerShell 7" >&2
    echo "(https://aka.ms/powershell) and run: make real PWSH=/path/to/pwsh" >&2
    exit 69
fi
exec "$shell" -NoProfile -NonInteractive -File "$(cd "$(dirname "$0")" && pwd)/run.ps1"
