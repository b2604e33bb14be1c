"""The collector waits while a program is made, and goes on as it was."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from fnarray.core.uncollected import count_as_old, uncollected


def test_it_goes_on_with_the_last(request):
    """Blocks within each other, errors, and two threads: the collector is off until all ended."""
    request.addfinalizer(gc.enable)
    inside, done = threading.Event(), threading.Event()

    def other():
        with uncollected():
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    with pytest.raises(ZeroDivisionError), uncollected():
        thread.start()
        inside.wait()
        with uncollected():
            assert not gc.isenabled()
        1 / 0  # noqa: B018
    assert not gc.isenabled()
    done.set()
    thread.join()
    assert gc.isenabled()
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_collects():
    """A child that is forked meanwhile has no thread that would set it going."""
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert gc.isenabled()


def test_what_somebody_froze_stays_so(request, monkeypatch):
    """Nothing is counted as old then; how many they are, which takes a walk, is asked once."""
    monkeypatch.setattr("fnarray.core.uncollected._frozen", [False])
    request.addfinalizer(gc.enable)
    asked = []
    count = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(1) or count())
    gc.freeze()
    frozen = count()
    for _ in range(3):
        with uncollected():
            young = [[]]
            count_as_old()
            assert any(one is young for one in gc.get_objects(0))
    assert len(asked) == 1
    assert count() <= frozen


def test_what_stays_is_counted_as_old(request, monkeypatch):
    """What was made inside is the oldest generation's; nested, nothing is."""
    monkeypatch.setattr("fnarray.core.uncollected._frozen", [False])
    request.addfinalizer(gc.enable)
    if gc.get_freeze_count():  # as the suite does
        gc.unfreeze()
        request.addfinalizer(gc.freeze)
    gc.collect()
    with uncollected():
        with uncollected():
            young = [[] for _ in range(10)]
            count_as_old()
            assert any(one is young for one in gc.get_objects(0))
        count_as_old()
        assert not any(one is young for one in gc.get_objects(0))
        assert any(one is young for one in gc.get_objects(2))
    gc.disable()
    with uncollected():
        young = [[]]
        count_as_old()
        assert any(one is young for one in gc.get_objects(0))
