"""The dialect's data lists what the engine and the machine declare: no more, no less."""

import winboot_lab.engine.run  # noqa: F401 - declares types and cmdlets
from winboot_lab.engine.commands import all_cmdlets, machine_spec
from winboot_lab.engine.dotnet import Overload, every_type
from winboot_lab.engine.signatures import CommandSpec
from winboot_lab.language import dialect
from winboot_lab.windows.machine import Machine

Facts = tuple[set[str], set[str], set[str]]


def _arguments(overload: Overload) -> str:
    return (
        f"{overload.least}+"
        if overload.spreads or overload.least < len(overload.slots)
        else f"{overload.least}"
    )


def of_engine() -> dict[str, Facts]:
    """Members, static members and constructors of each declared type, as the data writes them.

    Without those of a script's own C#, arrays and closed generics. Types of one name, such as the streams of files and of
    processes, are taken together. One without members may have come with an object while another test ran.
    """
    found: dict[str, Facts] = {}
    for kind in every_type():
        if "[" not in kind.name and not kind.name.startswith("Winboot."):
            members, statics, constructors = found.setdefault(kind.name, (set(), set(), set()))
            members |= {member.name for member in kind.members.values()}
            statics |= {member.name for member in kind.statics.values()}
            constructors |= {_arguments(overload) for overload in kind.constructors.overloads}
    return found


def test_the_engine_declares_the_listed_types_with_the_listed_members() -> None:
    listed = {
        name: (set(facts.members), set(facts.statics), set(facts.constructors))
        for name, facts in dialect.types().items()
    }

    declared = of_engine()

    bare: Facts = (set(), set(), set())
    assert {name: facts for name, facts in declared.items() if listed.get(name, bare) != facts} == {}
    assert set(listed) - set(declared) == set()


def own_parameters(spec: CommandSpec) -> list[str]:
    """The parameters that the lab binds, without those that every cmdlet has."""
    return sorted(one.name for one in spec.parameters if not one.common and not one.refused)


def test_the_lab_has_the_listed_cmdlets_with_the_listed_parameters() -> None:
    specs = [one.spec for one in all_cmdlets().values()] + [
        machine_spec(one) for one in Machine().commands.values()
    ]

    assert {spec.name: own_parameters(spec) for spec in specs} == {
        name: sorted(parameters) for name, parameters in dialect.cmdlets().items()
    }
