"""Get-, New-, Set-, Remove-CimInstance and Invoke-CimMethod, for the classes in use."""

from __future__ import annotations

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows import wql
from winboot_lab.windows.call import STRING, STRINGS, SWITCH, Call, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.cim_classes import CLASSES, CimClass
from winboot_lab.windows.cmdlets.shapes import CIM, class_of, uint32
from winboot_lab.windows.door import InSet, Parameter, Plain, Problem, Record

_MODULE = "CimCmdlets"
_COMMANDS = "Microsoft.Management.Infrastructure.CimCmdlets"
_EXCEPTION = "Microsoft.Management.Infrastructure.CimException"
_NAMESPACE = parameter("Namespace")
_TABLE = "System.Collections.IDictionary"


def _class(name: str, namespace: str = "") -> CimClass:
    found = CLASSES.get(name.lower())
    if found is None:
        raise Refusal("value", name, "a CIM class the lab does not have")
    asked = (namespace or r"root\cimv2").replace("/", "\\").lower()
    if asked != found.namespace.lower():
        raise Refusal("value", f"{namespace}:{name}", f"the class is in {found.namespace}")
    return found


def _error(call: Call, hresult: int, message: str, category: str, target: Plain = None) -> Problem:
    word = call.command.name.replace("-", "")
    identifier = f"HRESULT 0x{hresult:08x},{_COMMANDS}.{word}Command"
    return Problem(message, identifier, category, _EXCEPTION, target=target, hresult=hresult)


def _fitting(call: Call, cim: CimClass, test: wql.Test) -> list[Record]:
    return [r for r in cim.instances(call.machine) if test(r.properties)]


def _narrowed(record: Record, names: list[str], keys: tuple[str, ...]) -> Record:
    # Properties that were not asked for are there, but null.
    wanted = {n.lower() for n in (*names, *keys)}
    for name in names:
        if name.lower() not in {p.lower() for p in record.properties}:
            raise Refusal("member", name, f"a property of {class_of(record)}")
    kept: dict[str, Plain] = {n: (v if n.lower() in wanted else None) for n, v in record.properties.items()}
    return Record(record.type_name, kept, text=record.text)


@cmdlet(
    "Get-CimInstance",
    _MODULE,
    Parameter(
        "ClassName", STRING, sets=(InSet("ClassNameComputerSet", mandatory=True, position=0, by_name=True),)
    ),
    Parameter("Query", STRING, sets=(InSet("QueryComputerSet", mandatory=True, by_name=True),)),
    Parameter(
        "InputObject",
        CIM,
        ("CimInstance",),
        sets=(InSet("CimInstanceComputerSet", mandatory=True, position=0, by_value=True),),
    ),
    _NAMESPACE,
    Parameter("Filter", STRING, sets=(InSet("ClassNameComputerSet", by_name=True),)),
    Parameter(
        "Property", STRINGS, ("SelectProperties",), sets=(InSet("ClassNameComputerSet", by_name=True),)
    ),
    default_set="ClassNameComputerSet",
    aliases=("gcim",),
)
def get_instance(call: Call) -> None:
    """Instances of a class, of a query, or an instance read again."""
    if call.has("InputObject"):
        for record in call.records("InputObject"):
            found = _again(call, record)
            if found is None:
                call.fail(_error(call, 0x80041002, "Not found ", "ObjectNotFound", record))
            else:
                call.give(found)
        return
    if call.has("Query"):
        query = wql.parse_query(call.text("Query"))
        cim = _class(query.class_name, call.text("Namespace"))
        found_all = _fitting(call, cim, query.test)
        names = list(query.properties)
    else:
        cim = _class(call.text("ClassName"), call.text("Namespace"))
        if not cim.present(call.machine):
            call.fail(_error(call, 0x8004100E, "Invalid namespace ", "MetadataError", cim.namespace))
            return
        test = wql.parse_filter(call.text("Filter")) if call.text("Filter") else lambda properties: True
        found_all = _fitting(call, cim, test)
        names = call.texts("Property")
    call.give(*(_narrowed(r, names, cim.keys) if names else r for r in found_all))


def _again(call: Call, record: Record) -> Record | None:
    cim = CLASSES.get(class_of(record).lower())
    if cim is None:
        raise Refusal("value", class_of(record), "a CIM class the lab does not have")
    for known in cim.instances(call.machine):
        if all(known.properties.get(k) == record.properties.get(k) for k in cim.keys):
            return known
    return None


def _table(call: Call, name: str) -> dict[str, Plain]:
    value = call.parameters.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise call.refuse(name, "a hashtable was expected")
    return value


def _targets(call: Call) -> list[tuple[CimClass, Record]]:
    if call.has("InputObject"):
        records = call.records("InputObject")
        found: list[tuple[CimClass, Record]] = []
        for record in records:
            again = _again(call, record)
            if again is None:
                call.fail(_error(call, 0x80041002, "Not found ", "ObjectNotFound", record))
            else:
                found.append((CLASSES[class_of(record).lower()], again))
        return found
    query = wql.parse_query(call.text("Query"))
    cim = _class(query.class_name, call.text("Namespace"))
    return [(cim, r) for r in _fitting(call, cim, query.test)]


_INPUT = Parameter(
    "InputObject",
    CIM,
    ("CimInstance",),
    sets=(InSet("CimInstanceComputerSet", mandatory=True, position=0, by_value=True),),
)
_QUERY = Parameter("Query", STRING, sets=(InSet("QueryComputerSet", mandatory=True, position=0),))


@cmdlet(
    "Invoke-CimMethod",
    _MODULE,
    Parameter(
        "ClassName",
        STRING,
        ("Class",),
        sets=(InSet("ClassNameComputerSet", mandatory=True, position=0, by_name=True),),
    ),
    _INPUT,
    _QUERY,
    _NAMESPACE,
    parameter("MethodName", STRING, 2, mandatory=True, aliases=("Name",)),
    parameter("Arguments", _TABLE, 1),
    default_set="ClassNameComputerSet",
    aliases=("icim",),
    should_process=True,
)
def invoke_method(call: Call) -> None:
    """A method of a class or of instances; the answer has ReturnValue."""
    method, arguments = call.text("MethodName"), _table(call, "Arguments")
    if call.has("ClassName"):
        cim = _class(call.text("ClassName"), call.text("Namespace"))
        _invoke(call, cim, None, method, arguments)
        return
    for cim, record in _targets(call):
        _invoke(call, cim, record, method, arguments)


def _invoke(
    call: Call, cim: CimClass, record: Record | None, method: str, arguments: dict[str, Plain]
) -> None:
    known = {m.lower(): f for m, f in cim.methods.items()}
    if method.lower() not in known:
        raise Refusal("member", f"{cim.name}.{method}()")
    answer = known[method.lower()](call.session, record, arguments)
    properties: dict[str, Plain] = {k: v for k, v in answer.items() if k != "ReturnValue"}
    value = answer["ReturnValue"]
    assert isinstance(value, int)
    properties |= {"ReturnValue": uint32(value), "PSComputerName": None}
    call.give(Record(f"Microsoft.Management.Infrastructure.CimMethodResult#{cim.name}#{method}", properties))


@cmdlet(
    "Set-CimInstance",
    _MODULE,
    _INPUT,
    _QUERY,
    _NAMESPACE,
    parameter("Property", _TABLE, aliases=("Arguments",)),
    parameter("PassThru", SWITCH),
    default_set="CimInstanceComputerSet",
    aliases=("scim",),
    should_process=True,
)
def set_instance(call: Call) -> None:
    """Write changed properties of instances."""
    changed = _table(call, "Property")
    given = call.records("InputObject") if call.has("InputObject") else []
    for index, (cim, record) in enumerate(_targets(call)):
        wanted = dict(changed)
        if index < len(given):
            # Properties changed on the object itself count too.
            wanted |= {
                k: v
                for k, v in given[index].properties.items()
                if k in cim.writable and v != record.properties[k]
            }
        for name in wanted:
            if name.lower() not in {w.lower() for w in cim.writable}:
                call.fail(
                    _error(call, 0x80041005, "Type mismatch or read-only property ", "InvalidType", name)
                )
                return
        spelled = {w.lower(): w for w in cim.writable}
        assert cim.change is not None
        cim.change(call.machine, record, {spelled[k.lower()]: v for k, v in wanted.items()})
        if call.flag("PassThru"):
            again = _again(call, record)
            call.give(*([again] if again else []))


@cmdlet(
    "New-CimInstance",
    _MODULE,
    Parameter(
        "ClassName", STRING, sets=(InSet("ClassNameComputerSet", mandatory=True, position=0, by_name=True),)
    ),
    parameter("Property", _TABLE, 1, aliases=("Arguments",)),
    _NAMESPACE,
    switch("ClientOnly", aliases=("Local",)),
    default_set="ClassNameComputerSet",
    aliases=("ncim",),
    should_process=True,
)
def new_instance(call: Call) -> None:
    """Make an instance of a class."""
    if call.flag("ClientOnly"):
        raise call.refuse("ClientOnly")
    cim = _class(call.text("ClassName"), call.text("Namespace"))
    if cim.create is None:
        raise Refusal("member", f"{cim.name} New-CimInstance")
    made = cim.create(call.machine, _table(call, "Property"))
    if made is None:
        call.fail(_error(call, 0x80041019, "Already exists ", "ResourceExists", cim.name))
    else:
        call.give(made)


@cmdlet(
    "Remove-CimInstance",
    _MODULE,
    _INPUT,
    _QUERY,
    _NAMESPACE,
    default_set="CimInstanceComputerSet",
    aliases=("rcim",),
    should_process=True,
)
def remove_instance(call: Call) -> None:
    """Remove instances."""
    for cim, record in _targets(call):
        if cim.remove is None:
            raise Refusal("member", f"{cim.name} Remove-CimInstance")
        cim.remove(call.machine, record)
