"""hcn.*: computenetwork.dll, the second version of HNS' API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from winboot_lab.windows import hcn
from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain
from winboot_lab.windows.failure import failure
from winboot_lab.windows.hns import HnsError
from winboot_lab.windows.primitives.system import hang
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


@primitive("hcn.list")
def hcn_list(session: Session, kind: str, query: str) -> Objects:
    """HcnEnumerate<kind>s, and HcnOpen<kind> and HcnQuery<kind>Properties of what it found: a list of objects as JSON."""
    asked = json.loads(query)
    named = json.loads(asked.get("Filter") or "{}")
    found = _first_version(session, "GET", hcn.PATHS[kind], "")
    shown = [hcn.second_version(kind, one) for one in found if hcn.fits(kind, one, named)]
    return (json.dumps(shown),)


@primitive("hcn.create")
def hcn_create(session: Session, kind: str, settings: str) -> Objects:
    """HcnCreate<kind>: the object as JSON."""
    request = json.dumps(hcn.first_version(kind, json.loads(settings)))
    made = _first_version(session, "POST", hcn.PATHS[kind], request)
    return (json.dumps(hcn.second_version(kind, made)),)


@primitive("hcn.delete")
def hcn_delete(session: Session, kind: str, id: str) -> Objects:
    """HcnDelete<kind>."""
    _first_version(session, "DELETE", hcn.PATHS[kind] + id, "")
    return ()


@primitive("hcn.join")
def hcn_join(session: Session, namespace: str, settings: str) -> Objects:
    """HcnOpenNamespace and HcnModifyNamespace that adds an endpoint to it, or removes one."""
    endpoint, added = hcn.joins(json.loads(settings))
    _hcn(session, lambda: session.machine.hns.join(endpoint, namespace if added else ""))
    return ()


def _first_version(session: Session, method: str, path: str, request: str) -> Any:
    """What the same call of the first version gives; its errors are those of this one."""
    hang(session, session.machine.hns.hanging(method, path, request), float("inf"))
    return _hcn(session, lambda: _output(session.machine.hns.call(method, path, request)))


def _output(answer: str) -> Any:
    told = json.loads(answer)
    if not told["Success"]:
        raise HnsError(int(told["ErrorCode"]), str(told["Error"]))
    return told["Output"]


@primitive("hcn.query")
def hcn_query(session: Session, id: str, query: str, seconds: float = float("inf")) -> Objects:
    """computenetwork.dll: HcnOpenNetwork and HcnQueryNetworkProperties, by a caller that waits so long for it."""
    hang(session, session.machine.hns.hanging("QUERY", f"/networks/{id}"), seconds)
    return (_hcn(session, lambda: session.machine.hns.properties(id, query)),)


@primitive("hcn.modify")
def hcn_modify(session: Session, id: str, settings: str, seconds: float = float("inf")) -> Objects:
    """computenetwork.dll: HcnOpenNetwork and HcnModifyNetwork, by a caller that waits so long for it."""
    hang(session, session.machine.hns.hanging("MODIFY", f"/networks/{id}"), seconds)
    _hcn(session, lambda: session.machine.hns.modify(id, settings))
    return ()


def _hcn(session: Session, work: Callable[[], Any]) -> Any:
    """What a call gives; a failed HRESULT as winboot's declaration throws it."""
    if session.machine.services.find("hns") is None:
        raise failure(
            "System.DllNotFoundException", "Unable to load DLL 'computenetwork.dll'", hresult=0x80131524
        )
    try:
        return work()
    except HnsError as refused:
        text = json.dumps({"Success": False, "Error": refused.message, "ErrorCode": refused.code})
        message = f"0x{refused.code:08X} {text}"
        raise failure("System.InvalidOperationException", message, hresult=0x80131509) from None
