"""What is left of ``jax.lib``: a version."""

from .version import __version__ as __version__
