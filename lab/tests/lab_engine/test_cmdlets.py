"""Cmdlets of 5.1 that the recordings (of PowerShell 7) do not cover: layout, encodings, the machine's commands."""

from typing import Any

import pytest
from winboot_lab.engine.formatting import dotnet_text
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.run import run_script
from winboot_lab.windows.machine import Machine


@pytest.fixture
def machine() -> Any:
    made = Machine()
    made.invoke("file.make-directory", {"path": r"C:\case"})
    return made


def answers(machine: Any, text: str) -> list[str]:
    """What the script put out as text, and its errors as `! id`."""
    found: list[str] = []

    def emit(stream: str, value: Any) -> None:
        if stream == "output":
            found.append(dotnet_text(value))
        elif stream == "error":
            found.append(f"! {value.id}")

    ended = run_script(machine.session(), text, {}, emit=emit, location=r"C:\case")
    assert ended.state == "completed", ended.error
    return found


# -- JSON


def test_json_is_laid_out_wide_with_children_under_their_brace(machine):
    [text] = answers(
        machine, "[ordered]@{ name = 'x'; list = @(1, @{}) ; empty = @() } | ConvertTo-Json -Depth 4"
    )

    assert text.split("\r\n") == [
        "{",
        '    "name":  "x",',
        '    "list":  [',
        "                 1,",
        "                 {",
        "",
        "                 }",
        "             ],",
        '    "empty":  [',
        "",
        "              ]",
        "}",
    ]


def test_json_escapes_what_html_would_read_and_writes_dates_by_milliseconds(machine):
    script = r"""
        @{ a = "<b & 'c'>" } | ConvertTo-Json -Compress
        ConvertTo-Json ([datetime]::new(2020, 1, 2, 3, 4, 5, [DateTimeKind]::Utc)) -Compress
    """

    assert answers(machine, script) == [
        r'{"a":"\u003cb \u0026 \u0027c\u0027\u003e"}',
        r'"\/Date(1577934245000)\/"',
    ]


def test_an_array_that_comes_through_the_pipeline_whole_shows_its_count(machine):
    assert answers(machine, ",@(1, 2) | ConvertTo-Json -Compress") == ['{"value":[1,2],"Count":2}']


def test_null_input_leaves_convertto_json_silent(machine):
    assert answers(machine, "$null | ConvertTo-Json; 'after'") == ["after"]


@pytest.mark.parametrize("text", ["[1,2,]", '{"a":1,}', '{"a":0x10}', '{"a":1} x', "{ /* c */ }", "nope"])
def test_json_that_the_old_serializer_refuses_is_an_argument_exception(machine, text):
    [error] = answers(machine, f"ConvertFrom-Json '{text}'")

    assert error == "! System.ArgumentException,Microsoft.PowerShell.Commands.ConvertFromJsonCommand"


def test_members_that_differ_in_case_only_do_not_fit_into_an_object(machine):
    [error] = answers(machine, """ConvertFrom-Json '{"a":1,"A":2}'""")

    assert error == "! DuplicateKeysInJsonString,Microsoft.PowerShell.Commands.ConvertFromJsonCommand"


# -- files


def test_utf8_of_set_content_begins_with_a_mark_and_the_default_is_ansi(machine):
    script = r"""
        $s = [string][char]0xE9
        Set-Content a.txt $s -Encoding UTF8 -NoNewline
        Set-Content b.txt $s -NoNewline
        [BitConverter]::ToString([IO.File]::ReadAllBytes('C:\case\a.txt'))
        [BitConverter]::ToString([IO.File]::ReadAllBytes('C:\case\b.txt'))
        (Get-Content b.txt) -eq $s
    """

    assert answers(machine, script) == ["EF-BB-BF-C3-A9", "E9", "True"]


def test_a_file_cannot_be_written_while_its_own_lines_are_on_their_way(machine):
    script = (
        "Set-Content f.txt 'a', 'b'; Get-Content f.txt | Set-Content f.txt; (Get-Content f.txt) -join ','"
    )

    assert answers(machine, script) == [
        "! System.IO.IOException,Microsoft.PowerShell.Commands.SetContentCommand",
        "a,b",
    ]


def test_the_mode_of_an_item_has_six_places(machine):
    script = "Set-Content f.txt x; (Get-Item f.txt).Mode; (New-Item -ItemType Directory d).Mode"

    assert answers(machine, script) == ["-a----", "d-----"]


def test_an_item_that_was_listed_shows_its_name_and_one_that_was_asked_for_its_path(machine):
    script = r"""Set-Content f.txt x; "$(Get-ChildItem)"; "$(Get-Item f.txt)" """

    assert answers(machine, script) == ["f.txt", r"C:\case\f.txt"]


def test_get_filehash_is_a_function_and_fails_like_one(machine):
    script = r"""
        Get-FileHash nope.txt
        $open = [IO.File]::Open('C:\case\f.txt', 'Create', 'ReadWrite', 'None')
        Get-FileHash f.txt
        $open.Dispose()
    """

    assert answers(machine, script) == [
        "! PathNotFound,Microsoft.PowerShell.Commands.ResolvePathCommand",
        "! FileReadError,Get-FileHash",
    ]


def test_what_depends_on_short_file_names_is_refused(machine):
    with pytest.raises(Refusal, match="short names"):
        answers(machine, "Set-Content a.html x; Get-ChildItem -Filter *.htm")


# -- commands of the machine


def test_a_machine_object_has_enums_methods_and_a_state_that_is_refreshed(machine):
    script = """
        $s = Get-Service Dnscache
        $s.Status.GetType().FullName
        $s.Status
        Stop-Service Dnscache -Force
        $s.Status
        $s.Refresh()
        $s.Status
        $s.Start()
        $s.WaitForStatus('Running', [TimeSpan]::FromSeconds(30))
        $s.Status -eq 'Running'
    """

    assert answers(machine, script) == [
        "System.ServiceProcess.ServiceControllerStatus",
        "Running",
        "Running",
        "Stopped",
        "True",
    ]


def test_an_enum_of_the_machine_reads_as_its_word_and_counts_as_its_number(machine):
    script = """
        $null = New-NetFirewallRule -Name t -DisplayName t -Direction Inbound -Action Allow -Protocol TCP -LocalPort 80
        $rule = Get-NetFirewallRule -Name t
        "$($rule.Action) $([int]$rule.Action) $($rule.Action -eq 'Allow')"
    """

    assert answers(machine, script) == ["Allow 2 True"]


def test_a_word_that_an_enum_parameter_does_not_have_is_refused(machine):
    with pytest.raises(Refusal, match="Sideways"):
        answers(machine, "Set-NetIPInterface -InterfaceAlias Ethernet -Forwarding Sideways")


def test_each_pipeline_object_is_bound_and_asked_for_by_itself(machine):
    script = "'Dnscache', 'nope', 'W32Time' | Get-Service | ForEach-Object Name"

    assert answers(machine, script) == [
        "Dnscache",
        "! NoServiceFoundForGivenName,Microsoft.PowerShell.Commands.GetServiceCommand",
        "W32Time",
    ]


def test_an_error_of_the_machine_can_be_caught_by_its_own_type(machine):
    script = """
        try { Get-NetAdapter -Name nope -ErrorAction Stop }
        catch [Microsoft.PowerShell.Cmdletization.Cim.CimJobException] { $_.FullyQualifiedErrorId }
    """

    assert answers(machine, script) == ["CmdletizationQuery_NotFound_Name,Get-NetAdapter"]


def test_a_parameter_that_the_machine_does_not_have_is_refused_by_name(machine):
    with pytest.raises(Refusal, match="Get-Service -ComputerName"):
        answers(machine, "try { Get-Service -ComputerName other } catch { }")


def test_a_property_that_the_machine_does_not_give_is_refused_by_name(machine):
    with pytest.raises(Refusal, match="ServiceHandle"):
        answers(machine, "(Get-Service Dnscache).ServiceHandle")


def test_rules_that_leave_the_administrators_out_keep_them_out(machine):
    script = r"""
        $null = New-Item -ItemType Directory d
        $rules = [Security.AccessControl.DirectorySecurity]::new()
        $rules.SetAccessRuleProtection($true, $false)
        [IO.Directory]::SetAccessControl("$((Get-Item d).FullName)", $rules)
        Set-Content d\f.txt x
    """

    assert answers(machine, script) == [
        "! GetContentWriterUnauthorizedAccessError,Microsoft.PowerShell.Commands.SetContentCommand"
    ]


def test_a_command_that_would_ask_a_person_is_refused_unless_confirm_is_off(machine):
    task = """
        $action = New-ScheduledTaskAction -Execute 'C:\\Windows\\System32\\whoami.exe'
        $null = Register-ScheduledTask -TaskName t -Action $action
    """
    with pytest.raises(Refusal, match="Confirm"):
        answers(machine, task + "Unregister-ScheduledTask -TaskName t")

    assert answers(machine, "Unregister-ScheduledTask -TaskName t -Confirm:$false; 'gone'") == ["gone"]
