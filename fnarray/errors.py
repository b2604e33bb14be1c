"""Every public exception and warning.

Names and built-in bases are those of ``jax.errors`` where JAX has the exception, so an
``except`` clause written for JAX still matches.  Each class also derives from
`FnarrayError`, which catches all of them at once::

    FnarrayError
    ├── FnarrayTypeError (TypeError)            also named JAXTypeError
    │   ├── ConcretizationTypeError
    │   │   └── TracerBoolConversionError
    │   ├── TracerArrayConversionError
    │   ├── TracerIntegerConversionError
    │   ├── UnexpectedTracerError
    │   ├── JaxprTypeError
    │   ├── KeyReuseError (RuntimeError)
    │   └── ShapeError
    ├── JAXIndexError (IndexError)
    │   └── NonConcreteBooleanIndexError
    ├── CheckError (ValueError)
    ├── TypePromotionError (ValueError)
    ├── InconclusiveDimensionOperation
    ├── EffectError
    │   ├── WriteEffectError
    │   ├── ReadEffectError
    │   ├── NondeterminismError
    │   ├── IOEffectError
    │   ├── IteratorEffectError
    │   └── DynamicCodeError
    ├── JaxRuntimeError (RuntimeError)
    ├── MissingRuleError (NotImplementedError)
    ├── ProgramSizeError (MemoryError)
    ├── ShardingTypeError
    ├── UnsupportedOnTarget (NotImplementedError)
    └── WorkerLost (RuntimeError)

    CacheWarning (UserWarning)
    EffectWarning (UserWarning)
"""

from __future__ import annotations

__all__ = [
    "CacheWarning",
    "CheckError",
    "ConcretizationTypeError",
    "DynamicCodeError",
    "EffectError",
    "EffectWarning",
    "FnarrayError",
    "FnarrayTypeError",
    "IOEffectError",
    "InconclusiveDimensionOperation",
    "IteratorEffectError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "NondeterminismError",
    "ProgramSizeError",
    "ReadEffectError",
    "ShapeError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
    "UnsupportedOnTarget",
    "WorkerLost",
    "WriteEffectError",
]
__dir__ = __all__.copy


class FnarrayError(Exception):
    """Base of every exception defined here.

    IPython shows the frames of the user's code, each with its lines and the one at fault marked;
    with ``FNARRAY_TRACEBACK_FILTERING=off`` ``%tb`` and debuggers have all frames.
    """

    def _render_traceback_(self) -> list[str]:
        # Asked for where an error is shown, which is not worth an import at the start.
        import linecache
        import traceback

        package = __file__.removesuffix("errors.py")
        lines = ["Traceback of your code (most recent call last):"]
        for frame in traceback.extract_tb(self.__traceback__):
            if frame.filename.startswith((package, "<frozen ")) or "IPython" in frame.filename:
                continue
            at = frame.lineno or 1
            lines.append(f"{frame.filename}:{at}, in {frame.name}")
            around = range(max(at - 2, 1), at + 3)
            texts = {n: linecache.getline(frame.filename, n).rstrip() for n in around}
            lines += [
                f"{'---->' if n == at else '     '} {n:4} {text}"
                for n, text in texts.items()
                if text
            ]
        return [*lines, *"".join(traceback.format_exception_only(self)).rstrip().split("\n")]

    def _repr_html_(self) -> str:
        """What a notebook shows of an error that a cell has caught: the same, the lines marked."""
        from html import escape

        shown = map(escape, self._render_traceback_())
        lines = "\n".join(f"<mark>{x}</mark>" if x.startswith("----&gt;") else x for x in shown)
        return f'<pre style="font-family:monospace">{lines}</pre>'


class FnarrayTypeError(FnarrayError, TypeError):
    """A value of the wrong kind: base of the tracing and shape errors."""


JAXTypeError = FnarrayTypeError


class ConcretizationTypeError(FnarrayTypeError):
    """A concrete value was needed where only an abstract one is known.

    Inside ``jit``, ``vmap`` and loop bodies a traced value has a shape and a dtype, no
    number.  Mark the argument static, or express the choice with ``cond`` or ``where``.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a Python truth value (``if``, ``while``, ``and``)."""


class TracerArrayConversionError(FnarrayTypeError):
    """A traced value was handed to NumPy, which needs its numbers."""


class TracerIntegerConversionError(FnarrayTypeError):
    """A traced value was used as a Python integer: an index, a size, a repeat count."""


class UnexpectedTracerError(FnarrayTypeError):
    """A traced value outlived its trace: it leaked through a side effect."""


class JaxprTypeError(FnarrayTypeError):
    """A graph breaks an invariant: a stage produced or received an ill-typed equation."""


class ShapeError(FnarrayTypeError, ValueError):
    """Operand shapes do not fit the operation.

    A `TypeError`, as in JAX, and a `ValueError`, as in NumPy and in other functions of JAX's.
    """


class JAXIndexError(FnarrayError, IndexError):
    """Base of the indexing errors."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's size is unknown."""


class TypePromotionError(FnarrayError, ValueError):
    """No implicit promotion joins the operand dtypes under the current setting."""


class CheckError(FnarrayError, ValueError):
    """A check of a functional program failed: see ``experimental.checkify``.

    That module, like JAX's, names it ``JaxRuntimeError``.
    """


class InconclusiveDimensionOperation(FnarrayError):
    """A comparison or division of symbolic sizes has no answer for all sizes."""


class EffectError(FnarrayError):
    """A function handed to a transform is not pure.

    The error is an instance of the class below of every group of effects found; ``findings``
    holds them all.
    """

    findings: tuple = ()


class JaxRuntimeError(FnarrayError, RuntimeError):
    """A compiled program failed while it ran."""


class ProgramSizeError(FnarrayError, MemoryError):
    """A program takes more memory to compile than there is, or is nested too deep to be written."""


class ShardingTypeError(FnarrayError):
    """How a result is cut along a mesh does not follow from how its operands are."""


# A failure of a run, hence RuntimeError; TypeError too, since JAX makes it one.
class KeyReuseError(FnarrayTypeError, RuntimeError):
    """A random key was consumed twice, so the two draws are not independent."""


class MissingRuleError(FnarrayError, NotImplementedError):
    """A transform met an operation that declares no rule for it.

    Parameters
    ----------
    transform
        The transform, spelled as the user calls it: ``"vmap"``, ``"jvp"``.
    op
        Name of the operation.
    reason
        Why the rule is absent and what to do, as declared beside the operation.
    """

    def __init__(self, transform: str, op: str, reason: str) -> None:
        # All three go to `args`, so that the exception survives pickling.
        super().__init__(transform, op, reason)
        self.transform, self.op, self.reason = transform, op, reason

    def __str__(self) -> str:
        return f"{self.transform} of {self.op!r} has no rule: {self.reason}"


class UnsupportedOnTarget(FnarrayError, NotImplementedError):
    """An operation has no form on the target asked for, such as CUDA."""


class WorkerLost(FnarrayError, RuntimeError):
    """A worker of a cluster is gone, none came in its place, and what it held cannot be had."""


class CacheWarning(UserWarning):
    """The disk cache could not be used; results are unaffected, the next start is slower."""


class EffectWarning(UserWarning):
    """A function handed to a transform is not pure, and ``config.effects`` is ``"warn"``."""


class WriteEffectError(EffectError):
    """A traced function writes to something that outlives the call."""


class ReadEffectError(EffectError):
    """A traced function reads a value from outside that may change between calls."""


class NondeterminismError(EffectError):
    """A traced function depends on chance, on the clock, or on addresses."""


class IOEffectError(EffectError):
    """A traced function prints, reads or writes files, or asks the system to act."""


class IteratorEffectError(EffectError):
    """A traced function draws from an iterator that outlives the call, or is a generator."""


class DynamicCodeError(EffectError):
    """A traced function runs source text, or imports by a computed name."""
