"""One binder: functions, cmdlets and the machine's own commands take their arguments alike."""

import pytest
from winboot_lab.engine.refusal import Refusal


def test_a_name_may_be_shortened_while_it_is_unique(run):
    ran = run('function F { param($Name, $Number) "$Name/$Number" }; F -Na x -Nu 1; F -N x')

    assert (ran.output, ran.errors) == (["x/1"], ["AmbiguousParameter,F"])


def test_a_missing_mandatory_parameter_is_an_error_without_a_prompt(run):
    assert run("function F { param([Parameter(Mandatory)]$Name) }; F").errors == [
        "MissingMandatoryParameter,F"
    ]


def test_the_value_behind_a_parameter_of_the_provider_is_not_taken_for_a_path(run):
    ran = run(r"Set-Content C:\p.txt x; Get-Content -Encoding UTF8 C:\p.txt | ForEach-Object { [string]$_ }")

    assert (ran.output, ran.errors) == (["x"], [])


def test_splatting_fills_names_and_positions(run):
    script = 'function F { param($A, $B) "$A-$B" }; $named = @{B = 2}; $list = 1, 3; F 1 @named; F @list'

    assert run(script).output == ["1-2", "1-3"]


def test_machine_commands_bind_like_cmdlets(run):
    ran = run(
        "Get-Service -Na WinRM | ForEach-Object { $_.Name }; Get-Service WinRM -Nope; 'WinRM' | Get-Service | % Name"
    )

    assert ran.output == ["WinRM", "WinRM"]
    assert ran.errors == ["NamedParameterNotFound,Microsoft.PowerShell.Commands.GetServiceCommand"]


def test_what_if_changes_nothing(run):
    script = """
        New-Item C:\\w -ItemType Directory -WhatIf
        Set-Service WinRM -StartupType Disabled -WhatIf
        Test-Path C:\\w; (Get-Service WinRM).StartType.ToString()
    """

    assert run(script).output == [False, "Automatic"]


def test_a_parameter_of_the_real_command_that_the_lab_lacks_is_refused(run):
    with pytest.raises(Refusal, match="parameter 'Get-Content -Wait'"):
        run(r"Get-Content C:\Windows\win.ini -Wait")


def test_properties_of_objects_fill_parameters_by_name(run):
    script = """
        function F {
            param(
                [Parameter(ValueFromPipelineByPropertyName)][Alias('Title')]$Name,
                [Parameter(ValueFromPipelineByPropertyName)][int]$Size
            )
            process { "$Name $Size" }
        }
        [pscustomobject]@{Name = 'a'; Size = '3'}, [pscustomobject]@{Title = 'b'} | F
    """

    assert run(script).output == ["a 3", "b 0"]


def test_defaults_for_parameters_of_commands_apply_unless_switched_off(run):
    script = """
        function F { [CmdletBinding()] param($A) "[$A]" }
        $PSDefaultParameterValues = @{'F:A' = 1}; F; F -A 2
        $PSDefaultParameterValues['Disabled'] = $true; F
    """

    assert run(script).output == ["[1]", "[2]", "[]"]
