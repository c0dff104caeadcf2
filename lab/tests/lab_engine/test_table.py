"""One table of commands serves the checker and the lab: what the lab binds, the checker knows, and the aliases are one."""

import winboot_lab.engine.run  # noqa: F401 - declares the cmdlets
from winboot_lab.engine.commands import all_cmdlets, machine_spec
from winboot_lab.engine.signatures import CommandSpec
from winboot_lab.language import commands
from winboot_lab.windows.machine import Machine

from tests.every import assert_none_wrong

MACHINE = Machine().commands
SPECS = {name: command.spec for name, command in all_cmdlets().items()} | {
    name: machine_spec(command) for name, command in MACHINE.items()
}


def unknown(name: str, spec: CommandSpec) -> list[str]:
    """What the table lacks of the command: the name itself, or parameters."""
    facts = commands.find(name)
    if facts is None or (facts.name, facts.name.lower()) != (spec.name, name):
        return [f"the table has {facts.name if facts else 'no such command'}"]
    own = [parameter for parameter in spec.parameters if not parameter.common and not parameter.dynamic]
    return [parameter.name for parameter in own if facts.parameter(parameter.name) is None]


def test_a_command_of_the_lab_is_in_the_table_with_its_parameters() -> None:
    assert_none_wrong({name: unknown(name, spec) for name, spec in SPECS.items()})
