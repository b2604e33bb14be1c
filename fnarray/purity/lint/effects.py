from __future__ import annotations


class Effects:
    def __init__(self, *a):
        pass

    def check(self, t):
        return []
