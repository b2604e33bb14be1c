"""``jax._src.earray``: arrays of dtypes that NumPy has not, of which there are none here."""

from __future__ import annotations


class EArray:
    """An array of an extended dtype; none is ever made."""

    def __init__(self, aval: object, data: object):
        raise TypeError(f"fnarray has no arrays of extended dtypes: {aval}.")
