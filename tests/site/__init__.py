"""The documentation in a browser."""
