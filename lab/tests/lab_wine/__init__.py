"""What the model claims about Windows' own programs, asked of Wine and of the real nssm.exe. Skipped without them."""
