"""The .NET types of the lab, one module per family of namespaces. Importing this package declares them all."""

from winboot.lab.engine.types import basics, collections

__all__ = ["basics", "collections"]
