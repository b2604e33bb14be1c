"""What an effect is: decided here, by how long what is computed from a read is kept.

*A read is an effect only if what was read can change while something computed from it is kept.* A
staged transform keeps its program and runs it again: a read must be of something that cannot
change, or is guarded. An eager one reads today's values, once, and keeps nothing. Writes, draws
from iterators, input and output are effects in both: they happen while tracing, to tracers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .transforms import STAGED as STAGED

if TYPE_CHECKING:
    from .findings import Finding

_READS = "FNA2"


def is_read(finding: Finding) -> bool:
    """Say whether a finding is a read of what may change unseen."""
    return finding.code.startswith(_READS)


def effects_of(findings: Iterable[Finding], staged: bool) -> tuple[Finding, ...]:
    """Return those findings that are effects in a trace that is kept, or is not."""
    return tuple(f for f in findings if staged or not is_read(f))


def is_steady(findings: Iterable[Finding]) -> bool:
    """Say whether all reads are guarded: what was traced may be kept, and used again."""
    return not any(map(is_read, findings))
