"""Rows for operations that move elements."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from .opcase import OpCase

_x = np.arange(12, dtype=np.float32).reshape(3, 4)
_n = np.arange(12, dtype=np.int32).reshape(3, 4)


def _row(name, *args, shapes=((3, 4),), dtypes=("float32",), **params):
    """Return a case whose static arguments follow its arrays."""
    label = name.split(":")[0]
    params = MappingProxyType(params)
    return OpCase(
        name,
        lambda lax: lambda *xs: getattr(lax, label)(*xs, *args, **params),
        shapes=shapes,
        dtypes=dtypes,
    )


BROADCASTS = [
    _row("broadcast_in_dim", (2, 3, 4), (1, 2), dtypes="biufc"),
    _row("broadcast_in_dim:stretch", (5, 3, 2), (0, 2), shapes=((1, 2),)),
    _row("broadcast_in_dim:scalar", (2, 3), (), shapes=((),)),
    _row("broadcast_in_dim:same", (3, 4), (0, 1)),
    _row("broadcast_in_dim:empty", (0, 3, 4), (1, 2)),
    _row("broadcast", (2, 1)),
    _row("broadcast_to_rank", 4),
    _row("expand_dims", (0, -1)),
    _row("expand_dims:none", ()),
]
RESHAPES = [
    _row("reshape", (2, 6)),
    _row("reshape:flat", (12,)),
    _row("reshape:int", 12),
    _row("reshape:permuted", (4, 3), (1, 0), dtypes="biufc"),
    _row("reshape:ones", (1, 3, 1, 4, 1)),
    _row("reshape:groups", (4, 3, 2), shapes=((2, 6, 2),)),
    _row("reshape:empty", (0, 5), shapes=((3, 0),)),
    _row("collapse", 0, 2, shapes=((2, 3, 4),)),
    _row("collapse:end", -2, shapes=((2, 3, 4),)),
    _row("transpose", (1, 0)),
    _row("transpose:3d", (2, 0, 1), shapes=((2, 3, 4),)),
    _row("squeeze", (0, -1), shapes=((1, 3, 1),)),
    _row("tile", (2, 3)),
    _row("tile:zero", (0, 1)),
]
SLICES = [
    _row("slice", (0, 1), (2, 4)),
    _row("slice:strided", (0, 1), (3, 4), (2, 2), dtypes="biufc"),
    _row("slice:empty", (1, 2), (1, 4)),
    _row("slice_in_dim", 1, -1, axis=1),
    _row("slice_in_dim:stride", None, None, 2),
    _row("index_in_dim", -1, 1),
    _row("index_in_dim:drop", 2, 0, False),
    _row("rev", (0, 1)),
    _row("rev:none", ()),
    OpCase(
        "concatenate",
        lambda lax: lambda *xs: lax.concatenate(xs, 1),
        shapes=((3, 2), (3, 0), (3, 4)),
        dtypes="biufc",
    ),
    _row("split", (1, 0, 3), 1),
    OpCase(
        "stack",
        lambda lax: lambda *xs: lax.stack(xs, -2),
        shapes=((3, 2),) * 3,
        dtypes=("float32",) * 3,
    ),
    _row("unstack", -1),
    _row("unstack:empty", 0, shapes=((0, 2),)),
    _row("split:negative", (1, 2), -2),
]
_PADS = (
    ((1, 2, 0), (0, 0, 3)),
    ((-1, 0, 0), (0, -2, 0)),
    ((-2, 3, 2), (1, -3, 1)),
    ((-3, 0, 0), (0, 0, 0)),
    ((2, -4, 1), (-1, -1, 2)),
    ((-8, 9, 3), (5, -6, 0)),
)
PADS = [
    *(
        OpCase(
            f"pad:{k}",
            lambda lax, c=c: lambda x, v: lax.pad(x, v, c),
            shapes=((3, 4), ()),
            dtypes="biufc" if not k else ("float32",) * 2,
        )
        for k, c in enumerate(_PADS)
    ),
    OpCase("pad:empty", lambda lax: lambda x, v: lax.pad(x, v, ((1, 1, 2),)), shapes=((0,), ())),
]
IOTAS = [
    OpCase(f"iota:{d}", lambda lax, d=d: lambda: lax.iota(d, 5), values=())
    for d in ("int8", "uint32", "float16", "bfloat16", "float32", "complex64")
] + [
    OpCase("iota:wraps", lambda lax: lambda: lax.iota("int8", 300), values=()),
    OpCase("iota:2d", lambda lax: lambda: lax.broadcasted_iota("int32", (3, 2), 0), values=()),
    OpCase("iota:empty", lambda lax: lambda: lax.iota("int32", 0), values=()),
]


def _dynamic(name, fn, *starts, update=None):
    arrays = (_x,) if update is None else (_x, update)
    return [
        OpCase(name, fn, values=(*arrays, *(np.asarray(s, dtype) for s in starts)))
        for dtype in ("int32", "int8")
    ]


DYNAMIC = [
    case
    for starts in ((1, 2), (-1, -2), (9, 9), (-9, -9))
    for case in (
        *_dynamic(
            f"dynamic_slice:{starts}",
            lambda lax: lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
            *starts,
        ),
        *_dynamic(
            f"dynamic_update_slice:{starts}",
            lambda lax: lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
            *starts,
            update=-_x[:2, 1:],
        ),
    )
] + [
    OpCase("dynamic_slice:unsigned", lambda lax: lambda x, i: lax.dynamic_slice(x, (i, i), (1, 4)),
           values=(_x, np.uint32(2**32 - 1))),
    OpCase("dynamic_slice:array", lambda lax: lambda x, i: lax.dynamic_slice(x, i, (2, 2)),
           values=(_x, np.array([-2, 1], np.int32))),
    OpCase("dynamic_slice:static", lambda lax: lambda x: lax.dynamic_slice(x, (-2, 1), (2, 2)),
           values=(_x,)),
    OpCase("dynamic_slice_in_dim", lambda lax: lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, -1),
           values=(_x, np.int32(-3))),
    OpCase("dynamic_index_in_dim", lambda lax: lambda x, i: lax.dynamic_index_in_dim(x, i, 1),
           values=(_n, np.int32(2))),
    OpCase("dynamic_index_in_dim:drop",
           lambda lax: lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
           values=(_n, np.uint8(200))),
    OpCase("dynamic_update_slice_in_dim",
           lambda lax: lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
           values=(_x, -_x[:, :2], np.int32(3))),
    OpCase("dynamic_update_index_in_dim",
           lambda lax: lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 1),
           values=(_x, -_x[:, 0], np.int32(-1))),
]  # fmt: skip

CASES = [*BROADCASTS, *RESHAPES, *SLICES, *PADS, *IOTAS, *DYNAMIC]


def _bad(name, *values, raises=TypeError, jax_raises=None, match=".", **params):
    """Return a case of arguments that must be refused, static ones among the values."""
    return OpCase(
        name, values=values, params=params, raises=raises, jax_raises=jax_raises, match=match
    )


ERRORS = [
    _bad("reshape", _x, (5,), jax_raises=Exception, match="size 12"),
    _bad("reshape", _x, (-1,), match="negative"),
    _bad("reshape", _x, (2.0, 6), match="integers"),
    _bad("reshape", _x, (12,), (0, 0), match="permutation"),
    _bad("transpose", _x, (0, 0), match="permutation"),
    _bad("transpose", _x, (0,)),
    _bad("broadcast_in_dim", _x, (3, 5), (0, 1), match="size 1"),
    _bad("broadcast_in_dim", _x, (3,), (0, 1)),
    _bad("broadcast_in_dim", _x, (3, 4), (1, 0), match="size 1"),
    _bad("broadcast_in_dim", _x, (3, 4), (0, 5), match="axes of the result"),
    _bad("broadcast_in_dim", _x, (3, 4), (0,)),
    _bad("broadcast_in_dim", _x, (-3, 4), (0, 1)),
    _bad("broadcast_shapes", (3,), (4,), raises=ValueError, match="Incompatible"),
    _bad("squeeze", _x, (0,), raises=ValueError, match="not equal to one"),
    _bad("squeeze", _x, (5,), raises=ValueError, match="axis 5"),
    _bad("squeeze", _x[:1], (0, 0), raises=ValueError),
    _bad("expand_dims", _x, (0, 0), raises=ValueError, match="repeated"),
    _bad("expand_dims", _x, (5,), raises=ValueError),
    _bad("slice", _x, (0,), (1,), jax_raises=ValueError),
    _bad("slice", _x, (0, 0), (5, 1), match="limit"),
    _bad("slice", _x, (2, 0), (1, 1)),
    _bad("slice", _x, (0, 0), (2, 2), (1,)),
    _bad("slice", _x, (0, 0), (2, 2), (0, 1), jax_raises=ZeroDivisionError, match="positive"),
    _bad("slice_in_dim", _x, 0, 2, axis=7, raises=IndexError),
    _bad("index_in_dim", _x, 3, raises=IndexError, match="index 3"),
    _bad("rev", _x, (0, 0)),
    _bad("rev", _x, (2,)),
    _bad("rev", _x, (-1,)),
    _bad("concatenate", [], 0, raises=ValueError),
    _bad("concatenate", [_x, _x[0]], 0, match="ranks"),
    _bad("concatenate", [_x, _x[:, :1]], 0, match="dimension 0"),
    _bad("concatenate", [_x, _x], 2),
    _bad("concatenate", [_x, _n], 0, match="int32"),
    _bad("pad", _x, 0, [(0, 0, 0)] * 2, match="int32"),
    _bad("pad", _x, np.float32(0), [(0, 0, 0)], raises=ValueError),
    _bad("pad", _x, np.float32(0), [(0, 0, -1), (0, 0, 0)], raises=ValueError, match="interior"),
    _bad("pad", _x, np.float32(0), [(-3, -3, 0), (0, 0, 0)], raises=ValueError),
    _bad("pad", _x, _x[0, :2], [(0, 0, 0)] * 2, raises=ValueError, match="scalar"),
    _bad("iota", "int32", -1),
    _bad("iota", bool, 3, match="bool"),
    _bad("broadcasted_iota", "int32", (2, 3), 2, raises=ValueError),
    _bad("broadcasted_iota", "int32", (2, 3), -1, raises=ValueError),
    _bad("split", _x, (1, 1), raises=ValueError, match="add up"),
    _bad("split", _x, (1, 2), 2, raises=ValueError),
    _bad("split", _x, (1, -1, 3), raises=ValueError),
    _bad("stack", [], jax_raises=IndexError, raises=ValueError),
    _bad("stack", [_x, _x[0]], raises=ValueError, match="equal shapes"),
    _bad("stack", [_x, _n], match="int32"),
    _bad("stack", [_x, _x], 3, raises=ValueError),
    _bad("unstack", _x, 2, raises=ValueError),
    _bad("tile", _x, (2,)),
    _bad("collapse", _x, 1, 0, raises=ValueError, match="backwards"),
    _bad("dynamic_slice", _x, (0,), (1, 1), raises=ValueError),
    _bad("dynamic_slice", _x, (0, 0), (1,), raises=ValueError),
    _bad("dynamic_slice", _x, (0, 0), (4, 1), match="slice_sizes"),
    _bad("dynamic_slice", _x, (0, 0), (-1, 1)),
    _bad("dynamic_slice", _x, (0.0, 0), (1, 1), match="float32"),
    _bad("dynamic_slice", _x, (np.uint8(1), np.int32(0)), (1, 1), match="uint8"),
    _bad("dynamic_slice", _x, (np.zeros(1, np.int32), 0), (1, 1), match="scalars"),
    _bad("dynamic_update_slice", _x, _x[0], (0, 0), match="rank"),
    _bad("dynamic_update_slice", _x, np.ones((4, 4), np.float32), (0, 0), match="larger"),
    _bad("dynamic_update_slice", _x, _n, (0, 0), match="int32"),
]
