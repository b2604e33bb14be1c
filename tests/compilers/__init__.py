"""Every kernel of a corpus compiled by both compilers, run on the same arguments, and compared."""
