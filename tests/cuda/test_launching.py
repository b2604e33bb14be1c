"""Arguments of launches, as the driver lays them out: by machine code, and by Python."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from fnarray.compile.cuda import launching

SIGNATURE = ("f32[1]", "b1", "i8", "f32", "u16[1]", "u8", "i16", "f64", "u32", "i64", "i32", "u64")


class Room:
    """Something with an address, as arrays have."""

    __slots__ = ("pointer",)

    def __init__(self, pointer: int = 0):
        self.pointer = pointer


GIVEN = (
    Room(1 << 46), True, -3, 0.1, Room(512), 200, np.int16(-5), np.float32(2.5), np.uint32(7),
    -(1 << 40), np.int64(9), (1 << 64) - 1,
)  # fmt: skip

_Driver = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
)


class Driver:
    """Keeps what it is asked to launch."""

    def __init__(self, code: int = 0):
        self.seen = []
        self.code = code
        self.call = _Driver(self._launch)

    def _launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra) -> int:
        words = (ctypes.c_size_t * 5).from_address(extra)
        size = ctypes.c_size_t.from_address(words[3]).value
        assert (words[0], words[2], words[4], params) == (1, 2, 0, None)
        packed = ctypes.string_at(words[1], size)
        self.seen.append((function, (gx, gy, gz), (bx, by, bz), shared, stream, packed))
        return self.code


def launches(driver: Driver, signature=SIGNATURE, most: int = 1024):
    """Return both ways of launching."""
    given = (driver.call, 11, 22, most, signature)
    return launching.launcher(*given, Room), launching._plain(*given)


def test_arguments_lie_where_a_struct_has_them() -> None:
    """Each at a multiple of its own size, of all types, and from NumPy's numbers."""
    driver = Driver()
    for launch in launches(driver):
        assert launch(1 << 20, 256, *GIVEN) == 0
    native, plain = driver.seen
    values = [x.pointer if isinstance(x, Room) else x for x in GIVEN]
    packed = struct.pack("@P?bfPBhdIqiQ", *values)
    fields = launching.packer_of(SIGNATURE)
    assert fields.unpack(native[-1]) == fields.unpack(plain[-1]) == fields.unpack(packed)
    assert len(native[-1]) == len(plain[-1]) == len(packed)
    assert native[:-1] == plain[:-1] == (11, (1 << 20, 1, 1), (256, 1, 1), 0, 22)


def test_machine_code_launches() -> None:
    """Python's way is for machines where ours cannot be loaded."""
    native, plain = launches(Driver())
    assert type(native) is type(len)
    assert type(plain) is not type(len)


def test_lanes_that_a_kernel_may_have() -> None:
    """More are cut."""
    driver = Driver()
    for launch in launches(driver, (), most=128):
        launch(1, 256)
        launch(1, 32)
    assert [seen[2][0] for seen in driver.seen] == [128, 32] * 2


def test_errors_of_the_driver_are_its_numbers() -> None:
    """The caller says what they mean."""
    for launch in launches(Driver(701), ()):
        assert launch(1, 32) == 701


@pytest.mark.parametrize(
    ("given", "kind"),
    [((1.5,), TypeError), ((), TypeError), ((1, 2), TypeError), (("one",), TypeError)],
)
def test_other_arguments_are_refused(given, kind) -> None:
    """As Python's numbers are, and without a launch."""
    driver = Driver()
    native, _ = launches(driver, ("i64",))
    with pytest.raises(kind):
        native(1, 32, *given)
    arrays, _ = launches(driver, ("f32[1]",))
    with pytest.raises(TypeError, match="other arguments"):
        arrays(1, 32, np.zeros(3))
    assert not driver.seen
