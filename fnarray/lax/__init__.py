"""Operations as ``jax.lax`` names them: strict about dtypes and ranks.

Every primitive is here as ``<name>_p`` too. Names are imported when they are first used; type
checkers and editors read ``__init__.pyi``.
"""

from __future__ import annotations

import sys as _sys
from typing import Any as _Any

from ..core.lazy import is_listed as _is_listed
from ..core.lazy import load as _load
from ..core.lazy import surface as _surface
from ..ops.kit.registry import registry as _registry

#: Public names by the module they come from; a test compares the table with the modules.
_HOMES = {
    "._composite": "after_all composite create_token dce_sink stage",
    "._ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
    "._ragged_exchange": "ragged_all_to_all",
    "._rng": "rng_uniform",
    "._scaled": "scaled_dot",
    "._sharding": "with_sharding_constraint",
    "..control.associative": "associative_scan",
    "..control.cond": "cond platform_dependent switch",
    "..control.loop": "fori_loop while_loop",
    "..control.scan": "map scan",
    "..control.solve": "custom_linear_solve custom_root",
    "..ops.bit_generator": "RandomAlgorithm rng_bit_generator",
    "..ops.bitwise": """
        bitwise_and bitwise_not bitwise_or bitwise_xor clz eq ge gt le lt mulhi ne
        population_count shift_left shift_right_arithmetic shift_right_logical
    """,
    "..ops.collective": "axis_index axis_size pcast pmax pmean pmin psum pvary",
    "..ops.contract": """
        DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike
        batch_matmul dot dot_general
    """,
    "..ops.conv": """
        ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers
        conv_general_dilated conv_general_dilated_local conv_general_dilated_patches
        conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose
        conv_transpose_shape_tuple conv_with_general_padding
    """,
    "..ops.convert": """
        bitcast_convert_type convert_element_type copy optimization_barrier reduce_precision
        stop_gradient
    """,
    "..ops.cumulative": "cumlogsumexp cummax cummin cumprod cumsum",
    "..ops.dynamic": """
        dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim
        dynamic_update_slice dynamic_update_slice_in_dim
    """,
    "..ops.elementwise": """
        RoundingMethod abs add ceil div floor integer_pow is_finite max min mul neg
        nextafter pow reciprocal rem round sign square sub
    """,
    "..ops.exchange": "all_gather all_to_all pbroadcast ppermute pshuffle psum_scatter pswapaxes",
    "..ops.fft": "FftType fft",
    "..ops.fill": "empty full full_like zeros_like_array",
    "..ops.gather": "GatherDimensionNumbers GatherScatterMode gather index_take",
    "..ops.log_sums": "",
    "..ops.parts": "complex conj imag real",
    "..ops.positions": "argmax argmin",
    "..ops.queries": "broadcast_like dtype shape_as_value",
    "..ops.reduce": """
        reduce reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor
    """,
    "..ops.scatter": """
        ScatterDimensionNumbers scatter scatter_add scatter_apply scatter_max scatter_min
        scatter_mul scatter_sub
    """,
    "..ops.select": "clamp select select_n",
    "..ops.shape": """
        broadcast broadcast_in_dim broadcast_shapes broadcast_to_rank broadcasted_iota
        collapse expand_dims iota reshape squeeze tile transpose
    """,
    "..ops.slicing": "concatenate index_in_dim pad rev slice slice_in_dim split stack unstack",
    "..ops.sort": "approx_max_k approx_min_k sort sort_key_val top_k",
    "..ops.special": """
        bessel_i0e bessel_i1e betainc digamma erf erf_inv erfc igamma igamma_grad_a igammac
        lgamma polygamma random_gamma_grad zeta
    """,
    "..ops.transcendental": """
        AccuracyMode Tolerance acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp exp2
        expm1 log log1p logistic rsqrt sin sinh sqrt tan tanh
    """,
    "..ops.window": "padtype_to_pads reduce_window reduce_window_shape_tuple",
}
#: Modules that declare primitives and have no name here.
_MORE = "..ops.placing ..control.call ..control.custom ..control.lanes .linalg"

#: Names of JAX's that are not here, by the reason.
_MISSING = {
    "use ppermute": "precv psend",
}

_named, _listed, __all__ = _surface(__name__, _HOMES, "linalg", _MISSING)  # pyright: ignore[reportUnsupportedDunderAll]


def _import_families(primitive: str = "") -> None:
    """Import the family that declares a primitive; all of them, where its name does not tell."""
    likely = [m for m, names in _HOMES.items() if primitive.replace("-", "_") in names.split()]
    for module in (*likely, *_HOMES, *_MORE.split()):
        if primitive in _registry:
            return
        _load(module, __name__)


def __getattr__(name: str) -> _Any:
    if _is_listed(_sys._getframe(1)):
        raise AttributeError(f"{__name__}.{name} has not been used: its kind is not known yet")
    if not name.endswith("_p"):
        return _named(name)
    _import_families()
    if (prim := _load("._foreign", __name__).foreign.get(name.removesuffix("_p"))) is not None:
        return prim
    for prim in list(_registry):
        globals()[f"{prim.replace('-', '_')}_p"] = _registry[prim]
    if name not in globals():
        return _named(name)  # which says why
    return globals()[name]


__getattr__.reasons = _named.reasons  # type: ignore[attr-defined]  # as those of other modules


def __dir__() -> list[str]:
    return sorted({*_listed(), *_load("._primitives", __name__).NAMES.split()})
