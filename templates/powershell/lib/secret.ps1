# Secrets come as SecureStrings and are opened only where they are written.

function Read-Secret {
    # The text must go into a file with its own access rules, and nowhere else.
    param([string]$Name)
    $pointer = [Runtime.InteropServices.Marshal]::SecureStringToGlobalAllocUnicode($script:Run.Secrets[$Name])
    try { [Runtime.InteropServices.Marshal]::PtrToStringUni($pointer) }
    finally { [Runtime.InteropServices.Marshal]::ZeroFreeGlobalAllocUnicode($pointer) }
}
