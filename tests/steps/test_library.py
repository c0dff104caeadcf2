"""Library functions that only compute, one by one on the lab's engine."""

import base64
import json
from typing import Any

import pytest
from winboot_lab.engine.run import run_script
from winboot_lab.windows.machine import Machine

from winboot import script
from winboot.events import KNOWN_LATER
from winboot.hints import HINTS


@pytest.fixture(scope="module")
def session():
    return Machine().session()


def with_library(expression: str) -> str:
    """A script of an expression and the library functions that it names."""
    library = script._library_text(script._closure(expression))
    return f"Set-StrictMode -Version 2.0\n$ErrorActionPreference = 'Stop'\n{library}\n{expression}\n"


def answer(session: Any, expression: str) -> list[Any]:
    """What an expression emits, with the library functions that it names."""
    found: list[Any] = []
    ended = run_script(session, with_library(expression), {}, emit=lambda stream, value: found.append(value))
    assert ended.state == "completed", getattr(ended.error, "message", "")
    return found


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("'a', 'b c'", 'a "b c"'),
        ("''", '""'),
        ("'binPath=', $null, 'start=', 'demand'", 'binPath= "" start= demand'),
        ("'say \"hi\"'", '"say \\"hi\\""'),
        ("'C:\\dir\\'", "C:\\dir\\"),
        ("'C:\\my dir\\'", '"C:\\my dir\\\\"'),
        ("'a\\\"b'", '"a\\\\\\"b"'),
        ("'binPath=', '\"C:\\a b.exe\" -x'", 'binPath= "\\"C:\\a b.exe\\" -x"'),
    ],
)
def test_arguments_are_joined_so_that_programs_split_them_the_same_way(session, arguments: str, line: str):
    assert answer(session, f"Join-Argument @({arguments})") == [line]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|Name=x|", "in TCP 10250 from Any"),
        (
            "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=17|LPort2_10=30000-32767|RA4=10.0.0.0/255.0.0.0|Name=x|",
            "in UDP 30000-32767 from 10.0.0.0/8",
        ),
        (
            "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=1|RA4=10.0.0.0/8|RA42=LocalSubnet|",
            "in TCP 1 from 10.0.0.0/8,LocalSubnet",
        ),
        ("v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=80|LPort=443|", "in TCP 80,443 from Any"),
        (
            "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|Profile=Domain|LPort=80|LA4=10.0.0.5|Name=x|",
            "in TCP 80 from Any, only for Profile=Domain LA4=10.0.0.5",
        ),
        (
            "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=80|App=C:\\x.exe|Name=x|Desc=y|EmbedCtxt=z|",
            "in TCP 80 from Any, only for App=C:\\x.exe",
        ),
        ("v2.31|Action=Block|Active=TRUE|Dir=In|", "not allowing: Block"),
        ("v2.31|Action=Allow|Active=FALSE|Dir=In|", "inactive"),
    ],
)
def test_a_firewall_rule_is_read_from_its_line_in_the_registry(session, text: str, shown: str):
    assert answer(session, f"ConvertFrom-FirewallText '{text}'") == [shown]


def test_no_firewall_rule_is_no_text(session):
    assert answer(session, "ConvertFrom-FirewallText $null") == []


def test_a_wanted_firewall_rule_reads_like_one_that_is_there(session):
    rule = "@{ name = 'x'; ports = '1'; protocol = 'TCP'; direction = 'in'; sources = @('b', 'a') }"

    assert answer(session, f"ConvertTo-FirewallShown {rule}") == ["in TCP 1 from a,b"]


def test_recovery_actions_are_read_from_their_bytes(session):
    numbers = (900, 0, 0, 2, 20, 1, 10000, 1, 30000)
    raw = b"".join(number.to_bytes(4, "little") for number in numbers)

    assert answer(session, f"ConvertFrom-FailureAction ([byte[]]@({','.join(map(str, raw))}))") == [
        "restart/10000 restart/30000 reset=900"
    ]


def test_wanted_recovery_reads_like_one_that_is_there(session):
    assert answer(session, "ConvertTo-Recovery @{ restart_ms = @(10000, 30000); reset_s = 900 }") == [
        "restart/10000 restart/30000 reset=900"
    ]


def test_a_count_of_recovery_actions_that_the_bytes_do_not_hold_is_not_believed(session):
    raw = b"".join(number.to_bytes(4, "little") for number in (900, 0, 0, 2_000_000_000, 20, 1, 10000))

    assert answer(session, f"ConvertFrom-FailureAction ([byte[]]@({','.join(map(str, raw))}))") == [
        "restart/10000 reset=900"
    ]


def test_no_recovery_actions_are_an_empty_text(session):
    assert answer(session, "ConvertFrom-FailureAction $null") == [""]


def test_case_counts_in_a_comparison_unless_told_otherwise(session):
    assert len(answer(session, "Compare-Wanted -What 'x' -Is 'A' -Want 'a'")) == 1
    assert answer(session, "Compare-Wanted -What 'x' -Is 'A' -Want 'a' -IgnoreCase") == []
    assert len(answer(session, "Compare-Wanted -What 'x' -Is $null -Want ''")) == 1


@pytest.mark.parametrize("code", ["0", "0xAD", "0x200B", "0xFEFF"])
@pytest.mark.parametrize("flag", ["", "-IgnoreCase"])
def test_a_character_without_width_is_a_difference(session, code, flag):
    """-ceq overlooks them, and a kubelet that reads the file does not."""
    wanted = f"Compare-Wanted -What 'x' -Is \"a$([char]{code})\" -Want 'a' {flag}"

    assert len(answer(session, wanted)) == 1


def test_what_cannot_be_known_yet_differs_whatever_is_there_and_says_so(session):
    found = "| ForEach-Object { $_.key; $_.unknown; $_.is; $_.want }"

    assert answer(session, f"Compare-Wanted -Key 'k' -What 'x' -Is $null -Want $null -Unknown {found}") == [
        "k",
        True,
        None,
        KNOWN_LATER,
    ]
    assert answer(session, f"Compare-Wanted -What 'x' -Is 'a' -Want '{KNOWN_LATER}/24' -Unknown {found}") == [
        "x",
        True,
        "a",
        f"{KNOWN_LATER}/24",
    ]


def test_a_text_that_a_user_writes_is_not_taken_for_unknown(session):
    """A command line may hold any words."""
    found = "| ForEach-Object { $_.unknown }"

    assert answer(session, f"Compare-Wanted -What 'x' -Is 'a' -Want '{KNOWN_LATER}' {found}") == [False]


def test_an_absent_value_differs_from_an_empty_one(session):
    assert len(answer(session, "Compare-Wanted -What 'x' -Is $null -Want ''")) == 1


@pytest.mark.parametrize(
    ("cidr", "offset", "address"),
    [
        ("10.244.3.0/24", 2, "10.244.3.2"),
        ("10.244.0.0/16", 300, "10.244.1.44"),
        ("10.244.3.0/24", 255, "10.244.3.255"),
        ("fd00:10::/64", 3, "fd00:10::3"),
        # There is none.
        ("10.244.3.0/24", 256, None),
        ("10.244.3.128/25", 200, None),
        ("10.255.255.255/32", 1, None),
        ("255.255.255.255/32", 1, None),
        ("10.244.3.0/24", 2147483647, None),
    ],
)
def test_addresses_are_counted_from_the_start_of_their_network(
    session, cidr: str, offset: int, address: str | None
):
    assert answer(session, f"Get-CidrAddress -Cidr '{cidr}' -Offset {offset}") == [address]


def b64(text: str) -> str:
    """Text as base64."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "user",
    [
        "null",
        '{"client-certificate": "x.pem"}',
        '{"tokenFile": "C:\\\\t"}',
        '{"token": ""}',
        '{"token": null}',
        '{"token": "t0k3n"}',
        '{"token": "a.b"}',
        '{"token": "a.b.c"}',
        '{"token": "a.####.c"}',
        json.dumps({"token": f"a.{b64('no json')}.c"}),
        json.dumps({"token": f"a.{b64('{}')}.c"}),
        json.dumps({"token": f"a.{b64(json.dumps({'exp': 'x'}))}.c"}),
        json.dumps({"token": f"a.{b64(json.dumps({'exp': 10**12}))}.c"}),
        json.dumps({"token": f"a.{b64(json.dumps({'exp': -5}))}.c"}),
        '{"client-certificate-data": "####"}',
        '{"client-certificate-data": "AAAA"}',
        json.dumps(
            {"client-certificate-data": b64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")}
        ),
    ],
)
def test_a_credential_that_does_not_tell_its_end_has_none(session, user: str):
    read = f"Read-Member (ConvertFrom-Json -InputObject '{{\"user\": {user}}}') 'user'"

    assert answer(session, f"Get-CredentialEnd ({read})") == []


def test_the_end_of_a_token_of_a_service_account_is_in_its_claims(session):
    claims = b64(json.dumps({"exp": 1893456000})).rstrip("=")

    read = f"[pscustomobject]@{{ token = 'x.{claims}.y' }}"
    assert answer(session, f"(Get-CredentialEnd ({read})).ToString('s')") == ["2030-01-01T00:00:00"]


@pytest.mark.parametrize("text", ["{}", '{"users": []}', '{"clusters": null}', "[1]", "5", '{"users": [{}]}'])
def test_a_kubeconfig_of_another_shape_differs_and_ends_nothing(session, text: str):
    wanted = "@{ path = 'C:\\k\\p.kubeconfig'; server = 'https://s:6443'; ca_path = 'C:\\k\\ca.crt'; secret = 'x' }"
    session.machine.files.make_directory("C:\\k")
    session.machine.files.write("C:\\k\\p.kubeconfig", text.encode())

    found = answer(session, f"Get-KubeconfigDifference {wanted} | ForEach-Object {{ $_.what }}")

    assert {one.rpartition(": ")[2] for one in map(str, found)} == {"access", "server", "CA"}


def test_a_machine_that_does_not_say_when_it_was_started_is_named(session):
    nothing = "function Get-CimInstance { param($ClassName, $Filter, $Property) }"
    caught = "try { Get-BootStamp } catch { $_.FullyQualifiedErrorId }"

    assert answer(session, f"{nothing}\n{caught}") == ["winboot.NoBootId"]
    assert HINTS["NoBootId"]


def test_a_file_that_is_not_there_has_no_text_and_says_so(session):
    """Without output, .NET methods would be given no text at all: [regex]::Match throws there."""
    assert answer(session, "Read-FileText 'C:\\nowhere.txt'") == [None]
    assert answer(session, "[regex]::Match((Read-FileText 'C:\\nowhere.txt'), 'x').Success") == [False]


@pytest.mark.parametrize("stored", ["{}", "5", "[1]", '"x"', '{"fence": "many"}', '{"fence": null}', "{"])
def test_a_fence_of_another_shape_is_none(session, stored: str):
    session.machine.files.make_directory("C:\\ProgramData\\winboot")
    session.machine.files.write("C:\\ProgramData\\winboot\\fence.json", stored.encode())

    assert answer(session, "Get-Fence") == [0]
    assert len(answer(session, "Get-HolderText")) == 1


def test_a_note_of_another_shape_is_none_of_ours(session):
    notes = '{"kind":"A","key":"a","value":null}\n{}\n5}\n{"key":"b"}\n{"kind":"B","key":"b"}\n[{}]}\n'
    session.machine.files.make_directory("C:\\ProgramData\\winboot\\former")
    session.machine.files.write("C:\\ProgramData\\winboot\\former\\x.jsonl", notes.encode())

    run = "$script:Run = @{ Step = 'x' }"
    assert answer(session, f"{run}\nGet-FormerLine | ForEach-Object {{ $_.kind }}") == ["A"]


def test_a_value_of_a_rare_kind_comes_back_as_its_bytes(session):
    """REG_NONE, as drivers leave it."""
    write = "Write-Registry -Path 'SOFTWARE\\rare' -Name 'x' -Value @(1, 0, 255) -Kind 'None'"
    read = "Read-RegistryKind -Path 'SOFTWARE\\rare' -Name 'x'; (Read-Registry -Path 'SOFTWARE\\rare' -Name 'x') -join ','"

    assert answer(
        session,
        f"[void][Microsoft.Win32.Registry]::LocalMachine.CreateSubKey('SOFTWARE\\rare')\n{write}\n{read}",
    ) == [
        "None",
        "1,0,255",
    ]


def test_a_list_in_json_is_read_item_by_item_without_its_nulls(session):
    read = (
        'Read-Item -Object (ConvertFrom-Json -InputObject \'{"a": [null, 1, null, 2], "b": [null]}\') -Name'
    )

    assert answer(session, f"{read} 'a'") == [1, 2]
    assert answer(session, f"{read} 'b'") == []


def test_a_store_in_which_everything_is_taken_has_no_address_for_kube_proxy(session):
    session.machine.files.make_directory("C:\\store")
    for last in range(1, 7):
        session.machine.files.write(f"C:\\store\\10.0.0.{last}", b"pod\r\neth0")
    vip = "Get-StoreVip -Place 'C:\\store' -Known @{ pod_cidr = '10.0.0.0/29' }"

    assert answer(session, f"try {{ {vip} }} catch {{ $_.FullyQualifiedErrorId }}") == ["winboot.StoreFull"]
    assert HINTS["StoreFull"]
    session.machine.files.delete("C:\\store\\10.0.0.4")
    assert answer(session, vip) == ["10.0.0.4"]
