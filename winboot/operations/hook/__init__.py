"""Machines that come and go by themselves: each that a group starts becomes a Ready node, each that it ends is drained.

message   what a queue says, in any of its envelopes
work      what is done for one machine
worker    the loop: receive, claim, work, answer, and only then delete the message
metrics   counters, /metrics and /healthz
"""

from winboot.operations.hook.worker import Settings, Worker

__all__ = ["Settings", "Worker"]
