"""A real PowerShell instead of the lab's engine: the same machine, programs and cluster below it.

    stand_ins   C# for the .NET types and the cmdlets that touch the machine, made from the lab's own declarations
    commands    Windows' commands, made from the door's signatures
    wire        values of the engine as JSON, and back
    answers     what the script asks of the machine, answered
    process     the PowerShell process: one for many runs
    run         `run_script`, as the lab's engine has it

The script's language is the real engine's: parsing, binding, conversions, scopes, errors. What a .NET type of Windows does to
the machine is the lab's in both (`engine/types`), so what differs between the engines is language. What a PowerShell 7 cannot
show of Windows PowerShell 5.1 is listed in docs/contributing.md.
"""
