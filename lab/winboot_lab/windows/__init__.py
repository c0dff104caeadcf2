"""One Windows Server machine as a model behind one door; standard library only.

door.py        what passes the door, and the table of all primitives
host.py        what all subjects know of the machine: its time, lock, names, accounts, registry
parts.py       the subjects, put together
session.py     the machine as its users see it; one acting party: a PowerShell process with its user and handles
call.py        what a cmdlet or primitive is, and the tables of both
machine.py     the whole machine with its cmdlets: how it lives, goes down and up; snapshot
clock.py       lab time: free while all wait, patient with actors that compute
`files.py registry.py acl.py accounts.py eventlog.py mutexes.py processes.py`
`scm.py features.py tasks.py boot.py pagefile.py defender.py install.py hardware.py`
`network.py firewall.py hns.py sockets.py`
               one subject each: its state, its rules, its errors
primitives/    file.*, registry.*, http.* ...: thin functions over the subjects
cmdlets/       Get-Service, New-NetRoute ...: signatures and the objects they give
programs.py    what a program of the lab (lab/winboot_lab/programs) is
faults.py      what goes wrong on demand
snapshot.py    the state as one plain tree, differences, digest
"""
