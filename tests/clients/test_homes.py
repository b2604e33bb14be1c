"""What libraries find out of values and primitives when fnarray stands in for jax."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def said(program: str) -> list[str]:
    text = "import fnarray.as_jax\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_values_are_at_home_where_those_of_jax_are() -> None:
    """Libraries for several array packages (autoray) go by the home of a value's class."""
    homes = said("""
        import jax, jax.numpy as jnp
        home = lambda x: type(x).__module__.partition(".")[0]
        print(home(jnp.ones(2)))
        look = lambda x: print(home(x)) or x * 2.0
        jax.jit(look)(1.0), jax.grad(look)(1.0), jax.vmap(look)(jnp.ones(2))
        jax.jvp(look, (1.0,), (1.0,))
    """)
    assert homes == ["jaxlib", *["jax"] * 4]


def test_a_class_of_primitives_has_its_rules_as_methods() -> None:
    found = said("""
        import jax
        from jax.extend.core import Primitive

        class Tag(Primitive):
            multiple_results = True

            def impl(self, *xs):
                return xs

            def abstract_eval(self, *avals):
                return avals, jax.core.no_effects

        tag = Tag("tag")
        text = str(jax.make_jaxpr(lambda x: tag.bind(x, x)[0])(1.0))
        print(len(tag.bind(1.0, 2.0)), text.count("tag"))
        print(Primitive("plain").multiple_results)
    """)
    assert found == ["2", "1", "False"]
