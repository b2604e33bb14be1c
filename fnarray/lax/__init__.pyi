"""Names of `fnarray.lax`, made by ``python -m tests.typing.stub``."""

from ..control.associative import associative_scan as associative_scan
from ..control.cond import cond as cond
from ..control.cond import platform_dependent as platform_dependent
from ..control.cond import switch as switch
from ..control.loop import fori_loop as fori_loop
from ..control.loop import while_loop as while_loop
from ..control.scan import map as map
from ..control.scan import scan as scan
from ..control.solve import custom_linear_solve as custom_linear_solve
from ..control.solve import custom_root as custom_root
from ..ops.bit_generator import RandomAlgorithm as RandomAlgorithm
from ..ops.bit_generator import rng_bit_generator as rng_bit_generator
from ..ops.bitwise import bitwise_and as bitwise_and
from ..ops.bitwise import bitwise_not as bitwise_not
from ..ops.bitwise import bitwise_or as bitwise_or
from ..ops.bitwise import bitwise_xor as bitwise_xor
from ..ops.bitwise import clz as clz
from ..ops.bitwise import eq as eq
from ..ops.bitwise import ge as ge
from ..ops.bitwise import gt as gt
from ..ops.bitwise import le as le
from ..ops.bitwise import lt as lt
from ..ops.bitwise import mulhi as mulhi
from ..ops.bitwise import ne as ne
from ..ops.bitwise import population_count as population_count
from ..ops.bitwise import shift_left as shift_left
from ..ops.bitwise import shift_right_arithmetic as shift_right_arithmetic
from ..ops.bitwise import shift_right_logical as shift_right_logical
from ..ops.collective import axis_index as axis_index
from ..ops.collective import axis_size as axis_size
from ..ops.collective import pcast as pcast
from ..ops.collective import pmax as pmax
from ..ops.collective import pmean as pmean
from ..ops.collective import pmin as pmin
from ..ops.collective import psum as psum
from ..ops.collective import pvary as pvary
from ..ops.contract import DotAlgorithm as DotAlgorithm
from ..ops.contract import DotAlgorithmPreset as DotAlgorithmPreset
from ..ops.contract import DotDimensionNumbers as DotDimensionNumbers
from ..ops.contract import Precision as Precision
from ..ops.contract import PrecisionLike as PrecisionLike
from ..ops.contract import batch_matmul as batch_matmul
from ..ops.contract import dot as dot
from ..ops.contract import dot_general as dot_general
from ..ops.conv import ConvDimensionNumbers as ConvDimensionNumbers
from ..ops.conv import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from ..ops.conv import conv as conv
from ..ops.conv import conv_dimension_numbers as conv_dimension_numbers
from ..ops.conv import conv_general_dilated as conv_general_dilated
from ..ops.conv import conv_general_dilated_local as conv_general_dilated_local
from ..ops.conv import conv_general_dilated_patches as conv_general_dilated_patches
from ..ops.conv import conv_general_permutations as conv_general_permutations
from ..ops.conv import conv_general_shape_tuple as conv_general_shape_tuple
from ..ops.conv import conv_shape_tuple as conv_shape_tuple
from ..ops.conv import conv_transpose as conv_transpose
from ..ops.conv import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from ..ops.conv import conv_with_general_padding as conv_with_general_padding
from ..ops.convert import bitcast_convert_type as bitcast_convert_type
from ..ops.convert import convert_element_type as convert_element_type
from ..ops.convert import copy as copy
from ..ops.convert import optimization_barrier as optimization_barrier
from ..ops.convert import reduce_precision as reduce_precision
from ..ops.convert import stop_gradient as stop_gradient
from ..ops.cumulative import cumlogsumexp as cumlogsumexp
from ..ops.cumulative import cummax as cummax
from ..ops.cumulative import cummin as cummin
from ..ops.cumulative import cumprod as cumprod
from ..ops.cumulative import cumsum as cumsum
from ..ops.dynamic import dynamic_index_in_dim as dynamic_index_in_dim
from ..ops.dynamic import dynamic_slice as dynamic_slice
from ..ops.dynamic import dynamic_slice_in_dim as dynamic_slice_in_dim
from ..ops.dynamic import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from ..ops.dynamic import dynamic_update_slice as dynamic_update_slice
from ..ops.dynamic import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from ..ops.elementwise import RoundingMethod as RoundingMethod
from ..ops.elementwise import abs as abs
from ..ops.elementwise import add as add
from ..ops.elementwise import ceil as ceil
from ..ops.elementwise import div as div
from ..ops.elementwise import floor as floor
from ..ops.elementwise import integer_pow as integer_pow
from ..ops.elementwise import is_finite as is_finite
from ..ops.elementwise import max as max
from ..ops.elementwise import min as min
from ..ops.elementwise import mul as mul
from ..ops.elementwise import neg as neg
from ..ops.elementwise import nextafter as nextafter
from ..ops.elementwise import pow as pow
from ..ops.elementwise import reciprocal as reciprocal
from ..ops.elementwise import rem as rem
from ..ops.elementwise import round as round
from ..ops.elementwise import sign as sign
from ..ops.elementwise import square as square
from ..ops.elementwise import sub as sub
from ..ops.exchange import all_gather as all_gather
from ..ops.exchange import all_to_all as all_to_all
from ..ops.exchange import pbroadcast as pbroadcast
from ..ops.exchange import ppermute as ppermute
from ..ops.exchange import pshuffle as pshuffle
from ..ops.exchange import psum_scatter as psum_scatter
from ..ops.exchange import pswapaxes as pswapaxes
from ..ops.fft import FftType as FftType
from ..ops.fft import fft as fft
from ..ops.fill import empty as empty
from ..ops.fill import full as full
from ..ops.fill import full_like as full_like
from ..ops.fill import zeros_like_array as zeros_like_array
from ..ops.gather import GatherDimensionNumbers as GatherDimensionNumbers
from ..ops.gather import GatherScatterMode as GatherScatterMode
from ..ops.gather import gather as gather
from ..ops.gather import index_take as index_take
from ..ops.parts import complex as complex
from ..ops.parts import conj as conj
from ..ops.parts import imag as imag
from ..ops.parts import real as real
from ..ops.positions import argmax as argmax
from ..ops.positions import argmin as argmin
from ..ops.queries import broadcast_like as broadcast_like
from ..ops.queries import dtype as dtype
from ..ops.queries import shape_as_value as shape_as_value
from ..ops.reduce import reduce as reduce
from ..ops.reduce import reduce_and as reduce_and
from ..ops.reduce import reduce_max as reduce_max
from ..ops.reduce import reduce_min as reduce_min
from ..ops.reduce import reduce_or as reduce_or
from ..ops.reduce import reduce_prod as reduce_prod
from ..ops.reduce import reduce_sum as reduce_sum
from ..ops.reduce import reduce_xor as reduce_xor
from ..ops.scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from ..ops.scatter import scatter as scatter
from ..ops.scatter import scatter_add as scatter_add
from ..ops.scatter import scatter_apply as scatter_apply
from ..ops.scatter import scatter_max as scatter_max
from ..ops.scatter import scatter_min as scatter_min
from ..ops.scatter import scatter_mul as scatter_mul
from ..ops.scatter import scatter_sub as scatter_sub
from ..ops.select import clamp as clamp
from ..ops.select import select as select
from ..ops.select import select_n as select_n
from ..ops.shape import broadcast as broadcast
from ..ops.shape import broadcast_in_dim as broadcast_in_dim
from ..ops.shape import broadcast_shapes as broadcast_shapes
from ..ops.shape import broadcast_to_rank as broadcast_to_rank
from ..ops.shape import broadcasted_iota as broadcasted_iota
from ..ops.shape import collapse as collapse
from ..ops.shape import expand_dims as expand_dims
from ..ops.shape import iota as iota
from ..ops.shape import reshape as reshape
from ..ops.shape import squeeze as squeeze
from ..ops.shape import tile as tile
from ..ops.shape import transpose as transpose
from ..ops.slicing import concatenate as concatenate
from ..ops.slicing import index_in_dim as index_in_dim
from ..ops.slicing import pad as pad
from ..ops.slicing import rev as rev
from ..ops.slicing import slice as slice
from ..ops.slicing import slice_in_dim as slice_in_dim
from ..ops.slicing import split as split
from ..ops.slicing import stack as stack
from ..ops.slicing import unstack as unstack
from ..ops.sort import approx_max_k as approx_max_k
from ..ops.sort import approx_min_k as approx_min_k
from ..ops.sort import sort as sort
from ..ops.sort import sort_key_val as sort_key_val
from ..ops.sort import top_k as top_k
from ..ops.special import bessel_i0e as bessel_i0e
from ..ops.special import bessel_i1e as bessel_i1e
from ..ops.special import betainc as betainc
from ..ops.special import digamma as digamma
from ..ops.special import erf as erf
from ..ops.special import erf_inv as erf_inv
from ..ops.special import erfc as erfc
from ..ops.special import igamma as igamma
from ..ops.special import igamma_grad_a as igamma_grad_a
from ..ops.special import igammac as igammac
from ..ops.special import lgamma as lgamma
from ..ops.special import polygamma as polygamma
from ..ops.special import random_gamma_grad as random_gamma_grad
from ..ops.special import zeta as zeta
from ..ops.transcendental import AccuracyMode as AccuracyMode
from ..ops.transcendental import Tolerance as Tolerance
from ..ops.transcendental import acos as acos
from ..ops.transcendental import acosh as acosh
from ..ops.transcendental import asin as asin
from ..ops.transcendental import asinh as asinh
from ..ops.transcendental import atan as atan
from ..ops.transcendental import atan2 as atan2
from ..ops.transcendental import atanh as atanh
from ..ops.transcendental import cbrt as cbrt
from ..ops.transcendental import cos as cos
from ..ops.transcendental import cosh as cosh
from ..ops.transcendental import exp as exp
from ..ops.transcendental import exp2 as exp2
from ..ops.transcendental import expm1 as expm1
from ..ops.transcendental import log as log
from ..ops.transcendental import log1p as log1p
from ..ops.transcendental import logistic as logistic
from ..ops.transcendental import rsqrt as rsqrt
from ..ops.transcendental import sin as sin
from ..ops.transcendental import sinh as sinh
from ..ops.transcendental import sqrt as sqrt
from ..ops.transcendental import tan as tan
from ..ops.transcendental import tanh as tanh
from ..ops.window import padtype_to_pads as padtype_to_pads
from ..ops.window import reduce_window as reduce_window
from ..ops.window import reduce_window_shape_tuple as reduce_window_shape_tuple
from ._composite import after_all as after_all
from ._composite import composite as composite
from ._composite import create_token as create_token
from ._composite import dce_sink as dce_sink
from ._composite import stage as stage
from ._ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from ._ragged import ragged_dot as ragged_dot
from ._ragged import ragged_dot_general as ragged_dot_general
from ._ragged_exchange import ragged_all_to_all as ragged_all_to_all
from ._rng import rng_uniform as rng_uniform
from ._scaled import scaled_dot as scaled_dot
from ._sharding import with_sharding_constraint as with_sharding_constraint
from . import linalg as linalg
from ..core.primitive import Primitive as _Primitive

abs_p: _Primitive
acos_p: _Primitive
acosh_p: _Primitive
add_any_p: _Primitive
add_p: _Primitive
all_gather_p: _Primitive
all_to_all_p: _Primitive
and_p: _Primitive
approx_top_k_p: _Primitive
argmax_key_p: _Primitive
argmax_p: _Primitive
argmin_key_p: _Primitive
argmin_p: _Primitive
asin_p: _Primitive
asinh_p: _Primitive
atan2_p: _Primitive
atan_p: _Primitive
atanh_p: _Primitive
axis_index_p: _Primitive
bessel_i0e_p: _Primitive
bessel_i1e_p: _Primitive
bitcast_convert_type_p: _Primitive
broadcast_in_dim_p: _Primitive
cbrt_p: _Primitive
ceil_p: _Primitive
cholesky_p: _Primitive
cholesky_update_p: _Primitive
clamp_p: _Primitive
clz_p: _Primitive
complex_p: _Primitive
concatenate_p: _Primitive
cond_p: _Primitive
conj_p: _Primitive
conv_general_dilated_p: _Primitive
convert_element_type_p: _Primitive
copy_p: _Primitive
cos_p: _Primitive
cosh_p: _Primitive
cumlogsumexp_p: _Primitive
cummax_p: _Primitive
cummin_p: _Primitive
cumprod_p: _Primitive
cumsum_p: _Primitive
custom_jvp_call_p: _Primitive
custom_lin_p: _Primitive
custom_linear_solve_p: _Primitive
custom_vjp_call_p: _Primitive
debug_callback_p: _Primitive
debug_print_p: _Primitive
digamma_p: _Primitive
div_p: _Primitive
dot_general_p: _Primitive
dynamic_slice_p: _Primitive
dynamic_update_slice_p: _Primitive
eig_p: _Primitive
eigh_p: _Primitive
eq_p: _Primitive
eq_to_p: _Primitive
erf_inv_p: _Primitive
erf_p: _Primitive
erfc_p: _Primitive
exp2_p: _Primitive
exp_p: _Primitive
expm1_p: _Primitive
factored_solve_p: _Primitive
fft_p: _Primitive
floor_p: _Primitive
gather_p: _Primitive
ge_p: _Primitive
geqrf_p: _Primitive
gt_p: _Primitive
hessenberg_p: _Primitive
householder_product_p: _Primitive
igamma_grad_a_p: _Primitive
igamma_p: _Primitive
igammac_p: _Primitive
imag_p: _Primitive
inspect_sharding_p: _Primitive
integer_pow_p: _Primitive
io_callback_p: _Primitive
iota_p: _Primitive
is_finite_p: _Primitive
jit_p: _Primitive
lanes_p: _Primitive
le_p: _Primitive
le_to_p: _Primitive
lgamma_p: _Primitive
linear_recurrence_p: _Primitive
linear_solve_p: _Primitive
log1p_p: _Primitive
log_p: _Primitive
logaddexp2_p: _Primitive
logaddexp_p: _Primitive
logistic_p: _Primitive
lt_p: _Primitive
lt_to_p: _Primitive
lu_p: _Primitive
lu_pivots_to_permutation_p: _Primitive
max_p: _Primitive
min_p: _Primitive
mul_p: _Primitive
mulhi_p: _Primitive
ne_p: _Primitive
neg_p: _Primitive
nextafter_p: _Primitive
not_p: _Primitive
optimization_barrier_p: _Primitive
or_p: _Primitive
ormqr_p: _Primitive
pad_p: _Primitive
pcast_p: _Primitive
pmax_p: _Primitive
pmin_p: _Primitive
polygamma_p: _Primitive
population_count_p: _Primitive
pow_p: _Primitive
ppermute_p: _Primitive
psum_p: _Primitive
pure_callback_p: _Primitive
pvary_p: _Primitive
qr_p: _Primitive
random_bits_p: _Primitive
random_fold_in_p: _Primitive
random_gamma_grad_p: _Primitive
random_split_p: _Primitive
real_p: _Primitive
reduce_and_p: _Primitive
reduce_max_p: _Primitive
reduce_min_p: _Primitive
reduce_or_p: _Primitive
reduce_p: _Primitive
reduce_precision_p: _Primitive
reduce_prod_p: _Primitive
reduce_scatter_p: _Primitive
reduce_sum_p: _Primitive
reduce_window_max_p: _Primitive
reduce_window_min_p: _Primitive
reduce_window_p: _Primitive
reduce_window_sum_p: _Primitive
reduce_xor_p: _Primitive
regularized_incomplete_beta_p: _Primitive
rem_p: _Primitive
reshape_p: _Primitive
reshard_p: _Primitive
rev_p: _Primitive
rng_bit_generator_p: _Primitive
round_p: _Primitive
rsqrt_p: _Primitive
scan_p: _Primitive
scatter_add_p: _Primitive
scatter_max_p: _Primitive
scatter_min_p: _Primitive
scatter_mul_p: _Primitive
scatter_p: _Primitive
scatter_sub_p: _Primitive
schur_p: _Primitive
select_and_gather_add_p: _Primitive
select_and_scatter_add_p: _Primitive
select_n_p: _Primitive
sharding_constraint_p: _Primitive
shift_left_p: _Primitive
shift_right_arithmetic_p: _Primitive
shift_right_logical_p: _Primitive
sign_p: _Primitive
sin_p: _Primitive
sinh_p: _Primitive
slice_p: _Primitive
sort_p: _Primitive
split_p: _Primitive
sqrt_p: _Primitive
square_p: _Primitive
squeeze_p: _Primitive
stack_p: _Primitive
stop_gradient_p: _Primitive
sub_p: _Primitive
svd_p: _Primitive
symmetric_product_p: _Primitive
tan_p: _Primitive
tanh_p: _Primitive
threefry2x32_join_p: _Primitive
threefry2x32_p: _Primitive
threefry2x32_xor_p: _Primitive
tile_p: _Primitive
top_k_p: _Primitive
transpose_p: _Primitive
triangular_solve_p: _Primitive
tridiagonal_p: _Primitive
tridiagonal_solve_p: _Primitive
unstack_p: _Primitive
while_p: _Primitive
xor_p: _Primitive
zero_signed_p: _Primitive
zeta_p: _Primitive
