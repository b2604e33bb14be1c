"""Names of the primitives, to be listed without importing what declares them; a test compares."""

from typing import Final

__all__ = []

NAMES: Final = """
    abs_p acos_p acosh_p add_any_p add_p all_gather_p all_to_all_p and_p approx_top_k_p argmax_key_p
    argmax_p argmin_key_p argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p bessel_i0e_p
    bessel_i1e_p bitcast_convert_type_p broadcast_in_dim_p cbrt_p ceil_p cholesky_p
    cholesky_update_p clamp_p clz_p complex_p concatenate_p cond_p conj_p conv_general_dilated_p
    convert_element_type_p copy_p cos_p cosh_p cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p
    custom_jvp_call_p custom_lin_p custom_linear_solve_p custom_vjp_call_p debug_callback_p
    debug_print_p digamma_p div_p dot_general_p dynamic_slice_p dynamic_update_slice_p eig_p eigh_p
    eq_p eq_to_p erf_inv_p erf_p erfc_p exp2_p exp_p expm1_p factored_solve_p fft_p floor_p gather_p
    ge_p geqrf_p gt_p hessenberg_p householder_product_p igamma_grad_a_p igamma_p igammac_p imag_p
    inspect_sharding_p integer_pow_p io_callback_p iota_p is_finite_p jit_p lanes_p le_p le_to_p
    lgamma_p linear_recurrence_p linear_solve_p log1p_p log_p logaddexp2_p logaddexp_p logistic_p
    lt_p lt_to_p lu_p lu_pivots_to_permutation_p max_p min_p mul_p mulhi_p ne_p neg_p nextafter_p
    not_p optimization_barrier_p or_p ormqr_p pad_p pcast_p pmax_p pmin_p polygamma_p
    population_count_p pow_p ppermute_p psum_p pure_callback_p pvary_p qr_p random_bits_p
    random_fold_in_p random_gamma_grad_p random_split_p real_p reduce_and_p reduce_max_p
    reduce_min_p reduce_or_p reduce_p reduce_precision_p reduce_prod_p reduce_scatter_p reduce_sum_p
    reduce_window_max_p reduce_window_min_p reduce_window_p reduce_window_sum_p reduce_xor_p
    regularized_incomplete_beta_p rem_p reshape_p reshard_p rev_p rng_bit_generator_p round_p
    rsqrt_p scan_p scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p scatter_sub_p
    schur_p select_and_gather_add_p select_and_scatter_add_p select_n_p sharding_constraint_p
    shift_left_p shift_right_arithmetic_p shift_right_logical_p sign_p sin_p sinh_p slice_p sort_p
    split_p sqrt_p square_p squeeze_p stack_p stop_gradient_p sub_p svd_p symmetric_product_p tan_p
    tanh_p threefry2x32_join_p threefry2x32_p threefry2x32_xor_p tile_p top_k_p transpose_p
    triangular_solve_p tridiagonal_p tridiagonal_solve_p unstack_p while_p xor_p zero_signed_p
    zeta_p
"""
