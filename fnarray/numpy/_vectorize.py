"""Functions of elements, or of core axes, on arrays that broadcast, and on places."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from .. import lax
from ..api.batching import vmap
from ..core.apart import apart
from ..core.dtypes import canonicalize_dtype
from ..ops.kit.canonical import as_array, canonical_shape
from ..ops.shape import broadcast_shapes

__all__ = ["fromfunction", "vectorize"]

Dims = tuple[str, ...]
_GROUP = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIDE = rf"\s*{_GROUP}\s*(?:,\s*{_GROUP}\s*)*"
_SIGNATURE = re.compile(rf"({_SIDE})->({_SIDE})")


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Return a function that broadcasts its arguments and maps ``pyfunc`` over the result.

    Unlike NumPy's it traces ``pyfunc`` once, and can be differentiated, mapped and compiled.

    Parameters
    ----------
    pyfunc : callable
        Of scalars, or of arrays with the axes that ``signature`` names.
    excluded : collection of int or str, optional
        Positional arguments, or names, that are passed on as they are.
    signature : str, optional
        Core axes of arguments and results, as in ``"(m,n),(n)->(m)"``: they are last, and equal
        names have equal sizes. The axes before them broadcast.

    Returns
    -------
    callable
        Of array-likes; None stands for itself.

    Raises
    ------
    TypeError
        ``excluded`` holds something else. When called: a keyword argument is not excluded, or
        arguments or results are not as many as in ``signature``.
    ValueError
        ``signature`` is none, or ``excluded`` has negative numbers. When called: shapes do not fit
        the signature or do not broadcast.
    """
    if not all(isinstance(e, int | str) for e in excluded):
        raise TypeError(
            f"numpy.vectorize: excluded may hold ints and strings alone, got {excluded!r}."
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"numpy.vectorize: excluded={excluded!r} contains negative numbers.")
    sides = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        if extra := sorted(set(kwargs) - set(excluded)):
            raise TypeError(
                f"numpy.vectorize: the keyword argument {extra[0]!r} is not in excluded; pass it "
                "by position to broadcast it, or exclude it."
            )
        places = [i for i, x in enumerate(args) if i not in excluded]
        cores: Sequence[Dims] = [()] * len(places)
        if sides is not None:
            cores = sides[0]
            if len(cores) != len(places):
                raise TypeError(
                    f"numpy.vectorize: wrong number of positional arguments: {signature!r} has "
                    f"{len(cores)}, got {len(places)}."
                )
        empty = [i for i in places if args[i] is None]
        pairs = [(i, core) for i, core in zip(places, cores, strict=True) if i not in empty]
        if any(core for i, core in zip(places, cores, strict=True) if i in empty):
            raise ValueError(f"numpy.vectorize: None for argument {empty} of {signature!r}.")
        arrays = [as_array(args[i]) for i, _ in pairs]
        sizes: dict[str, int] = {}
        for (i, core), x in zip(pairs, arrays, strict=True):
            _fit(f"argument {i}", signature, x.shape, core, sizes)

        @functools.wraps(pyfunc)
        def run(*cells: Any) -> Any:
            full = list(args)
            for (i, _), cell in zip(pairs, cells, strict=True):
                full[i] = cell
            out = pyfunc(*full, **kwargs)
            if sides is not None:
                _check_results(signature, out, sides[1], dict(sizes))
            return out

        return apart(_mapped(run, arrays, [len(core) for _, core in pairs]), args)

    return vectorized


def _mapped(run: Callable[..., Any], arrays: Sequence[Any], ranks: Sequence[int]) -> Any:
    """Map over the axes before the last ``ranks`` of each array, which broadcast."""
    leads = [x.shape[: x.ndim - r] for x, r in zip(arrays, ranks, strict=True)]
    shape = broadcast_shapes(*leads) if leads else ()
    # An axis that is stretched is left out, and not mapped.
    kept = [
        [(len(shape) - len(lead) + k) for k, n in enumerate(lead)
         if n == shape[len(shape) - len(lead) + k]]
        for lead in leads
    ]  # fmt: skip
    cells = [
        lax.reshape(x, (*(shape[a] for a in axes), *x.shape[len(lead) :]))
        for x, axes, lead in zip(arrays, kept, leads, strict=True)
    ]
    for axis in reversed(range(len(shape))):
        run = vmap(run, in_axes=tuple(0 if axis in axes else None for axes in kept))
    return run(*cells)


def _parsed(signature: str) -> tuple[list[Dims], list[Dims]]:
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"numpy.vectorize: not a valid gufunc signature: {signature!r}.")
    left, right = (
        [tuple(re.findall(r"\w+", group)) for group in re.findall(_GROUP, side)]
        for side in match.groups()
    )
    return left, right


def _fit(
    what: str, signature: Any, shape: tuple[int, ...], core: Dims, sizes: dict[str, int]
) -> None:
    """Learn the sizes of core axes from the last axes of a shape; raise where they differ."""
    if len(shape) < len(core):
        raise ValueError(
            f"numpy.vectorize: {what} has shape {shape}, which does not have enough dimensions for "
            f"the core dimensions {core} of {signature!r}."
        )
    for name, n in zip(core, shape[len(shape) - len(core) :], strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(
                f"numpy.vectorize: inconsistent size for core dimension {name!r} of {signature!r}: "
                f"{n} in {what}, but {sizes[name]} before."
            )


def _check_results(signature: Any, out: Any, cores: Sequence[Dims], sizes: dict[str, int]) -> None:
    """Raise unless results are as many as a signature has, and have its core axes."""
    if len(cores) > 1 and not isinstance(out, tuple):
        raise TypeError(
            f"numpy.vectorize: the function must return a tuple of {len(cores)} results for "
            f"{signature!r}, got {type(out)}."
        )
    outs = out if isinstance(out, tuple) else (out,)
    if len(outs) != len(cores):
        raise TypeError(
            f"numpy.vectorize: wrong number of results: {signature!r} has {len(cores)}, the "
            f"function returned {len(outs)}."
        )
    for k, (x, core) in enumerate(zip(outs, cores, strict=True)):
        shape = as_array(x).shape
        if len(shape) != len(core):
            raise ValueError(
                f"numpy.vectorize: result {k} has shape {shape}, which does not match the core "
                f"dimensions {core} of {signature!r}."
            )
        _fit(f"result {k}", signature, shape, core, sizes)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Any:
    """Call a function on the coordinates of each of a shape's elements, as `vmap` does.

    Parameters
    ----------
    function : callable
        ``function(i, j, ..., **kwargs)`` of scalars. Arrays that it returns have the shape's axes
        in front, each of several.
    shape : sequence of int
    dtype : dtype-like
        Of the coordinates.
    """
    sizes = canonical_shape("fromfunction", shape)
    mapped = functools.partial(function, **kwargs)
    for i in reversed(range(len(sizes))):
        mapped = vmap(mapped, tuple(0 if k == i else None for k in range(len(sizes))))
    return mapped(*(lax.iota(canonicalize_dtype(dtype), n) for n in sizes))
