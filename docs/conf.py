"""Sphinx settings."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "fnarray"
author = "the fnarray maintainers"
release = version = installed_version("fnarray")

extensions = ["myst_parser", "reference", "gallery", "navigation"]
default_role = "any-public"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "decisions/0000-template.md", "changes", "_ext"]
maximum_signature_line_length = 80
add_module_names = False
html_theme = "furo"
html_title = "fnarray"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["fnarray.css"]
html_show_copyright = False
# Summaries are fetched, which pages that are opened as files may not do.
html_show_search_summary = False
