"""What is kept with a callable: with functions, methods and objects, and for how long."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import fnarray
from fnarray.core import keep


class Equal:
    """Equal to all of its kind, as an object that compares a name may be."""

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def test_objects_are_told_apart_by_identity():
    """Two objects that say that they are equal share nothing."""
    one, two = Equal(1), Equal(2)
    keep.kept_with(one).table("programs")["key"] = "one"
    assert keep.kept_with(two).table("programs") == {}
    assert keep.kept_with(one).table("programs") == {"key": "one"}


def test_what_is_kept_goes_with_the_object():
    """An object made where another one was finds nothing of it."""
    for k in range(5):
        made = Equal(k)
        table = keep.kept_with(made).table("programs")
        assert table == {}
        table["key"] = k
        del made
    gc.collect()
    left = [ref() for ref, _ in keep._objects.values()]
    assert not [x for x in left if x is None or type(x) is Equal]


def test_equal_methods_share():
    """A method is made anew at each access: it is known by its object and its function."""
    one = Equal(1)
    first, second = one.__call__, one.__call__
    assert first is not second
    assert keep.kept_with(first) is keep.kept_with(second)


def test_a_process_ends_in_silence():
    """Objects that outlive the module's globals complain of nothing."""
    code = (
        "from fnarray.core import keep\n"
        "class C:\n    def __call__(self, x): return x\n"
        "import sys; sys.held = C(); keep.kept_with(sys.held)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_method_made_anew_at_each_access_is_traced_once():
    """What is kept with a bound method stays with its function and object, and goes with these."""

    class Scale:
        factor = 3.0

        def apply(self, x):
            traces.append(1)
            return x * 2.0

    class Other(Scale):
        def apply(self, x):
            return super().apply(x) + 1.0

    traces = []
    one, other = Scale(), Other()
    with fnarray.effects("off"):
        for each in (one, other):
            results = [float(fnarray.jit(each.apply)(1.0)) for _ in range(3)]
            assert len(set(results)) == 1
    assert traces == [1, 1]
    gone = weakref.ref(one)
    del one, each
    gc.collect()
    assert gone() is None
