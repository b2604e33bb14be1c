"""See `llvmlite.binding`."""
