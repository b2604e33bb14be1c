"""Every operation's form, run by plain loops, computes what its evaluator does; names resolve."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import fnarray
from fnarray import lax
from fnarray.compile.cpu.jit import namespace
from fnarray.config import enable_x64
from fnarray.core import forms
from fnarray.core.graph import Graph, subgraphs
from fnarray.core.primitive import Primitive
from fnarray.ops.kit.registry import registry

from .form_oracle import check_forms
from .opcase import OpCase, is_wide
from .test_ops import CASES, RUNS

#: Primitives that no row of the table calls, and where they are tested.
ELSEWHERE = {
    name: where
    for where, names in {
        "tests/api/test_collectives.py": (
            "all_gather all_to_all axis_index pmax pmin ppermute psum reduce_scatter"
        ),
        "tests/api/test_checkpoint.py": "name remat2",
        "tests/api/test_custom_derivatives.py": "custom_jvp_call custom_lin custom_vjp_call",
        "tests/api/test_jit.py": "jit",
        "tests/api/test_shard_map.py": "shard_map",
        "tests/api/test_meshed.py": "inspect_sharding pvary reshard sharding_constraint",
        "tests/api/test_partial_sums.py": "pcast",
        "tests/compile/test_ranks.py": "argmax_key argmin_key",
        "tests/control/test_against_jax.py": "cond scan while",
        "tests/control/test_checkify.py": "check",
        "tests/api/test_custom_batching.py": "custom_vmap_call linear_call",
        "tests/control/test_callbacks.py": ("debug_callback debug_print io_callback pure_callback"),
        "tests/control/test_lanes.py": "lanes",
        "tests/ops/test_index.py": (
            "gather scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub"
        ),
        "tests/ops/test_derivatives_elementwise.py": "add_any",
        "tests/surface/test_special_values.py": "zero_signed",
        "tests/ops/test_window.py": "select_and_gather_add select_and_scatter_add",
        "tests/surface/test_fft.py": "fft",
        "tests/surface/test_generators.py": "rng_bit_generator",
        "tests/surface/test_random.py": (
            "erf_inv_of_sample log1p_of_sample log_of_sample multiply_add random_bits "
            "random_fold_in random_gamma random_split threefry2x32 threefry2x32_join "
            "threefry2x32_xor"
        ),
        "tests/surface/test_scipy_linalg.py": "expm expm_frechet solve_sylvester sqrtm",
        "tests/surface/test_special.py": (
            "ci dawsn erfcx exp1 expi expn fresnel_cos fresnel_sin hyp1f1 hyp1f1_by_a "
            "hyp1f1_by_b hyp2f1 hyp2f1_by_a hyp2f1_by_b hyp2f1_by_c jv owens_t si spence "
            "sph_harm_y wofz"
        ),
        "tests/surface/test_linalg.py": "adjugate det geqrf pinv slogdet",
        "tests/surface/test_numpy_ufuncs.py": "logaddexp logaddexp2",
        "tests/ops/test_derivatives_reduce.py": "linear_recurrence",
        "tests/surface/test_solvers.py": "custom_linear_solve factored_solve linear_solve",
    }.items()
    for name in names.split()
}

#: One run of each case: forms are alike for its dtypes.
FIRST = [
    pytest.param(case, next(iter(case.signatures())), id=f"{k}-{case.name}")
    for k, case in enumerate(CASES)
]


def graph_of(case: OpCase, signature: tuple[str, ...]) -> Graph | None:
    """Return the graph of a row, None where an operand must be concrete."""
    try:
        return fnarray.make_jaxpr(case.face(lax))(*case.args(signature)).jaxpr
    except (TypeError, fnarray.errors.ConcretizationTypeError):
        return None


def equations(graph: Graph):
    """Yield the equations of a graph, and of those that it holds."""
    for eqn in graph.eqns:
        yield eqn
        for inner in subgraphs(eqn.params):
            yield from equations(inner)


@pytest.mark.parametrize(("case", "signature"), FIRST)
def test_form_computes_what_eval_does(case: OpCase, signature: tuple[str, ...]) -> None:
    """Maps, folds, contractions, layouts, updates and kernels mean what NumPy computes."""
    with enable_x64(is_wide(signature)):
        if graph_of(case, signature) is not None:
            check_forms(case.face(lax), *case.args(signature))


def expressions(form) -> list[str]:
    """Return the expressions of a form, its operands as names."""
    names = [f"v{k}" for k in range(16)]
    more = {f"{p}{k}": f"{p}{k}" for p in "axr" for k in range(16)}
    if isinstance(form, forms.Map):
        return [form.template.format(*names)]
    if isinstance(form, forms.Reduce):
        combine = form.combine if isinstance(form.combine, tuple) else ()
        return [t.format(*names, **more) for t in (*form.terms, *combine)]
    if isinstance(form, forms.Update) and isinstance(form.combine, str):
        return [form.combine.format(*names)]
    return []


def resolves(path: str) -> bool:
    """Whether a dotted name of the kernels' namespace stands for something."""
    first, *rest = path.split(".")
    if first == "fk":
        importlib.import_module(f"fnarray_kernels.{rest[0]}")
    value = namespace().get(first)
    for name in rest:
        value = getattr(value, name, None)
    return value is not None


def test_every_reference_to_a_kernel_resolves() -> None:
    """Templates and library steps name functions that exist, for every dtype of every row."""
    missing = set()
    for param in RUNS:
        case, signature = param.values
        with enable_x64(is_wide(signature)):
            graph = graph_of(case, signature)
            for eqn in equations(graph) if graph is not None else ():
                form = eqn.form()
                if isinstance(form, forms.Library) and form.kernel:
                    paths = {str(form.op)}
                else:
                    paths = set()
                    for text in expressions(form):
                        ast.parse(text, mode="eval")
                        paths.update(re.findall(r"\b(?:sc|vm|fk)(?:\.\w+)+", text))
                missing.update((eqn.primitive.name, p) for p in paths if not resolves(p))
    assert not missing


def test_every_primitive_has_a_row() -> None:
    """The table calls each registered primitive, or says where it is tested."""
    root = Path(fnarray.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("fnarray", *path.relative_to(root).with_suffix("").parts))
        # The first two run something when they are imported, the third wants flake8.
        if "as_jax" not in name and not name.endswith(("__main__", "flake8")):
            importlib.import_module(name.removesuffix(".__init__"))
    called = set()
    for case in CASES:
        for signature in case.signatures():
            with enable_x64(is_wide(signature)):
                graph = graph_of(case, signature)
                if graph is not None:
                    called.update(eqn.primitive.name for eqn in equations(graph))
    assert set(registry) - called == set(ELSEWHERE)
    root = Path(__file__).parents[2]
    assert all((root / where).is_file() for where in ELSEWHERE.values())


def test_no_primitive_is_declared_without_its_rules() -> None:
    """A record needs its derivative, transpose and batching rule, or the reason it has none."""
    with pytest.raises(TypeError, match=r"'jvp', 'transpose', and 'batch'"):
        Primitive("bare", aval=None, eval=None, form=None)  # type: ignore[call-arg]
