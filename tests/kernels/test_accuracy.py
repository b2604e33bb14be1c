"""The page of the reference on accuracy states what is promised, and what is promised holds."""

from __future__ import annotations

import pytest

from .accuracy import PAGE, page, promised, stated
from .bounds import SPECIAL, special_errors
from .loops import special_loop


def test_page_states_the_promises():
    """Its tables are those that the bounds give, and no error on it is over its bound."""
    text = PAGE.read_text()
    met = stated(text)
    assert page(text, met) == text
    assert met.keys() == promised().keys()
    for name, bounds in promised().items():
        assert all(m <= b for m, b in zip(met[name], bounds, strict=True)), name


@pytest.mark.parametrize("name", SPECIAL)
def test_special_bound(name):
    """The stated bound of a special function holds for float32, beside SciPy in float64."""
    off = special_errors(name, 3_000, special_loop)
    assert off.max() <= SPECIAL[name][-1]
