"""Run loop forms by plain Python loops: what the compile wing must make of them."""

from __future__ import annotations

import itertools

import numpy as np

from fnarray.core import forms
from fnarray.core.graph import eval_graph
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


def run_graph(closed, args):
    """Evaluate a graph on NumPy values by each primitive's own evaluator."""

    def bind(prim, *xs, **params):
        return prim.eval(*[np.asarray(getattr(x, "val", x)) for x in xs], **params)

    return eval_graph(closed.jaxpr, closed.consts, args, bind)


def run_form(form, ins, out_avals):
    """Return the results of a form on NumPy arrays."""
    outs = [np.zeros(a.shape, a.dtype) for a in out_avals]
    if isinstance(form, forms.Inline):
        values = list(ins)
        env = dict(zip(form.graph.jaxpr.invars, values, strict=True))
        for eqn in form.graph.jaxpr.eqns:
            parts = run_form(
                eqn.form(), [env[v] for v in eqn.invars], [v.aval for v in eqn.outvars]
            )
            env.update(zip(eqn.outvars, parts, strict=True))
        return [env[v] for v in form.graph.jaxpr.outvars]
    if isinstance(form, forms.Iota):
        for i in np.ndindex(outs[0].shape):
            outs[0][i] = np.int64(i[form.dimension]).astype(outs[0].dtype)
        return outs
    run = {forms.Reindex: _reindex, forms.Pieces: _pieces, forms.Update: _update}[type(form)]
    run(form, ins, outs[0])
    return outs


def check_forms(fun, *arrays):
    """Assert that every equation's form computes what its evaluator does, along one run."""
    from fnarray.core.array import asarray

    arrays = [asarray(a) for a in arrays]
    closed = trace_graph(lambda *xs: fun(*xs), [a.aval for a in arrays])
    values = dict(zip(closed.jaxpr.invars, [np.asarray(a) for a in arrays], strict=True))
    values.update(zip(closed.jaxpr.constvars, map(np.asarray, closed.consts), strict=True))
    seen = []
    for eqn in closed.jaxpr.eqns:
        ins = [np.asarray(v.val) if hasattr(v, "val") else values[v] for v in eqn.invars]
        with np.errstate(all="ignore"):
            outs = eqn.primitive.eval(*ins, **eqn.params)
        outs = outs if eqn.primitive.multiple_results else (outs,)
        form = eqn.form()
        if isinstance(
            form, forms.Reindex | forms.Pieces | forms.Update | forms.Iota | forms.Inline
        ):
            seen.append(eqn.primitive.name)
            got = run_form(form, ins, [v.aval for v in eqn.outvars])
            for g, want in zip(itertools.chain(got), outs, strict=True):
                np.testing.assert_array_equal(g, want, err_msg=str(eqn.primitive))
        values.update(
            (v, np.asarray(o, v.aval.dtype)) for v, o in zip(eqn.outvars, outs, strict=True)
        )
    return seen
