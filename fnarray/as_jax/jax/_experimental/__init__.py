"""Modules of ``jax.experimental`` that fnarray has not: of them what libraries fetch."""
