"""Does traffic really flow? What `winboot verify` and `join --verify` do.

flows      what winboot tries, as values
objects    what is made in the cluster
stage      the namespace: made, filled, deleted
scene      where the ends are
trials     each flow as something to try
diagnosis  the probable cause
story      all of it in order
"""

from winboot.operations.verify.story import Options, verify, verify_beside, verify_changed

__all__ = ["Options", "verify", "verify_beside", "verify_changed"]
