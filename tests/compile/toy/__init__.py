"""A third target: C-like text, columns first, no libraries. This folder is all it takes."""
