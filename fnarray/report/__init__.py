"""The report of a program: source, graph, kernels and buffers, for people to look at."""

from __future__ import annotations

from .explain import Report, explain, report_of

__all__ = ["Report", "explain", "report_of"]
