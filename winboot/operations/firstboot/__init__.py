"""Machines that become nodes by themselves: they call, prove their identity, and ask for work.

store     what is remembered: vouchers, approvals, and how far each machine has come
door      which machine may be which node
machines  the work on machines that were let in: the story of `join`, over their own calls
endpoint  the HTTPS endpoint with its four calls, and its key
carrier   what brings a machine its first text
userdata  that text
"""
