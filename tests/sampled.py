"""Of which families of cases the suite runs a part: it is to end within 25 minutes on two cores.

Cases of one function here show one law, and each costs a compilation (ours, the oracle's) or an
interpreted program. The default run takes about one of so many; the others are marked `slow`, and
``pytest -m slow`` runs them. Which they are follows from their names alone: they are the same on
every machine, and adding a case moves no other.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    import pytest

#: One of how many cases runs, by function. Seconds of the processor that all of them took on one
#: core of an EPYC 7003 follow.
FAMILIES: Final = {
    "api/test_derivatives.py::test_as_jax": 2,  # 7
    "api/test_derivatives.py::test_python_control_flow": 2,  # 13
    "api/test_export.py::test_one_program_for_all_sizes": 2,  # 12
    "api/test_pmap.py::test_agrees_with_jax": 3,  # 18
    "api/test_recorded.py::test_what_changed_is_seen": 2,  # 38
    "api/test_rules_by_jvp.py::test_rule_made_by_jvp": 2,  # 11
    "api/test_shard_map.py::test_gradients": 2,  # 17
    "api/test_vmap.py::test_as_jax": 2,  # 7
    "compile/test_large.py::test_10_000_operations_become_kernels_that_can_be_compiled": 3,  # 11
    "compile/test_limits.py::test_results_hold_just_below_and_just_above": 3,  # 11
    "compile/test_limits.py::test_results_hold_with_the_limit_at_its_extremes": 3,  # 20
    "compile/test_native.py::test_products_are_those_of_numba": 4,  # 55
    "compile/test_pool.py::test_products_are_shared": 3,  # 16
    "compile/test_vectorised.py::test_kernels_work_on_vectors": 2,  # 20
    "compile/test_vectors.py::test_few_turns_in_long_kernels_are_one_vector": 2,  # 10
    "control/test_checkify.py::test_finds_what_jax_finds": 2,  # 17
    "control/test_lanes.py::test_as_jax": 2,  # 6
    "control/test_ref_places.py::test_gives_what_jax_gives": 2,  # 14
    "control/test_refs.py::test_gives_what_jax_gives": 2,  # 13
    "cuda/test_arrays.py::test_programs_run_there": 4,  # 79
    "cuda/test_convolution.py::test_convolutions_agree": 2,  # 19
    "cuda/test_factors.py::test_readings_agree": 3,  # 29
    "cuda/test_machine.py::test_library_steps_are_cupys": 3,  # 13
    "cuda/test_on_processor.py::test_programs_agree": 3,  # 110
    "cuda/test_ptx.py::test_programs_agree": 3,  # 10
    "cuda/test_text.py::test_every_kernel_becomes_ptx": 4,  # 63
    "distributed/test_faults.py::test_a_client_that_ends": 2,  # 31
    "distributed/test_reads.py::test_parts_are_those_of_the_whole": 3,  # 17
    "kernels/test_complexmath.py::test_unary": 3,  # 23
    "kernels/test_lapack.py::test_exponentials": 2,  # 9
    "kernels/test_scalar.py::test_binary_matches_lax": 3,  # 20
    "kernels/test_scalar.py::test_convert_matches_lax": 2,  # 10
    "kernels/test_scalar.py::test_unary_matches_lax": 2,  # 9
    "kernels/test_vectorised.py::test_loop_is_vectorised": 3,  # 31
    "kernels/test_vmath.py::test_readings_agree_bit_for_bit": 2,  # 10
    "kernels/test_vmath.py::test_unary_bound": 2,  # 10
    "ops/test_derivatives_elementwise.py::test_derivatives_are_jaxs": 2,  # 10
    "ops/test_derivatives_indexing.py::test_same_as_jax": 2,  # 8
    "ops/test_derivatives_reduce.py::test_same_as_jax": 2,  # 11
    "ops/test_ops.py::test_compiled_matches_eager": 2,  # 23
    "ops/test_ops.py::test_matches_jax": 3,  # 75
    "programs/test_programs.py::test_a_gradient_is_that_of_jax": 3,  # 43
    "programs/test_programs.py::test_a_program_computes_what_numpy_does": 3,  # 24
    "purity/test_stale.py::test_a_change_is_seen": 4,  # 87
    "surface/test_derivatives.py::test_derivatives": 2,  # 9
    "surface/test_error_classes.py::test_one_known_integer_exponent_leaves_the_dtype": 3,  # 13
    "surface/test_example_libraries_jax.py::test_layers_are_jaxs": 2,  # 15
    "surface/test_generators.py::test_draws_are_those_of_jax": 2,  # 9
    "surface/test_image.py::test_resize_is_jaxs": 3,  # 21
    "surface/test_indexing.py::test_expression_matches_jax": 2,  # 6
    "surface/test_initializers.py::test_numbers_are_those_of_jax": 2,  # 9
    "surface/test_keys_moved.py::test_moving": 2,  # 15
    "surface/test_linalg.py::test_matches_jax": 3,  # 21
    "surface/test_linalg_derivatives.py::test_matches_jax": 3,  # 19
    "surface/test_nn.py::test_activation": 3,  # 10
    "surface/test_numpy_ufuncs.py::test_binary_functions_have_jax_types_and_numpy_values": 2,  # 6
    "surface/test_numpy_ufuncs.py::test_special_cases_agree_with_jax": 2,  # 12
    "surface/test_ode.py::test_gives_what_jax_gives": 3,  # 34
    "surface/test_pallas.py::test_programs_give_what_jax_gives": 3,  # 35
    "surface/test_random.py::test_equals_jax": 2,  # 13
    "surface/test_random.py::test_repeated_draws_are_the_same_bits": 2,  # 10
    "surface/test_scipy_linalg.py::test_matches_jax": 3,  # 18
    "surface/test_scipy_stats.py::test_is_of_jax_dtype": 4,  # 24
    "surface/test_small_surfaces.py::test_segments": 2,  # 6
    "surface/test_weak_types.py::test_dtypes_and_weakness": 4,  # 34
}


def left_out(names: list[str]) -> dict[str, list[int]]:
    """Return which of the collected tests each family leaves to the slow run, by their indices.

    Parameters
    ----------
    names : list of str
        Node ids, such as ``tests/ops/test_ops.py::test_matches_jax[add]``.
    """
    families: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        families[name.partition("[")[0].removeprefix("tests/")].append(i)
    return {
        family: [i for i in families[family][1:] if crc32(names[i].encode()) % step]
        for family, step in FAMILIES.items()
        if family in families
    }


def mark(items: list[pytest.Item]) -> None:
    """Mark the cases that the default run leaves out as slow."""
    for indices in left_out([item.nodeid for item in items]).values():
        for i in indices:
            items[i].add_marker("slow")
