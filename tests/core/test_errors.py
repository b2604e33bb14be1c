"""The exceptions: names, bases, messages, pickling."""

from __future__ import annotations

import pickle

import jax
import pytest

from fnarray import errors

EXCEPTIONS = [
    getattr(errors, name)
    for name in errors.__all__
    if not issubclass(getattr(errors, name), Warning)
]
BUILTIN = (TypeError, IndexError, ValueError, RuntimeError)


@pytest.mark.parametrize("name", [n for n in dir(jax.errors) if n[0].isupper()])
def test_jax_names_have_jax_bases(name):
    """Each exception of jax.errors is here and is caught by the same built-in classes."""
    ours, theirs = getattr(errors, name), getattr(jax.errors, name)
    for base in BUILTIN:
        assert issubclass(ours, base) or not issubclass(theirs, base), base
    for other in dir(jax.errors):
        if other[0].isupper() and issubclass(theirs, getattr(jax.errors, other)):
            assert issubclass(ours, getattr(errors, other)), other


@pytest.mark.parametrize("cls", EXCEPTIONS)
def test_one_base_catches_all(cls):
    """Every exception is a `FnarrayError`, has a docstring, and stands in the drawn tree."""
    assert issubclass(cls, errors.FnarrayError)
    assert cls.__doc__
    assert cls.__name__ in errors.__doc__


def test_missing_rule_names_transform_op_and_reason():
    """The message has all three parts, and they survive a process boundary."""
    error = errors.MissingRuleError("vmap", "sort_by_key", "pass one row at a time.")
    assert str(error) == "vmap of 'sort_by_key' has no rule: pass one row at a time."
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.op, again.transform) == (str(error), "sort_by_key", "vmap")


def test_cache_warning_is_a_warning():
    """Cache trouble can be filtered, and is no exception of ours."""
    assert issubclass(errors.CacheWarning, UserWarning)
    assert not issubclass(errors.CacheWarning, errors.FnarrayError)
