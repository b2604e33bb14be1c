"""``jax.extend.sharding``: shardings as XLA writes them down, which nothing here reads."""

from __future__ import annotations

from fnarray.core.lazy import absent

__getattr__ = absent(
    __name__,
    {
        "there is no XLA: NamedSharding(mesh, spec) says how an array is cut": (
            "get_hlo_sharding_from_serialized_proto get_op_sharding_from_serialized_proto "
            "get_serialized_proto_from_hlo_sharding"
        ),
    },
)
