"""Keys: the typed arrays that random functions draw from, how they are made, split and read."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..config import config
from ..control.custom import CustomVJPPrimal
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray, ShapeDtypeStruct
from ..core.dtypes import ExtendedDType, is_integer, prng_key, uint32
from ..core.trace import Tracer
from ..core.tree import register_pytree_node_class
from ..ops.kit.moves import Overlay
from ..ops.random_bits import check_keys
from ._generators import DEFAULT, GENERATORS, Generator
from ._key_at import KeyAt, is_mask, refusing, words_like


class KeyTy(ExtendedDType):
    """Dtype of the keys of a generator, such as ``key<fry>`` of Threefry-2x32."""

    __slots__ = ("impl",)
    type = prng_key

    def __init__(self, impl: str):
        self.impl = impl

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - a class's there
        """As it is printed."""
        return f"key<{GENERATORS[self.impl].tag}>"

    @property
    def itemsize(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride] - the same
        """Bytes of a key."""
        return 4 * GENERATORS[self.impl].words

    def blank(self) -> PRNGKeyArray:
        """Return a key all of whose words are zero."""
        return wrap(jnp.zeros(GENERATORS[self.impl].words, uint32), self.impl)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyTy) and other.impl == self.impl

    def __hash__(self) -> int:
        return hash((KeyTy, self.impl))

    def __repr__(self) -> str:
        return self.name


class NoNumbers(TypeError, AttributeError):
    """Random keys were taken for numbers; ``hasattr`` asks for their aval, and is told no."""


@register_pytree_node_class
class PRNGKeyArray(Overlay):
    """An array of random keys over a uint32 array whose last axis is the words of a key.

    As a pytree it is a node with that array as its leaf, which is what ``jit``, ``vmap`` and
    loops see. Keys are no numbers: they can be indexed, reshaped, compared, and drawn from.

    Attributes
    ----------
    impl : str
        Name of the generator they are for.
    """

    __slots__ = ("impl",)

    def __init__(self, key_data: Any, impl: str = DEFAULT):
        check_keys("PRNGKeyArray", key_data, GENERATORS[impl].words)
        self._base = jnp.asarray(key_data)
        self.impl = impl

    def tree_flatten(self) -> tuple[tuple[Any], str]:
        """Return the words, and the name of the generator."""
        return (self._base,), self.impl

    @classmethod
    def tree_unflatten(cls, metadata: str, children: Sequence[Any]) -> Any:
        """Make keys of words; what else is put there is in the place of the keys."""
        (words,) = children
        if isinstance(words, CustomVJPPrimal):
            return CustomVJPPrimal(wrap(words.value, metadata), words.perturbed)
        if not isinstance(words, Array | np.ndarray | ShapeDtypeStruct | ShapedArray):
            return words
        return wrap(words, metadata)

    def over(self, words: Any) -> PRNGKeyArray:
        """Return keys of the same generator over other words."""
        return wrap(words, self.impl)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes; a single key has none."""
        return self._base.shape[:-1]

    @property
    def dtype(self) -> KeyTy:  # pyright: ignore[reportIncompatibleMethodOverride] - of no NumPy dtype
        """Of the generator, such as ``key<fry>``."""
        return KeyTy(self.impl)

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
        return self._base.size // self.words

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return 4 * self.words

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self._base.nbytes

    @property
    def aval(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] - there is none
        """Keys have no aval of their own: whatever asks wants a number."""
        raise NoNumbers(
            f"expected a number or an array of numbers, got random keys (dtype "
            f"{self.dtype.name}, shape {self.shape}). Use random.key_data(key) for the words."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.aval

    where_from = __array__

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[PRNGKeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> PRNGKeyArray:
        return self.over(self._base[self._index(index)])

    def _index(self, index: Any) -> tuple[Any, ...]:
        """Return the index of the words for an index of keys."""
        index = index if isinstance(index, tuple) else (index,)
        boxed = [i for i in index if i is not None and i is not Ellipsis]
        used = sum(i.ndim if is_mask(i) else 1 for i in boxed)
        if used > self.ndim:
            raise IndexError(
                f"Too many indices: array is {self.ndim}-dimensional, but {used} were indexed"
            )
        # Indices behind an ellipsis count from the end, where the axis of words is.
        return (*index, slice(None)) if len(boxed) < len(index) else index

    @property
    def at(self) -> KeyAt:  # pyright: ignore
        """``keys.at[index].set(others)`` returns keys with some replaced."""
        return KeyAt(self)

    def __eq__(self, other: object) -> Any:
        if not isinstance(self._base, Array):  # what `eval_shape` knows of keys
            kind = getattr(other, "shape", None), getattr(other, "dtype", None)
            return kind == (self.shape, self.dtype)
        return jnp.all(jnp.equal(self._base, words_like(self, other)), -1)

    def __ne__(self, other: object) -> Any:
        if not isinstance(self._base, Array):
            return not self == other
        return jnp.any(jnp.not_equal(self._base, words_like(self, other)), -1)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._base}"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        kind = self.dtype.name.replace("<", "&lt;")
        return f"<small>{kind}{[*self.shape]} over </small>{self._base._repr_html_()}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._base, self.impl)

    def reshape(self, *shape: Any, order: str = "C") -> PRNGKeyArray:  # pyright: ignore
        """Keys in another shape; one size may be -1."""
        sizes = cast("Any", shape[0]) if len(shape) == 1 and np.iterable(shape[0]) else shape
        if order != "C":
            raise ValueError(f"reshape of keys: order must be 'C', got {order!r}.")
        known = np.empty(self.shape, np.bool_).reshape(sizes).shape
        return self.over(lax.reshape(self._base, (*known, self.words)))

    def flatten(self, order: str = "C") -> PRNGKeyArray:  # pyright: ignore
        """Keys along one axis."""
        return self.reshape(-1, order=order)

    ravel = flatten  # pyright: ignore[reportAssignmentType]

    def transpose(self, *axes: Any) -> PRNGKeyArray:
        """Keys with their axes permuted, or reversed where no order is given."""
        axes = cast("Any", axes[0]) if len(axes) == 1 and np.iterable(axes[0]) else axes
        order = tuple(operator.index(a) % self.ndim for a in axes) or range(self.ndim)[::-1]
        return self.over(lax.transpose(self._base, (*order, self.ndim)))

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
        return self.over(lax.squeeze(self._base, [operator.index(a) % self.ndim for a in axes]))

    def take(self, indices: Any, axis: int | None = None) -> PRNGKeyArray:  # pyright: ignore
        """Keys at indices along an axis, or of the flattened keys."""
        keys = self.flatten() if axis is None else self
        return self.over(jnp.take(keys._base, indices, axis=operator.index(axis or 0) % keys.ndim))

    def copy(self) -> PRNGKeyArray:  # pyright: ignore
        """Equal keys in memory of their own."""
        return self.over(lax.copy(self._base))

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> PRNGKeyArray:
        return self.copy()

    def block_until_ready(self) -> PRNGKeyArray:
        """Return the keys themselves."""
        return self

    def is_deleted(self) -> bool:
        """Whether their words were deleted, or donated to a compiled function."""
        # Those of keys that are traced are no array that could be: libraries take such keys, which
        # are tracers in JAX, for arrays.
        return not isinstance(self._base, Tracer) and self._base.is_deleted()

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts of the array of keys, with the device and the index of each."""
        parts = self._base.addressable_shards
        return [replace(p, index=p.index[:-1], data=self.over(p.data)) for p in parts]

    @property
    def global_shards(self) -> list[Any]:
        """The parts of the array of keys, as ``addressable_shards``."""
        return self.addressable_shards

    def addressable_data(self, index: int) -> PRNGKeyArray:
        """Return the keys on one of their devices, by number."""
        return self.addressable_shards[index].data

    def delete(self) -> None:
        """Let the memory of their words go."""
        self._base.delete()


_OPERATORS = (
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor lt le gt ge neg "
    "pos abs invert int float complex index round"
)
for _name in _OPERATORS.split():
    setattr(PRNGKeyArray, f"__{_name}__", refusing(_name))
    if hasattr(int, f"__r{_name}__") or _name == "matmul":
        setattr(PRNGKeyArray, f"__r{_name}__", refusing(_name))


def wrap(words: Any, impl: str) -> PRNGKeyArray:
    """Make keys of an array of words that is known to be one."""
    keys = object.__new__(PRNGKeyArray)
    keys._base, keys.impl = words, impl
    return keys


def check_impl(spec: Any) -> str:
    """Return the name of a generator, by default the one that is set.

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
        return spec.impl
    if isinstance(spec, Generator):
        return spec.name
    if not isinstance(spec, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    if not (spec in GENERATORS and GENERATORS[spec].ours):
        raise ValueError(
            f'unrecognized PRNG implementation "{spec}". Did you mean one of: '
            f"{', '.join(repr(g.name) for g in GENERATORS.values() if g.ours)}?"
        )
    return spec


def _one_of(impl: Any, dtype: Any, where: str) -> str:
    if impl is not None and dtype is not None:
        raise ValueError(f"random.{where}: give impl or dtype, not both.")
    return check_impl(dtype if impl is None else impl)


def words_of(name: str, key: Any, *, batched: bool = False) -> tuple[Any, str]:
    """Return the words of a key, typed or legacy, and the generator they are for.

    Raises
    ------
    TypeError
        For what is no key.
    ValueError
        For several keys, unless ``batched``.
    """
    if isinstance(key, PRNGKeyArray):
        words, impl = key._base, key.impl
    elif isinstance(key, Array | np.ndarray | np.generic | int | float | complex):
        impl = config.default_prng_impl
        check_keys(f"random.{name}", key, GENERATORS[impl].words)
        if config.legacy_prng_key != "allow":
            _legacy(name)
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
    return words, impl


def _legacy(name: str) -> None:
    """Warn of, or refuse, a key without a type, as configured."""
    text = (
        f"random.{name}: Legacy uint32 key array passed as key to a random function. Make keys by "
        'random.key(seed); or config.update("legacy_prng_key", "allow").'
    )
    if config.legacy_prng_key == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=4)


# --- making keys --------------------------------------------------------------------------------


def _seeded(name: str, seed: Any, impl: str) -> Any:
    if isinstance(seed, PRNGKeyArray):
        raise TypeError(f"random.{name} accepts a scalar seed, but was given a PRNG key.")
    if shape := np.shape(seed):
        raise TypeError(
            f"random.{name} accepts a scalar seed, but was given an array of shape {shape} "
            "!= (). Use fnarray.vmap for batching."
        )
    return words_of_seeds(f"random.{name}", seed, impl)


def words_of_seeds(where: str, seeds: Any, impl: str) -> Any:
    """Return the words of the keys that integers are seeds of; raise `TypeError` for others."""
    if isinstance(seeds, int):
        # As a 64-bit integer first: hashes of Python objects are seeds too.
        seeds = np.int64(seeds)
    aval = aval_of(seeds)
    if not is_integer(aval.dtype):
        raise TypeError(f"{where}: a seed must be an integer, got {aval.str_short()}.")
    return GENERATORS[impl].seed(jnp.asarray(seeds))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> PRNGKeyArray:
    """Make a random key of an integer.

    Parameters
    ----------
    seed : int or integer scalar
    impl, dtype : str or key dtype, optional
        Name of the generator, ``"threefry2x32"`` unless configured, ``"threefry4x32"``,
        ``"philox2x32"``, ``"philox4x32"``, ``"rbg"`` or ``"unsafe_rbg"``; only one of the two.

    Returns
    -------
    PRNGKeyArray
        Of shape ``()`` and a dtype such as ``key<fry>``.

    Raises
    ------
    TypeError
        The seed is no integer scalar.
    ValueError
        No generator has the name.
    OverflowError
        The seed does not fit into 64 bits.
    """
    impl = _one_of(impl, dtype, "key")
    return wrap(_seeded("key", seed, impl), impl)


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Make a key without its type, the uint32 array of its words, unless configured otherwise.

    See `key`, and the setting ``enable_custom_prng``.
    """
    impl = check_impl(impl)
    words = _seeded("PRNGKey", seed, impl)
    return wrap(words, impl) if config.enable_custom_prng else words


def _returned(like: Any, words: Any) -> Any:
    return like.over(words) if isinstance(like, PRNGKeyArray) else words


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
        Typed if ``key`` is; a uint32 array of words if it is a legacy key.

    Raises
    ------
    TypeError
        ``key`` is no key, or ``num`` no integer.
    ValueError
        ``key`` is several keys, or ``num`` is negative.
    """
    words, impl = words_of("split", key)
    shape = tuple(map(operator.index, num if np.iterable(num) else (num,)))
    if any(n < 0 for n in shape):
        raise ValueError(f"random.split: num must not be negative, got {num}.")
    return _returned(key, GENERATORS[impl].split(words, shape))


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
    words, impl = words_of("fold_in", key)
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
    data = lax.convert_element_type(data, uint32)
    return _returned(key, GENERATORS[impl].fold_in(words, data))


def clone(key: Any) -> Any:
    """Return an equal key, to say that using it a second time is meant."""
    return key.over(key._base) if isinstance(key, PRNGKeyArray) else jnp.asarray(key)


# --- reading keys -------------------------------------------------------------------------------


def key_data(keys: Any) -> Array:
    """Return the words of keys: uint32, in a last axis."""
    return jnp.asarray(words_of("key_data", keys, batched=True)[0])


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> PRNGKeyArray:
    """Return keys of given words.

    Parameters
    ----------
    key_bits_array : uint32 array (..., words)
    impl, dtype : str or key dtype, optional
        As in `key`.

    Raises
    ------
    TypeError
        The array has another dtype or shape.
    """
    return PRNGKeyArray(key_bits_array, _one_of(impl, dtype, "wrap_key_data"))


def key_impl(keys: Any) -> Any:
    """Return the name of the generator of keys; itself, where `define_prng_impl` made it."""
    name = words_of("key_impl", keys, batched=True)[1]
    return name if GENERATORS[name].ours else GENERATORS[name]


def key_dtype(impl: Any = None) -> KeyTy:
    """Return the dtype of keys of a generator."""
    return KeyTy(check_impl(impl))
