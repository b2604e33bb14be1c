"""``jax._src.util``: what programs for JAX, its own tutorials among them, take from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial as partial
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")


def _checked(name: str, *items: Iterable[Any]) -> list[list[Any]]:
    found = [list(x) for x in items]
    sizes = [len(x) for x in found]
    if len(set(sizes)) > 1:
        raise ValueError(f"{name}: arguments must be of one length, got lengths {sizes}.")
    return found


def safe_map(f: Callable[..., T], *items: Iterable[Any]) -> list[T]:
    """Apply a function to the items of sequences of one length; return the list."""
    return list(map(f, *_checked("safe_map", *items)))


def safe_zip(*items: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the list of tuples of the items of sequences of one length."""
    return list(zip(*_checked("safe_zip", *items), strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first and the second items of pairs."""
    both = list(pairs)
    return tuple(x for x, _ in both), tuple(y for _, y in both)


def unzip3(
    triples: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return the first, second and third items of triples."""
    all_ = list(triples)
    return tuple(x for x, _, _ in all_), tuple(y for _, y, _ in all_), tuple(z for _, _, z in all_)


def concatenate(lists: Iterable[Iterable[T]]) -> list[T]:
    """Return the items of sequences, one after the other."""
    return [x for items in lists for x in items]


def split_list(items: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """Cut a sequence into lists of the sizes given, and what is left."""
    each = iter(items)
    return [*(list(islice(each, n)) for n in sizes), list(each)]


def split_dict(items: dict[Any, T], names: Sequence[Any]) -> list[T]:
    """Return the values of all keys, which are to be those given, in that order."""
    if items.keys() != set(names):
        raise ValueError(f"split_dict: keys must be {sorted(names)}, got {sorted(items)}.")
    return [items[name] for name in names]


def partition_list(flags: Sequence[bool], items: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the items whose flag is false, and those whose flag is true."""
    pairs = safe_zip(flags, items)
    return [x for f, x in pairs if not f], [x for f, x in pairs if f]


def merge_lists(flags: Sequence[bool], first: Sequence[T], second: Sequence[T]) -> list[T]:
    """Return the list that `partition_list` parts into these two."""
    each = iter(first), iter(second)
    return [next(each[bool(f)]) for f in flags]


def subvals(items: Sequence[T], pairs: Iterable[tuple[int, T]]) -> tuple[T, ...]:
    """Return a sequence with the items of some numbers replaced."""
    out = list(items)
    for k, x in pairs:
        out[k] = x
    return tuple(out)


def wrap_name(transform: str, name: str) -> str:
    """Return the name of a transformed function."""
    return f"{transform}({name})"


def wraps(wrapped: Callable[..., Any], **_: Any) -> Callable[[T], T]:
    """Give a function the name and docstring of another, where it has them."""

    def named(fun: T) -> T:
        for name in ("__name__", "__module__", "__doc__", "__annotations__", "__dict__"):
            value = getattr(wrapped, name, None)
            if name == "__dict__":
                getattr(fun, name).update(value or {})
            elif value is not None:
                setattr(fun, name, value)
        fun.__wrapped__ = wrapped  # type: ignore[attr-defined]
        return fun

    return named
