"""Windows PowerShell 5.1 as text: tokens, parser, syntax tree, literals and the strict check."""
