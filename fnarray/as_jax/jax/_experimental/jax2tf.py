"""``jax.experimental.jax2tf``: imported by libraries beside their other modules; none of it works.

Keras and Neural Tangents use it where they hand a model to TensorFlow.
"""

from __future__ import annotations

from fnarray.core.lazy import absent

__getattr__ = absent(
    __name__,
    {
        "TensorFlow reads what XLA is given, and there is no XLA underneath: fnarray.export makes "
        "bytes of a program, which fnarray runs": "convert eval_polymorphic_shape PolyShape "
        "dtype_of_val split_to_logical_devices DisabledSafetyCheck",
        "a TensorFlow function is called by pure_callback(lambda *xs: f(*xs).numpy(), ...)": (
            "call_tf"
        ),
    },
)
