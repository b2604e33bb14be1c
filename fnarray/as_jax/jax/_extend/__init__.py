"""Modules of ``jax.extend`` that fnarray has not: of them what libraries fetch."""
