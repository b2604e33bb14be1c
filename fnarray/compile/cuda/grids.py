"""Grids of kernels, and how many lanes and blocks there are of what."""

from __future__ import annotations

from ...core.frozen import frozen

#: Threads of a block, and of a block whose rows are short: one warp.
LANES, WARP = 256, 32
#: Rows of up to this many elements are a warp's.
SHORT = 256
#: Elements along a side of a square of a result whose operands lie crosswise.
SQUARE = 32
#: Whole folds of up to this many terms are one block's, and of that many lanes.
ALONE, MOST = 1 << 14, 1024
#: Blocks of a grid whose blocks keep something: eight for each of 132 multiprocessors.
BLOCKS = 1056
#: Results of a loop up to which its turns are written out freely.
PLAIN = 8
#: Blocks of any grid; what is beyond is done in further turns.
GRID = 1 << 20


@frozen
class Grid:
    """How many blocks of how many lanes run a kernel.

    Attributes
    ----------
    again : bool
        Whether another kernel must finish what this one leaves in parts.
    """

    blocks: int
    lanes: int
    again: bool = False


ONE = Grid(1, 1)


def grid_of(turns: int, lanes: int, most: int) -> Grid:
    """Return a grid with a thread for each turn, as far as that goes."""
    return Grid(min(max(-(-turns // lanes), 1), most), lanes)
