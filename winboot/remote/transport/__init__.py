"""How a script reaches a machine: one small protocol (`base`), and the ways that implement it (`psrp`)."""
