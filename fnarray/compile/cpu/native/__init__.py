"""The other compiler of kernels: reads their text by Python's syntax, and writes LLVM.

Numba stays the reference: whatever this one accepts computes what Numba's code would, bit for bit,
and whatever it does not know is a `Fallback` with its reason (decision 0013).
"""
