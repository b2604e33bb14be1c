"""Rows of reductions, windows, running reductions, contractions, convolutions and sorts."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from .opcase import OpCase

# The sign of a zero maximum or minimum is whichever NumPy met: an ulp is allowed, which hides it.

_x = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
_n = np.arange(12, dtype=np.int32).reshape(3, 4)
_b = _n > 5
_nan = np.array([1, np.nan, 3, -np.nan, np.inf, -np.inf, 0, -0.0, 3], np.float32)
_positive = {"domain": (0.1, 2)}


def _row(name, *args, shapes=((3, 4),), dtypes=("float32",), **rest):
    """Return a case whose static arguments follow its arrays; ``params`` are its keywords."""
    label = name.split(":")[0]
    params = MappingProxyType(rest.pop("params", {}))
    return OpCase(
        name,
        lambda lax: lambda *xs: getattr(lax, label)(*xs, *args, **params),
        shapes=shapes,
        dtypes=dtypes,
        **rest,
    )


def _error(name, *values, raises, match="", args=(), jax_raises=None, **params):
    label = name.split(":")[0]
    return OpCase(
        name,
        lambda lax: lambda *xs: getattr(lax, label)(*xs, *args, **params),
        values=values,
        raises=raises,
        jax_raises=jax_raises,
        match=match,
    )


_cube = ((2, 3, 4),)
REDUCTIONS = [
    *(
        _row(f"{name}:{label}", axes, shapes=_cube, dtypes=dtypes, **rest)
        for name, dtypes, rest in (
            ("reduce_sum", "iufc", {"ulp": 8, **_positive}),
            ("reduce_prod", "iufc", {"ulp": 8, **_positive}),
            ("reduce_max", "biuf", {"special": True, "ulp": 1}),
            ("reduce_min", "biuf", {"special": True, "ulp": 1}),
            ("reduce_and", "biu", {}),
            ("reduce_or", "biu", {}),
            ("reduce_xor", "biu", {}),
        )
        for label, axes in (("first", (0,)), ("outer", (2, 0)))
    ),
    *(
        _row(f"{name}:{label}", axes, shapes=(shape,), **rest)
        for name, rest in (
            ("reduce_sum", {"ulp": 8, **_positive}),
            ("reduce_max", {}),
            ("reduce_min", {"dtypes": ("int32",)}),
            ("reduce_prod", {"ulp": 8, **_positive}),
            ("reduce_and", {"dtypes": ("bool",)}),
        )
        for label, shape, axes in (
            ("all", (3, 5), (0, 1)),
            ("none", (3, 5), ()),
            ("of nothing", (0, 3), (0,)),
            ("to nothing", (0, 3), (1,)),
        )
    ),
    _row("reduce_max:complex", (1,), dtypes=("complex64",)),
    _row("reduce_min:complex", (1,), dtypes=("complex64",)),
    *(
        _row(name, axis, dtype, shapes=((5, 7),), dtypes=dtypes, special=True, domain=(0, 4))
        for name in ("argmax", "argmin")
        for axis, dtype, dtypes in ((0, np.int32, "biuf"), (1, np.uint8, ("float32",)))
    ),
    _row("argmax:middle", 1, np.int32, shapes=_cube),
    OpCase("argmax:nan", lambda lax: lambda x: lax.argmax(x, 0, np.int32), values=(_nan,)),
    OpCase("argmin:nan", lambda lax: lambda x: lax.argmin(x, 0, np.int32), values=(_nan,)),
]


def _reduce(combine, *inits, dims=(1,)):
    """Return ``fn`` of a general reduction; ``combine(lax)`` is the function."""
    start = inits[0] if len(inits) == 1 else inits

    def fn(lax):
        return lambda *xs: lax.reduce(xs[0] if len(inits) == 1 else xs, start, combine(lax), dims)

    return fn


_GENERAL = (
    ("named", lambda lax: lax.add, 0.0),
    ("named from 2", lambda lax: lax.mul, 2.0),
    ("lambda max", lambda lax: lambda a, b: lax.max(a, b), -np.inf),
    ("lambda add", lambda lax: lambda a, b: lax.add(b, a), 1.5),
    ("not associative", lambda lax: lambda a, b: lax.sub(lax.mul(a, np.float32(0.5)), b), 1.0),
)
GENERAL = [
    *(
        OpCase(f"reduce:{label}", _reduce(combine, init), ulp=8, dtypes=("float32",), **_positive)
        for label, combine, init in _GENERAL
    ),
    OpCase(
        "reduce:two operands",
        _reduce(
            lambda lax: lambda a, b: (lax.add(a[0], b[0]), lax.max(a[1], b[1])),
            0.0,
            np.int32(-9),
            dims=(0,),
        ),
        shapes=((3, 4), (3, 4)),
        dtypes=("float32", "int32"),
        ulp=8,
        **_positive,
    ),
    OpCase("reduce:halves", _reduce(lambda lax: lax.add, 0.0), dtypes=("float16",), ulp=2),
]

# Window, strides, padding, base dilation, window dilation.
_WINDOWS = MappingProxyType(
    {
        "valid": ((2, 3), (1, 2), "VALID"),
        "same": ((2, 3), (2, 1), "SAME"),
        "same lower": ((2, 2), (1, 1), "SAME_LOWER"),
        "explicit": ((2, 2), (1, 1), ((1, 0), (0, 2))),
        "cut": ((2, 2), (1, 1), ((-1, 0), (2, -2))),
        "holes": ((2, 2), (1, 2), ((1, 2), (0, 1)), (2, 3), (1, 2)),
        "too large": ((9, 1), (1, 1), "VALID"),
    }
)


_HOLES = _WINDOWS["holes"]


def _windows(label, monoid, init, **rest):
    def fn(lax):
        geometry = _WINDOWS[label]
        return lambda x: lax.reduce_window(x, init, getattr(lax, monoid), *geometry)

    name = f"reduce_window:{monoid} {label}"
    return OpCase(name, fn, **{"shapes": ((4, 6),), "dtypes": ("float32",), **rest})


WINDOWS = [
    *(_windows(label, "add", 0.0, ulp=8, **_positive) for label in _WINDOWS),
    *(_windows(label, "max", -np.inf, special=True, ulp=1) for label in _WINDOWS),
    _windows("same", "min", np.int32(2**31 - 1), dtypes=("int32",)),
    _windows("same", "mul", 1.0, ulp=8, **_positive),
    _windows("holes", "bitwise_or", False, dtypes=("bool",)),
    _windows("same", "bitwise_and", True, dtypes=("bool",)),
    _windows("same", "add", np.float16(0), dtypes=("float16",), ulp=2, **_positive),
    OpCase(
        "reduce_window:pair",
        lambda lax: (
            lambda x, y: lax.reduce_window(
                (x, y),
                (0.0, 1.0),
                lambda a, b: (lax.add(a[0], b[0]), lax.mul(a[1], b[1])),
                *_HOLES,
            )
        ),
        shapes=((4, 6), (4, 6)),
        dtypes=("float32", "float32"),
        ulp=8,
        **_positive,
    ),
]

RUNNING = [
    *(
        _row(f"{name}:{axis}{'r' * reverse}", axis, reverse, dtypes=dtypes, shapes=_cube, **rest)
        for name, dtypes, rest in (
            ("cumsum", "iufc", {"ulp": 16, **_positive}),
            ("cumprod", "iufc", {"ulp": 16, **_positive}),
            ("cummax", "iuf", {"special": True, "ulp": 1}),
            ("cummin", "iuf", {"special": True, "ulp": 1}),
            ("cumlogsumexp", "f", {"ulp": 16, **_positive}),
        )
        for axis, reverse in ((1, False), (2, True))
    ),
    _row("cummax:complex", 0, dtypes=("complex64",)),
    _row("cumlogsumexp:complex", 1, dtypes=("complex64",), ulp=32, **_positive),
    _row("cumsum:nothing", 0, shapes=((0, 3),)),
    OpCase(
        "cumlogsumexp:infinite",
        lambda lax: lax.cumlogsumexp,
        values=(np.array([-np.inf, 0, 88, np.inf, 1], np.float32),),
        ulp=4,
    ),
]

_CONTRACTIONS = {
    "nn": ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    "tn": ((4, 3), (4, 5), (((0,), (0,)), ((), ()))),
    "nt": ((3, 4), (5, 4), (((1,), (1,)), ((), ()))),
    "tt": ((4, 3), (5, 4), (((0,), (1,)), ((), ()))),
    "vectors": ((3,), (3,), (((0,), (0,)), ((), ()))),
    "outer": ((3,), (2,), (((), ()), ((), ()))),
    "scalars": ((), (), (((), ()), ((), ()))),
    "batch": ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    "batch inside": ((3, 2, 4), (4, 5, 2), (((2,), (0,)), ((1,), (2,)))),
    "two axes": ((2, 3, 4, 5), (5, 6, 3, 2), (((3, 1), (0, 2)), ((0,), (3,)))),
    "all batch": ((2, 3), (3, 2), (((), ()), ((0, 1), (1, 0)))),
    "empty sum": ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    "empty": ((0, 2), (2, 3), (((1,), (0,)), ((), ()))),
}
CONTRACTIONS = [
    *(
        _row(
            f"dot_general:{label}",
            dims,
            shapes=(a, b),
            dtypes=("float32",) * 2,
            ulp=16,
            **_positive,
        )
        for label, (a, b, dims) in _CONTRACTIONS.items()
    ),
    _row("dot", shapes=((3, 4), (4, 5)), dtypes="biufc", ulp=64, **_positive),
    _row(
        "batch_matmul", shapes=((2, 3, 4), (2, 4, 5)), dtypes=("float32",) * 2, ulp=16, **_positive
    ),
    *(
        _row(
            f"dot:{a}*{b}->{out}",
            shapes=((3, 4), (4, 5)),
            dtypes=(a, b),
            params={"preferred_element_type": out},
            ulp=16,
            **_positive,
        )
        for a, b, out in (
            ("int8", "int8", np.int32),
            ("int8", "int8", np.float32),
            ("int8", "uint8", None),
            ("float16", "float16", np.float32),
            ("float16", "float32", None),
            ("float32", "complex64", None),
            ("int32", "float32", None),
            ("float32", "float32", np.float16),
        )
    ),
]

_conv_shapes = ((2, 4, 5, 6), (6, 4, 3, 2))
_CONVOLUTIONS = {
    "valid": (_conv_shapes, {"padding": "VALID"}),
    "strided": (_conv_shapes, {"padding": "SAME", "window_strides": (2, 3)}),
    "lower": (_conv_shapes, {"padding": "SAME_LOWER"}),
    "cut": (_conv_shapes, {"padding": ((-1, 2), (-1, -1))}),
    "dilated": (_conv_shapes, {"padding": "SAME", "rhs_dilation": (2, 1)}),
    "transposed": (_conv_shapes, {"padding": ((1, 2), (-1, 0)), "lhs_dilation": (2, 3)}),
    "features": (((2, 4, 5, 6), (6, 2, 3, 2)), {"padding": "SAME", "feature_group_count": 2}),
    "batches": (((4, 4, 5, 6), (6, 4, 3, 2)), {"padding": "SAME", "batch_group_count": 2}),
    "last": (
        ((2, 5, 6, 4), (3, 2, 4, 6)),
        {"padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")},
    ),
    "layouts": (
        ((4, 6, 5, 2), (6, 2, 3, 4)),
        {"padding": "SAME", "dimension_numbers": ("CWHN", "OWHI", "WCNH")},
    ),
}
CONVOLUTIONS = [
    *(
        _row(
            f"conv_general_dilated:{label}",
            shapes=shapes,
            dtypes=("float32",) * 2,
            params={"window_strides": (1, 1), **params},
            ulp=64,
            **_positive,
        )
        for label, (shapes, params) in _CONVOLUTIONS.items()
    ),
    _row(
        "conv_general_dilated:line",
        shapes=((2, 3, 7), (4, 3, 3)),
        dtypes="iufc",
        params={"window_strides": (2,), "padding": "SAME"},
        ulp=64,
        **_positive,
    ),
]

_PAIRS = ((5, 7), (5, 7))
SORTS = [
    _row("sort", shapes=((5, 7),), dtypes="biufc", special=True),
    _row("sort:first axis", 0, shapes=((7, 3),), special=True),
    _row("sort:nothing", 0, shapes=((0, 3),)),
    OpCase("sort:special", lambda lax: lax.sort, values=(_nan,)),
    OpCase(
        "sort:ties",
        lambda lax: lambda k, v: lax.sort((k, v), dimension=0),
        shapes=_PAIRS,
        dtypes=("int32", "float32"),
        domain=(0, 3),
    ),
    OpCase(
        "sort:two keys",
        lambda lax: lambda k, j, v: lax.sort((k, j, v), num_keys=2),
        shapes=(*_PAIRS, (5, 7)),
        dtypes=("int32", "float32", "float16"),
        domain=(0, 3),
        special=True,
    ),
    _row("sort_key_val", shapes=_PAIRS, dtypes=("float32", "int32"), special=True),
    _row("top_k", 3, shapes=((5, 7),), dtypes="biuf", special=True),
    _row("top_k:first axis", 2, shapes=((5, 7),), params={"axis": 0}),
    OpCase("top_k:special", lambda lax: lambda x: lax.top_k(x, 9), values=(_nan,)),
    _row("approx_max_k", 3, shapes=((5, 40),)),
    _row("approx_min_k", 3, shapes=((40, 5),), params={"reduction_dimension": 0}),
    _row("approx_max_k:candidates", 2, shapes=((300, 2),), params={
        "reduction_dimension": 0, "aggregate_to_topk": False}),
]  # fmt: skip

CASES = [
    *REDUCTIONS,
    *GENERAL,
    *WINDOWS,
    *RUNNING,
    *CONTRACTIONS,
    *CONVOLUTIONS,
    *SORTS,
]

ERRORS = [
    _error("reduce_sum:axis", _x, args=((2,),), raises=ValueError, match="axes"),
    _error("reduce_sum:negative", _x, args=((-1,),), raises=ValueError, match="axes"),
    _error("reduce_sum:twice", _x, args=((0, 0),), raises=ValueError, match="distinct"),
    _error("reduce_sum:bool", _b, args=((0,),), raises=TypeError, match="bool"),
    _error("reduce_and:float", _x, args=((0,),), raises=TypeError, match="float32"),
    _error("argmax:axis", _x, args=(2, np.int32), raises=ValueError, match="axis"),
    _error("argmax:dtype", _x, args=(0, np.float32), raises=TypeError, match="index_dtype"),
    _error("argmin:empty", _x[:0], args=(0, np.int32), raises=ValueError, match="empty"),
    _error("argmax:complex", _x + 1j, args=(0, np.int32), raises=TypeError, match="complex"),
    *(
        OpCase(
            f"reduce:{label}",
            fn,
            values=(_x,),
            raises=error,
            jax_raises=IndexError if label == "axis" else None,
            match=match,
        )
        for label, fn, error, match in (
            ("axis", _reduce(lambda lax: lax.sub, 0.0, dims=(2,)), ValueError, "dimensions"),
            ("start", _reduce(lambda lax: lax.sub, np.int32(0)), TypeError, "initial value"),
            ("array", _reduce(lambda lax: lax.sub, np.zeros(2, "f")), ValueError, "scalars"),
            ("result", _reduce(lambda lax: lax.lt, 0.0), ValueError, "computation"),
        )
    ),
    *(
        OpCase(
            f"reduce_window:{label}",
            lambda lax, args=args: lambda x: lax.reduce_window(x, 0.0, lax.add, *args),
            values=(_x,),
            raises=error,
            match=match,
        )
        for label, args, error, match in (
            ("rank", ((2,),), TypeError, "window_dimensions"),
            ("zero", ((0, 1),), TypeError, "positive"),
            ("stride", ((2, 2), (0, 1)), TypeError, "window_strides"),
            ("dilation", ((2, 2), (1, 1), "VALID", (0, 1)), TypeError, "base_dilation"),
            ("name", ((2, 2), (1, 1), "FULL"), RuntimeError, "SAME_LOWER"),
            ("pads", ((2, 2), (1, 1), ((0, 0),)), ValueError, "padding"),
        )
    ),
    _error("cumsum:axis", _x, args=(2,), raises=ValueError, match="axis"),
    _error("cumsum:negative", _x, args=(-1,), raises=ValueError, match="axis"),
    _error("cumsum:bool", _b, raises=TypeError, match="bool"),
    *(
        _error(f"dot_general:{label}", _x, other, args=(dims,), raises=error, match=match)
        for label, other, dims, error, match in (
            ("sizes", _x, (((1,), (0,)), ((), ())), TypeError, "equal sizes"),
            ("range", _x.T, (((2,), (0,)), ((), ())), TypeError, "lhs contracting"),
            ("twice", _x.T, (((1, 1), (0, 0)), ((), ())), TypeError, "distinct"),
            ("both", _x, (((1,), (1,)), ((1,), (1,))), TypeError, "in common"),
            ("malformed", _x.T, ((1,), (0,)), ValueError, "dimension_numbers"),
        )
    ),
    _error("dot:sizes", _x, _x, raises=ValueError, match="shapes"),
    _error("dot:precision", _x, _x.T, raises=ValueError, match="precision", precision="best"),
    _error(
        "dot:narrow", _n, _n.T, raises=TypeError, match="narrower", preferred_element_type=np.int8
    ),
    _error("batch_matmul:rank", _x[0], _x[0], raises=ValueError, match="rank"),
    *(
        OpCase(
            f"conv_general_dilated:{label}",
            lambda lax, params=params: lambda x, w: lax.conv_general_dilated(
                x, w, **{"window_strides": (1, 1), "padding": "VALID", **params}
            ),
            values=(np.ones((2, 4, 6, 7), np.float32), np.ones(shape, dtype)),
            raises=error,
            match=match,
        )
        for label, shape, dtype, params, error, match in (
            ("rank", (4, 3, 2), "f", {}, TypeError, "rank"),
            ("dtype", (6, 4, 3, 2), "i", {}, TypeError, "same dtypes"),
            ("features", (6, 3, 3, 2), "f", {}, ValueError, "input features"),
            ("groups", (6, 2, 3, 2), "f", {"feature_group_count": 3}, ValueError, "divide"),
            ("no groups", (6, 4, 3, 2), "f", {"batch_group_count": 0}, ValueError, "positive"),
            ("strides", (6, 4, 3, 2), "f", {"window_strides": (1,)}, ValueError, "spatial"),
            ("pads", (6, 4, 3, 2), "f", {"padding": ((0, 0),)}, TypeError, "padding"),
            ("name", (6, 4, 3, 2), "f", {"padding": "FULL"}, RuntimeError, "SAME_LOWER"),
            ("named", (6, 4, 3, 2), "f", {"lhs_dilation": (2, 1)}, ValueError, "conv_transpose"),
            ("cut", (6, 4, 3, 2), "f", {"padding": ((-9, 0), (0, 0))}, ValueError, "cuts"),
            ("letters", (6, 4, 3, 2), "f",
             {"dimension_numbers": ("NHWX", "HWIO", "NHWC")}, TypeError, "NHWX"),
            ("narrow", (6, 4, 3, 2), "f",
             {"preferred_element_type": np.float16}, TypeError, "narrower"),
        )
    ),
    _error("sort:axis", _x, args=(2,), raises=ValueError, match="axis"),
    OpCase(
        "sort:nothing",
        lambda lax: lambda: lax.sort(()),
        values=(),
        raises=TypeError,
        match="one operand",
    ),
    OpCase(
        "sort:shapes",
        lambda lax: lambda *xs: lax.sort(xs),
        values=(_x, _x[0]),
        raises=TypeError,
        match="shape",
    ),
    OpCase(
        "sort:keys",
        lambda lax: lambda *xs: lax.sort(xs, num_keys=3),
        values=(_x, _x),
        raises=ValueError,
        match="num_keys",
    ),
    _error("top_k:large", _x, args=(5,), raises=ValueError, match="at most"),
    _error("top_k:negative", _x, args=(-1,), raises=ValueError, match="negative"),
    _error("top_k:complex", _x + 1j, args=(1,), raises=ValueError, match="complex"),
    _error("approx_max_k:int", _n, args=(1,), raises=ValueError, match="floating"),
    _error("approx_max_k:zero", _x, args=(0,), raises=ValueError, match="k must be"),
]  # fmt: skip
