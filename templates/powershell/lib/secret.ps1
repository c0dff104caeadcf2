function Read-Secret {
    # For a file with its own access rules, and nothing else.
    param([string]$Name)
    $pointer = [Runtime.InteropServices.Marshal]::SecureStringToGlobalAllocUnicode($script:Run.Secrets[$Name])
    try { [Runtime.InteropServices.Marshal]::PtrToStringUni($pointer) }
    finally { [Runtime.InteropServices.Marshal]::ZeroFreeGlobalAllocUnicode($pointer) }
}
