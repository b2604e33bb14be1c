"""Images, and arrays like them, resampled: each axis by a matrix of weights.

Keys, *Cubic convolution interpolation for digital image processing* (1981); Duchon, *Lanczos
filtering in one and two dimensions* (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from . import nn
from . import numpy as jnp
from .core.apart import another
from .core.eager import replayed

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__dir__ = __all__.copy


class ResizeMethod(Enum):
    """How elements between elements are made up."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method of a name.

        Raises
        ------
        ValueError
            No method has it.
        """
        for method, names in _NAMES.items():
            if s in names.split():
                return method
        raise ValueError(
            f'Unknown resize method "{s}". The methods are: {", ".join(_NAMES.values())}.'
        )


_NAMES = {
    ResizeMethod.NEAREST: "nearest",
    ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch",
    ResizeMethod.AREA: "area",
}


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: jnp.where(x > radius, 0, jnp.sinc(x) * jnp.sinc(x / radius))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Return Keys's kernel with a slope ``a`` at 1."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: lambda x: jnp.maximum(0, 1 - x),
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),
}


def _weights(n: int, m: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool) -> Any:
    """Return how much each of ``n`` elements counts for each of ``m``, as a matrix ``[n, m]``."""
    step = 1 / scale
    # Elements lie at the middle of their cells.
    at = (jnp.arange(m, dtype=step.dtype) + 0.5) * step - shift * step - 0.5
    there = jnp.arange(n, dtype=step.dtype)[:, None]
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _edges_repeated(n, at)
    if method is ResizeMethod.AREA:
        low = at + 0.5 - 0.5 * step
        found = jnp.maximum(0, jnp.minimum(low + step, there + 1) - jnp.maximum(low, there))
    else:
        wide = jnp.maximum(step, 1) if antialias else 1
        found = _KERNELS[method](jnp.abs(at - there) / wide)
    found = _normalized(found)
    return jnp.where((at >= -0.5) & (at <= n - 0.5), found, 0)


def _normalized(weights: Any) -> Any:
    """Return weights of which each column adds up to 1, or to 0 where nothing is near."""
    total = weights.sum(0, keepdims=True)
    some = jnp.abs(total) > 1000 * jnp.finfo(jnp.float32).eps
    return jnp.where(some, weights / jnp.where(some, total, 1), 0)


def _edges_repeated(n: int, at: Any) -> Any:
    """Return the weights of PyTorch's cubic kernel, two elements beyond each edge being like it."""
    kernel, first = _cubic(-0.75), jnp.floor(at)
    found = jnp.zeros((n, len(at)), at.dtype)
    for k in range(-1, 3):
        place = first + k
        weight = jnp.where((place >= -2) & (place < n + 2), kernel(jnp.abs(at - place)), 0)
        place = jnp.clip(place, 0, n - 1).astype(int)
        found += nn.one_hot(place, n, dtype=at.dtype, axis=0) * weight
    return _normalized(found)


def _method(what: str, method: str | ResizeMethod) -> ResizeMethod:
    found = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if not isinstance(found, ResizeMethod):
        raise ValueError(f"image.{what}: method must be a name or a ResizeMethod, got {method!r}.")
    return found


def _sizes(what: str, image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(shape)
    if len(sizes) != image.ndim:
        raise ValueError(
            f"image.{what}: shape must have length equal to the number of dimensions of x; got "
            f"{sizes} for an array of shape {image.shape}. Give the sizes of all axes."
        )
    return sizes


@replayed
def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Any:
    """Resample along axes: what lies at ``x`` is put at ``x * scale + translation``.

    Elements lie at the middle of their cells, the first at 0.5. What would come from outside of the
    array is 0.

    Parameters
    ----------
    image : Array
    shape : sequence of int
        The result's; other axes than ``spatial_dims`` stay as they are.
    spatial_dims : sequence of int
        Axes to resample.
    scale, translation : Array
        One of each for each axis; they may be traced and differentiated.
    method : str or ResizeMethod
        ``"linear"``, ``"cubic"``, ``"cubic-pytorch"``, ``"lanczos3"``, ``"lanczos5"``, ``"area"``.
    antialias : bool
        Whether the kernel widens where the image shrinks.
    precision : any
        Accepted: products are computed in full.

    Raises
    ------
    ValueError
        The shape has another length, or another size along other axes; the method is unknown, or
        ``"nearest"``.
    """
    image = jnp.asarray(image)
    sizes, found = (
        _sizes("scale_and_translate", image, shape),
        _method("scale_and_translate", method),
    )
    if found is ResizeMethod.NEAREST:
        raise ValueError(
            "image.scale_and_translate: nearest neighbours have no weights. Use image.resize with "
            "method='nearest', or method='linear'."
        )
    axes = [range(image.ndim)[d] for d in spatial_dims]
    for k, (n, m) in enumerate(zip(image.shape, sizes, strict=True)):
        if n != m and k not in axes:
            raise ValueError(
                f"image.scale_and_translate: axis {k} is not among spatial_dims {axes}, but its "
                f"size is to go from {n} to {m}."
            )
    number = jnp.result_type(float)
    x = image if jnp.issubdtype(image.dtype, jnp.inexact) else image.astype(number)
    scales, shifts = jnp.asarray(scale, number), jnp.asarray(translation, number)
    for k, axis in enumerate(axes):
        n, m = image.shape[axis], sizes[axis]
        weights = _weights(n, m, scales[k], shifts[k], found, antialias).astype(x.dtype)
        x = jnp.moveaxis(jnp.tensordot(x, weights, (axis, 0)), -1, axis)
    return x


@replayed
def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Any:
    """Resample an array to another shape.

    Parameters
    ----------
    image : Array
    shape : sequence of int
        Sizes of all axes; of batches and channels those that they have.
    method : str or ResizeMethod
        ``"nearest"``, which keeps the dtype, or one of `scale_and_translate`, whose results are
        floating.
    antialias : bool
        Whether the kernel widens where the image shrinks.
    precision : any
        Accepted: products are computed in full.

    Returns
    -------
    Array

    Raises
    ------
    ValueError
        The shape has another length, or the method is unknown.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray import image
    >>> image.resize(jnp.array([0.0, 4.0]), (4,), "linear").tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    image = another(jnp.asarray(image))
    sizes, found = _sizes("resize", image, shape), _method("resize", method)
    axes = [k for k, (n, m) in enumerate(zip(image.shape, sizes, strict=True)) if n != m]
    if found is not ResizeMethod.NEAREST:
        scale = [sizes[k] / image.shape[k] for k in axes]
        zeros = [0.0] * len(axes)
        return scale_and_translate(image, sizes, axes, scale, zeros, found, antialias)
    for k in axes:
        n, m = image.shape[k], sizes[k]
        place = jnp.floor((jnp.arange(m, dtype=jnp.float32) + 0.5) * n / m)
        image = jnp.take(image, place.astype(int), axis=k)
    return image
