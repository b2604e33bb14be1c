"""Chains of products of matrices and vectors, and what small networks make of them."""

from __future__ import annotations

from .registry import numbers, program


@program(
    test={"n": 3, "k": 4}, small={"n": 10, "k": 30}, large={"n": 40, "k": 160}, grad=True, rtol=2e-3
)
def quarter_transform(m, n, k):
    """A product along the last of three axes, its result in place of the operand (doitgen)."""
    loop = m.lax.fori_loop

    def run(a, c):
        return loop(0, 4, lambda _, a: m.numpy.einsum("rqs,sp->rqp", a, c), a)

    return run, (numbers(n, n, k), numbers(k, k, seed=1) / k**0.5)


@program(test={"n": 6}, small={"n": 120}, large={"n": 1500}, grad=True)
def rank_two_update(m, n):
    """A matrix plus two outer products, and it and its transpose times vectors (gemver)."""
    np = m.numpy

    def run(a, u1, v1, u2, v2, y, z):
        a = a + np.outer(u1, v1) + np.outer(u2, v2)
        x = 0.3 * (y @ a) + z
        return a, x, 0.7 * (a @ x)

    return run, (numbers(n, n) / n, *(numbers(n, seed=i) for i in range(1, 7)))


@program(test={"n": 5}, small={"n": 60}, large={"n": 300}, grad=True)
def triangles_and_symmetric(m, n):
    """A symmetric matrix of which half is stored, and a triangle, times a matrix (symm, trmm)."""
    np = m.numpy

    def run(a, b, c):
        low = np.tril(a)
        symmetric = low + np.tril(a, -1).T
        update = np.tril(b @ c.T + c @ b.T)
        return symmetric @ b + 0.5 * c, low.T @ b, update

    return run, tuple(numbers(n, n, seed=i) / n**0.5 for i in range(3))


@program(
    test={"n": 2, "size": 4, "width": 3},
    small={"n": 2, "size": 14, "width": 16},
    large={"n": 8, "size": 28, "width": 64},
    grad=True,
)
def residual_block(m, n, size, width):
    """A bottleneck of three convolutions with normalised features, and its input added."""
    np = m.numpy

    def normalised(x):
        mean = np.mean(x, (0, 1, 2), keepdims=True)
        return (x - mean) / np.sqrt(np.mean((x - mean) ** 2, (0, 1, 2), keepdims=True) + 1e-5)

    def run(x, narrow, w, wide):
        h = np.maximum(normalised(np.einsum("nijc,cd->nijd", x, narrow)), 0)
        padded = np.pad(h, ((0, 0), (1, 1), (1, 1), (0, 0)))
        h = sum(
            np.einsum("nijc,cd->nijd", padded[:, i : i + size, j : j + size], w[i, j])
            for i in range(3)
            for j in range(3)
        )
        h = np.maximum(normalised(h), 0)
        return np.maximum(normalised(np.einsum("nijc,cd->nijd", h, wide)) + x, 0)

    whole = 4 * width
    arrays = (
        numbers(n, size, size, whole),
        numbers(whole, width, seed=1) / whole**0.5,
        numbers(3, 3, width, width, seed=2) / width**0.5,
        numbers(width, whole, seed=3) / width**0.5,
    )
    return run, arrays


@program(
    test={"n": 6, "k": 9, "width": 3},
    small={"n": 200, "k": 800, "width": 16},
    large={"n": 10_000, "k": 60_000, "width": 32},
    grad=True,
)
def graph_convolution(m, n, k, width):
    """Features of neighbours summed along edges, twice, divided by their number."""
    np = m.numpy
    ends = ((numbers(2, k, seed=9) + 1) / 2 * n).astype(int)

    def run(x, w1, w2):
        source, target = np.asarray(ends[0]), np.asarray(ends[1])
        degree = np.zeros(n, x.dtype).at[target].add(1.0)
        for w in (w1, w2):
            sums = np.zeros_like(x).at[target].add(x[source])
            x = np.tanh((sums / np.maximum(degree, 1)[:, None]) @ w + x)
        return x

    return run, (numbers(n, width), *(numbers(width, width, seed=i) for i in (1, 2)))
