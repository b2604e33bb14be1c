"""Nouns: dtypes, avals, trees, arrays, graphs, tracing. Knows nothing of operations."""
