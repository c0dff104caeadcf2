"""What a path is decides the file system, opened without any right: no handle of another user hides a link or a second name."""

from __future__ import annotations

import pytest
from winboot_lab.engine.types import entry, hns
from winboot_lab.windows.accounts import SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import FULL, READ, Rule
from winboot_lab.windows.files import REPARSE

from tests.steps.bench import Bench
from tests.steps.library import call
from winboot.script.library import functions

PATH = r"C:\a\path"
# MS-FSCC 2.1.2.1: what a kubelet's sockets are, and a link of Linux' subsystem, which any user can make.
AF_UNIX, LX_SYMLINK = 0x80000023, 0xA000001D


def test_the_lab_knows_the_declaration_by_its_text() -> None:
    text = functions()["Get-EntryDeclaration"].text

    assert hns.digest(text.partition("@'\n")[2].partition("\n'@")[0]) == entry.DECLARATION


@pytest.fixture
def alice(bench: Bench) -> Token:
    bench.machine.accounts.add("alice", administrator=False)
    bench.machine.files.make_directory(r"C:\a")
    bench.machine.files.make_directory(r"C:\real")
    bench.machine.files.write(r"C:\real.txt", b"x")
    return bench.machine.accounts.token("alice")


def link(bench: Bench, kind: str, owner: str = SYSTEM_TOKEN.sid) -> None:
    """PATH as such a link; a number is the tag of another reparse point."""
    files = bench.machine.files
    if kind.isdigit():
        files.write(PATH, b"")
        node = files.need(PATH)[1]
        node.attributes, node.tag = node.attributes | REPARSE, int(kind)
    elif kind == "file":
        files.write(PATH, b"")
    else:
        files.link(PATH, r"C:\real" if kind == "Junction" else r"C:\real.txt", kind)
    files.need(PATH, follow=False)[1].acl.owner = owner


def user_link(bench: Bench, path: str = PATH) -> str | None:
    (found,) = call(bench, f"Get-UserLink -Path '{path}'").objects or [None]
    return None if found is None else str(found)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("kind", "hers", "expected"),
    [
        ("file", False, None),
        ("Junction", False, "a junction"),
        ("Junction", True, "a junction"),
        ("HardLink", False, "a second name of another file"),
        ("HardLink", True, "a second name of another file"),
        ("SymbolicLink", False, None),
        ("SymbolicLink", True, "a link of"),
        (str(AF_UNIX), False, None),
        (str(AF_UNIX), True, "a link of"),
        (str(LX_SYMLINK), False, "a link of an unknown kind (a000001d)"),
    ],
)
def test_a_link_is_a_users_unless_an_administrator_alone_could_make_it(
    bench: Bench, alice: Token, kind: str, hers: bool, expected: str | None, held: bool
) -> None:
    link(bench, kind, alice.sid if hers else SYSTEM_TOKEN.sid)
    if held:
        bench.machine.files.hold(PATH, READ, pid=4000, token=SYSTEM_TOKEN, share=0)

    found = user_link(bench)

    assert (found or "")[: len(expected or "")] == (expected or "")
    assert (found is None) == (expected is None)


def test_link_type_reports_nothing_while_a_handle_refuses_reading(bench: Bench, alice: Token) -> None:
    """As Windows PowerShell 5.1 does: the reason why no script asks for it."""
    link(bench, "Junction", alice.sid)
    bench.machine.files.hold(PATH, READ, pid=4000, token=alice, share=0)

    assert call(bench, f"(Get-Item -LiteralPath '{PATH}' -Force).LinkType").objects == [None]
    assert not [name for name, one in functions().items() if ".LinkType" in one.text]


def test_a_link_whose_owner_may_not_be_read_is_a_users(bench: Bench, alice: Token) -> None:
    link(bench, "SymbolicLink", alice.sid)
    acl = bench.machine.files.need(PATH, follow=False)[1].acl
    acl.explicit = [Rule(one, FULL, kind="Deny") for one in (SYSTEM_TOKEN.sid, "S-1-5-32-544")]

    assert user_link(bench) == "a link whose owner cannot be read"


def test_a_path_that_is_gone_is_no_link(bench: Bench) -> None:
    assert user_link(bench, r"C:\a\gone") is None
    assert user_link(bench, r"C:\gone\gone") is None
    assert call(bench, r"Test-HardLink -Path 'C:\gone\gone'").objects == [False]
