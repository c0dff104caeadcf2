"""Add-Type: declares the one C# class the lab knows, and refuses everything else."""

from __future__ import annotations

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.hns import DECLARATION, HNS, digest


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
    if digest(str(call["TypeDefinition"])) != DECLARATION:
        raise Refusal("command", "Add-Type with C# other than winboot's own HNS declaration")
    call.session.types[HNS.name.lower()] = HNS
