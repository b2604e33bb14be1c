"""What arrays hold of memory, as a profile that Google's ``pprof`` reads.

A profile is a protocol buffer of few fields: numbers of 7 bits a byte, and what has a length. Names
of fields are those of pprof's ``profile.proto``.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable

Held = tuple[str, str, int]


def profile(arrays: Iterable[Held]) -> bytes:
    """Return a profile, compressed, of arrays: their type, their device, and their bytes each.

    Arrays of one type on one device are one sample: how many there are, and their bytes.
    """
    count, space = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for name, device, size in arrays:
        count[name, device] += 1
        space[name, device] += size
    names: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        return names.setdefault(text, len(names))

    out = bytearray()
    for kind, unit in ("allocations", "count"), ("space", "bytes"):
        out += _field(1, _number(1, number(kind)) + _number(2, number(unit)))  # sample_type
    places = {name: k for k, name in enumerate(dict.fromkeys(n for n, _ in count), 1)}
    for (name, device), n in count.items():
        labels = b"".join(
            _field(3, _number(1, number(key)) + _number(2, number(value)))
            for key, value in (("kind", "buffer"), ("device", device))
        )
        values = _number(2, n) + _number(2, space[name, device])
        out += _field(2, _number(1, places[name]) + values + labels)  # sample
    for name, k in places.items():
        out += _field(4, _number(1, k) + _field(4, _number(1, k)))  # location, its line
        out += _field(5, _number(1, k) + _number(2, number(name)))  # function
    for text in names:
        out += _field(6, text.encode())  # string_table
    return gzip.compress(bytes(out))


def _varint(n: int) -> bytes:
    out = bytearray()
    while n >= 128:
        out.append(n % 128 + 128)
        n //= 128
    return bytes([*out, n])


def _number(field: int, n: int) -> bytes:
    return _varint(field * 8) + _varint(n)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field * 8 + 2) + _varint(len(content)) + content
