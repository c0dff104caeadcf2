"""The one canned peer of the project: machines with scripted answers, and what a kubelet does at the API server.

Independent of the lab's engine and machines: nothing here reads PowerShell. It recognizes winboot's script by
its arguments (`Mode`, `RunId`), and answers with events as docs/architecture.md describes them. So a test can have a
thousand nodes in one process, each as silent, chatty or lying as the test needs.

    conduct    what a machine answers to a script, by name: good, silent, chatty, lying, …
    outsider   what else may stand at a machine's address: nothing, a redirect, an answer that drips, or none
    kubelet    the stub kubelet: both certificates, the Node, its readiness
    room       many machines on real sockets, with an API server; `python -m tests.peer FILE` is one as a process
    guest      winboot's side of a room: profile, inventory, specs, and what is left behind

The WSMan endpoints are `winboot_lab.wsman` and the API server is `winboot_lab.cluster`, over TLS: real logins, sealing,
fragments and requests. Neither winboot nor its admission asks a kubelet's own port, so the stub listens on none.
"""
