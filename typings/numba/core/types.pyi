"""Numba's types."""

class Type: ...

class Array(Type):
    def __init__(self, dtype: Type, ndim: int, layout: str) -> None: ...

none: Type
boolean: Type
int8: Type
int16: Type
int32: Type
int64: Type
uint8: Type
uint16: Type
uint32: Type
uint64: Type
float32: Type
float64: Type
complex64: Type
complex128: Type
