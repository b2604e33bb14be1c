"""Names that programs for JAX fetch now and then: what they do, against JAX."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import export, lax, nn, random
from fnarray import numpy as jnp

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


RAGGED = {
    "free": ((7, 5), (3, 5, 4), [2, 0, 4], (((1,), (1,)), ((), ())), [0], [0]),
    "batch": ((2, 7, 5), (3, 2, 5, 4), [2, 1, 4], (((2,), (2,)), ((0,), (1,))), [1], [0]),
    "own sizes": (
        (2, 7, 5), (3, 2, 5, 4), [[2, 1, 4], [1, 1, 1]], (((2,), (2,)), ((0,), (1,))), [1], [0]
    ),
    "contracted": ((7, 5), (5, 4), [2, 0, 3], (((1,), (0,)), ((), ())), [1], []),
    "contracted batch": (
        (2, 7, 5), (2, 5, 4), [[2, 0, 3], [1, 1, 1]], (((2,), (1,)), ((0,), (0,))), [2], []
    ),
    "ragged batch": ((4, 7, 5), (4, 5, 4), [2, 2], (((2,), (1,)), ((0,), (0,))), [0], []),
}  # fmt: skip


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_products(jax, name):
    """Each kind of ragged axis gives JAX's shape and values."""
    left, right, sizes, *numbers = RAGGED[name]
    x, y, g = draw(*left), draw(*right), np.array(sizes, np.int32)
    got, want = (
        L.ragged_dot_general(x, y, g, L.RaggedDotDimensionNumbers(*numbers)) for L in (lax, jax.lax)
    )
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_products_with_scales():
    """Scales count for blocks; what does not divide is refused."""
    a, b, of_a, of_b = draw(2, 3, 8), draw(2, 5, 8), draw(2, 3, 4), draw(2, 5, 4)
    want = np.einsum("bmk,bnk->bmn", a * np.repeat(of_a, 2, -1), b * np.repeat(of_b, 2, -1))
    np.testing.assert_allclose(nn.scaled_matmul(a, b, of_a, of_b), want, rtol=1e-5, atol=1e-5)
    got = lax.scaled_dot(a[0], b[0].T, lhs_scale=of_a[0], preferred_element_type="float32")
    plain = (a[0] * np.repeat(of_a[0], 2, -1)) @ b[0].T
    np.testing.assert_allclose(got, plain, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="expected shapes"):
        nn.scaled_matmul(a, b, of_a, of_b[..., :2])
    with pytest.raises(TypeError, match="do not divide"):
        lax.scaled_dot(a[0], b[0].T, lhs_scale=of_a[0, :, :3])


def test_two_passes_compiled_once():
    """`fwd_and_bwd` gives what `vjp` does, with residuals handed over."""
    x, w = draw(2, 3), draw(3, 4)

    def f(x, w):
        return jnp.tanh(x @ w)

    fwd, bwd = fnarray.fwd_and_bwd(f, argnums=(0, 1))
    for scale in (1, 2):
        out, residuals = fwd(scale * x, w)
        _, pull = fnarray.vjp(f, scale * x, w)
        for got, want in zip(bwd(residuals, out), pull(out), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    fwd, bwd = fnarray.fwd_and_bwd(lambda x, w: (f(x, w), 3.0), argnums=-1, has_aux=True)
    out, residuals, aux = fwd(x, w)
    assert bwd(residuals, out).shape == w.shape
    assert aux == 3.0


def test_tokens_composites_and_sinks():
    """They pass through programs, and change no value."""
    token = lax.create_token()
    assert lax.after_all(token, token) == token

    def program(token, x):
        lax.dce_sink(x * 2)
        return token, lax.composite(lambda x, *, k: x * k, "own.times")(x, k=3)

    found, y = fnarray.jit(program)(token, 2.0)
    assert found == token
    assert y == 6.0
    with pytest.raises(TypeError, match="must be tokens"):
        lax.after_all(1)


def test_settings_of_keys(jax):
    """Keys get a type, and those without one a warning or an error, as configured."""
    with fnarray.enable_custom_prng(True), jax.enable_custom_prng(True):
        assert str(random.PRNGKey(0).dtype) == str(jax.random.PRNGKey(0).dtype)
    with fnarray.legacy_prng_key("error"):
        random.bits(random.key(0))
        with pytest.raises(ValueError, match="Legacy uint32 key"):
            random.bits(random.PRNGKey(0))
    with fnarray.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key"):
        random.bits(random.PRNGKey(0))


def test_environment_and_checks(capsys):
    """A report of a fault says versions; checks to leave out have names."""
    fnarray.print_environment_info()
    assert fnarray.print_environment_info(return_string=True) == capsys.readouterr().out.rstrip()
    check = export.DisabledSafetyCheck.custom_call("lapack")
    assert check.is_custom_call() == "lapack"
    assert export.DisabledSafetyCheck.platform().is_custom_call() is None
