"""From syntax tree to closures: expressions, assignments, statements and commands."""
