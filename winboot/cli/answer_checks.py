"""What is wrong with one answer to `winboot init`, said when it is given; empty where nothing is."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, get_args

Judge: TypeAlias = Callable[[str], str]


def anything(answer: str) -> str:
    """Whatever is not empty will do."""
    return "" if answer else "an answer is needed"


def kubeconfig(answer: str) -> str:
    """A file that names a server and its CA."""
    from winboot.base.errors import WinbootError
    from winboot.remote.cluster.kubeconfig import Kubeconfig

    try:
        Kubeconfig.from_file(Path(answer).expanduser())
    except WinbootError as error:
        return error.problem
    return ""


def version(answer: str) -> str:
    """A version with its patch that the data allows."""
    from winboot.config.compat import check_kubernetes, load
    from winboot.config.compat.version import Version

    try:
        parsed = Version.parse(answer)
    except ValueError as error:
        return str(error)
    if parsed.patch is None:
        return f"{answer!r} is not a version with a patch number, such as {load().newest}.0"
    if "+" in answer or parsed != parsed.upstream:
        return (
            f"{answer!r} is a distribution's build; name the release that it is made from, {parsed.upstream}"
        )
    refused = [one.reason for one in check_kubernetes(load(), parsed) if one.level == "error"]
    return refused[0] if refused else ""


def network(answer: str) -> str:
    """A solution that is offered, as cni or cni:mode."""
    from winboot.config import networks
    from winboot.config.source import nearest

    offered = networks.written_forms().replace(" or ", ", ").split(", ")
    known = [one.strip() for one in offered if one.strip()]
    if answer in known:
        return ""
    meant = nearest(answer, known)
    return f"there is no network {answer!r}; " + (
        f"did you mean {meant!r}?" if meant else f"one of {', '.join(known)}"
    )


def cidr(answer: str) -> str:
    """A network, such as 10.244.0.0/16."""
    try:
        found = ipaddress.ip_network(answer)
    except ValueError as error:
        return f"{error}; such as 10.244.0.0/16"
    return "" if found.prefixlen < 30 else f"{answer} is too small"


def machine(answer: str, others: Sequence[str] = ()) -> str:
    """NAME ADDRESS OS; a name that a Node may have and no other machine has."""
    from winboot.config.inventory import Os
    from winboot.config.profile.values import node_name
    from winboot.config.source import Wrong

    words = answer.replace("=", " ").replace(",", " ").split()
    if len(words) != 3:
        return "three words are needed, such as: win-1 10.0.1.11 2022"
    name, address, release = words
    try:
        node_name(name)
    except Wrong as error:
        return f"{error.wrong}; expected {error.expected}"
    if release not in get_args(Os):
        return f"{release!r} is not one of {', '.join(get_args(Os))}"
    for other in others:
        known, _, place = other.partition("=")
        if known == name or place.partition(",")[0] == address:
            return f"{known} has this {'name' if known == name else 'address'} already"
    return ""


def as_option(answer: str) -> str:
    """The machine as `--host` has it."""
    name, address, release = answer.replace("=", " ").replace(",", " ").split()
    return f"{name}={address},{release}"
