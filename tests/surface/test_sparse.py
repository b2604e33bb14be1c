"""Sparse arrays do what dense ones do, in layouts and with gradients like those of JAX's."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse

import fnarray
import fnarray.numpy as jnp
from fnarray.errors import ConcretizationTypeError
from fnarray.experimental import sparse

RNG = np.random.default_rng(0)


def _holes(*shape):
    return (RNG.integers(-3, 4, shape) * (RNG.random(shape) < 0.4)).astype(np.float32)


VALUES = {
    "A": _holes(4, 5),
    "B": _holes(5, 3),
    "T": _holes(2, 4, 5),
    "U": _holes(3, 4, 5, 2),
    "v": RNG.normal(size=5).astype(np.float32),
    "w": RNG.normal(size=4).astype(np.float32),
    "K": RNG.normal(size=(5, 3)).astype(np.float32),
    "R": RNG.normal(size=(2, 5, 3)).astype(np.float32),
}
EXPRESSIONS = """
S(A)
S(A, nse=12)
S(T, n_batch=1)
S(T, n_dense=1)
S(U, n_dense=1, n_batch=1)
S(A) @ v
w @ S(A)
S(A) @ K
K.T @ S(A).T
S(A).T
S(U, n_batch=2).transpose((1, 0, 3, 2))
S(A) @ S(B)
S(T, n_batch=1) @ R
S(T, n_batch=1) @ v
S(T, n_batch=1) @ K
S(A) @ R
S(U, n_batch=1, n_dense=1) @ w[:2]
w @ S(T)
S(A, n_batch=2).sum(1)
S(T, n_batch=1) @ S(R, n_batch=1)
S(A) * 2
2 * S(A)
S(A) * v
S(A) * w[:, None]
S(A) * S(A * 2)
S(T) * S(T, n_batch=1)
S(A) + S(A * 2)
S(A) + A
S(T, n_dense=1) - S(T, n_batch=1)
-S(A)
S(A) / 2
S(A) / (1 + w[:, None] ** 2)
S(A) ** 2
abs(S(A))
S(A).sum(0)
S(A).sum(1)
S(A).sum()
S(T, n_batch=1).sum(0)
S(T, n_batch=1).sum(1)
S(T, n_dense=1).sum(2)
S(U, n_batch=1, n_dense=1).sum((0, 2, 3))
S(A).reshape(5, 4)
S(A).reshape(20)
S(T).reshape(8, 5)
S(T, n_batch=1).reshape(2, 20)
S(T, n_batch=1).reshape(4, 10)
S(A)[1]
S(A)[1:3]
S(A)[:, 2]
S(A).astype("int32")
C(A)
C(A) @ v
C(A) @ K
C(A).T
C(A) * 2
C(T, n_batch=1)
C(A).sum(0)
""".strip().splitlines()


def both(text):
    """Evaluate an expression over sparse arrays, and over NumPy's in their place."""
    ours = {k: jnp.asarray(x) for k, x in VALUES.items()}
    names = {"S": sparse.BCOO.fromdense, "C": sparse.BCSR.fromdense}
    same = dict.fromkeys(names, lambda x, **_: x)
    return eval(text, {**ours, **names}), eval(text, {**VALUES, **same})


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_are_those_of_dense_arrays(text):
    """Operators and methods give the values of dense arrays."""
    got, wanted = both(text)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(sparse.todense(got), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "S(A)",
        "S(A, nse=12)",
        "S(U, n_dense=1, n_batch=1)",
        "C(A)",
        "S(A).T",
        "S(A) * 2",
        "S(A)+S(A)",
    ],
)
def test_layouts_are_jaxs(text):
    """Arrays show the number of elements, batches and dense axes that JAX's have."""
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    names = {"S": jax_sparse.BCOO.fromdense, "C": jax_sparse.BCSR.fromdense, **VALUES}
    assert repr(both(text)[0]) == repr(eval(text, names))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("S(T, n_batch=1), R", (((2,), (1,)), ((0,), (0,)))),
        ("S(T), R", (((2,), (1,)), ((0,), (0,)))),
        ("S(T, n_batch=1), v", (((2,), (0,)), ((), ()))),
        ("S(T, n_batch=1), R", (((0, 2), (0, 1)), ((), ()))),
        ("S(T, n_dense=1), v", (((2,), (0,)), ((), ()))),
        ("S(T, n_dense=1), w", (((1,), (0,)), ((), ()))),
        ("R, S(T, n_batch=1)", (((1,), (2,)), ((0,), (0,)))),
        ("S(T), S(R)", (((2,), (1,)), ((0,), (0,)))),
        ("S(T, n_batch=1), S(T, n_batch=1)", (((1, 2), (1, 2)), ((0,), (0,)))),
    ],
)
def test_dot_general(text, numbers):
    """Axes of any kind are contracted and batched as those of dense arrays."""
    ours, dense = both(f"({text})")
    got = sparse.bcoo_dot_general(*ours, dimension_numbers=numbers)
    wanted = fnarray.lax.dot_general(*map(jnp.asarray, dense), numbers)
    np.testing.assert_allclose(sparse.todense(got), wanted, rtol=1e-5, atol=1e-5)


PARTS = {
    "slice": (
        lambda m: sparse.bcoo_slice(
            m, start_indices=(0, 1, 1), limit_indices=(2, 4, 5), strides=(1, 2, 1)
        ),
        lambda x: x[:, 1:4:2, 1:5],
    ),
    "dynamic_slice": (
        lambda m: sparse.bcoo_dynamic_slice(m, (1, 9, 2), (1, 2, 3)),
        lambda x: x[1:, 2:4, 2:5],
    ),
    "rev": (lambda m: sparse.bcoo_rev(m, (0, 2)), lambda x: x[::-1, :, ::-1]),
    "squeeze": (
        lambda m: sparse.bcoo_squeeze(m.reshape(2, 20, 1), dimensions=(2,)),
        lambda x: x.reshape(2, 20),
    ),
    "concatenate": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=1),
        lambda x: np.concatenate([x, x], 1),
    ),
    "stack": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=0),
        lambda x: np.concatenate([x, x]),
    ),
    "broadcast": (
        lambda m: sparse.bcoo_broadcast_in_dim(
            m, shape=(2, 3, 4, 5), broadcast_dimensions=(0, 2, 3)
        ),
        lambda x: np.broadcast_to(x[:, None], (2, 3, 4, 5)),
    ),
}


@pytest.mark.parametrize(
    "layout", [{}, {"n_batch": 1}, {"n_dense": 1}, {"n_batch": 1, "n_dense": 1}]
)
@pytest.mark.parametrize("name", PARTS)
def test_parts(name, layout):
    """Parts and other shapes are those of dense arrays, in every layout."""
    ours, dense = PARTS[name]
    got = ours(sparse.BCOO.fromdense(VALUES["T"], **layout))
    np.testing.assert_array_equal(got.todense(), dense(VALUES["T"]))


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)])
def test_update_layout(layout):
    """An array in another layout has the same elements."""
    b, d = layout
    for before in ({}, {"n_batch": 1}, {"n_dense": 1}):
        mat = sparse.BCOO.fromdense(VALUES["T"], **before).update_layout(n_batch=b, n_dense=d)
        assert (mat.n_batch, mat.n_dense) == layout
        np.testing.assert_array_equal(mat.todense(), VALUES["T"])


def test_sum_duplicates():
    """Every index is there once, in order; zeros go, and padding comes where room is asked for."""
    mat = sparse.BCOO.fromdense(VALUES["A"])
    both = mat + mat.T.T
    assert both.nse == 2 * mat.nse
    once = both.sum_duplicates()
    assert once.nse == mat.nse
    assert once.unique_indices
    np.testing.assert_array_equal(once.indices, mat.indices)
    np.testing.assert_array_equal(once.todense(), 2 * VALUES["A"])
    assert (mat - mat).sum_duplicates().nse == 0
    roomy = fnarray.jit(lambda m: m.sum_duplicates(nse=30))(both)
    assert roomy.nse == 30
    np.testing.assert_array_equal(roomy.todense(), 2 * VALUES["A"])


def test_transforms():
    """Sparse arrays are arguments and results of jit and vmap, and carries of loops."""
    mat = sparse.BCOO.fromdense(VALUES["T"], n_batch=1)
    v, a = VALUES["v"], jnp.asarray(VALUES["A"])
    np.testing.assert_allclose(
        fnarray.jit(lambda m, v: m @ v)(mat[0], v), VALUES["T"][0] @ v, rtol=1e-5
    )
    rows = fnarray.vmap(lambda m, v: m @ v, (0, None))(mat, v)
    np.testing.assert_allclose(rows, VALUES["T"] @ v, rtol=1e-5)
    turned = fnarray.vmap(lambda m: m.T)(mat)
    np.testing.assert_array_equal(turned.todense(), VALUES["T"].transpose(0, 2, 1))
    made = fnarray.vmap(lambda x: sparse.BCOO.fromdense(x, nse=20))(VALUES["T"])
    assert made.shape == (2, 4, 5)
    assert made.n_batch == 1
    np.testing.assert_array_equal(made.todense(), VALUES["T"])
    mat = sparse.BCOO.fromdense(a)
    carried = fnarray.lax.fori_loop(0, 3, lambda i, m: m._with(m.data * 2), mat)
    np.testing.assert_array_equal(carried.todense(), 8 * VALUES["A"])


def test_gradients():
    """Gradients with respect to elements stored are those of dense arrays, at their places."""
    A, v = VALUES["A"], VALUES["v"]
    mat = sparse.BCOO.fromdense(A)
    wanted = np.where(A != 0, 2 * np.outer(A @ v, v), 0)
    got, of_v = sparse.grad(lambda m, v: ((m @ v) ** 2).sum(), (0, 1))(mat, v)
    assert isinstance(got, sparse.BCOO)
    np.testing.assert_allclose(got.todense(), wanted, rtol=1e-4)
    np.testing.assert_allclose(of_v, 2 * A.T @ (A @ v), rtol=1e-4)
    value, _ = sparse.value_and_grad(lambda m: (m @ v).sum())(mat)
    np.testing.assert_allclose(value, (A @ v).sum(), rtol=1e-4)
    dense = fnarray.grad(lambda x: (sparse.BCOO.fromdense(x, nse=20) @ v).sum())(A)
    np.testing.assert_allclose(dense, np.where(A != 0, v, 0), rtol=1e-5)


def test_sparsify():
    """Functions of dense arrays run on sparse ones, through calls, branches and loops."""
    A, v, w = VALUES["A"], VALUES["v"], VALUES["w"]
    mat = sparse.BCOO.fromdense(A)
    run = sparse.sparsify

    def loop(m, v):
        return fnarray.lax.fori_loop(0, 3, lambda i, x: w @ m * 0.1 + x, v)

    def branch(m, v):
        return fnarray.lax.cond(v.sum() > 0, lambda m: m @ v, lambda m: m @ (2 * v), m)

    np.testing.assert_allclose(
        run(lambda m, v: fnarray.nn.relu(m @ v) + 1)(mat, v), np.maximum(A @ v, 0) + 1, rtol=1e-5
    )
    np.testing.assert_allclose(run(loop)(mat, v), v + 0.3 * (w @ A), rtol=1e-4)
    np.testing.assert_allclose(run(branch)(mat, v), A @ (v if v.sum() > 0 else 2 * v), rtol=1e-5)
    np.testing.assert_allclose(
        fnarray.jit(run(fnarray.jit(lambda m, v: m @ v)))(mat, v), A @ v, rtol=1e-5
    )
    twice = run(lambda m: jnp.sin(m + m))(mat)
    assert isinstance(twice, sparse.BCOO)
    np.testing.assert_allclose(twice.todense(), np.sin(2 * A), rtol=1e-5)
    with pytest.raises(NotImplementedError, match=r"'cos'.*M\.todense"):
        run(jnp.cos)(mat)


def test_scipys_matrices_and_others_made_of_nothing():
    """Arrays are made of SciPy's, of ones along diagonals, and of random numbers."""
    A = VALUES["A"]
    theirs = scipy.sparse.csr_matrix(A)
    for kind in (sparse.BCOO, sparse.BCSR):
        np.testing.assert_array_equal(kind.from_scipy_sparse(theirs).todense(), A)
    np.testing.assert_array_equal(sparse.eye(3, 4, 1).todense(), np.eye(3, 4, 1))
    assert sparse.empty((3, 4), sparse_format="bcsr").nse == 0
    mat = sparse.random_bcoo(fnarray.random.key(0), (5, 4, 3), nse=0.3, n_batch=1)
    assert (mat.shape, mat.nse) == ((5, 4, 3), 4)
    assert (np.asarray(mat.sum_duplicates(remove_zeros=False).data) != 0).all()


def test_errors_say_what_does_not_fit():
    """Wrong layouts, unknown sizes and operations that mix axes are refused by name."""
    mat = sparse.BCOO.fromdense(VALUES["T"], n_batch=1)
    with pytest.raises(NotImplementedError, match="mixes batch, sparse"):
        mat.transpose((2, 1, 0))
    with pytest.raises(ConcretizationTypeError, match="nse"):
        fnarray.jit(lambda x: sparse.BCOO.fromdense(x))(VALUES["A"])
    with pytest.raises(ValueError, match=r"data of shape \(3,\)"):
        sparse.BCOO((np.zeros(3), np.zeros((2, 1), int)), shape=(4,))
    with pytest.raises(TypeError, match="one size"):
        sparse.BCOO.fromdense(VALUES["A"]) @ VALUES["w"]
    with pytest.raises(TypeError, match="truth value"):
        bool(mat)


def test_layouts_without_sparse_axes():
    """Where all axes are batches or dense, elements of one place are stored once."""
    a = np.array([[0.0, 2.0], [3.0, 0.0]], np.float32)
    for layout in ({"n_batch": 2}, {"n_dense": 2}, {"n_batch": 1, "n_dense": 1, "nse": 3}):
        np.testing.assert_array_equal(sparse.BCOO.fromdense(a, **layout).todense(), a)


def test_parts_store_no_more_than_they_have():
    """Elements, rows and products of arrays have room for their own elements."""
    mat = sparse.BCOO.fromdense(VALUES["A"])
    assert mat[0].nse <= 5
    assert mat[0, 1].nse == 1
    assert (mat @ mat.T).nse == 16
    assert [row.shape for row in mat] == [(5,)] * 4
    with pytest.raises(TypeError, match="compared"):
        mat == mat  # noqa: B015


@pytest.mark.parametrize("index", [np.array([2, 0]), np.array([[1, 1], [3, -1]]), (2, 3)])
def test_gather(index):
    """Rows are fetched by arrays of indices."""
    A = VALUES["A"]
    np.testing.assert_array_equal(sparse.BCOO.fromdense(A)[index].todense(), A[index])
    columns = sparse.sparsify(lambda m, i: m[:, i])(sparse.BCOO.fromdense(A), index)
    wanted = A[:, np.asarray(index)]
    np.testing.assert_array_equal(columns.todense(), wanted)


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((1, 1, 6), (1, 1, 3)), {"window_strides": (1,), "padding": "SAME"}),
        (
            ((2, 3, 7), (4, 3, 2)),
            {"window_strides": (2,), "padding": [(1, 2)], "rhs_dilation": (3,)},
        ),
        (
            ((2, 2, 5, 4), (3, 2, 3, 2)),
            {"window_strides": (1, 2), "padding": [(0, 0), (1, -1)], "lhs_dilation": (2, 1)},
        ),
        (
            ((2, 5, 4, 2), (3, 2, 2, 3)),
            {
                "window_strides": (1, 1),
                "padding": "SAME",
                "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
            },
        ),
    ],
)  # fmt: skip
def test_convolutions(shapes, options):
    """Sparse arrays are convolved as dense ones."""
    x, k = (_holes(*shape) for shape in shapes)
    got = sparse.bcoo_conv_general_dilated(
        sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(k), **options
    )
    wanted = fnarray.lax.conv_general_dilated(x, k, **options)
    np.testing.assert_allclose(got.todense(), wanted, rtol=1e-5, atol=1e-5)
    mixed = sparse.sparsify(lambda x, k: fnarray.lax.conv_general_dilated(x, k, **options))
    np.testing.assert_allclose(
        mixed(sparse.BCOO.fromdense(x), jnp.asarray(k)).todense(), wanted, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("name", ["COO", "CSR", "CSC"])
def test_matrices(name):
    """Coordinates, compressed rows and columns hold JAX's arrays and give dense ones' products."""
    theirs = getattr(pytest.importorskip("jax.experimental.sparse"), name)
    ours = getattr(sparse, name)
    A, v, w, K = (VALUES[k] for k in "AvwK")
    for nse in (None, 15, 3):
        mat, other = ours.fromdense(A, nse=nse), theirs.fromdense(A, nse=nse)
        assert repr(mat) == repr(other)
        for x, y in zip(mat.tree_flatten()[0], other.tree_flatten()[0], strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(mat.todense(), other.todense())
    mat = ours.fromdense(A)
    assert repr(mat.T) == repr(theirs.fromdense(A).T)
    np.testing.assert_array_equal(mat.T.todense(), A.T)
    np.testing.assert_allclose(fnarray.jit(lambda m, v: m @ v)(mat, v), A @ v, rtol=1e-5)
    np.testing.assert_allclose(mat @ K, A @ K, rtol=1e-5)
    np.testing.assert_allclose(w @ mat, w @ A, rtol=1e-5)
    np.testing.assert_array_equal(sparse.todense(mat), A)
    slope = sparse.grad(lambda m: ((m @ v) ** 2).sum())(mat)
    assert isinstance(slope, ours)
    wanted = np.where(A != 0, 2 * np.outer(A @ v, v), 0)
    np.testing.assert_allclose(slope.todense(), wanted, rtol=1e-4, atol=1e-5)
    made = sparse.eye(3, 4, -1, sparse_format=name.lower())
    np.testing.assert_array_equal(made.todense(), np.eye(3, 4, -1))
    assert sparse.empty((3, 4), sparse_format=name.lower()).todense().shape == (3, 4)
    with pytest.raises(TypeError, match="one operand must be dense"):
        mat @ mat.T
    with pytest.raises(ValueError, match="two axes"):
        ours.fromdense(VALUES["T"])


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("transpose", [False, True])
def test_primitives_of_matrices(kind, transpose):
    """Bound with a matrix's parts they are its products and conversions, under all transforms."""
    A, v, w, K = (VALUES[k] for k in "AvwK")
    fromdense, todense, matvec, matmat = (
        getattr(sparse, f"{kind}_{n}_p") for n in ("fromdense", "todense", "matvec", "matmat")
    )
    parts = fromdense.bind(A, nse=int((A != 0).sum()), index_dtype=np.dtype("int32"))
    said = {"spinfo": sparse.COO.fromdense(A)._info} if kind == "coo" else {"shape": A.shape}
    np.testing.assert_array_equal(todense.bind(*parts, **said), A)
    M, x, B = (A.T, w, K[:4]) if transpose else (A, v, K)
    vector = functools.partial(matvec.bind, **said, transpose=transpose)
    np.testing.assert_allclose(fnarray.jit(vector)(*parts, x), M @ x, rtol=1e-5)
    matrix = functools.partial(matmat.bind, **said, transpose=transpose)
    np.testing.assert_allclose(matrix(*parts, B), M @ B, rtol=1e-5)
    slope = fnarray.grad(lambda *xs: vector(*xs).sum())(*parts, x)
    every = np.broadcast_to(x[:, None] if transpose else x, A.shape)
    np.testing.assert_allclose(slope, every[A != 0], rtol=1e-5)


def test_functions_of_matrices():
    """`coo_matvec` and its kin multiply by the matrix or its transpose."""
    A, v, w, K = (VALUES[k] for k in "AvwK")
    for kind in ("coo", "csr"):
        mat = getattr(sparse, f"{kind}_fromdense")(A)
        matvec, matmat = (getattr(sparse, f"{kind}_{n}") for n in ("matvec", "matmat"))
        np.testing.assert_array_equal(getattr(sparse, f"{kind}_todense")(mat), A)
        np.testing.assert_allclose(matvec(mat, v), A @ v, rtol=1e-5)
        np.testing.assert_allclose(matvec(mat, w, transpose=True), A.T @ w, rtol=1e-5)
        np.testing.assert_allclose(matmat(mat, K), A @ K, rtol=1e-5)
        np.testing.assert_allclose(matmat(mat, K[:4], transpose=True), A.T @ K[:4], rtol=1e-5)
        with pytest.raises(ValueError, match="must have 1 axes"):
            matvec(mat, K)


def test_jacobians():
    """Jacobians by sparse arrays have the result's axes as batches; those by others are dense."""
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    A, v = VALUES["A"], VALUES["v"]
    for layout in ({}, {"n_batch": 1}):
        mat, other = (kind.fromdense(A, **layout) for kind in (sparse.BCOO, jax_sparse.BCOO))
        for name in ("jacfwd", "jacrev"):
            got = getattr(sparse, name)(lambda m, v: m @ v, (0, 1))(mat, v)
            wanted = getattr(jax_sparse, name)(lambda m, v: m @ v, (0, 1))(other, v)
            assert repr(got[0]) == repr(wanted[0])
            np.testing.assert_allclose(got[0].todense(), wanted[0].todense(), rtol=1e-5)
            np.testing.assert_allclose(got[1], A, rtol=1e-5)
    found, aux = sparse.jacrev(lambda m: ({"y": m @ v}, 3), has_aux=True)(mat)
    assert found["y"].shape == (4, 4, 5)
    assert aux == 3
    with pytest.raises(TypeError, match=r"M\.data"):
        sparse.jacfwd(lambda m: m @ v)(sparse.CSR.fromdense(A))
    with pytest.raises(TypeError, match="dense results"):
        sparse.jacfwd(lambda m: m * v)(mat)


def test_draws_are_jaxs():
    """`random_bcoo` draws JAX's elements at JAX's places."""
    jax = pytest.importorskip("jax")
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    for options in (
        {"nse": 4},
        {"nse": 0.3, "n_batch": 1, "sorted_indices": True},
        {"nse": 3, "n_dense": 1, "n_batch": 1, "unique_indices": False},
    ):
        got = sparse.random_bcoo(fnarray.random.key(3), (2, 4, 6), **options)
        wanted = jax_sparse.random_bcoo(jax.random.key(3), (2, 4, 6), **options)
        np.testing.assert_array_equal(got.data, wanted.data)
        np.testing.assert_array_equal(got.indices, wanted.indices)


def _system(n):
    A = sparse.random_bcoo(fnarray.random.key(1), (n, n), nse=0.3).todense() + 3 * jnp.eye(n)
    return np.asarray(A), sparse.CSR.fromdense(A), RNG.normal(size=n).astype(np.float32)


def test_spsolve():
    """Sparse systems are solved, differentiated by both operands, compiled and mapped."""
    A, mat, b = _system(12)

    def solve(data, b):
        return sparse.linalg.spsolve(data, mat.indices, mat.indptr, b)

    x = np.linalg.solve(A, b)
    np.testing.assert_allclose(solve(mat.data, b), x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fnarray.jit(solve)(mat.data, b), x, rtol=1e-4, atol=1e-5)
    by_data, by_b = fnarray.grad(lambda d, b: (solve(d, b) ** 2).sum(), (0, 1))(mat.data, b)
    y = np.linalg.solve(A.T, 2 * x)
    np.testing.assert_allclose(by_b, y, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(mat._with(by_data).todense(), -np.outer(y, x) * (A != 0), atol=1e-3)
    np.testing.assert_allclose(
        fnarray.jacfwd(solve, 1)(mat.data, b), np.linalg.inv(A), rtol=1e-3, atol=1e-4
    )
    many = fnarray.vmap(solve, (None, 0))(mat.data, jnp.stack([b, 2 * b]))
    np.testing.assert_allclose(many, [x, 2 * x], rtol=1e-4, atol=1e-5)
    assert jnp.isnan(solve(0 * mat.data, b)).all()
    with pytest.raises(ValueError, match="one dtype"):
        solve(mat.data, b.astype(np.float16))
    with pytest.raises(ValueError, match="one longer than b"):
        solve(mat.data, b[1:])


@pytest.mark.parametrize("form", ["dense", "sparse", "callable"])
def test_lobpcg(form):
    """The largest eigenvalues and their vectors are those of `eigh`; JAX finds the same."""
    A = np.asarray(_system(40)[0])
    A = A + A.T
    mat = {"dense": A, "sparse": sparse.BCOO.fromdense(A), "callable": lambda x: jnp.asarray(A) @ x}
    X = RNG.normal(size=(40, 3)).astype(np.float32)
    theta, U, i = sparse.linalg.lobpcg_standard(mat[form], X, m=60)
    values = np.linalg.eigvalsh(A)[::-1]
    np.testing.assert_allclose(theta, values[:3], rtol=1e-4)
    np.testing.assert_allclose(A @ U, U * theta, atol=2e-2)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-4)
    assert 0 < i <= 60
    with pytest.raises(ValueError, match="five times"):
        sparse.linalg.lobpcg_standard(mat[form], X[:, :1].repeat(8, 1))
