"""``jax._src.ad_util``."""

from __future__ import annotations

from fnarray.core.tangents import Zero as Zero
from fnarray.interpreters.ad import add_jaxvals_p as add_jaxvals_p
from fnarray.interpreters.ad import instantiate_zeros
from fnarray.interpreters.ad import zeros_like_aval as zeros_like_aval
from fnarray.lax import stop_gradient_p as stop_gradient_p

instantiate = instantiate_zeros
