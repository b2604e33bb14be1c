"""What `fnarray.ops` uses of SciPy's blas."""

from typing import Any

def get_blas_funcs(names: str, *, dtype: Any) -> Any: ...
