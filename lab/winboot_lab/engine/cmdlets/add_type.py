"""Add-Type: declares the C# classes that the lab knows, and refuses everything else."""

from __future__ import annotations

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types import entry, hcn, hns, layer, privilege

_KNOWN = {
    hns.DECLARATION: hns.HNS,
    hcn.DECLARATION: hcn.HCN,
    layer.DECLARATION: layer.LAYER,
    entry.DECLARATION: entry.ENTRY,
    privilege.DECLARATION: privilege.PRIVILEGE,
}


@cmdlet(
    "Add-Type",
    """
    TypeDefinition: string mandatory position=0 set=FromSource
    Language: string set=FromSource
    AssemblyName: string[] mandatory refused set=FromAssemblyName
    Path: string[] mandatory position=0 refused set=FromPath
    LiteralPath: string[] mandatory refused set=FromLiteralPath
    MemberDefinition: string[] mandatory position=1 refused set=FromMember
    Name: string mandatory position=0 refused set=FromMember
    Namespace: string refused set=FromMember
    ReferencedAssemblies: string[] refused set=FromSource
    UsingNamespace: string[] refused set=FromMember
    OutputAssembly: string refused
    OutputType: string refused
    PassThru: switch refused
    IgnoreWarnings: switch refused
    """,
    default_set="FromSource",
)
def add_type(call: Call) -> None:
    """Compile C#: known text is recognised, unknown text cannot be run here."""
    known = _KNOWN.get(hns.digest(str(call["TypeDefinition"])))
    if known is None:
        raise Refusal("command", "Add-Type with C# other than winboot's own declarations")
    call.session.types[known.name.lower()] = known
