"""Checks in functional programs: see `checkify`."""

from ..control import check_holders as _check_holders  # noqa: F401 - checks in loops and branches
from ..control.checkify import Error as Error
from ..control.checkify import all_checks as all_checks
from ..control.checkify import automatic_checks as automatic_checks
from ..control.checkify import check as check
from ..control.checkify import check_error as check_error
from ..control.checkify import checkify as checkify
from ..control.checkify import debug_check as debug_check
from ..control.checkify import div_checks as div_checks
from ..control.checkify import float_checks as float_checks
from ..control.checkify import index_checks as index_checks
from ..control.checkify import init_error as init_error
from ..control.checkify import nan_checks as nan_checks
from ..control.checkify import user_checks as user_checks
from ..errors import CheckError as JaxRuntimeError

#: A class of errors that checks may find.
ErrorCategory = type[JaxRuntimeError]

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
