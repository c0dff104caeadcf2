"""What `kubeadm token create --print-join-command` prints, or the JoinConfiguration that `kubeadm join --config` reads.

The line is made in kubernetes, cmd/kubeadm/app/cmd/util/join.go: server, --token, and --discovery-token-ca-cert-hash once for
each CA. Its flags: cmd/kubeadm/app/cmd/join.go and app/cmd/options/constant.go (1.36). The forms of JoinConfiguration:
app/apis/kubeadm/v1beta3/types.go and v1beta4/types.go.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.config.profile.values import server_address
from winboot.config.source import Complaint, Listing, Node, Scalar, Table, Wrong, compose

# kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens, "Token format".
_TOKEN: Final = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_HASH: Final = re.compile(r"(?i)sha256:([0-9a-f]{64})")
_VERSIONS: Final = tuple(f"kubeadm.k8s.io/{one}" for one in ("v1beta3", "v1beta4"))
_ONE_DOCUMENT: Final = re.compile(r"^---.*$", re.MULTILINE)
# On Windows the program is kubeadm.exe (sig-windows-tools, guides/guide-for-adding-windows-node.md).
_COMMAND: Final = re.compile(r"""\bkubeadm(?:\.exe)?['"]?[ \t]+join\b""")
# A line continues after \ in a shell, and after ` in PowerShell.
_CONTINUES: Final = re.compile(r"[\\`][ \t]*\r?\n")
_WORKERS: Final = "winboot makes workers, and no control plane"
_UNSAFE: Final = "winboot believes no CA without its hash"
_ELSEWHERE: Final = "winboot reads server, token and hash from the join command"
# kubeadm checks the hashes that are there, whatever this one is (cmd/kubeadm/app/discovery/token/token.go,
# `retrieveValidatedConfigInfo`).
_UNCHECKED: Final = "discovery-token-unsafe-skip-ca-verification"
_REFUSED: Final[Mapping[str, str]] = {
    "control-plane": _WORKERS,
    "certificate-key": _WORKERS,
    "apiserver-advertise-address": _WORKERS,
    "apiserver-bind-port": _WORKERS,
    _UNCHECKED: _UNSAFE,
    "discovery-file": _ELSEWHERE,
    "config": "--join-file reads a JoinConfiguration",
}
# What kubeadm does and winboot leaves to the profile.
_IGNORED: Final = frozenset(
    ("cri-socket", "ignore-preflight-errors", "node-name", "patches", "skip-phases", "dry-run", "v")
)
_TOKENS: Final = ("token", "tls-bootstrap-token", "discovery-token")
_HASHES: Final = "discovery-token-ca-cert-hash"
_SWITCHES: Final = frozenset(("control-plane", _UNCHECKED, "dry-run"))
_HINT: Final = "Give the whole line that `kubeadm token create --print-join-command` prints."


@dataclass(frozen=True, slots=True)
class JoinCommand:
    """How a node finds its cluster: the server as a URL, the token, and the SHA-256 (hex) of each CA key that is believed.
    `ignored` names what else was there and is the profile's to set."""

    server: str
    token: Secret
    ca_hashes: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def of_line(text: Secret, origin: str) -> JoinCommand:
    """The join command in this text, which may be more than the line. Raises InvalidInput, which never holds the token."""
    words = _words(text.reveal(), origin)
    places, flags = _parsed(words, origin)
    for name in flags:
        if name in _REFUSED and not (name == _UNCHECKED and _HASHES in flags):
            _refuse(
                origin,
                f"--{name}: {_REFUSED[name]}",
                "Give the command for a worker node, as kubeadm prints it.",
            )
    if len(places) != 1:
        _refuse(origin, f"the command names {len(places)} API servers, and one is expected")
    tokens = [flags[name][-1] for name in ("tls-bootstrap-token", "token") if name in flags]
    ignored = tuple(f"--{name}" for name in flags if name in _IGNORED)
    return _judged(origin, places[0], tokens[0] if tokens else "", flags.get(_HASHES, []), ignored)


def of_configuration(text: Secret, origin: str) -> JoinCommand:
    """The JoinConfiguration in a file of kubeadm, which may hold other documents. Raises InvalidInput."""
    found = [one for one in _documents(text.reveal(), origin) if _text(one, "kind") == "JoinConfiguration"]
    if len(found) != 1:
        _refuse(origin, f"{len(found)} JoinConfigurations are there, and one is expected")
    top = found[0]
    if _text(top, "apiVersion") not in _VERSIONS:
        _refuse(
            origin,
            "winboot does not read this apiVersion",
            f"`kubeadm config migrate` writes {_VERSIONS[-1]}; {_VERSIONS[0]} is read, too.",
        )
    if isinstance(top.get("controlPlane"), Table):
        _refuse(origin, f"controlPlane: {_WORKERS}", "Give the file of a worker node.")
    discovery, given = _table(top, "discovery"), _table(top, "discovery", "bootstrapToken")
    if "file" in discovery.entries:
        _refuse(origin, "discovery.file: winboot reads discovery.bootstrapToken", _HINT)
    hashes = _texts(given.get("caCertHashes"))
    if _text(given, "unsafeSkipCAVerification") == "true" and not hashes:
        _refuse(origin, f"discovery.bootstrapToken.unsafeSkipCAVerification: {_UNSAFE}", "List caCertHashes.")
    token = _text(discovery, "tlsBootstrapToken") or _text(given, "token")
    keys = _table(top, "nodeRegistration").entries
    ignored = tuple(f"nodeRegistration.{key}" for key in keys if re.fullmatch("[A-Za-z]{1,40}", key))
    return _judged(origin, _text(given, "apiServerEndpoint"), token, hashes, ignored)


def is_configuration(text: Secret) -> bool:
    """Whether a file holds YAML of kubeadm and no command line."""
    return re.search(r"(?m)^kind:", text.reveal()) is not None


def _words(text: str, origin: str) -> list[str]:
    """What stands behind `kubeadm join`. `kubeadm init` prints a command on several lines, and for a cluster of several control
    planes a second one that makes control planes."""
    found = [one for one in _CONTINUES.sub(" ", text).splitlines() if _COMMAND.search(one)]
    lines = [one for one in found if "--control-plane" not in one] or found
    if len(lines) != 1:
        _refuse(origin, f"{len(lines)} lines hold `kubeadm join`, and one is expected")
    try:
        words = shlex.split(_COMMAND.split(lines[0], maxsplit=1)[1], comments=True)
    except ValueError:
        # The error's own traceback holds the line, and so the token.
        words = []
    if not words:
        _refuse(origin, "`kubeadm join` has no arguments, or an open quote")
    return words


def _parsed(words: Sequence[str], origin: str) -> tuple[list[str], dict[str, list[str]]]:
    """Arguments and flags, as pflag reads them: `--name value`, `--name=value`, and switches without a value."""
    places: list[str] = []
    flags: dict[str, list[str]] = {}
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            places.append(word)
            continue
        if name not in {*_REFUSED, *_IGNORED, *_TOKENS, _HASHES}:
            # Anything else may be a token.
            shown = f"--{name}" if re.fullmatch(r"[a-z-]{1,40}", name) else "of that form"
            _refuse(origin, f"kubeadm join has no flag {shown}")
        if not equals and name not in _SWITCHES:
            value = next(waiting, "")
        flags.setdefault(name, []).append(value)
    return places, flags


def _judged(
    origin: str, place: str, token: str, hashes: Sequence[str], ignored: tuple[str, ...]
) -> JoinCommand:
    server = _server(place)
    if server is None:
        _refuse(origin, "the API server is not of the form HOST:PORT")
    if not _TOKEN.fullmatch(token):
        _refuse(origin, "the bootstrap token is missing or not of the form abcdef.0123456789abcdef")
    found = [
        match[1].lower() for one in hashes for part in one.split(",") if (match := _HASH.fullmatch(part))
    ]
    if not found or len(found) != sum(len(one.split(",")) for one in hashes):
        _refuse(origin, "a hash of the CA is missing or not of the form sha256: and 64 hexadecimal digits")
    return JoinCommand(server, Secret(token), tuple(found), ignored)


def _server(place: str) -> str | None:
    """The address as `cluster.server` takes it; None for any other text, which may be a token."""
    if not re.search(r":\d+$", place) or re.search(r"[\s/]", place):
        return None
    try:
        return server_address(f"https://{place}")
    except Wrong:
        return None


def _documents(text: str, origin: str) -> Iterator[Table]:
    line = 0
    for part in _ONE_DOCUMENT.split(text):
        yield _document("\n" * line + part, origin)
        line += part.count("\n")


def _document(text: str, origin: str) -> Table:
    """Errors keep the place alone: their texts quote the file, and so the token."""
    try:
        return compose(text, origin, foreign=True)
    except InvalidInput as error:
        places = [one.place for one in error.problems if isinstance(one, Complaint)]
        problems = tuple(Complaint(place, "", "this is not YAML of kubeadm") for place in places)
        problem = f"{origin}: is not valid YAML"
    raise InvalidInput(problem, problems=problems)


def _table(top: Table, *keys: str) -> Table:
    """The mapping below these keys, or an empty one."""
    found: Node | None = top
    for key in keys:
        found = found.get(key) if isinstance(found, Table) else None
    return found if isinstance(found, Table) else Table(top.place)


def _text(table: Table, key: str) -> str:
    found = table.get(key)
    return found.text if isinstance(found, Scalar) and not found.is_null else ""


def _texts(node: Node | None) -> list[str]:
    items = node.items if isinstance(node, Listing) else ()
    return [one.text for one in items if isinstance(one, Scalar)]


def _refuse(origin: str, problem: str, hint: str = _HINT) -> NoReturn:
    raise InvalidInput(f"{origin}: {problem}", hint=hint)
