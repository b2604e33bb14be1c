"""A compiled program as a value that another process can run: names of kernels, and the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.avals import ShapedArray
from ...core.forms import is_product
from ...core.hooks import bound
from ...core.lines import aligned
from ..text import CORES
from . import build
from .key import kernel_name
from .namespace import CODES
from .workspace import taken

if TYPE_CHECKING:
    from ..emit.source import Source
    from .product import Product

Run = Callable[..., tuple[np.ndarray, ...]]


#: A kernel's name and signature.
Kernel = tuple[str, tuple[str, ...]]


class Program(NamedTuple):
    """What is kept of a program: plain values.

    ``products`` are the steps of the driver: forms of products or sums of them, and what goes in
    and comes out; ``labels`` says what each that the driver calls does, for profiles.
    """

    text: str
    kernels: tuple[Kernel, ...]
    folds: tuple[tuple[Kernel, ...], ...]
    constants: tuple[Any, ...]
    products: tuple[tuple[Product, tuple[ShapedArray, ...], ShapedArray], ...]
    labels: tuple[tuple[str, str], ...]


def program_of(source: Source, labels: Mapping[str, str]) -> Program | None:
    """Return a program as a value; None where it calls more than kernels and matrix products."""
    if not all(is_product(node.form) for node in source.steps):
        return None

    def named(kernel: build.KernelSource) -> Kernel:
        return kernel_name(kernel), kernel.signature

    return Program(
        source.text,
        tuple(named(k.source) for k in source.kernels),
        tuple(tuple(map(named, k.folds)) for k in source.kernels),
        source.constants,
        tuple((n.form, tuple(a.aval for a in n.ins), n.out.aval) for n in source.steps),
        tuple(labels.items()),
    )


def run_of(program: Program) -> Run:
    """Return what runs a program.

    Raises
    ------
    LookupError
        One of its kernels is not on disk, or cannot be used.
    """
    makes = {"empty": np.empty, "aligned": aligned}
    namespace: dict[str, Any] = {**makes, "spare": [], "taken": taken, **CODES}
    if "launch(" in program.text or CORES in program.text:
        from .names import LIMITS, names  # which few programs need

        namespace = names(LIMITS)
    elif "one_thread:" in program.text:
        from ...threads.onethread import one_thread

        namespace["one_thread"] = one_thread
    for j, (kernel, folds) in enumerate(zip(program.kernels, program.folds, strict=True)):
        namespace[f"kernel{j}"] = build.find(*kernel)
        for k, fold in enumerate(folds):
            namespace[f"fold{j}_{k}"] = build.find(*fold)
    if program.products:
        from . import names as named
        from .product import product_step

        for j, (form, ins, out) in enumerate(program.products):
            namespace[f"h{j}"] = product_step(form, ins, out, named.LIMITS)
    for j, value in enumerate(program.constants):
        namespace[f"k{j}"] = value
    exec(compile(program.text, "<fnarray driver>", "exec"), namespace)
    main = namespace["main"]
    bound(main, lambda: dict(program.labels))
    return main
