"""Errors of some two hundred functions of float32, compiled and eager, beside JAX's, as a table.

``python asv_bench/accuracy.py [--only WORD ...] [--all]``

The reference is JAX in double precision on the same numbers. An error is the root of the mean
square over a result's elements, in units of the last place: of each element for elementwise
functions (``own``), of the largest one for those that cancel (``norm``). A line is worse where one
of ours, compiled or eager, is over twice the larger of JAX's two and over a unit; those are
printed, with ``--all`` the others too, and the count of each at the end.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy
import jax.scipy

import fnarray
import fnarray.numpy
import fnarray.scipy

ULP = 2.0**-24
JAX = SimpleNamespace(np=jax.numpy, nn=jax.nn, lax=jax.lax, scipy=jax.scipy, grad=jax.grad)
OURS = SimpleNamespace(
    np=fnarray.numpy, nn=fnarray.nn, lax=fnarray.lax, scipy=fnarray.scipy, grad=fnarray.grad
)

Function = Callable[..., Any]
#: Name, scale of errors, function of a namespace, arguments.
Row = tuple[str, str, Callable[[Any], Function], tuple[np.ndarray, ...]]


def uniform(low: float, high: float, *shape: int) -> np.ndarray:
    """Float32 numbers between two, the same on every call."""
    drawn = np.random.default_rng(0).uniform(low, high, shape or (20_000,))
    return drawn.astype(np.float32)


def normal(*shape: int) -> np.ndarray:
    """Float32 normal numbers, the same on every call."""
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def logarithmic(low: float, high: float) -> np.ndarray:
    """Positive float32 numbers whose logarithms are uniform."""
    return np.exp(uniform(np.log(low), np.log(high)).astype(np.float64)).astype(np.float32)


def named(path: str) -> Callable[[Any], Function]:
    """Return what fetches a function by its dotted name."""

    def fetch(m: Any) -> Function:
        for part in path.split("."):
            m = getattr(m, part)
        return m

    return fetch


# --- elementwise functions ------------------------------------------------------------------------
WIDE, UNIT, ABOVE, SMALL = (-80.0, 80.0), (-0.999, 0.999), (1.001, 50.0), (-4.0, 4.0)
POSITIVE = (1e-3, 50.0)
UNARY = {
    "np": {
        WIDE: "sin cos tan exp exp2 expm1 sinh cosh tanh arctan arcsinh cbrt sinc square "
        "reciprocal",
        UNIT: "arcsin arccos arctanh",
        ABOVE: "arccosh",
        POSITIVE: "log log2 log10 log1p sqrt i0",
        SMALL: "deg2rad rad2deg",
    },
    "nn": {
        WIDE: "relu6 sigmoid softplus log_sigmoid elu celu selu silu mish hard_swish "
        "hard_sigmoid soft_sign squareplus leaky_relu hard_tanh sparse_plus",
        SMALL: "gelu",
        POSITIVE: "log1mexp",
    },
    "scipy.special": {
        SMALL: "erf erfc bessel_jn ndtr log_ndtr expit entr",
        UNIT: "erf_inv spence",
        POSITIVE: "gammaln digamma gamma i0 i0e i1 i1e expi exp1 xlogy1",
        (0.001, 0.999): "logit ndtri entr",
        (-30.0, 30.0): "erfcx log_ndtr expit dawsn fresnel sici",
    },
}
SPECIAL_BINARY = {
    "gammainc": ((0.1, 30.0), (0.1, 30.0)),
    "gammaincc": ((0.1, 30.0), (0.1, 30.0)),
    "betaln": ((0.1, 30.0), (0.1, 30.0)),
    "beta": ((0.1, 10.0), (0.1, 10.0)),
    "xlogy": ((0.1, 30.0), (0.1, 30.0)),
    "xlog1py": ((0.1, 30.0), (0.1, 30.0)),
    "zeta": ((1.5, 20.0), (0.5, 20.0)),
    "rel_entr": ((0.1, 5.0), (0.1, 5.0)),
    "kl_div": ((0.1, 5.0), (0.1, 5.0)),
    "polygamma1": ((0.5, 20.0),),
}
NUMPY_BINARY = {
    "power": ((0.1, 20.0), (-8.0, 8.0)),
    "arctan2": (WIDE, WIDE),
    "hypot": (WIDE, WIDE),
    "logaddexp": (WIDE, WIDE),
    "logaddexp2": (WIDE, WIDE),
    "fmod": (WIDE, (0.5, 5.0)),
    "remainder": (WIDE, (0.5, 5.0)),
    "float_power": ((0.1, 20.0), (-8.0, 8.0)),
    "divide": (WIDE, (0.5, 5.0)),
}


def elementwise() -> list[Row]:
    """Return the rows of elementwise functions that both have."""
    rows: list[Row] = []
    for space, groups in UNARY.items():
        for interval, names in groups.items():
            x = uniform(*interval)
            for name in names.split():
                path = f"{space}.{name}"
                if all(_has(m, path) for m in (JAX, OURS)) and name != "bessel_jn":
                    rows.append((path, "own", named(path), (x,)))
    for name, intervals in NUMPY_BINARY.items():
        args = tuple(uniform(*i)[:: 1 - 2 * k] for k, i in enumerate(intervals))
        rows.append((f"np.{name}", "own", named(f"np.{name}"), args))
    for name, intervals in SPECIAL_BINARY.items():
        args = tuple(uniform(*i)[:: 1 - 2 * k] for k, i in enumerate(intervals))
        if name == "polygamma1":
            rows.append(
                (
                    "special.polygamma(1)",
                    "own",
                    lambda m: lambda x: m.scipy.special.polygamma(1, x),
                    args,
                )
            )
        else:
            rows.append((f"special.{name}", "own", named(f"scipy.special.{name}"), args))
    x, a, b = uniform(0.01, 0.99), uniform(0.2, 20.0), uniform(0.2, 20.0)[::-1]
    rows.append(
        (
            "special.betainc",
            "own",
            lambda m: lambda a, b, x: m.scipy.special.betainc(a, b, x),
            (a, b, x),
        )
    )
    return rows


def _has(m: Any, path: str) -> bool:
    try:
        named(path)(m)
    except AttributeError:
        return False
    return True


# --- distributions --------------------------------------------------------------------------------
DENSITIES = {
    "norm": (WIDE, ()), "laplace": (WIDE, ()), "logistic": (WIDE, ()), "cauchy": (WIDE, ()),
    "expon": (POSITIVE, ()), "gamma": (POSITIVE, (2.5,)), "chi2": (POSITIVE, (3.0,)),
    "t": (WIDE, (4.0,)), "beta": ((0.01, 0.99), (2.0, 3.5)), "pareto": (ABOVE, (2.0,)),
    "uniform": ((0.01, 0.99), ()), "truncnorm": ((-0.9, 0.9), (-1.0, 1.0)),
    "gennorm": (SMALL, (1.5,)), "vonmises": (SMALL, (2.0,)),
}  # fmt: skip


def densities() -> list[Row]:
    """Return the rows of logarithms of densities and of distribution functions."""
    rows: list[Row] = []
    for name, (interval, shape) in DENSITIES.items():
        for what in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"):
            path = f"scipy.stats.{name}.{what}"
            if not all(_has(m, path) for m in (JAX, OURS)):
                continue
            x = uniform(0.01, 0.99) if what in ("ppf", "isf") else uniform(*interval)
            rows.append((path[6:], "own", _fixed(path, shape), (x,)))
    return rows


def _fixed(path: str, shape: tuple[float, ...]) -> Callable[[Any], Function]:
    return lambda m: lambda x: named(path)(m)(x, *shape)


# --- derivatives ----------------------------------------------------------------------------------
#: Times derived, interval, by name.
SLOPES = {
    "np.arcsin": (2, (-0.9, 0.9)), "np.tanh": (1, (-4.0, 4.0)), "np.arctan": (2, (0.1, 9.0)),
    "scipy.special.digamma": (1, POSITIVE), "scipy.special.gamma": (1, (0.1, 30.0)),
    "scipy.special.ndtri": (1, (0.001, 0.4)), "scipy.special.log_ndtr": (1, (-9.0, 5.0)),
    "scipy.special.i0": (1, POSITIVE), "nn.gelu": (1, SMALL), "nn.softplus": (2, SMALL),
    "scipy.stats.expon.logcdf": (2, POSITIVE), "nn.sigmoid": (1, WIDE),
}  # fmt: skip


def slopes() -> list[Row]:
    """Return the rows of derivatives, by reverse mode."""

    def derived(path: str, times: int) -> Callable[[Any], Function]:
        def fetch(m: Any) -> Function:
            f = named(path)(m)
            for _ in range(times):
                f = m.grad(lambda x, f=f: m.np.sum(f(x)))
            return f

        return fetch

    return [
        (f"slope {times} of {path}", "own", derived(path, times), (uniform(*interval),))
        for path, (times, interval) in SLOPES.items()
    ]


# --- sums, products, decompositions ---------------------------------------------------------------
def folds() -> list[Row]:
    """Return the rows of reductions, along several axes of several shapes."""
    rows: list[Row] = []
    shapes = {
        "(100000, 8)": (uniform(0, 1, 100_000, 8), 0),
        "(8, 100000)": (uniform(0, 1, 8, 100_000), 1),
        "(200, 3000, 3)": (uniform(0, 1, 200, 3000, 3), 1),
        "(1000000,)": (uniform(0, 1, 1_000_000), 0),
        "normal (3000, 300)": (normal(3000, 300), 0),
        "100 + (50000, 16)": (uniform(100, 101, 50_000, 16), 0),
    }
    names = "sum mean var std nanmean cumsum average median ptp trapezoid"
    for shape, (x, axis) in shapes.items():
        for name in names.split():
            if name in ("median", "ptp") and x.size > 500_000:
                continue
            rows.append((f"{name} {shape}", "norm", _along(f"np.{name}", axis), (x,)))
        rows.append((f"logsumexp {shape}", "norm", _along("scipy.special.logsumexp", axis), (x,)))
        rows.append((f"softmax {shape}", "norm", _along("nn.softmax", axis), (x,)))
        rows.append((f"norm {shape}", "norm", _along("np.linalg.norm", axis), (x,)))
        rows.append((f"sum of all {shape}", "norm", _wholes, (x,)))
        rows.append((f"gradient of squares {shape}", "norm", _slope, (x,)))
    small = uniform(-5e-4, 5e-4, 3000, 20) + np.float32(1)
    rows.append(("prod (3000, 20)", "norm", _along("np.prod", 0), (small,)))
    rows.append(("cumprod (3000, 20)", "norm", _along("np.cumprod", 0), (small,)))
    logs = _along("lax.cumlogsumexp", 0)
    rows.append(("cumlogsumexp (3000, 20)", "norm", logs, (uniform(-3, 3, 3000, 20),)))
    return rows


def _wholes(m: Any) -> Function:
    """Sum all, from sixteen beginnings: the error of one number is luck (0.01 units, or 1.7)."""
    return lambda x: m.np.stack([m.np.sum(x[len(x) * k // 64 :]) for k in range(16)])


def _along(path: str, axis: int) -> Callable[[Any], Function]:
    return lambda m: lambda x: named(path)(m)(x, axis=axis)


def _slope(m: Any) -> Function:
    return m.grad(lambda x: m.np.sum(x * x * m.np.sin(x)))


def products() -> list[Row]:
    """Return the rows of products, convolutions, transforms and decompositions."""
    a, b, v = normal(300, 200), normal(200, 100), normal(100_000)
    square = normal(60, 60)
    good = square @ square.T / 60 + np.eye(60, dtype=np.float32)
    signal, wave = normal(4096), normal(64)
    image = normal(2, 3, 32, 32)
    filters = normal(4, 3, 3, 3)
    tall = normal(100_000, 4)

    def einsum(pattern: str) -> Callable[[Any], Function]:
        return lambda m: lambda *xs: m.np.einsum(pattern, *xs)

    rows: list[Row] = [
        ("matmul", "norm", named("np.matmul"), (a, b)),
        ("dot of vectors", "norm", named("np.dot"), (v, uniform(0, 1, 100_000))),
        ("vdot", "norm", named("np.vdot"), (np.abs(v), np.abs(v))),
        ("matrix by vector", "norm", named("np.matmul"), (normal(8, 100_000), v)),
        ("tall products", "norm", einsum("ij,ik->jk"), (tall, tall)),
        (
            "batched products",
            "norm",
            einsum("bij,bjk->bik"),
            (normal(9, 30, 40), normal(9, 40, 20)),
        ),
        ("einsum i,i", "norm", einsum("i,i->"), (np.abs(v), np.abs(v))),
        ("einsum i...", "norm", einsum("i...,i...->..."), (normal(500, 40), normal(500, 40))),
        ("tensordot", "norm", lambda m: lambda x, y: m.np.tensordot(x, y, 2), (square, square)),
        ("convolve", "norm", named("np.convolve"), (signal, wave)),
        ("conv", "norm", lambda m: lambda x, w: m.lax.conv(x, w, (1, 1), "SAME"), (image, filters)),
        ("cov", "norm", lambda m: lambda x: m.np.cov(x, rowvar=False), (tall,)),
        ("corrcoef", "norm", lambda m: lambda x: m.np.corrcoef(x, rowvar=False), (tall,)),
        ("fft", "norm", lambda m: lambda x: m.np.abs(m.np.fft.fft(x)), (signal,)),
        ("rfft", "norm", lambda m: lambda x: m.np.abs(m.np.fft.rfft(x)), (signal,)),
        ("irfft", "norm", named("np.fft.irfft"), (signal,)),
        ("polyval", "norm", named("np.polyval"), (normal(9), uniform(-1, 1, 2000))),
        (
            "interp",
            "norm",
            named("np.interp"),
            (uniform(0, 1), np.sort(uniform(0, 1, 50)), normal(50)),
        ),
        ("solve", "norm", named("np.linalg.solve"), (good, square)),
        ("inv", "norm", named("np.linalg.inv"), (good,)),
        ("det", "norm", named("np.linalg.det"), (good,)),
        ("slogdet", "norm", lambda m: lambda x: m.np.linalg.slogdet(x)[1], (good,)),
        ("cholesky", "norm", named("np.linalg.cholesky"), (good,)),
        ("eigvalsh", "norm", named("np.linalg.eigvalsh"), (good,)),
        ("svd", "norm", lambda m: lambda x: m.np.linalg.svd(x, compute_uv=False), (square,)),
        ("pinv", "norm", named("np.linalg.pinv"), (good,)),
        ("expm", "norm", named("scipy.linalg.expm"), (square / 8,)),
        ("matrix_power", "norm", lambda m: lambda x: m.np.linalg.matrix_power(x, 7), (square / 8,)),
        ("lstsq", "norm", lambda m: lambda x, y: m.np.linalg.lstsq(x, y)[0], (a, normal(300))),
    ]
    return rows


def errors(row: Row) -> tuple[list[float], list[float]]:
    """Return JAX's errors, compiled and eager, then ours."""
    _, scale, function, args = row
    with jax.enable_x64(True):
        wide = [jax.numpy.asarray(a.astype(np.float64)) for a in args]
        exact = np.asarray(jax.jit(function(JAX))(*wide))
    unit = np.abs(exact) if scale == "own" else np.max(np.abs(exact))
    unit = np.maximum(unit, 1e-30) * ULP
    found: list[list[float]] = []
    for module, m in ((jax, JAX), (fnarray, OURS)):
        call = function(m)
        given = [m.np.asarray(a) for a in args]
        both: list[float] = []
        # Rows read the namespace that they are made of, which is never written to.
        options = {"effects": "off"} if m is OURS else {}
        for run in (module.jit(call, **options), call):
            result = np.asarray(run(*given), np.float64)
            missed = 0.0 if np.array_equal(result, exact, equal_nan=True) else np.inf
            with np.errstate(invalid="ignore"):  # infinities are left out
                off = (result - exact) / unit
            off = off[np.isfinite(exact) & (np.abs(exact) > 1e-30) & (np.abs(exact) < 3e38)]
            # Where the exact result is 0 everywhere there is no unit: it is met or missed.
            both.append(float(np.sqrt(np.mean(off**2))) if off.size else missed)
        found.append(both)
    return found[0], found[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="rows whose names hold a word")
    parser.add_argument("--all", action="store_true", help="lines that are not worse, too")
    options = parser.parse_args()
    rows = [*elementwise(), *densities(), *slopes(), *folds(), *products()]
    if options.only:
        rows = [row for row in rows if any(word in row[0] for word in options.only)]
    print("| function | jax | eager | fnarray | eager | |\n|---|---:|---:|---:|---:|---|")
    count = {"better": 0, "like": 0, "worse": 0}
    for row in rows:
        theirs, ours = errors(row)
        verdict = "like"
        if not max(ours) <= max(2 * max(theirs), 1.0):
            verdict = "worse"
        elif max(ours) < 0.5 * max(theirs):
            verdict = "better"
        count[verdict] += 1
        if options.all or verdict == "worse":
            cells = " | ".join(f"{e:.3g}" for e in (*theirs, *ours))
            print(f"| {row[0]} | {cells} | {verdict} |", flush=True)
    print(f"\n{len(rows)} lines: " + ", ".join(f"{n} {verdict}" for verdict, n in count.items()))


if __name__ == "__main__":
    main()
