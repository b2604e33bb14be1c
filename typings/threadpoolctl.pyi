"""What `fnarray.core.onethread` uses of threadpoolctl."""

from typing import Any

class ThreadpoolController:
    lib_controllers: list[Any]
    def select(self, *, user_api: str) -> ThreadpoolController: ...
