"""PowerShell 5.1 in Python, as far as winboot needs it: it agrees with PowerShell or refuses by name."""
