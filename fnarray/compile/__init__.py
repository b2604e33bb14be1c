"""Back wing: from a graph to compiled kernels. Sees core, and forms of loops, never op names."""
