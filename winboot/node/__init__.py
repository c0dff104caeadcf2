"""Work on nodes: one script on one node, many nodes side by side, and what a Node object asks for (admission, drain)."""
