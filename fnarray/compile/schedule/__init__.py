"""From a block of nodes to an ordered plan of loop nests and steps."""
