"""Sphinx settings."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "fnarray"
author = "the fnarray maintainers"
release = version = installed_version("fnarray")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "decisions/0000-template.md"]
html_theme = "furo"
html_title = "fnarray"
