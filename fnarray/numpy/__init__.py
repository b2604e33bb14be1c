"""Functions of arrays as ``jax.numpy`` names them: they promote dtypes and broadcast.

Names are imported when they are first used; type checkers and editors read ``__init__.pyi``. Arrays
get their operators and methods from here (see ``core.array``).
"""

from ..core.lazy import load as _load
from ..core.lazy import surface as _surface

#: Public names by the module they come from; a test compares the table with the modules.
_HOMES = {
    "._array_api": "__array_api_version__ __array_namespace_info__",
    "._complex_parts": "conj conjugate imag real",
    "._creation": """
        array asarray astype copy empty empty_like from_dlpack frombuffer fromfile
        fromiter fromstring full full_like ones ones_like zeros zeros_like
    """,
    "._cumulative": "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum",
    "._dtypes": """
        ComplexWarning array_repr array_str bfloat16 bool bool_ can_cast cdouble character
        complex128 complex64 complex_ complexfloating csingle double dtype e euler_gamma
        finfo flexible float16 float32 float64 float_ floating generic get_printoptions
        iinfo inexact inf int16 int32 int64 int8 int_ integer iscomplexobj isdtype isrealobj
        isscalar issubdtype iterable nan ndarray ndim newaxis number object_ pi printoptions
        promote_types result_type set_printoptions shape signedinteger single size uint
        uint16 uint32 uint64 uint8 unsignedinteger
        float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
        float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4
        uint1 uint2 uint4
    """,
    "._einsum": "einsum einsum_path",
    "._floating": "copysign frexp heaviside ldexp modf nan_to_num nextafter spacing",
    "._io": "load packbits save savez unpackbits",
    "._join": """
        append array_split block column_stack concat concatenate dsplit dstack hsplit hstack
        split stack unstack vsplit vstack
    """,
    "._lists": """
        apply_along_axis apply_over_axes c_ delete fill_diagonal index_exp insert ix_
        mask_indices r_ ravel_multi_index s_ tril_indices tril_indices_from trim_zeros
        triu_indices triu_indices_from unravel_index
    """,
    "._math": """
        abs acos acosh angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around
        asin asinh atan atan2 atanh cbrt ceil cos cosh deg2rad degrees exp exp2 expm1 floor
        hypot i0 isclose iscomplex isfinite isinf isnan isneginf isposinf isreal log log10
        log1p log2 logaddexp logaddexp2 rad2deg radians reciprocal rint round signbit sin
        sinc sinh sqrt tan tanh trunc
    """,
    "._nan_reductions": "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "._pad": "pad",
    "._patterns": """
        diag diag_indices diag_indices_from diagflat eye identity indices meshgrid mgrid
        ogrid tri tril triu vander
    """,
    "._poly": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval",
    "._products": """
        cross diagonal dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat
    """,
    "._quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "._ranges": "arange geomspace linspace logspace",
    "._reductions": """
        all amax amin any argmax argmin average count_nonzero max mean min prod ptp std sum
        var
    """,
    "._repeat": "repeat tile",
    "._roots": "roots",
    "._search": """
        argwhere choose compress extract flatnonzero nonzero place put put_along_axis take
        take_along_axis where
    """,
    "._select": "clip piecewise select",
    "._sets": """
        allclose array_equal array_equiv intersect1d isin setdiff1d setxor1d union1d unique
        unique_all unique_counts unique_inverse unique_values
    """,
    "._shape": """
        atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to
        expand_dims flip fliplr flipud matrix_transpose moveaxis permute_dims ravel reshape
        resize roll rollaxis rot90 squeeze swapaxes transpose
    """,
    "._sorting": "argpartition argsort digitize lexsort partition searchsorted sort sort_complex",
    "._stats": "bincount corrcoef cov histogram histogram2d histogram_bin_edges histogramdd",
    "._ufunc": "frompyfunc ufunc",
    "._ufuncs": """
        absolute add bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor divide divmod equal fabs float_power
        floor_divide fmax fmin fmod gcd greater greater_equal invert lcm left_shift less
        less_equal logical_and logical_not logical_or logical_xor maximum minimum mod
        multiply negative not_equal positive pow power remainder right_shift sign square
        subtract true_divide
    """,
    "._vectorize": "fromfunction vectorize",
    "._windows": """
        bartlett blackman convolve correlate diff ediff1d gradient hamming hanning interp
        kaiser trapezoid unwrap
    """,
}

__getattr__, __dir__, __all__ = _surface(__name__, _HOMES, "fft linalg")

# What every program needs, arrays and `jit` with all that finds a program on disk: it takes a third
# of what an import may, and was half of a first call that found its program.
_load("..api.jit", __name__)
