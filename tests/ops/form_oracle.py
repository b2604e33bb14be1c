"""Run loop forms by plain Python loops: what the compile wing must make of them."""

from __future__ import annotations

import importlib
import itertools
import re
from functools import cache

import numpy as np

from fnarray.core import forms, tree
from fnarray.core.dtypes import is_half
from fnarray.core.graph import Var, eval_graph
from fnarray.core.trace import trace_graph
from fnarray_kernels import scalar as sc


def _reader(ins):
    return lambda k, idx: int(ins[k][tuple(idx)])


def _holds(bounds):
    return all(low <= index < high for low, index, high in bounds)


def _reindex(form, ins, out):
    read = _reader(ins)
    for i in np.ndindex(out.shape):
        if form.valid is None or _holds(form.valid(i, read)):
            index = form.index(i, read)
            assert all(0 <= k < n for k, n in zip(index, ins[0].shape, strict=True))
            out[i] = ins[0][tuple(index)]
        else:
            out[i] = form.fill


def _pieces(form, ins, out):
    written = np.zeros(out.shape, int)
    if form.fill is not None:
        out[...] = ins[form.fill]
    for p in form.pieces:
        for e in np.ndindex(*p.extents):
            to = tuple(o + k * s for o, k, s in zip(p.offset, e, p.stride, strict=True))
            assert all(0 <= k < n for k, n in zip(to, out.shape, strict=True))
            out[to] = ins[p.operand][tuple(a + k for a, k in zip(p.start, e, strict=True))]
            written[to] += 1
    assert written.max(initial=0) <= 1
    assert form.fill is not None or written.min(initial=1) == 1


def _update(form, ins, out):
    read = _reader(ins)
    out[...] = ins[0]
    for u in np.ndindex(*form.extents):
        if form.valid is not None and not _holds(form.valid(u, read)):
            continue
        to = tuple(form.index(u, read))
        assert all(0 <= k < n for k, n in zip(to, out.shape, strict=True))
        old, new = out[to], ins[form.value][u]
        if isinstance(form.combine, str):
            if out.itemsize == 2 and out.dtype.kind in "fV":  # half types arrive as float32
                old, new = np.float32(old), np.float32(new)
            with np.errstate(all="ignore"):
                out[to] = eval(
                    form.combine.format("old", "new"), {"old": old, "new": new, "sc": sc}
                )
        else:
            (value,) = run_graph(form.combine, [old, new])
            out[to] = value


@cache
def _code(text):
    return compile(text, "<template>", "eval")


def _value(text, names):
    """Evaluate an expression of the kernels' namespace, by the Python reading of its functions."""
    from fnarray.compile.cpu.jit import namespace

    for module in set(re.findall(r"\bfk\.(\w+)\.", text)):
        importlib.import_module(f"fnarray_kernels.{module}")
    with np.errstate(all="ignore"):
        return eval(_code(text), {**namespace(), **names})


def _register(x):
    """Return an element as kernels hold it: halves are float32."""
    return np.float32(x) if is_half(x.dtype) else x


def _map(form, ins, outs):
    template = form.template.format(*(f"v{k}" for k in range(len(ins))))
    for i in np.ndindex(outs[0].shape):
        at = [tuple(0 if n == 1 else k for n, k in zip(x.shape, i, strict=False)) for x in ins]
        names = {f"v{k}": _register(x[a]) for k, (x, a) in enumerate(zip(ins, at, strict=True))}
        outs[0][i] = _value(template, names)


def _reduce(form, ins, outs):
    dtypes = form.dtypes or [o.dtype for o in outs]
    kinds = [np.dtype(np.float32 if is_half(np.dtype(d)) else d) for d in dtypes]
    count = len(form.inits)
    named = {f"a{j}": f"a{j}" for j in range(count)} | {f"x{j}": f"x{j}" for j in range(count)}
    for o in np.ndindex(outs[0].shape):
        acc = [
            kind.type(ins[i.number][()] if isinstance(i, forms.Operand) else i)
            for i, kind in zip(form.inits, kinds, strict=True)
        ]
        for r in np.ndindex(*form.extents):
            if form.valid is not None and not _holds(form.valid(o, r)):
                continue
            names = {
                f"v{k}": _register(x[tuple(index(o, r))])
                for k, (x, index) in enumerate(zip(ins, form.index, strict=False))
            }
            inner = {f"r{k}": np.int64(n) for k, n in enumerate(r)}
            spelled = [f"v{k}" for k in range(len(form.index))]
            terms = [
                _value(t.format(*spelled, **{n: n for n in inner}), {**names, **inner})
                for t in form.terms
            ]
            if isinstance(form.combine, tuple):
                held = {f"a{j}": a for j, a in enumerate(acc)}
                held |= {f"x{j}": x for j, x in enumerate(terms)}
                acc = [
                    kind.type(_value(c.format(**named), held))
                    for c, kind in zip(form.combine, kinds, strict=True)
                ]
            else:
                acc = run_graph(form.combine, [*acc, *terms])
        for out, j in zip(outs, form.results, strict=True):
            out[o] = acc[j]


def _contract(form, ins, outs):
    lhs, rhs = ins
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [""] * lhs.ndim, [""] * rhs.ndim
    for i, j in zip(
        (*form.lhs_batch, *form.lhs_contract), (*form.rhs_batch, *form.rhs_contract), strict=True
    ):
        left[i] = right[j] = next(letters)
    left = [x or next(letters) for x in left]
    right = [x or next(letters) for x in right]
    batch = [left[a] for a in form.lhs_batch]
    gone = {left[a] for a in form.lhs_contract} | set(batch)
    rest = [x for x in (*left, *right) if x not in gone]
    spelled = f"{''.join(left)},{''.join(right)}->{''.join(batch + rest)}"
    wide = {"f": np.float64, "V": np.float64, "c": np.complex128}.get(outs[0].dtype.kind)
    lhs, rhs = (x.astype(wide or outs[0].dtype) for x in (lhs, rhs))
    outs[0][...] = np.einsum(spelled, lhs, rhs).astype(outs[0].dtype)


def _library(form, ins, outs):
    module = importlib.import_module(f"fnarray_kernels.{form.op.module}")
    kernel = getattr(module, form.op.function)
    flat = [np.ascontiguousarray(x).reshape(-1) for x in ins]
    results = [np.zeros(max(o.size, 1), o.dtype) for o in outs]
    bits = [x.view("u2") if is_half(x.dtype) else x for x in (*flat, *results)]
    getattr(kernel, "py_func", kernel)(*bits, *form.statics)
    for out, result in zip(outs, results, strict=True):
        out[...] = result[: out.size].reshape(out.shape)


def run_graph(closed, args):
    """Evaluate a graph on NumPy values by each primitive's own evaluator."""

    def bind(prim, *xs, **params):
        return prim.eval(*[np.asarray(getattr(x, "val", x)) for x in xs], **params)

    return eval_graph(closed.jaxpr, closed.consts, args, bind)


@np.errstate(all="ignore")
def run_form(form, ins, out_avals):
    """Return the results of a form on NumPy arrays."""
    outs = [np.zeros(a.shape, a.dtype) for a in out_avals]
    if isinstance(form, forms.Inline):
        values = list(ins)
        env = dict(zip(form.graph.jaxpr.invars, values, strict=True))
        for eqn in form.graph.jaxpr.eqns:
            given = [env[v] if isinstance(v, Var) else np.asarray(v.val) for v in eqn.invars]
            parts = run_form(eqn.form(), given, [v.aval for v in eqn.outvars])
            env.update(zip(eqn.outvars, parts, strict=True))
        return [env[v] for v in form.graph.jaxpr.outvars]
    if isinstance(form, forms.Iota):
        for i in np.ndindex(outs[0].shape):
            outs[0][i] = np.int64(i[form.dimension]).astype(outs[0].dtype)
        return outs
    whole = {
        forms.Map: _map,
        forms.Reduce: _reduce,
        forms.Contract: _contract,
        forms.Library: _library,
    }
    if type(form) in whole:
        whole[type(form)](form, ins, outs)
        return outs
    run = {forms.Reindex: _reindex, forms.Pieces: _pieces, forms.Update: _update}[type(form)]
    run(form, ins, outs[0])
    return outs


#: Forms that only lay elements out: their results are equal. The others round in an order of their
#: own, to this many units in the last place.
LAYOUTS = forms.Reindex | forms.Pieces | forms.Update | forms.Iota | forms.Inline
ARITHMETIC = forms.Map | forms.Reduce | forms.Contract | forms.Library


def _has_own_order(form):
    """Whether a graph that stands in for an operation multiplies matrices, or folds."""
    eqns = form.graph.jaxpr.eqns if isinstance(form, forms.Inline) else ()
    return any(isinstance(e.form(), forms.Contract | forms.Reduce) for e in eqns)


def _agree(form, got, want, name):
    wide = {"f": np.float64, "V": np.float64, "c": np.complex128}.get(got.dtype.kind, got.dtype)
    got, want, dtype = got.astype(wide), np.asarray(want).astype(wide), got.dtype
    exact = isinstance(form, LAYOUTS) and not _has_own_order(form)
    if exact or dtype.kind not in "fVc":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    eps = 1e-2 if is_half(dtype) else max(300 * np.finfo(dtype).eps, 1e-11)
    np.testing.assert_allclose(got, want, rtol=eps, atol=eps, err_msg=name)


def check_forms(fun, *arrays):
    """Assert that every equation's form computes what its evaluator does, along one run."""
    from fnarray.core.array import asarray

    arrays = [asarray(a) for a in arrays]
    closed = trace_graph(lambda *xs: tree.leaves(fun(*xs)), [a.aval for a in arrays])
    values = dict(zip(closed.jaxpr.invars, [np.asarray(a) for a in arrays], strict=True))
    values.update(zip(closed.jaxpr.constvars, map(np.asarray, closed.consts), strict=True))
    seen = []
    for eqn in closed.jaxpr.eqns:
        ins = [np.asarray(v.val) if hasattr(v, "val") else values[v] for v in eqn.invars]
        with np.errstate(all="ignore"):
            outs = eqn.primitive.eval(*ins, **eqn.params)
        outs = outs if eqn.primitive.multiple_results else (outs,)
        form = eqn.form()
        known = isinstance(form, LAYOUTS | ARITHMETIC)
        if known and not (isinstance(form, forms.Library) and not form.kernel):
            seen.append(eqn.primitive.name)
            got = run_form(form, ins, [v.aval for v in eqn.outvars])
            for g, want in zip(itertools.chain(got), outs, strict=True):
                _agree(form, g, want, str(eqn.primitive))
        values.update(
            (v, np.asarray(o, v.aval.dtype)) for v, o in zip(eqn.outvars, outs, strict=True)
        )
    return seen
