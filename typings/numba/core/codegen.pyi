"""Numba's libraries of machine code."""

from typing import Any

class JITCodeLibrary:
    name: str
    _codegen: Any
    _final_module: Any
    def __init__(self, codegen: Any, name: str) -> None: ...
    def add_ir_module(self, ir_module: Any) -> None: ...
    def enable_object_caching(self) -> None: ...
