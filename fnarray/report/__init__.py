"""The report of a program: source, graph, kernels and buffers, for people to look at."""

from __future__ import annotations
