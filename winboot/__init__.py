"""winboot turns Windows Server machines into Ready Kubernetes nodes, from a laptop, over WinRM."""

__version__ = "0.1.0"
