"""On a GPU: what this folder's other tests hold on the processor; ``pytest -m gpu tests/cuda``."""

from __future__ import annotations

import functools
import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.compile.cuda import cublas, vendor
from fnarray.compile.cuda.device import gpu
from fnarray.config import scoped

sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from tests.replay import corpus

from .compare import chosen, close, numbers, same, ulps
from .programs import EVERY_NAME, LIBRARY, PRODUCTS

pytestmark = pytest.mark.gpu
#: cuBLAS and its loader, which tests take away unless they say so.
found = cublas.library


def differ(f, args) -> str:
    """Run a function on both; say how results differ."""
    where = fnarray.devices("gpu")[0]
    jitted = fnarray.jit(lambda *xs: f(*xs))
    want = fnarray.tree.leaves(jitted(*args))
    got = fnarray.tree.leaves(jitted(*(fnarray.device_put(a, where) for a in args)))
    lowered = jitted.lower(*args)
    free = chosen(lowered._traced.closed)
    for k, (w, g) in enumerate(zip(want, got, strict=True)):
        w, g = np.asarray(w), np.asarray(g)
        alike = k in free or same(w, g) or close(w, g)
        if w.shape != g.shape or w.dtype != g.dtype or not alike:
            return f"{w}\n{g}\n{lowered.as_text('cuda')}"
    return ""


@pytest.mark.parametrize("name", EVERY_NAME)
def test_programs_agree(name: str) -> None:
    """Results are the processor's."""
    f, args = EVERY_NAME[name]
    with scoped("effects", "off"), scoped("cuda_fma", False), fnarray.transfer_guard("allow"):
        assert not differ(f, args)


#: Shares of the corpus, so that the workers of ``-n 8 --dist=load`` have one each.
SHARES = 8


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("part", ["operations", "random_programs"])
def test_the_corpus_agrees(part: str, share: int) -> None:
    """Cases of all operations in all dtypes, and random programs."""
    wrong: list[str] = []
    number = iter(range(1 << 30))

    def run(f, *args):
        if next(number) % SHARES != share:
            return ""
        try:
            wrong.append(differ(f, args))
        except (TypeError, ValueError, NotImplementedError, fnarray.errors.FnarrayError) as error:
            if isinstance(error, fnarray.errors.JaxRuntimeError):
                raise
        return ""

    with (
        mock.patch.object(corpus, "text_of", run),
        scoped("effects", "off"),
        scoped("cuda_fma", False),
        fnarray.transfer_guard("allow"),  # some have no kernel
    ):
        for _ in getattr(corpus, part)():
            pass
    found = [text for text in wrong if text]
    assert wrong
    assert not found, f"{len(found)} of {len(wrong)} differ, the first:\n{found[0]}"


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [3, 40, 200])
def test_factors(n: int, dtype: str) -> None:
    """What a block works out multiplies to the matrix."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((2, n, n))
    a = (a if dtype == "float32" else a + 1j * rng.standard_normal(a.shape)).astype(dtype)
    there = fnarray.device_put(a, fnarray.devices("gpu")[0])

    def on_gpu(f):
        results = fnarray.tree.leaves(fnarray.jit(f)(there))
        return [np.asarray(x).astype(np.complex128) for x in results]

    t, z = on_gpu(fnarray.lax.linalg.schur)
    w, left, right = on_gpu(fnarray.lax.linalg.eig)
    q, r, order = on_gpu(lambda x: fnarray.lax.linalg.qr(x, pivoting=True))
    (root,) = on_gpu(fnarray.scipy.linalg.sqrtm)
    turned = np.swapaxes(a, -1, -2).conj()
    for got, want in (
        (z @ t @ np.swapaxes(z, -1, -2).conj(), a),
        (a @ right, right * w[:, None]),
        (turned @ left, left * w[:, None].conj()),
        (q @ r, np.take_along_axis(a, order.real.astype(int)[:, None], -1)),
        (root @ root, a),
    ):
        assert abs(got - want).max() < 1e-5 * n


@pytest.mark.skipif(found() is None, reason="cuBLAS is not installed")
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_agree(name: str, monkeypatch) -> None:
    """What cuBLAS computes, of operands as they lie, to both precisions."""
    monkeypatch.setattr(cublas, "library", found)
    monkeypatch.setattr(cublas, "LARGE", 1 << 10)
    fun, args = PRODUCTS[name]
    there = [fnarray.device_put(a, fnarray.devices("gpu")[0]) for a in args]
    for precision, rtol in (("highest", 1e-5), (None, 2e-3)):
        with scoped("default_matmul_precision", precision):
            f = fnarray.jit(lambda *xs: fun(*xs))
            want, got = fnarray.tree.leaves(f(*args)), fnarray.tree.leaves(f(*there))
            assert "(library: cuBLAS)" in f.lower(*args).as_text("cuda")
        rtol = {"halves": 2e-3, "bfloat16": 2e-2, "gradient": 8 * rtol}.get(name, rtol)
        for g, w in zip(got, want, strict=True):
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            room = rtol * abs(np.asarray(w)).max()
            np.testing.assert_allclose(np.asarray(g), w, rtol=rtol, atol=room)


@pytest.mark.skipif(find_spec("cupy") is None, reason="CuPy is not installed")
@pytest.mark.parametrize("name", LIBRARY)
def test_library_steps_agree(name: str, monkeypatch) -> None:
    """What CuPy computes, on our memory and stream."""
    monkeypatch.setattr(vendor, "installed", lambda: True)
    fun, args = LIBRARY[name]
    f = fnarray.jit(lambda *xs: fun(*xs))
    want = fnarray.tree.leaves(f(*args))
    there = [fnarray.device_put(a, fnarray.devices("gpu")[0]) for a in args]
    for _ in range(5):  # some become graphs
        got = fnarray.tree.leaves(f(*there))
    assert "(library: CuPy)" in f.lower(*args).as_text("cuda")
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-3, atol=1e-4)


def cupys(x, take):
    """Give back twice an array by CuPy, on a stream of its own."""
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        there = cupy.from_dlpack(x)
        assert there.data.ptr == cupy.asarray(x).data.ptr
        return take(2 * there)


def pytorchs(x, take):
    """Give back twice an array by PyTorch, on a stream of its own."""
    torch = importlib.import_module("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        return take(2 * torch.from_dlpack(x))


def numbas(x, take):
    """Give back twice an array's numbers by Numba, by way of the host."""
    cuda = importlib.import_module("numba.cuda")
    return take(cuda.to_device(2 * cuda.as_cuda_array(x).copy_to_host()))


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(f, marks=pytest.mark.skipif(find_spec(name) is None, reason="not installed"))
        for f, name in ((cupys, "cupy"), (pytorchs, "torch"), (numbas, "numba_cuda"))
    ],
)
def test_memory_is_shared(theirs) -> None:
    """Each reads what the other has under way, and nothing is given back before it was read."""
    x = fnarray.device_put(np.arange(1 << 22, dtype=np.float32), fnarray.devices("gpu")[0])
    f = fnarray.jit(lambda x: jnp.sin(x) + jnp.cos(x))
    want = 2 * np.asarray(f(x))
    for copy in (True, False):
        read = jnp.asarray if theirs is numbas else jnp.from_dlpack
        got = theirs(f(x), functools.partial(read, copy=copy))  # which nobody keeps
        others = [f(x) for _ in range(4)]  # take what was given back
        np.testing.assert_array_equal(np.asarray(got * 1), want)
        assert got.devices() == x.devices()
        del got, others


def test_what_is_too_large_leaves_the_rest() -> None:
    """The error says how much was asked for; what was there is, and programs run."""
    where = fnarray.devices("gpu")[0]
    x = fnarray.device_put(np.ones(1000, np.float32), where)
    size = 2 * gpu().memory_stats()["bytes_limit"]
    with pytest.raises(fnarray.errors.JaxRuntimeError, match=f"RESOURCE_EXHAUSTED.*{size:,} bytes"):
        gpu().empty((size,), np.uint8)
    assert float(fnarray.jit(jnp.sum)(x)) == 1000


def test_several_threads_share_a_gpu() -> None:
    """Each gets its own results, by programs that became graphs as well."""
    where = fnarray.devices("gpu")[0]
    f = fnarray.jit(lambda x: jnp.linalg.norm(jnp.sort(jnp.cumsum(x))) + x.sum())
    args = [np.random.default_rng(k).standard_normal(4096, np.float32) for k in range(8)]
    want = [float(f(a)) for a in args]

    def run(k: int) -> list[float]:
        there = fnarray.device_put(args[k], where)
        return [float(f(there)) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        for found, w in zip(pool.map(run, range(8)), want, strict=True):
            np.testing.assert_allclose(found, w, rtol=1e-5)


def test_functions_of_the_hardware_are_close() -> None:
    """By its own exponential and reciprocal, within the bounds that are told."""
    there = [fnarray.device_put(x, fnarray.devices("gpu")[0]) for x in numbers()]
    x, y = (a.astype(np.float64) for a in numbers())
    with np.errstate(all="ignore"), scoped("cuda_fma", True):
        assert ulps(np.asarray(fnarray.jit(jnp.tanh)(there[0])), np.tanh(x)) <= 2.5
        assert ulps(np.asarray(fnarray.jit(jnp.divide)(*there)), x / y) <= 2


def test_sums_are_the_same_each_time() -> None:
    """Folds of many blocks have one order."""
    x = np.random.default_rng(0).standard_normal(1 << 22, np.float32)
    f = fnarray.jit(jnp.sum)
    there = fnarray.device_put(x, fnarray.devices("gpu")[0])
    assert len({float(f(there)) for _ in range(20)}) == 1


def test_memory_comes_back() -> None:
    """What programs take for a while is given back."""
    f = fnarray.jit(lambda x: jnp.sum(jnp.exp(x - x.max())))
    x = fnarray.device_put(np.ones(1 << 20, np.float32), fnarray.devices("gpu")[0])
    f(x).block_until_ready()
    held = gpu().held
    for _ in range(50):
        f(x)
    assert gpu().held <= held + 64
