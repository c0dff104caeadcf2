# SUMMARY Reads a secret that the controller sent.

function Read-Secret {
    # A secret that was sent, as text. It goes into a file with its own access rules, and nowhere else.
    param([string]$Name)
    $pointer = [Runtime.InteropServices.Marshal]::SecureStringToGlobalAllocUnicode($script:Run.Secrets[$Name])
    try { [Runtime.InteropServices.Marshal]::PtrToStringUni($pointer) }
    finally { [Runtime.InteropServices.Marshal]::ZeroFreeGlobalAllocUnicode($pointer) }
}
