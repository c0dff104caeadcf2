"""What the wire's tests play on: endpoints with scripted machines behind them, and the ways to log in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from winboot_lab.wsman.endpoint import Endpoint, Settings
from winboot_lab.wsman.executor import Emit, Ended
from winboot_lab.wsman.farm import Farm

from winboot.base.secret import Secret
from winboot.remote.transport import base
from winboot.remote.transport.psrp import PsrpTransport

USER = "Administrator"
PASSWORD = "Pä$$wörd 1"
FAST = base.Timeouts(connect=5, operation=2, read=6, open=3, resume=8, close=3, idle=60)

Play = Callable[[str, Mapping[str, object], Emit, Callable[[], bool]], Ended]


class Actor:
    """A machine that plays one part for every script, and remembers what it was given."""

    def __init__(self, play: Play) -> None:
        self.runs: list[tuple[str, Mapping[str, object]]] = []
        self._play = play

    def run(
        self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        self.runs.append((script, parameters))
        return self._play(script, parameters, emit, cancelled)


def says(*lines: object) -> Actor:
    """A machine on which every script writes these objects and completes."""

    def play(
        script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        for line in lines:
            emit("output", line)
        return Ended()

    return Actor(play)


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to log in. `logins` is what the login costs in requests beyond the first message."""

    name: str
    auth: base.Auth
    tls: str
    logins: int

    def endpoint(self, farm: Farm, node: Endpoint, **changes: object) -> base.Endpoint:
        """How a client reaches `node` in this mode."""
        assert node.certificate is not None
        tls = {
            "none": None,
            "ca": base.Tls(ca_pem=farm.authority.pem.decode()),
            "pinned": base.Tls(fingerprint=node.certificate.fingerprint),
        }[self.tls]
        port = node.https_port if tls else node.http_port
        given = {
            "address": node.settings.address,
            "port": port,
            "user": USER,
            "password": lambda: Secret(PASSWORD),
            "auth": self.auth,
            "tls": tls,
            "timeouts": FAST,
        }
        return base.Endpoint(**{**given, **changes})


NTLM = Mode("ntlm sealed", "ntlm", "none", 2)
NEGOTIATE = Mode("negotiate sealed", "negotiate", "none", 2)
BASIC = Mode("basic", "basic", "none", 0)
NTLM_CA = Mode("ntlm, private CA", "ntlm", "ca", 1)
NEGOTIATE_PINNED = Mode("negotiate, pinned certificate", "negotiate", "pinned", 2)
BASIC_CA = Mode("basic, private CA", "basic", "ca", 0)
MODES = (NTLM, NEGOTIATE, BASIC, NTLM_CA, NEGOTIATE_PINNED, BASIC_CA)


def settings(**changes: object) -> Settings:
    """An endpoint that takes every mode, and waits long for output to be complete so that requests can be counted."""
    given = {"users": {USER: PASSWORD}, "https_port": 0, "basic": True, "allow_unencrypted": True, **changes}
    return Settings(**given)


def node(farm: Farm, actor: Actor, name: str = "win-a1", **changes: object) -> Endpoint:
    """One machine on `farm`."""
    return farm.add(name, actor, settings(**changes))


def transport(farm: Farm, node: Endpoint, mode: Mode = NTLM, **changes: object) -> PsrpTransport:
    """A transport to `node`."""
    return PsrpTransport(mode.endpoint(farm, node, **changes), name=node.name)
