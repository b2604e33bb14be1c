"""What a target is: everything the compile wing asks about the machine it compiles for.

The stages before emission are the same for all targets. They ask the target where a choice depends
on the machine: its limits, the order of loops, which nodes are steps of a library. Emission, build
and launch are the target's own. One folder defines one target; nothing else names it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import is_complex
from ..core.forms import Reduce
from ..core.frozen import frozen
from .ir import Node

#: A loop of a nest: ``("o", axis)`` of the result or ``("r", axis)`` of the folded space.
LoopAxis = tuple[str, int]


@frozen
class Limits:
    """Thresholds of the scheduler and of emission; sizes are in elements unless said otherwise.

    Attributes
    ----------
    dear : int
        From this cost on, in additions, a value that takes a function is not computed twice.
    plain : int
        Nor is one of plain arithmetic, outside of loops, if computing it for all its readers but
        one costs more than this. A limited flux of 26 additions, read at two places, took 3.1 ms
        kept in memory and 1.0 computed twice (2.5M elements; 26 us and 19 of 24,000, which a near
        cache holds). One of 38 at five places took 2.1 ms kept and 6.8 computed.
    spread : int
        Nor is one that takes a division, and each of whose elements so many places read (outside
        of loops where a kernel holds several loops): a column of 200, divided by a root, as both
        sides of an outer product, took 1.4 ms for 200 turns written into it, and 0.6 kept; roots
        of a row, by which 3,000 are divided, 138 us and 33.
    tall : int
        Longest chain of values written into each other, which bounds recursion.
    registers : int
        Arrays of up to this many elements live in registers inside loops.
    vector : int
        Arrays of at least this many elements live in memory where a loop runs over one of them:
        element by element, from registers and back, costs more than the loop does (0.20 ms against
        0.05 for a forward algorithm of 8 states).
    abreast : int
        Folds into up to this many neighbours keep them all in scalars: the sums over particles of
        their three coordinates took 0.56 ms in memory, 0.17 in scalars.
    unroll : int
        Statements of up to this much work are written out inside loops, a multiplication of a
        contraction and an addition counting one.
    library : int
        Contractions of more multiplications than this are library calls: in a loop 20 x 20 by
        20 x 20 takes a call 0.18 us and loops 0.37, 128 x 4 by 4 x 32 takes 0.30 and 0.95, and
        16 x 16 by 16 x 16, of BLAS, as long as loops. It is text besides that LLVM has not to read.
    narrow : int
        With up to so many columns it takes three times as many, since a call works on vectors along
        rows: 64 x 64 by 64 x 3 took it 0.89 us and loops 0.42, 128 x 32 by 32 x 4 0.90, and 0.68 to
        1.4 by layout.
    thin : int
        And of rows of fewer multiplications than this eight times as many: 500 x 4 by 4 x 4 took a
        call 0.66 us and loops 0.25, 300 x 8 by 8 x 8 as long. Matrices of a stack that take no more
        each are loops: by calls those of 2 x 2 took 28 ns, and 1, of 3 x 3 30 and 10, of 4 x 4 31
        and 24, complex ones 59 and 3, 81 and 18, 86 and 21.
    vectors : int
        Products of a vector and a matrix whose rows have so many elements are loops: 400,000 took
        BLAS 38 us and loops 10 in rows of 64 to 512, 39 and 82 in rows of 32 (float32).
    pieces : int
        Arrays laid out of up to so many pieces are written into their readers, which choose for
        each element; others are filled piece by piece.
    padded : int
        What is padded with a number and read by one elementwise operation is read where it lies,
        if rows have so many elements, all of which have a mask, of four bytes and up; 0 for
        nothing: four neighbours of 500 x 500, with zeros around, were eight passes before, and are
        none (a wave's 100 turns: 92 ms and 25). So is what is replaced by a box.
    masked : int
        Additions, for each element, that are done under such a mask.
    twofold : int
        A box of so many elements, and no fewer than are around it, that each turn of a loop
        computes of what it replaces, is written to a second array, which the next turn reads; 0
        for never: 50 turns of four neighbours of 150 x 150 took 254 us by way of working storage,
        loops by hand 158.
    exchanged : int
        Turns that exchange what they update are taken by twos where one costs up to this much for
        each element: a dearer one hardly feels the copies, and its text is compiled twice. Of ten
        operations, five of them sines, turns took as long and a first call 1.3 times.
    rotated : int
        What is turned round along an axis (`roll`) is read where it lies where what follows that
        axis has so many elements, which share one remainder: six neighbours of 128 x 128 x 128 were
        six copies before.
    streams : int
        Arrays that one fused loop touches at most, beside those that it makes (`fuse.LONG`): more
        streams than this defeat prefetching and the vectoriser's overlap checks.
    parallel : int
        Work (see `schedule.work`) below which a kernel runs on the calling thread: a launch on the
        pool costs 3 us while its threads are awake, and 10 to 30 where they have gone to sleep,
        which two threads save of 40, the time of a million units.
    shared : int
        Work of a loop inside of a kernel from which threads share it: 10 us, of which a thread that
        is awake takes one to be asked.
    turns : int
        Turns that a ``while`` is taken to have.
    turn : int
        Work of a turn from which the driver turns a loop, its kernels in chunks and its products
        shared out; a kernel turns it on one thread. 0.3 ms, of which the driver takes some 0.05.
    kernel : int
        A kernel is closed once it holds this many operations: LLVM's time grows faster than its
        function does (300 operations and their gradient in one kernel took 15 s to compile).
    numbers : int
        So many operations on single numbers count as one; where that is more than one, what
        several of them read is kept. LLVM takes the same for each, 0.05 ms, however long the text,
        and what crosses kernels are arguments. An unrolled Runge-Kutta method of 20 equations,
        9,000 operations in 124 kernels took 64 us a call and 2.3 s to compile, in 2 kernels 6 us
        and 1.2 s.
    loop : int
        One loop holds this many statements at most: to ask each further one whether it depends on
        those before it took 200 s for 10,000 results, and 10 s in loops of so many.
    grain : int
        Chunks begin at multiples of this many iterations, so that no two threads write one cache
        line.
    chunks : int
        Folds are cut into this many chunks whatever the number of threads, so that their results
        do not depend on it.
    serial : int
        Products of up to this many multiplications are left to the library as they are: it stays
        on the calling thread itself. They stay in kernels. With 2**20 kernels that products cut
        before are long ones: first calls of a small network and a transformer took 1.5 of the time.
    share : int
        Multiplications that each thread gets at least of a larger product, some 50 us: handing over
        costs about 30.
    split : int
        Multiplications from which a product inside of a kernel is cut into a part for each thread:
        some 15 us.
    alone : int
        Products inside of loops of up to this many multiplications, half a millisecond, keep BLAS
        to the calling thread, whatever its own judgement: threads that wait for each other twice in
        each turn gained nothing on two cores that were free, and cost two to four times the time
        where a core was not.
    matrix : int
        Order up to which matrices are factored and solved by kernels. Of one matrix of 64 rows the
        host's Cholesky factor takes 19 us and the kernel's 8, its solution 25 and 12; of 96 complex
        ones kernels take twice the host's time, as they leave the nearest cache.
    matrix_inside : int
        Order up to which that holds inside of loops, which a library step leaves to Python. Beyond
        only LAPACK is any good.
    few : int
        Up to this many largest elements the kernel's heap is faster than NumPy's partition. In
        random order few elements reach it: 50 of 32,000 in each of 64 rows took 16 ms by partition,
        4 of 400 20 us, of which Python took most, and 1.8. In rising order all do.
    transform : int
        Arrays of up to this many elements are transformed by the host outside of loops, in 1 to 6
        us more: the kernels of a first transform take 80 to 220 ms to compile.
    workspace : int
        Bytes that a program keeps between calls at most, for the arrays that only its kernels see;
        one that needs more, or 0, has them allocated in each call.
    spelled : int
        Integers up to this size are spelled out in kernels; larger ones, which are sizes, strides
        and offsets, are arguments, so that another size of array runs the same kernel. Loops of
        17 to 64 turns whose number LLVM knows took, of 62 programs, 0.69 (a heat equation, an LU
        decomposition) to 1 of the time, and 0.54 to 1.1 of it to compile.
    brief : int
        But integers up to this size only, where a kernel has more than `loops` loops one after
        another, all over fewer than `little` elements: twenty updates of 40 x 60 numbers took
        7 us in place of 10, and 230 ms to compile in place of 129.
    loops, little : int
    lanes : int
        Lanes of loops that end at different times turn together in groups of this many; on their
        own where it is 1. Too many to be scalars, few enough to stay in the nearest cache: 128
        took half the time of 32, and 256 as long, on Newton's method and Collatz' sequence.
    lane_state : int
        Lanes that carry more elements than this turn on their own: their arrays fill vectors
        already.
    group : int
        Of loops whose rows never meet so many elements of what they carry turn at once, which is
        a part of the nearest cache; 0 for all.
    row : int
        Elementwise nests share a loop though those inside differ where each has at least this many
        elements inside; else they are apart, and may run as one long loop each. Apart they took,
        on (n, n, r) and slices of it of r - 1, 0.6 of the time at r = 7 and 16, 0.8 at 32, 0.95 at
        64 and 1.06 at 128.
    views : bool
        Whether the driver can show an array in another shape without a kernel that copies it.
    strips : int
        Arrays of at least so many bytes, most of the nearest cache, are read across
        their rows in strips.
    lines : int
        Bytes from which on an array that the driver makes begins with a line of the caches, in
        another quarter of a page than the one before; 0 where none has to.
    """

    dear: int = 8
    plain: int = 32
    spread: int = 16
    tall: int = 48
    registers: int = 16
    vector: int = 8
    abreast: int = 4
    unroll: int = 64
    library: int = 1 << 12
    narrow: int = 4
    thin: int = 64
    vectors: int = 64
    views: bool = True
    pieces: int = 0
    padded: int = 0
    masked: int = 4
    twofold: int = 0
    exchanged: int = 64
    rotated: int = 16
    streams: int = 24
    parallel: int = 1 << 20
    shared: int = 1 << 18
    turns: int = 16
    turn: int = 1 << 23
    kernel: int = 100
    numbers: int = 40
    loop: int = 100
    grain: int = 64
    chunks: int = 8
    serial: int = 1 << 18
    share: int = 1 << 20
    split: int = 1 << 19
    alone: int = 1 << 24
    matrix: int = 64
    matrix_inside: int = 128
    few: int = 128
    transform: int = 1 << 12
    workspace: int = 1 << 26
    spelled: int = 64
    brief: int = 16
    loops: int = 12
    little: int = 1 << 13
    lanes: int = 128
    lane_state: int = 16
    group: int = 0
    row: int = 64
    strips: int = 1 << 15
    lines: int = 0


def weighed(multiplications: int, dtype: np.dtype) -> int:
    """Count multiplications for ``serial``, ``share`` and ``alone``.

    A complex one counts for five: it is four, and OpenBLAS takes threads already for 2**16 of them,
    for real ones only above 2**18.
    """
    return multiplications * (5 if is_complex(dtype) else 1)


def _as_it_is(driver: Callable[..., Any]) -> Callable[..., Any]:
    return driver


Build = Callable[[Sequence[Any], Callable[[int], None]], Sequence[Callable[..., None]]]


def one_by_one(build: Callable[[Any], Callable[..., None]]) -> Build:
    """Return what builds the kernels of a program one after the other, by what builds one."""

    def built(sources: Sequence[Any], tell: Callable[[int], None]) -> list[Callable[..., None]]:
        kernels: list[Callable[..., None]] = []
        for source in sources:
            kernels.append(build(source))
            tell(len(kernels))
        return kernels

    return built


def _nothing(node: Node) -> str:
    return ""


def _never(dtype: np.dtype) -> bool:
    return False


@frozen(eq=False)
class Target:
    """A machine to compile for.

    Attributes
    ----------
    name : str
    limits : Limits
    loop_order : callable
        ``loop_order(node, fold) -> loops``, outermost first, of a fold or an elementwise result.
    is_step : callable
        ``is_step(node) -> bool``: whether the driver takes the node itself, by a library or the
        host, where no kernel can or should.
    emit : callable
        ``emit(plan) -> Source``: the driver and its kernels, as text.
    build : callable
        ``build(sources, tell) -> callables``: the machine code of kernels, in order; ``tell(n)``
        is called as they come.
    step : callable
        ``step(node, limits, compiled) -> callable``: what the driver calls for a step;
        ``compiled(graph)`` gives what runs a graph, ``compiled(graph, target)`` on another one.
    key : callable
        ``key() -> tuple``: what a kernel's machine code depends on beside its text.
    names : callable
        ``names(limits) -> dict``: what a driver may call beside kernels and steps: ``empty``,
        ``launch``, dtypes.
    finish : callable
        ``finish(driver) -> callable``: what runs in place of a driver.
    why_step : callable
        ``why_step(node) -> str``: why the driver takes a node; empty where there is nothing to say
        but what holds for all targets.
    sums : callable
        ``sums(dtype) -> bool``: whether products of boxes of arrays, and sums of these, are a step
        that reads them where they lie (`summands`).
    """

    name: str
    limits: Limits
    loop_order: Callable[[Node, Reduce | None], Sequence[LoopAxis]]
    is_step: Callable[[Node, Limits], bool]
    emit: Callable[[Any], Any]
    build: Build
    step: Callable[..., Callable[..., Any]]
    key: Callable[[], tuple[Hashable, ...]]
    names: Callable[[Limits], dict[str, Any]]
    finish: Callable[[Callable[..., Any]], Callable[..., Any]] = _as_it_is
    why_step: Callable[[Node], str] = _nothing
    sums: Callable[[np.dtype], bool] = _never
