"""Keys: the typed arrays that random functions draw from, how they are made, split and read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Final, cast

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..config import config
from ..control.custom import CustomVJPPrimal
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray, ShapeDtypeStruct
from ..core.dtypes import ExtendedDType, is_integer, prng_key, uint32
from ..core.hooks import cut_as
from ..core.tree import register_pytree_node_class
from ..ops.kit.moves import Overlay
from ..ops.random_bits import check_keys, random_fold_in, random_seed, random_split

IMPLEMENTATIONS: Final = ("threefry2x32",)


class KeyTy(ExtendedDType):
    """Dtype of keys: ``key<fry>``, two uint32 words of Threefry."""

    __slots__ = ()
    type = prng_key
    name = "key<fry>"
    itemsize = 8

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyTy

    def __hash__(self) -> int:
        return hash(KeyTy)

    def __repr__(self) -> str:
        return self.name


KEY: Final = KeyTy()


@register_pytree_node_class
class PRNGKeyArray(Overlay):
    """An array of random keys over a uint32 array with a last axis of two words.

    As a pytree it is a node with that array as its leaf, which is what ``jit``, ``vmap`` and
    loops see. Keys are no numbers: they can be indexed, reshaped, compared, and drawn from.
    """

    __slots__ = ()

    def __init__(self, key_data: Any):
        check_keys("PRNGKeyArray", key_data)
        self._base = jnp.asarray(key_data)

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """Return the words, and no metadata."""
        return (self._base,), None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: Sequence[Any]) -> Any:
        """Make keys of words; what else is put there is in the place of the keys."""
        (words,) = children
        if isinstance(words, CustomVJPPrimal):
            return CustomVJPPrimal(wrap(words.value), words.perturbed)
        if not isinstance(words, Array | np.ndarray | ShapeDtypeStruct | ShapedArray):
            return words
        return wrap(words)

    @classmethod
    def of(cls, words: Any) -> PRNGKeyArray:
        """Return the keys of words."""
        return wrap(words)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes; a single key has none."""
        return self._base.shape[:-1]

    @property
    def dtype(self) -> KeyTy:  # pyright: ignore[reportIncompatibleMethodOverride] - of no NumPy dtype
        """``key<fry>``."""
        return KEY

    @property
    def weak_type(self) -> bool:
        """Keys do not take part in promotion."""
        return False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._base.ndim - 1

    @property
    def size(self) -> int:
        """Number of keys."""
        return self._base.size // 2

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return KEY.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self._base.nbytes

    @property
    def aval(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] - there is none
        """Keys have no aval of their own: whatever asks wants a number."""
        raise TypeError(
            f"expected a number or an array of numbers, got random keys (dtype {KEY.name}, shape "
            f"{self.shape}). Use random.key_data(key) for the words."
        )

    where_from = __array__ = lambda self, *args, **kwargs: self.aval

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[PRNGKeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> PRNGKeyArray:
        return wrap(self._base[self._index(index)])

    def _index(self, index: Any) -> tuple[Any, ...]:
        """Return the index of the words for an index of keys."""
        index = index if isinstance(index, tuple) else (index,)
        boxed = [i for i in index if i is not None and i is not Ellipsis]
        used = sum(i.ndim if _is_mask(i) else 1 for i in boxed)
        if used > self.ndim:
            raise IndexError(
                f"Too many indices: array is {self.ndim}-dimensional, but {used} were indexed"
            )
        # Indices behind an ellipsis count from the end, where the axis of words is.
        return (*index, slice(None)) if len(boxed) < len(index) else index

    @property
    def at(self) -> _At:
        """``keys.at[index].set(others)`` returns keys with some replaced."""
        return _At(self)

    def __eq__(self, other: object) -> Any:
        return jnp.all(jnp.equal(self._base, _compared(other)), -1)

    def __ne__(self, other: object) -> Any:
        return jnp.any(jnp.not_equal(self._base, _compared(other)), -1)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={KEY.name}) overlaying:\n{self._base}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._base,)

    def reshape(self, *shape: Any, order: str = "C") -> PRNGKeyArray:
        """Keys in another shape; one size may be -1."""
        sizes = cast("Any", shape[0]) if len(shape) == 1 and np.iterable(shape[0]) else shape
        if order != "C":
            raise ValueError(f"reshape of keys: order must be 'C', got {order!r}.")
        known = np.empty(self.shape, np.bool_).reshape(sizes).shape
        return wrap(lax.reshape(self._base, (*known, 2)))

    def flatten(self, order: str = "C") -> PRNGKeyArray:
        """Keys along one axis."""
        return self.reshape(-1, order=order)

    ravel = flatten

    def transpose(self, *axes: Any) -> PRNGKeyArray:
        """Keys with their axes permuted, or reversed where no order is given."""
        axes = cast("Any", axes[0]) if len(axes) == 1 and np.iterable(axes[0]) else axes
        order = tuple(operator.index(a) % self.ndim for a in axes) or range(self.ndim)[::-1]
        return wrap(lax.transpose(self._base, (*order, self.ndim)))

    @property
    def T(self) -> PRNGKeyArray:
        """Keys with their axes reversed."""
        return self.transpose()

    def swapaxes(self, axis1: int, axis2: int) -> PRNGKeyArray:
        """Keys with two axes exchanged."""
        order = np.arange(self.ndim)
        order[[axis1, axis2]] = order[[axis2, axis1]]
        return self.transpose(*order)

    def squeeze(self, axis: Any = None) -> PRNGKeyArray:
        """Keys without axes of size 1: all, or those given."""
        if axis is None:
            axis = [i for i, n in enumerate(self.shape) if n == 1]
        axes = axis if np.iterable(axis) else (axis,)
        return wrap(lax.squeeze(self._base, [operator.index(a) % self.ndim for a in axes]))

    def take(self, indices: Any, axis: int | None = None) -> PRNGKeyArray:
        """Keys at indices along an axis, or of the flattened keys."""
        keys = self.flatten() if axis is None else self
        return wrap(jnp.take(keys._base, indices, axis=operator.index(axis or 0) % keys.ndim))

    def copy(self) -> PRNGKeyArray:
        """Equal keys in memory of their own."""
        return wrap(lax.copy(self._base))

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> PRNGKeyArray:
        return self.copy()

    def block_until_ready(self) -> PRNGKeyArray:
        """Return the keys themselves."""
        return self


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: PRNGKeyArray, *others: Any) -> Any:
        raise TypeError(
            f"{name} does not accept dtype {KEY.name}: random keys are no numbers. Draw from them "
            "(random.bits, random.normal, ...), or use random.key_data(key) for the words."
        )

    return refuse


_OPERATORS = (
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor lt le gt ge neg "
    "pos abs invert int float complex index round"
)
for _name in _OPERATORS.split():
    setattr(PRNGKeyArray, f"__{_name}__", _refusing(_name))
    if hasattr(int, f"__r{_name}__") or _name == "matmul":
        setattr(PRNGKeyArray, f"__r{_name}__", _refusing(_name))


class _At:
    """The keys of ``keys.at``; ``[index]`` gives what sets them."""

    __slots__ = ("index", "keys")

    def __init__(self, keys: PRNGKeyArray, index: Any = ()):
        self.keys, self.index = keys, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.keys, self.keys._index(index))

    def get(self) -> PRNGKeyArray:
        """Return the keys at the index."""
        return wrap(self.keys._base[self.index])

    def set(self, keys: PRNGKeyArray) -> PRNGKeyArray:
        """Return all keys, with those at the index replaced."""
        return wrap(self.keys._base.at[self.index].set(_compared(keys)))


def _is_mask(index: Any) -> bool:
    return getattr(index, "dtype", None) == np.bool_


def _compared(other: object) -> Any:
    if isinstance(other, PRNGKeyArray):
        return other._base
    raise TypeError(
        f"random keys combine only with random keys, got {type(other).__name__}. "
        "Use random.key_data(key) for the words."
    )


def wrap(words: Any) -> PRNGKeyArray:
    """Make keys of an array of words that is known to be one."""
    keys = object.__new__(PRNGKeyArray)
    keys._base = words
    return keys


def check_impl(spec: Any) -> str:
    """Return the name of a generator; there is one.

    Raises
    ------
    ValueError
        For a name that is none.
    TypeError
        For what is neither a name nor a key dtype.
    """
    if spec is None:
        return config.default_prng_impl
    if isinstance(spec, KeyTy):
        return IMPLEMENTATIONS[0]
    if not isinstance(spec, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    if spec not in IMPLEMENTATIONS:
        raise ValueError(
            f'unrecognized PRNG implementation "{spec}". Did you mean one of: '
            f"{', '.join(map(repr, IMPLEMENTATIONS))}?"
        )
    return spec


def _one_of(impl: Any, dtype: Any, where: str) -> str:
    if impl is not None and dtype is not None:
        raise ValueError(f"random.{where}: give impl or dtype, not both.")
    return check_impl(dtype if impl is None else impl)


def words_of(name: str, key: Any, *, batched: bool = False) -> Any:
    """Return the words of a key, typed or legacy.

    Raises
    ------
    TypeError
        For what is no key.
    ValueError
        For several keys, unless ``batched``.
    """
    if isinstance(key, PRNGKeyArray):
        words = key._base
    elif isinstance(key, Array | np.ndarray | np.generic | int | float | complex):
        check_keys(f"random.{name}", key)
        words = cast("Any", key)
    else:
        raise TypeError(
            f"random.{name}: unexpected PRNG key type {type(key)}. Make keys by random.key(seed)."
        )
    if words.ndim > 1 and not batched:
        shape = words.shape[:-1] if isinstance(key, PRNGKeyArray) else words.shape
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). "
            "Use fnarray.vmap for batching."
        )
    return words


def sampler(body: Callable[..., Any]) -> Callable[..., Any]:
    """Make a random function of one that takes the words of a checked key.

    The face also takes ``out_sharding``: how the draws are cut over the devices of a mesh.
    """
    name = body.__name__

    @wraps(body)
    def face(key: Any, *args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is not None:
            return cut_as(out_sharding, face, key, *args, **kwargs)
        return body(words_of(name, key), *args, **kwargs)

    shown = signature(body)
    extra = Parameter("out_sharding", Parameter.KEYWORD_ONLY, default=None)
    face.__signature__ = shown.replace(  # type: ignore[attr-defined]
        parameters=[*shown.parameters.values(), extra]
    )
    return face


# --- making keys --------------------------------------------------------------------------------


def _seeded(name: str, seed: Any) -> Any:
    if isinstance(seed, PRNGKeyArray):
        raise TypeError(f"random.{name} accepts a scalar seed, but was given a PRNG key.")
    if isinstance(seed, int):
        # As a 64-bit integer first: hashes of Python objects are seeds too.
        seed = np.int64(seed)
    aval = aval_of(seed)
    if aval.shape:
        raise TypeError(
            f"random.{name} accepts a scalar seed, but was given an array of shape {aval.shape} "
            "!= (). Use fnarray.vmap for batching."
        )
    if not is_integer(aval.dtype):
        raise TypeError(f"random.{name}: a seed must be an integer, got {aval.str_short()}.")
    return random_seed(jnp.asarray(seed))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> PRNGKeyArray:
    """Make a random key of an integer.

    Parameters
    ----------
    seed : int or integer scalar
    impl, dtype : str or key dtype, optional
        Name of the generator, ``"threefry2x32"``; only one of the two.

    Returns
    -------
    PRNGKeyArray
        Of shape ``()`` and dtype ``key<fry>``.

    Raises
    ------
    TypeError
        The seed is no integer scalar.
    ValueError
        No generator has the name.
    OverflowError
        The seed does not fit into 64 bits.
    """
    _one_of(impl, dtype, "key")
    return wrap(_seeded("key", seed))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Make a key without its type: the uint32 array of two words. Errors as `key`."""
    check_impl(impl)
    return _seeded("PRNGKey", seed)


def _returned(like: Any, words: Any) -> Any:
    return wrap(words) if isinstance(like, PRNGKeyArray) else words


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """Make new keys of one, which is not to be used again.

    Parameters
    ----------
    key : key
    num : int or tuple of int
        Number of new keys, or the shape of the array of them.

    Returns
    -------
    keys
        Typed if ``key`` is; a uint32 array of shape ``(num, 2)`` if it is a legacy key.

    Raises
    ------
    TypeError
        ``key`` is no key, or ``num`` no integer.
    ValueError
        ``key`` is several keys, or ``num`` is negative.
    """
    words = words_of("split", key)
    shape = tuple(map(operator.index, num if np.iterable(num) else (num,)))
    if any(n < 0 for n in shape):
        raise ValueError(f"random.split: num must not be negative, got {num}.")
    return _returned(key, random_split(words, shape))


def fold_in(key: Any, data: Any) -> Any:
    """Make a new key of a key and an integer, such as the number of a step or a device.

    Parameters
    ----------
    key : key
    data : integer scalar
        Taken modulo ``2**32`` if it is an array.

    Raises
    ------
    TypeError
        ``key`` is no key, or ``data`` no scalar.
    OverflowError
        ``data`` is a Python integer that does not fit into 32 bits without sign.
    """
    words = words_of("fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 1 << 32:
            raise OverflowError(f"Python integer {data} out of bounds for uint32")
        data = np.uint32(data)
    aval = aval_of(data)
    if aval.shape:
        raise TypeError(
            f"random.fold_in accepts a scalar, but was given an array of shape {aval.shape} != (). "
            "Use fnarray.vmap for batching."
        )
    return _returned(key, random_fold_in(words, lax.convert_element_type(data, uint32)))


def clone(key: Any) -> Any:
    """Return an equal key, to say that using it a second time is meant."""
    return wrap(key._base) if isinstance(key, PRNGKeyArray) else jnp.asarray(key)


# --- reading keys -------------------------------------------------------------------------------


def key_data(keys: Any) -> Array:
    """Return the words of keys: uint32, with a last axis of size 2."""
    return jnp.asarray(words_of("key_data", keys, batched=True))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> PRNGKeyArray:
    """Return keys of given words.

    Parameters
    ----------
    key_bits_array : uint32 array (..., 2)
    impl, dtype : str or key dtype, optional
        As in `key`.

    Raises
    ------
    TypeError
        The array has another dtype or shape.
    """
    _one_of(impl, dtype, "wrap_key_data")
    return PRNGKeyArray(key_bits_array)


def key_impl(keys: Any) -> str:
    """Return the name of the generator that keys are for."""
    words_of("key_impl", keys, batched=True)
    return IMPLEMENTATIONS[0]


def key_dtype(impl: Any = None) -> KeyTy:
    """Return the dtype of keys of a generator."""
    check_impl(impl)
    return KEY
