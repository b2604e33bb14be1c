"""The rules: codes are stable, and never used twice."""

from __future__ import annotations

from ._base import GROUPS as GROUPS
from ._base import RULES as RULES
from ._base import LintRule as LintRule
from .dynamic import DynamicCode as DynamicCode
from .dynamic import DynamicImport as DynamicImport
from .iterators import ArgumentIterator as ArgumentIterator
from .iterators import OuterIterator as OuterIterator
from .iterators import TracedCoroutine as TracedCoroutine
from .iterators import TracedGenerator as TracedGenerator
from .outside import Clock as Clock
from .outside import Environment as Environment
from .outside import FileAccess as FileAccess
from .outside import Identity as Identity
from .outside import Logging as Logging
from .outside import OuterGenerator as OuterGenerator
from .outside import Print as Print
from .outside import Random as Random
from .outside import StandardStream as StandardStream
from .outside import SystemCall as SystemCall
from .reads import GlobalScalar as GlobalScalar
from .reads import MutableArray as MutableArray
from .reads import MutableAttribute as MutableAttribute
from .reads import MutableRead as MutableRead
from .reads import ReboundCell as ReboundCell
from .tool import InternalError as InternalError
from .tool import SyntaxFault as SyntaxFault
from .tool import TraceDiffers as TraceDiffers
from .tool import UnknownCode as UnknownCode
from .tool import UnusedIgnore as UnusedIgnore
from .tracing import BooleanMask as BooleanMask
from .tracing import JitInLoop as JitInLoop
from .tracing import KeyReuse as KeyReuse
from .tracing import NumpyOnTraced as NumpyOnTraced
from .tracing import TracedBranch as TracedBranch
from .tracing import TracedConversion as TracedConversion
from .tracing import UnhashableStatic as UnhashableStatic
from .tracing import UnrolledLoop as UnrolledLoop
from .writes import ArgumentMutation as ArgumentMutation
from .writes import ArrayItemWrite as ArrayItemWrite
from .writes import ArrayWrite as ArrayWrite
from .writes import AttributeWrite as AttributeWrite
from .writes import CallbackLeak as CallbackLeak
from .writes import CapturedMutation as CapturedMutation
from .writes import GlobalWrite as GlobalWrite
from .writes import NonlocalWrite as NonlocalWrite


def rule(code: str) -> type[LintRule]:
    """Return the rule with the given code or name, such as ``FNA101`` or ``global-write``.

    Raises
    ------
    KeyError
        When there is none.
    """
    for found in RULES.values():
        if code.upper() == found.code or code.lower() == found.name:
            return found
    raise KeyError(f"no rule {code!r}: codes run from {min(RULES)} to {max(RULES)}.")
