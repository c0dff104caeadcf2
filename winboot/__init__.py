"""winboot turns Windows Server machines into Ready Kubernetes nodes, from your laptop, and says first what it would change."""

__version__ = "0.1.0"
