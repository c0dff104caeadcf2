"""Machines that come and go by themselves: each that a group starts becomes a Ready node, each that it ends is drained.

worker      one process: receive, heartbeat, scheduler, and the work: launch, termination, notices
item        a work item, its states and their transitions; work_queue holds all of them
work        what is done for one machine
metrics     counters, /metrics and /healthz
"""

from winboot.operations.hook.shared import Settings
from winboot.operations.hook.worker import Worker

__all__ = ["Settings", "Worker"]
