"""What a report holds: plain values, from which pages, text and comparisons are made."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code; line 0 where it is not known."""

    file: str = ""
    line: int = 0
    function: str = ""
    scope: str = ""

    def __str__(self) -> str:
        if not self.line:
            return "an unknown place"
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the compiled graph.

    Attributes
    ----------
    name, result : str
        Of the primitive; shape and dtype of the first result.
    reads : tuple of int
        Numbers of the operations whose results it reads, those outside of its body as well;
        ``-1 - k`` for argument ``k``.
    body : tuple of int
        Numbers of the operations in the graphs that it holds, those of their own included.
    parent : int
        The operation in whose graph it is; -1 for none.
    """

    number: int
    name: str
    result: str
    place: Place
    reads: tuple[int, ...]
    body: tuple[int, ...] = ()
    parent: int = -1


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of emitted source, each with the numbers of the operations that it is for."""

    lines: tuple[str, ...] = ()
    operations: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, or a step of the driver.

    Attributes
    ----------
    label, summary : str
        How the driver calls it (``h0.kernel1`` is a kernel of what its step 0 runs on each
        device); what it computes.
    is_step : bool
        Whether a library or the host does it.
    threads : int
        Threads of the processor that share it out; 0 on a GPU.
    flops, additions, moved : int
        Operations, the additions that they take as long as (``exp`` takes more than one), and bytes
        between it and memory, as the scheduler counts them.
    vector_bits : int or None
        The widest registers that its assembly computes on: 0 for scalar code, None where that is
        not known.
    seconds, bound : float or None
        The fastest of its runs, and what the roofline of this machine allows. Of what runs on each
        device it is that of the fastest, and a collective's has the time it waits for the others.
    made, made_seconds
        Where its machine code is from, and how long that took.
    reasons : tuple of (int, str)
        What the scheduler did not do, and why: operation and text.
    is_counted : bool
        Whether that are all operations: a loop whose turns are not known before it runs counts one
        of them, and a library step none whose algorithm does as many as it needs.
    times : int
        How often it counts in a sum: once on each device, or 0, of a step whose kernels do.
    """

    label: str
    name: str
    summary: str
    is_step: bool
    threads: int
    flops: int
    additions: int
    moved: int
    operations: tuple[int, ...]
    text: Text = field(default_factory=Text)
    vector_bits: int | None = None
    seconds: float | None = None
    bound: float | None = None
    made: str = ""
    made_seconds: float | None = None
    reasons: tuple[tuple[int, str], ...] = ()
    is_counted: bool = True
    times: int = 1


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of a program: where it begins, and after which kernel nobody needs it.

    Attributes
    ----------
    kind : str
        ``"argument"``, ``"result"``, ``"temporary"`` or ``"workspace"``, which is kept for calls.
    note : str
        Whether it is written over another array, and what becomes of a donated argument.
    """

    name: str
    what: str
    size: int
    first: int
    last: int
    kind: str
    note: str = ""
    operation: int = -1


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a user's file, ``number`` being the first one's."""

    file: str
    number: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a function could not be compiled, and at which line of the user's."""

    kind: str
    message: str
    place: Place


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine reaches: bytes and operations a second, on one thread and on all.

    ``cache`` are bytes that lie in a near cache, ``product`` operations of a matrix product.
    """

    name: str = ""
    threads: int = 1
    bandwidth: tuple[float, float] = (0.0, 0.0)
    cache: tuple[float, float] = (0.0, 0.0)
    flops: tuple[float, float] = (0.0, 0.0)
    product: float = 0.0


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of one program."""

    name: str
    signature: str = ""
    arguments: tuple[str, ...] = ()
    equations: int = 0
    operations: tuple[Operation, ...] = ()
    results: tuple[int, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    driver: Text = field(default_factory=Text)
    buffers: tuple[Buffer, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    guards: tuple[tuple[str, str, str], ...] = ()
    captured: tuple[str, ...] = ()
    copies: tuple[tuple[int, str], ...] = ()
    in_place: tuple[int, ...] = ()
    stages: tuple[tuple[str, float], ...] = ()
    seconds: float | None = None
    not_run: str = ""
    peak: int = 0
    machine: Machine | None = None
    failure: Failure | None = None

    @property
    def flops(self) -> int:
        """Operations of a run, as far as they are counted."""
        return sum(k.flops * k.times for k in self.kernels)

    @property
    def moved(self) -> int:
        """Bytes between kernels and memory."""
        return sum(k.moved * k.times for k in self.kernels)

    @property
    def regions(self) -> tuple[Kernel, ...]:
        """What the driver calls, in order: no kernels of a step's own program (``h0.kernel1``)."""
        return tuple(k for k in self.kernels if "." not in k.label)
