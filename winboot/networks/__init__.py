"""Each network solution as a value: what it makes on the node, who owns what, and the files it needs."""
