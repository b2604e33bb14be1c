"""What makes random functions of those that take the words of a key."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from ..config import config
from ..core.array import asarray
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.source import boundary
from ._generators import drawing_by
from ._keys import words_of

R = TypeVar("R")


def exact_sampler(body: Callable[..., R]) -> Callable[..., R]:
    """Make a random function as `sampler`, whose draws are the same bits when it is compiled.

    Called again and again outside of programs it is: 8 normal numbers took 285 us in NumPy's calls,
    and take 3. It must do no more than integers, sums, products, roots and `sample_log` and its
    kin, whose bits NumPy gives as well.
    """
    return sampler(replayed(exact=True)(body))


#: Parameters that are numbers, whichever they are: programs take them as arrays.
_NUMBERS = frozenset((
    "a", "alpha", "b", "concentration", "df", "dfden", "dfnum", "lam", "loc", "lower", "n", "p",
    "scale", "sigma", "upper",
))  # fmt: skip


def program_sampler(body: Callable[..., R]) -> Callable[..., R]:
    """Make a random function as `sampler`, which is compiled as a whole outside of programs too.

    16 numbers of Poisson's distribution took 4,000 us in NumPy's calls, and take 30.
    """
    run = replayed(program=True)(body)
    _, *names = signature(body).parameters

    def entered(name: str, x: Any) -> Any:
        return asarray(x) if type(x) in (int, float) and name in _NUMBERS else x

    @wraps(body)
    def entering(words: Any, *args: Any, **kwargs: Any) -> R:
        named = {name: entered(name, x) for name, x in kwargs.items()}
        return run(words, *map(entered, names, args), **named)

    return sampler(entering)


def sampler(body: Callable[..., R]) -> Callable[..., R]:
    """Make a random function of one that takes the words of a checked key.

    The face also takes ``out_sharding``: how the draws are cut over the devices of a mesh.
    """
    name = body.__name__

    @boundary
    @wraps(body)
    def face(key: Any, *args: Any, out_sharding: Any = None, **kwargs: Any) -> R:
        if out_sharding is not None:
            return cut_as(out_sharding, face, key, *args, **kwargs)
        words, impl = words_of(name, key)
        if impl == config.default_prng_impl:
            return body(words, *args, **kwargs)
        with drawing_by(impl):  # which is what bare words are for
            return body(words, *args, **kwargs)

    shown = signature(body)
    extra = Parameter("out_sharding", Parameter.KEYWORD_ONLY, default=None)
    face.__signature__ = shown.replace(  # type: ignore[attr-defined]
        parameters=[*shown.parameters.values(), extra]
    )
    return face
