"""One table of commands serves the checker and the lab: what the lab binds, the checker knows, and the aliases are one."""

import pytest
import winboot_lab.engine.run  # noqa: F401 - declares the cmdlets
from winboot_lab.engine.commands import all_cmdlets, machine_spec
from winboot_lab.language import commands
from winboot_lab.windows.machine import Machine

MACHINE = Machine().commands
SPECS = {name: command.spec for name, command in all_cmdlets().items()} | {
    name: machine_spec(command) for name, command in MACHINE.items()
}


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_command_of_the_lab_is_in_the_table_with_its_parameters(name: str) -> None:
    spec, facts = SPECS[name], commands.find(name)
    assert facts is not None
    assert (facts.name, facts.name.lower()) == (spec.name, name)

    own = [parameter for parameter in spec.parameters if not parameter.common and not parameter.dynamic]
    assert [parameter.name for parameter in own if facts.parameter(parameter.name) is None] == []
