"""What `fnarray.ops` uses of SciPy's lapack."""

from typing import Any

def get_lapack_funcs(names: str, *, dtype: Any) -> Any: ...
