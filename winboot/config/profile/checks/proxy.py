"""The HTTP proxy of the services."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.values import has_login, host_name
from winboot.config.source import Complaint, PathParts, Wrong


def check(draft: Draft) -> Iterator[Complaint]:
    """A proxy that the machine can download through, and what is reached without one."""
    if draft.proxy is None:
        return
    if draft.proxy.no_proxy and not (draft.proxy.http or draft.proxy.https):
        yield draft.at(
            ("proxy", "no_proxy"),
            "the profile sets no proxy",
            "proxy.http or proxy.https",
            warning=True,
        )
    yield from _proxy_schemes(draft, draft.proxy)
    for index, entry in enumerate(draft.proxy.no_proxy):
        path: PathParts = ("proxy", "no_proxy", index)
        if entry.startswith("*."):
            yield draft.at(path, f"{entry!r}: programs do not expand * in this list", entry[1:])
        elif has_login(entry):
            yield draft.at(
                path, "the entry contains a user or a password", "a host, .domain, address or network"
            )
        elif not _is_direct(entry):
            yield draft.at(path, repr(entry), "a host, .domain, address or network")


def _proxy_schemes(draft: Draft, proxy: sections.Proxy) -> Iterator[Complaint]:
    """The machine's own downloads go through HttpWebRequest of the .NET Framework, which knows http:// proxies alone.

    Source: ServicePointManager.FindServicePointHelper of the .NET Framework (referencesource,
    System/net/System/Net/ServicePointManager.cs): NotSupportedException(net_proxyschemenotsupported) unless the proxy's
    scheme is http. The services are Go programs, which would take https://.
    """
    source = draft.artifacts.source if draft.artifacts is not None else "upstream"
    if source != "upstream" and not source.lower().startswith(("http://", "https://")):
        return  # nothing is downloaded through a proxy
    for key, url in (("http", proxy.http), ("https", proxy.https)):
        if url is not None and url.lower().startswith("https://"):
            wrong = (
                f"{url!r}: Windows PowerShell 5.1 cannot download through it (.NET Framework: the ServicePointManager"
                " does not support proxies with the https scheme)"
            )
            yield draft.at(
                ("proxy", key), wrong, "http://host:port, also for a proxy that fetches https addresses"
            )


def _is_direct(entry: str) -> bool:
    """A host, `.domain`, address, network, or one of the first two with a port; `*` alone means everything."""
    if entry == "*":
        return True
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass
    else:
        return True
    name, colon, port = entry.removeprefix(".").partition(":")
    if colon and not re.fullmatch(r"[0-9]{1,5}", port):
        return False
    try:
        host_name(name)
    except Wrong:
        return False
    return True
