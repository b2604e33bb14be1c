"""Checks that exporting and calling programs can be told to leave out."""

from __future__ import annotations

from ..core.frozen import frozen

__all__ = ["DisabledSafetyCheck"]


@frozen
class DisabledSafetyCheck:
    """A check to leave out, as ``disabled_checks=`` of `export` takes them.

    Made by `platform` or `custom_call`. Without the first, a program that was exported for other
    platforms than this process has is refused when it is called, by a `ValueError`.

    Parameters
    ----------
    name : str
        Which it is: ``"platform"``, or ``"custom_call:"`` and a target.
    """

    name: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Leave out the check that a program runs on a platform that it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Leave out the check that a target is stable; no program has one that could change."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the target's name, None where this is about something else."""
        kind, _, target = self.name.partition(":")
        return target if kind == "custom_call" else None

    def __str__(self) -> str:
        return self.name
