"""Programs whose kernels teach something, by name: a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.scipy.linalg import expm
from tests.compile import functions as f


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    """Return whole numbers below ``high``."""
    return np.random.default_rng(1).integers(0, high, shape, np.int32)


def newton(x):
    """Newton's method for a root of a cubic: another number of turns in each lane."""

    def turn(state):
        y, n = state
        return y - (y * y * y - y - x) / (3 * y * y - 1), n + 1

    return lax.while_loop(
        lambda s: (abs(s[0] ** 3 - s[0] - x) > 1e-4) & (s[1] < 50), turn, (2.0 + 0 * x, 0)
    )


def recurrence(xs):
    """A scan over scalars, all on one thread."""

    def turn(c, x):
        c = 0.5 * c + x
        return c, c * c

    return lax.scan(turn, jnp.float32(0), xs)


def norms(x):
    """A column that rows read, replaced by what comes of them, and read again by its row."""
    y = x * 2
    y = y.at[:, 0].add(y.sum(1))
    return y / y.max(1, keepdims=True), y.sum(1)


def by_rows(xs):
    """A scan for each row: a thread for each."""
    return fnarray.vmap(recurrence)(xs)


def stepped(x):
    """A loop over arrays too large for one thread: the driver turns, each turn is kernels."""
    return lax.fori_loop(0, 3, lambda i, c: jnp.roll(c, 1) * 0.5 + c, x)


def together(c, xs):
    """A scan over vectors whose elements never meet: a thread for each, carries in registers."""

    def turn(state, x):
        c, n = state
        c = 0.9 * c + jnp.tanh(x)
        return (c, n + 1), (c * c, n)

    return lax.scan(turn, (c, 0), xs, reverse=True)


def decay(x):
    """A loop over a vector, until a number says so."""
    return lax.while_loop(lambda s: s[1] < 20, lambda s: (s[0] * 0.9 + x, s[1] + 1), (x, 0))


def chosen(p, x):
    """A branch on one thread."""
    return lax.cond(p, lambda x: jnp.sum(x) * x, lambda x: -x, x)


def halves(x):
    """Half precision: 16 bits in memory, float32 in registers."""
    return jnp.tanh(x) * 2 + x


def _factors(a: Any) -> Any:
    """Factors, and whether they multiply to what they must: some are theirs up to phases."""
    t, z = lax.linalg.schur(a)
    w, left, right = lax.linalg.eig(a)
    q, r, order = lax.linalg.qr(a, pivoting=True)
    root = fnarray.scipy.linalg.sqrtm(a)
    turned = jnp.swapaxes(a, -1, -2)
    gaps = (
        z @ t @ jnp.swapaxes(z, -1, -2) - a,
        a @ right - right * w[:, None],
        turned @ left - left * jnp.conj(w)[:, None],
        root @ root - a,
    )
    return q, r, order, [jnp.abs(gap) < 1e-4 for gap in gaps]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain_is_a_map_of_fours": (f.polynomial, (floats(64, 8),)),
    "odd_sizes_are_a_map_of_ones": (f.polynomial, (floats(3, 7),)),
    "halves_are_bits_in_memory": (halves, (floats(64).astype(np.float16),)),
    "softmax_is_a_block_for_each_row": (f.softmax, (floats(6, 300),)),
    "layer_norm_keeps_sums_in_registers": (f.layer_norm, (floats(6, 300),)),
    "column_sum_is_a_thread_for_each_column": (lambda x: jnp.sum(x, 0), (floats(9, 64),)),
    "tall_columns_are_a_block_for_eight": (
        lambda x: (x.mean(0), x.var(0)),
        (floats(100, 40),),
    ),
    "few_tall_columns_are_cut": (
        lambda x: (x.mean(0), x.var(0)),
        (floats(300, 40) + 1,),
    ),
    "whole_sum_is_two_kernels": (lambda x: jnp.sum(x), (floats(150, 150),)),
    "argmax_keeps_the_first": (lambda x: jnp.argmax(x, 1), (floats(5, 100),)),
    "transpose_is_a_block_for_a_square": (lambda x: x.T + 1, (floats(40, 48),)),
    "scatter_add_is_atomic": (
        lambda x, i, v: x.at[i].add(v),
        (floats(32), integers(32, 100), floats(100)),
    ),
    "scatter_max_exchanges": (
        lambda x, i, v: x.at[i].max(v),
        (floats(32), integers(32, 100), floats(100)),
    ),
    "slice_is_laid_over_a_copy": (
        lambda x, v: (x * 2).at[:, 8:72].add(v),
        (floats(50, 100), floats(50, 64)),
    ),
    "column_of_sums_is_seen_by_its_row": (norms, (floats(50, 100),)),
    "narrow_sum_is_a_thread_for_each_column": (lambda x: x.sum(0), (floats(700, 3),)),
    "rows_side_by_side": (
        lambda x, y: jnp.concatenate([jnp.roll(x, 3, 1), y * 2], 1),
        (floats(6, 40), floats(6, 50)),
    ),
    "pad_fills_first": (
        lambda x: lax.pad(x, np.float32(0), ((1, 2, 1), (0, 1, 0))),
        (floats(5, 6),),
    ),
    "lanes_have_a_thread_each": (lambda x: fnarray.vmap(newton)(x), (floats(40),)),
    "scan_of_scalars_is_one_thread": (recurrence, (floats(50),)),
    "scan_of_rows_is_a_thread_for_each": (by_rows, (floats(12, 20),)),
    "scan_of_vectors_is_a_thread_for_each_element": (together, (floats(48), floats(20, 48))),
    "cumsum_of_a_long_line_is_a_block": (lambda x: lax.cumsum(x, 0), (floats(1000),)),
    "branch_is_one_thread": (chosen, (np.bool_(True), floats(10))),
    "large_loop_is_the_drivers": (stepped, (floats(70, 70),)),
    "product_is_a_block_for_a_tile": (jnp.matmul, (floats(40, 33), floats(33, 30))),
    "sort_is_a_kernel_for_each_pass": (lambda x: jnp.sort(x), (floats(20),)),
    "small_product_is_a_thread_for_each_element": (
        lambda a, b: a @ b,
        (floats(6, 9), floats(9, 8)),
    ),
}

#: More, for what they compute alone.
MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cut_columns": (
        lambda x, y: (
            jnp.argmax(x, 0),
            y * 0.9 + jnp.abs(x - x.max(0)).sum(0),
            x.astype(jnp.float16).sum(0),
        ),
        (floats(700, 45), floats(45)),
    ),
    "places_in_columns": (lambda x: (jnp.argmax(x, 0), x.max(0)), (floats(100, 37),)),
    "mean_and_variance": (lambda x: (x.mean(0), x.var(0), x.sum()), (floats(30, 40) + 1,)),
    "whole_argmin": (lambda x: jnp.argmin(x), (floats(40000),)),
    "whole_argmin_of_equals": (lambda x: jnp.argmin(x), (np.zeros(40000, np.float32),)),
    "sum_and_map": (lambda x: (jnp.sum(x * x), x * 2), (floats(20000),)),
    "logical": (lambda x: (jnp.any(x > 3), jnp.all(x > -9)), (floats(20000),)),
    "reduce_from_a_start": (
        lambda x, s: lax.reduce(x, s, lax.add, (0,)),
        (floats(20000), np.float32(3)),
    ),
    "reduce_by_a_function": (
        lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * 0.5 + b, (0, 1)),
        (floats(4, 5),),
    ),
    "long_rows": (lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), (floats(3, 5000),)),
    "three_axes": (lambda x: jnp.moveaxis(x, 0, 2) * 2 + 1, (floats(4, 33, 40),)),
    "rows_in_registers": (
        lambda x, y: (f.softmax(x), f.layer_norm(x[:, :600]), f.softmax(y), f.softmax(y[:, ::2])),
        (floats(3, 1024), floats(2, 301).astype(np.float16)),
    ),
    "rows_held_by_512_lanes": (f.softmax, (floats(2, 5000),)),
    "rows_of_two_axes": (lambda x: x - x.max((1, 2), keepdims=True), (floats(4, 9, 11),)),
    "complex": (lambda x: jnp.exp(x * 1j) * jnp.abs(x + 2j), (floats(64),)),
    "sums_of_few": (
        lambda x, i, v: (
            x.at[i].add(v),
            jnp.bincount(i, length=5),
            jnp.zeros((3, 4)).at[i % 3].add(v[:, None]),
        ),
        (floats(7), integers(7, 3000), floats(3000)),
    ),
    "complex_scatter": (
        lambda x, i: (x * 1j).at[i].add(1.0 + 2j),
        (floats(32), integers(32, 50)),
    ),
    "half_scatter": (
        lambda x, i: x.at[i].add(1),
        (floats(32).astype(np.float16), integers(32, 50)),
    ),
    "cumulative": (lambda x: jnp.cumsum(x, 1), (floats(4, 30),)),
    "cumulative_columns": (lambda x: lax.cumprod(x, 0, reverse=True), (floats(30, 5),)),
    "cumulative_long": (
        lambda x: (lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1), lax.cummax(x, 1)),
        (floats(3, 1001),),
    ),
    "cumulative_complex": (lambda x: lax.cumsum(x * 1j, 0), (floats(300),)),
    "cumulative_integers": (lambda x: lax.cumsum(x, 0), (integers(100, 300).astype(np.int8),)),
    "recurrence": (
        lambda a, b: lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b)),
        (floats(50), floats(50)),
    ),
    "sorted": (lambda x: jnp.sort(jnp.where(x > 1, jnp.nan, x), 0), (floats(90, 3),)),
    "sorted_by_two_keys": (
        lambda x: lax.sort((jnp.round(x), jnp.round(x[::-1]), x, jnp.sin(x)), num_keys=2),
        (floats(60),),
    ),
    "sorted_halves": (lambda x: jnp.sort(x, 0), (floats(50, 3).astype(np.float16),)),
    "sorted_complex": (lambda x: jnp.sort(jnp.round(x) + 1j * x[::-1], 0), (floats(50, 3),)),
    "places_of_sorted": (lambda x: jnp.argsort(x, 1), (floats(3, 100),)),
    "largest": (lambda x: lax.top_k(x, 5), (floats(3, 100),)),
    "tiled_product": (
        lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b),
        (floats(2, 24, 3, 16), floats(2, 28, 3, 16)),
    ),
    "product_of_many_terms": (
        lambda x: (jnp.einsum("bki,bkj->bij", x, x + 1), x[0].T @ x[1]),
        (floats(2, 1100, 5),),
    ),
    "product_with_a_vector": (
        lambda x, v, w: (x @ v, w @ x),
        (floats(70, 300), floats(300), floats(70)),
    ),
    "neighbours_around": (
        lambda x: x + jnp.roll(x, 1, 0) * 2 - jnp.roll(x, (-1, 3), (0, 1)) * jnp.roll(x, -2, 1),
        (floats(9, 40),),
    ),
    "neighbours_in_a_frame": (
        lambda x: (jnp.pad(x, 1, constant_values=-0.0)[:, 2:] * 2).sum(1) - jnp.pad(x, 1).max(1),
        (floats(7, 12),),
    ),
    "ends_joined": (
        lambda x, y: jnp.concatenate([x[:3], y, x[3:]]).astype(jnp.bfloat16) * 2,
        (floats(8), floats(5)),
    ),
    "loss_of_rows": (
        fnarray.value_and_grad(lambda x: jnp.mean((f.layer_norm(x) + jnp.sin(x)) ** 2)),
        (floats(6, 300),),
    ),
    "sum_of_norms": (
        lambda x: (jnp.sum(jnp.linalg.norm(x, axis=1)), jnp.max(x.sum(1)), x * 2),
        (floats(9, 70),),
    ),
    "sum_of_many": (lambda x, y: (jnp.sum(x * y), jnp.max(x)), (floats(1 << 15), floats(1 << 15))),
    "product_of_halves": (
        lambda a, b: a @ b,
        (floats(40, 30).astype(np.float16), floats(30, 40).astype(np.float16)),
    ),
    "product_of_bfloat16": (
        lambda a, b: a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16),
        (floats(40, 30), floats(30, 40)),
    ),
    "product_of_integers": (lambda a, b: a @ b, (integers(99, 40, 30), integers(99, 30, 40))),
    "product_of_complex": (lambda a, b: (a * 1j) @ (b + 1j), (floats(40, 30), floats(30, 40))),
    "product_of_bools": (lambda a, b: (a > 0) @ (b > 0), (floats(40, 30), floats(30, 40))),
    "cumulative_in_parts": (lambda x: lax.cumsum(x, 0), (floats(9000),)),
    "cumulative_halves": (lambda x: lax.cumsum(x, 1), (floats(5, 200).astype(np.float16),)),
    "long_recurrence": (
        lambda a, b: lax.scan(lambda c, x: (x[0] * c + x[1],) * 2, jnp.float32(0), (a, b))[1],
        (floats(200) / 2, floats(200)),
    ),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2)),
        (floats(2, 3, 7, 8), floats(4, 3, 3, 2)),
    ),
    "convolution_of_halves": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        (floats(1, 2, 5, 6).astype(np.float16), floats(3, 2, 3, 3).astype(np.float16)),
    ),
    "gradient_of_convolution": (
        fnarray.grad(
            lambda x, w: jnp.sum(lax.conv_general_dilated(x, w, (2, 2), "SAME") ** 2), (0, 1)
        ),
        (floats(1, 2, 6, 6), floats(3, 2, 3, 3)),
    ),
    "gradient_of_largest_of_windows": (
        fnarray.grad(
            lambda x: jnp.sum(
                lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") ** 2
            )
        ),
        (floats(2, 6, 6),),
    ),
    "gradient_of_largest_of_images": (
        fnarray.grad(
            lambda x: jnp.sum(
                lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 2, 1), (1, 1, 2, 2, 1), "SAME")
                ** 2
            )
        ),
        (floats(2, 2, 6, 5, 3),),
    ),
    "small_matrices": (
        lambda x, y: (
            jnp.linalg.cholesky(x @ jnp.swapaxes(x, 1, 2) + 5 * jnp.eye(4)),
            jnp.linalg.solve(x, y),
            jnp.linalg.det(x),
            jnp.linalg.slogdet(x + 1j),
            lax.linalg.triangular_solve(x, y, left_side=True),
        ),
        (floats(5, 4, 4), floats(5, 4, 2)),
    ),
    "gradient_of_solve": (
        fnarray.grad(lambda x, y: jnp.sum(jnp.linalg.solve(x, y) ** 2), (0, 1)),
        (floats(5, 4, 4), floats(5, 4, 2)),
    ),
    "complex_systems_by_factors": (
        fnarray.grad(lambda x, y: jnp.sum(abs(jnp.linalg.solve(x + 2j * x[::-1], y))), (0, 1)),
        (floats(3, 4, 4), floats(3, 4, 2)),
    ),
    "tridiagonal_systems": (
        lambda d, b: lax.linalg.tridiagonal_solve(d[0], d[1] * 0.1, d[2], b),
        (floats(3, 6, 9), floats(6, 9, 2)),
    ),
    "factors_are_a_block_for_each_matrix": (_factors, (floats(2, 4, 4),)),
    "order_of_exchanged_rows": (
        lambda p: lax.linalg.lu_pivots_to_permutation(p, 6),
        (integers(2, 5, 3) + np.arange(3, dtype=np.int32),),
    ),
    "numbers_in_pieces": (
        lambda x: (
            lax.bitcast_convert_type(x, jnp.uint8),
            lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.bfloat16), jnp.float32),
        ),
        (floats(5, 7),),
    ),
    "about_the_least": (lambda x: lax.approx_min_k(x, 5), (floats(3, 100),)),
    "random": (lambda k: fnarray.random.normal(k, (33,)), (fnarray.random.key(3),)),
    "gradient_of_scan": (
        fnarray.grad(lambda x: jnp.sum(recurrence(x)[1] ** 2)),
        (floats(40),),
    ),
    "gradient_of_softmax": (fnarray.grad(lambda x: jnp.sum(f.softmax(x) ** 2)), (floats(4, 40),)),
    "batch_of_loops_with_arrays": (
        fnarray.vmap(lambda x: lax.fori_loop(0, 4, lambda i, c: c.at[i].multiply(2) + x, x)),
        (floats(6, 20),),
    ),
    "large_branch": (
        lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x),
        (np.bool_(False), floats(70, 70)),
    ),
    "large_while": (
        lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c + 0.01, x),
        (np.zeros((70, 70), np.float32),),
    ),
    "loop_of_vectors": (decay, (floats(5000),)),
    "scan_of_matrices": (together, (floats(70, 70), floats(2, 70, 70))),
    "gradient_of_scan_of_vectors": (
        fnarray.grad(lambda c, xs: jnp.sum(together(c, xs)[1][0])),
        (floats(64), floats(6, 64)),
    ),
    "vectors_that_meet": (
        lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + jnp.sum(c), x),
        (floats(64),),
    ),
    "checkpoint": (
        fnarray.grad(fnarray.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))),
        (floats(40),),
    ),
    "associative": (lambda x: lax.associative_scan(jnp.add, x), (floats(37),)),
    "read_along_both_axes": (
        lambda x, y: (x + x.T, jnp.abs(y.transpose(0, 2, 1)), x.T.astype(jnp.float16) * 2),
        (floats(75, 75), floats(3, 70, 33)),
    ),
    "empty": (lambda x: (jnp.sum(x), x * 2, jnp.concatenate([x, x])), (floats(0),)),
}

EVERY_NAME = {**PROGRAMS, **MORE}


def positive(n):
    """Return a matrix that has a Cholesky factor."""
    x = floats(n, n)
    return x @ x.T + n * np.eye(n, dtype=np.float32)


#: Steps that are CuPy's, where it is installed.
LIBRARY = {
    "cholesky": (jnp.linalg.cholesky, (positive(30),)),
    "cholesky of none": (jnp.linalg.cholesky, (-positive(30),)),
    "solve": (jnp.linalg.solve, (positive(30), floats(30, 3))),
    "gradient of solve": (
        fnarray.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1)),
        (positive(30) / 30, floats(30, 3)),
    ),
    "complex gradient of solve": (
        fnarray.grad(lambda a, b: jnp.sum(abs(jnp.linalg.solve(a + 1j * b, b))), (0, 1)),
        (positive(30) / 30, floats(30, 30)),
    ),
    "lu": (lambda a: lax.linalg.lu(a), (floats(2, 30, 30),)),
    "lu of singular": (lambda a: lax.linalg.lu(a), (floats(30, 30) * (np.arange(30) != 7),)),
    "triangular": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, transpose_a=True),
        (np.triu(positive(30)), floats(4, 30)),
    ),
    "stacks": (
        lambda a, b: (
            jnp.linalg.cholesky(a),
            jnp.linalg.solve(a, b),
            lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            lax.linalg.triangular_solve(
                a + 1j * a, b.swapaxes(1, 2) + 0j, conjugate_a=True, transpose_a=True
            ),
        ),
        (np.stack([positive(30), -positive(30), positive(30) / 7]), floats(3, 30, 2)),
    ),
    "gradient of stacks": (
        fnarray.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1)),
        (np.stack([positive(30), positive(30) / 7]) / 30, floats(2, 30, 3)),
    ),
    "determinant": (lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)), (positive(30) / 30,)),
    "qr": (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), (floats(30, 8),)),
    "eigh": (lambda a: jnp.linalg.eigvalsh(a), (positive(30),)),
    "eigenvalues": (lambda a: jnp.sort(jnp.linalg.eigvals(a).real), (floats(2, 9, 9),)),
    "eigenvectors": (
        lambda a: (lambda w, v: jnp.abs(a @ v - v * w) < 1e-4)(*jnp.linalg.eig(a)),
        (floats(9, 9),),
    ),
    "eigh of NaN": (lambda a: jnp.linalg.eigvalsh(a * np.nan), (positive(30),)),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False), (floats(9, 5),)),
    "pinv": (lambda a: jnp.linalg.pinv(a), (floats(2, 9, 5),)),
    "singular vectors": (
        lambda a: jnp.abs(jnp.linalg.svd(a, full_matrices=False)[2]),
        (floats(9, 5),),
    ),
    "expm": (
        lambda a: expm(np.float32([0.01, 1, 9]).reshape(3, 1, 1) * a, max_squarings=4),
        (floats(9, 9),),
    ),
    "gradient of expm": (
        fnarray.grad(lambda a: jnp.sum(jnp.cos(expm(a + 1j * a[:, ::-1]).real))),
        (floats(3, 9, 9) / 4,),
    ),
    "fft": (lambda x: jnp.fft.fft2(x), (floats(6, 8),)),
    "irfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), (floats(6, 8),)),
    "sort": (lambda x: jnp.sort(x, 0), (floats(1 << 12, 16),)),
    "argsort": (lambda x: jnp.argsort(x, 0), (floats(1 << 12, 16),)),
}


def _halves(*shape: int) -> np.ndarray:
    return floats(*shape).astype(np.float16)


#: Products that are cuBLAS's where it is installed and they are large.
PRODUCTS = {
    "plain": (jnp.matmul, (floats(40, 33), floats(33, 30))),
    "both transposed": (lambda a, b: a.T @ b.T, (floats(33, 40), floats(30, 33))),
    "stack": (
        lambda a, b: jnp.einsum("bij,bkj->bik", a, b),
        (floats(2, 30, 40), floats(2, 35, 40)),
    ),
    "two axes are one": (
        lambda a, b: jnp.einsum("abij,abjk->abik", a, b),
        (floats(2, 3, 20, 40), floats(2, 3, 40, 10)),
    ),
    "heads between": (
        lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b),
        (floats(2, 24, 3, 16), floats(2, 28, 3, 16)),
    ),
    "values of heads": (
        lambda a, b: jnp.einsum("bhqk,bkhd->bqhd", a, b),
        (floats(2, 3, 24, 28), floats(2, 28, 3, 16)),
    ),
    "many heads": (
        lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b),
        (floats(40, 9, 40, 16), floats(40, 8, 40, 16)),
    ),
    "axes apart": (
        lambda a, b: jnp.einsum("iaj,bj->iab", a, b) + jnp.einsum("jai,bj->iab", a, b),
        (floats(20, 9, 20), floats(30, 20)),
    ),
    "two terms": (
        lambda a, b: jnp.einsum("iajb,bak->ijk", a, b),
        (floats(9, 8, 10, 12), floats(12, 8, 11)),
    ),
    "halves": (lambda a, b: a @ b, (_halves(30, 40), _halves(40, 30))),
    "halves to single": (
        lambda a, b: lax.dot(a, b, preferred_element_type=np.float32),
        (_halves(30, 40), _halves(40, 30)),
    ),
    "bfloat16": (
        lambda a, b: (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(np.float32),
        (floats(30, 40), floats(40, 30)),
    ),
    "complex": (lambda a, b: (a * 1j + a) @ (b + 1j), (floats(30, 40), floats(40, 30))),
    "gradient": (
        fnarray.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b)), (0, 1)),
        (floats(40, 33), floats(33, 30)),
    ),
}
