"""The PowerShell text: steps, the plan that orders them, and their rendering."""
