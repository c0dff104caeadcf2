"""From syntax tree to closures: expressions, assignments, statements and commands."""

from winboot.lab.engine.compiler import assignments, commands, expressions, statements, variables

__all__ = ["assignments", "commands", "expressions", "statements", "variables"]
