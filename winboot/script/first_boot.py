"""The texts of first boot: what a machine is given before anybody knows it, and what the endpoint sends it then.

User data holds the first alone. It names an endpoint and the hash of its key, and nothing of a profile, so that it stays the
same for a whole group and whatever changes.

The endpoint's key is compared in the script itself, after the handshake: the callback of SslStream may accept any certificate
(learn.microsoft.com/dotnet/api/system.net.security.remotecertificatevalidationcallback). That a script block can be that
callback in Windows PowerShell 5.1, because AuthenticateAsClient calls it on the thread that waits, was not seen there yet.
"""

from __future__ import annotations

from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.library import templates_root
from winboot.script.plan import make_plan
from winboot.script.rendering import helpers, render, small_script
from winboot.script.steps import STEPS

FOLDER: Final = r"C:\ProgramData\winboot-first-boot"


def boot_script(*, address: str, port: int, pin: str, host: str = "", voucher: str = "") -> str:
    """What runs at each start until the machine is a node."""
    v6 = ":" in address
    return small_script(
        "_first_boot.ps1.j2",
        address=address,
        # RFC 9110, 7.2, with RFC 3986, 3.2.2: an IPv6 address has brackets.
        authority=f"[{address}]" if v6 else address,
        family="InterNetworkV6" if v6 else "InterNetwork",
        port=port,
        pin=pin,
        host=host,
        voucher=voucher,
        folder=FOLDER,
    )


def stub(*, address: str, port: int, pin: str, host: str = "", voucher: str = "", failed: int = 1) -> str:
    """The script that puts first boot on a machine and starts it. `pin`: see `winboot.operations.firstboot.endpoint.pin_of`;
    `host` is the one host that it may be, empty for any of its group. `voucher` is its text, empty for none; `failed`
    its exit code where that fails."""
    text = boot_script(address=address, port=port, pin=pin, host=host, voucher=voucher)
    return small_script(
        "_first_boot_setup.ps1.j2", folder=FOLDER, files=[("first-boot.ps1", text)], secrets="", failed=failed
    )


def alone(spec: NodeSpec, *, secrets: str) -> str:
    """One host's script with what runs it, for where there is no endpoint. `secrets` is the name of the file next to
    it that has its secrets as one JSON object, empty for none. Raises ScriptError."""
    script = render(make_plan(spec, STEPS, only=(), skip=()).complete, spec)
    runner = small_script("_first_boot_alone.ps1.j2", node=spec.node.name, folder=FOLDER)
    files = [
        ("first-boot.ps1", runner),
        ("node.ps1", marked(script.text)),
        ("restart.ps1", helpers().restart),
        # How many there were.
        ("restarts", "0"),
    ]
    whole = small_script("_first_boot_setup.ps1.j2", folder=FOLDER, files=files, secrets=secrets, failed=1)
    return marked(whole)


def marked(text: str) -> str:
    """A script as its file holds it: with a byte order mark where Windows PowerShell would else read it in the ANSI code page
    (`ConvertTo-ScriptFile`)."""
    return text if text.isascii() else f"\ufeff{text}"


def client() -> str:
    """The rest of it, which the endpoint of this release sends."""
    return (templates_root() / "_first_boot_client.ps1").read_text(encoding="utf-8")
