"""WinRM endpoints on loopback, as Windows Server shows them: HTTP and HTTPS, NTLM, WSMan shells, PSRP
pipelines.

`farm.Farm` holds any number of endpoints in one thread; `endpoint.Endpoint` is one machine's. What a script
does is not known here: an `executor.Executor` runs it. Each place names the source of its shapes;
what was not seen in recordings of real hosts is marked "assumed".
"""
