"""Functions whose derivatives their authors give, named as in ``jax.custom_derivatives``."""

from .control.closures import closure_convert as closure_convert
from .control.closures import custom_gradient as custom_gradient
from .control.custom import CustomVJPPrimal as CustomVJPPrimal
from .control.custom import custom_jvp as custom_jvp
from .control.custom import custom_vjp as custom_vjp
from .control.custom import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from .control.custom import zero_from_primal as zero_from_primal
from .control.custom_rules import custom_jvp_call_p as custom_jvp_call_p
from .control.custom_rules import custom_vjp_call_p as custom_vjp_call_p
from .control.linear_call import linear_call as linear_call
from .core.lazy import absent as _absent
from .core.tangents import SymbolicZero as SymbolicZero

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

__getattr__ = _absent(__name__, {"optimize_remat has no operation of its own": "remat_opt_p"})
