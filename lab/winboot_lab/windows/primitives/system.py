"""environment.*, clock.*, mutex.*, computer.*, identity.*, certificate.*, eventlog.*, hns.*: the rest of the system."""

from __future__ import annotations

import hashlib

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import ADMINISTRATORS
from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.eventlog import LEVELS, Event
from winboot_lab.windows.failure import failure
from winboot_lab.windows.primitives.access import read_acl, show_acl
from winboot_lab.windows.registry import ENVIRONMENT
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


# ---- environment ---------------------------------------------------------------------------------------


def _variables(session: Session, target: str) -> dict[str, str]:
    match target.lower():
        case "process":
            return session.environment
        case "machine" | "user":
            found: dict[str, str] = {}
            key = session.machine.registry.find(_environment_key(session, target))
            for value in key.values.values() if key else ():
                if isinstance(value.data, str):
                    expands = value.kind == "ExpandString"
                    found[value.name] = session.machine.registry.expand(value.data) if expands else value.data
            return found
        case _:
            raise Refusal("value", target, "an unknown EnvironmentVariableTarget")


def _environment_key(session: Session, target: str) -> str:
    return ENVIRONMENT if target.lower() == "machine" else rf"HKEY_USERS\{session.token.sid}\Environment"


@primitive("environment.get")
def environment_get(session: Session, name: str, target: str = "Process") -> Objects:
    """One or none."""
    known = {k.lower(): v for k, v in _variables(session, target).items()}
    return (known[name.lower()],) if name.lower() in known else ()


@primitive("environment.set")
def environment_set(session: Session, name: str, value: str | None, target: str = "Process") -> Objects:
    """Set or delete. Machine and user variables reach new logons at once, services only after the next boot."""
    if target.lower() == "process":
        for known in [k for k in session.environment if k.lower() == name.lower()]:
            if value:
                session.environment[known] = value
                return ()
            del session.environment[known]
        if value:
            session.environment[name] = value
        return ()
    key = _environment_key(session, target)
    if not value:
        session.machine.registry.forget(key, name)
    else:
        kind = "ExpandString" if "%" in value else "String"
        session.machine.registry.put(key, name, kind, value, session.token)
    return ()


@primitive("environment.all")
def environment_all(session: Session, target: str = "Process") -> Objects:
    """All variables."""
    everything: dict[str, Plain] = dict(_variables(session, target))
    return (everything,)


# ---- time ----------------------------------------------------------------------------------------------


@primitive("clock.now")
def clock_now(session: Session, utc: bool = False) -> Objects:
    """The machine's time."""
    now = session.machine.now()
    return (now if utc else session.machine.local(now),)


@primitive("clock.sleep")
def clock_sleep(session: Session, milliseconds: float) -> Objects:
    """Let lab time pass."""
    session.wait(milliseconds / 1000)
    return ()


@primitive("clock.ticks")
def clock_ticks(session: Session) -> Objects:
    """Seconds since boot."""
    return (session.machine.uptime(),)


@primitive("clock.zone")
def clock_zone(session: Session) -> Objects:
    """The time zone."""
    minutes = session.machine.zone_minutes
    return (Record("zone", {"id": zone_id(minutes), "offset_minutes": minutes}),)


def zone_id(minutes: int) -> str:
    """A Windows time zone id for a fixed offset."""
    zones = {
        0: "UTC",
        60: "W. Europe Standard Time",
        120: "South Africa Standard Time",
        330: "India Standard Time",
    }
    if minutes not in zones:
        raise Refusal("value", f"UTC{minutes:+d} minutes", "a time zone the lab has no name for")
    return zones[minutes]


# ---- mutexes -------------------------------------------------------------------------------------------


@primitive("mutex.create")
def mutex_create(
    session: Session, name: str, initially_owned: bool = False, security: Record | None = None
) -> Objects:
    """Create or open a named mutex; the rules given are for a new one."""
    wanted = None if security is None else read_acl(security)
    handle, created, owned = session.machine.mutexes.create(name, initially_owned, session, wanted)
    return (Record("mutex", {"handle": handle, "created_new": created, "owned": owned}),)


@primitive("mutex.acl")
def mutex_acl(session: Session, handle: str) -> Objects:
    """Owner and rules of an open mutex."""
    return (show_acl(session.machine.mutexes.acl(handle, session)),)


@primitive("mutex.open")
def mutex_open(session: Session, name: str) -> Objects:
    """Open an existing mutex."""
    return (Record("mutex", {"handle": session.machine.mutexes.open(name, session)}),)


@primitive("mutex.wait")
def mutex_wait(session: Session, handle: str, milliseconds: int) -> Objects:
    """Wait for it."""
    return (session.machine.mutexes.wait(handle, milliseconds, session),)


@primitive("mutex.release")
def mutex_release(session: Session, handle: str) -> Objects:
    """Let it go."""
    session.machine.mutexes.release(handle, session)
    return ()


@primitive("mutex.close")
def mutex_close(session: Session, handle: str) -> Objects:
    """Close the handle."""
    session.machine.mutexes.close(handle)
    return ()


# ---- this machine --------------------------------------------------------------------------------------


@primitive("computer.info")
def computer_info(session: Session) -> Objects:
    """What the machine is."""
    machine = session.machine
    return (
        Record(
            "computer",
            {
                "name": machine.power.next_name,
                "active_name": machine.name,
                "domain": machine.power.domain,
                "part_of_domain": bool(machine.power.domain),
                "workgroup": "" if machine.power.domain else machine.power.workgroup,
                "os_version": f"10.0.{machine.build}.0",
                "build": machine.build,
                "ubr": machine.release.ubr,
                "product": machine.release.product,
                "processors": machine.hardware.processors,
                "memory": machine.hardware.memory,
                "system_directory": r"C:\Windows\system32",
                "uuid": machine.hardware.uuid,
                "boot_time": machine.local(machine.power.boot_time),
            },
        ),
    )


@primitive("identity.current")
def identity_current(session: Session) -> Objects:
    """The acting account."""
    token = session.token
    full = token.name if "\\" in token.name else f"{session.machine.name}\\{token.name}"
    groups: list[Plain] = [g for g in token.groups if token.elevated or g != ADMINISTRATORS]
    return (
        Record(
            "identity",
            {
                "name": full,
                "sid": token.sid,
                "groups": groups,
                "elevated": token.elevated,
                "authentication": token.authentication,
            },
        ),
    )


# ---- certificates --------------------------------------------------------------------------------------


def _store(session: Session, store: str) -> dict[str, bytes]:
    place, _, name = store.partition("\\")
    if place.lower() not in ("localmachine", "currentuser") or name.lower() not in (
        "root",
        "my",
        "ca",
        "trustedpublisher",
        "authroot",
    ):
        raise Refusal("value", store, "an unknown certificate store")
    spelled = {"localmachine": "LocalMachine", "currentuser": "CurrentUser"}[place.lower()]
    name = {"root": "Root", "my": "My", "ca": "CA"}.get(name.lower(), name)
    return session.machine.sockets.certificates.setdefault(f"{spelled}\\{name}", {})


@primitive("certificate.list")
def certificate_list(session: Session, store: str) -> Objects:
    """What the store holds."""
    return tuple(
        Record("certificate", {"thumbprint": thumbprint, "raw": raw})
        for thumbprint, raw in sorted(_store(session, store).items())
    )


@primitive("certificate.add")
def certificate_add(session: Session, store: str, raw: bytes) -> Objects:
    """Put a certificate (DER) in."""
    if store.lower().startswith("localmachine") and ADMINISTRATORS not in session.token.sids:
        raise failure(
            "System.Security.Cryptography.CryptographicException", "Access is denied.", hresult=0x80070005
        )
    thumbprint = hashlib.sha1(raw).hexdigest().upper()
    _store(session, store)[thumbprint] = raw
    return ()


@primitive("certificate.remove")
def certificate_remove(session: Session, store: str, thumbprint: str) -> Objects:
    """Take a certificate out; an absent one is fine."""
    _store(session, store).pop(thumbprint.upper(), None)
    return ()


# ---- event log -----------------------------------------------------------------------------------------


def show_event(session: Session, event: Event) -> Record:
    """An entry as Get-WinEvent gives it."""
    properties: list[Plain] = [
        Record("System.Diagnostics.Eventing.Reader.EventProperty", {"Value": p}) for p in event.properties
    ]
    return Record(
        "System.Diagnostics.Eventing.Reader.EventLogRecord",
        {
            "Id": event.id,
            "Level": LEVELS[event.level],
            "LevelDisplayName": event.level,
            "LogName": event.log,
            "MachineName": session.machine.name,
            "Message": event.message,
            "Properties": properties,
            "ProviderName": event.provider,
            "RecordId": event.record_id,
            "TimeCreated": session.machine.local(event.time),
        },
    )


@primitive("serial.ports")
def serial_ports(session: Session) -> Objects:
    """The serial ports."""
    return ("COM1",) if session.machine.serial is not None else ()


@primitive("serial.write")
def serial_write(session: Session, line: str) -> Objects:
    """A line to COM1."""
    if session.machine.serial is not None:
        session.machine.serial.append(line)
    return ()


@primitive("eventlog.source")
def eventlog_source(session: Session, source: str) -> Objects:
    """The log of a source."""
    found = session.machine.events.log_of(source)
    return () if found is None else (found,)


@primitive("eventlog.create")
def eventlog_create(session: Session, source: str, log: str) -> Objects:
    """Register a source."""
    session.machine.events.create_source(source, log)
    return ()


@primitive("eventlog.write")
def eventlog_write(
    session: Session, source: str, message: str, id: int = 0, kind: str = "Information", category: int = 0
) -> Objects:
    """Write through a source."""
    log = session.machine.events.log_of(source)
    if log is None:
        # .NET registers an unknown source with the Application log.
        session.machine.events.create_source(source, "Application")
        log = "Application"
    session.machine.events.write(log, source, id, message, kind)
    return ()


@primitive("eventlog.query")
def eventlog_query(
    session: Session,
    log: str,
    provider: str | None = None,
    ids: list[int] | None = None,
    newest: int | None = None,
    oldest_first: bool = False,
) -> Objects:
    """Entries that fit."""
    if log.lower() not in session.machine.events.logs:
        message = f"There is not an event log on the localhost computer that matches '{log}'."
        raise failure(
            "System.Diagnostics.Eventing.Reader.EventLogNotFoundException", message, hresult=0x80073A9F
        )
    found = [
        e
        for e in session.machine.events.query(log)
        if (provider is None or e.provider.lower() == provider.lower()) and (not ids or e.id in ids)
    ]
    if oldest_first:
        found.reverse()
    return tuple(show_event(session, e) for e in found[: newest or len(found)])


# ---- host networking -----------------------------------------------------------------------------------


@primitive("hns.call")
def hns_call(
    session: Session, method: str, path: str, request: str = "", seconds: float = float("inf")
) -> Objects:
    """vmcompute.dll's HNSCall, by a caller that waits so long for it."""
    if session.machine.services.find("hns") is None:
        raise failure("System.DllNotFoundException", "Unable to load DLL 'vmcompute.dll'", hresult=0x80131524)
    hang(session, session.machine.hns.hanging(method, path, request), seconds)
    return (session.machine.hns.call(method, path, request),)


def hang(session: Session, hanging: float, seconds: float) -> None:
    """What a call costs that hangs so long, to a caller that waits so long for it."""
    if hanging:
        session.wait(min(hanging, seconds))
        if hanging > seconds:
            raise failure("System.TimeoutException", "The operation has timed out.", hresult=0x80131505)


@primitive("hcs.destroy-layer")
def hcs_destroy_layer(session: Session, path: str) -> Objects:
    """computestorage.dll: HcsDestroyLayer. Gives its HRESULT; a layer that a container uses is in use."""
    machine = session.machine
    if not machine.files.is_directory(path):
        return (-0x7FF8FFFD,)
    if machine.processes.named("containerd-shim-runhcs-v1"):
        return (-0x7FF8FFE0,)
    machine.files.destroy_layer(path)
    return (0,)
