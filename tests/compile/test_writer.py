"""The writer: indentation, names, where a statement may go. Its text is Python, and runs."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fnarray.compile.emit.writer import RESERVED, Writer


def executed(w: Writer, **names: Any) -> dict[str, Any]:
    """Run what was written as the body of a function; return its local names."""
    text = "def body():\n" + w.render() + "    return locals()\n"
    ast.parse(text)
    scope = dict(names)
    exec(text, scope)
    return scope["body"]()


def test_suites_are_indented_below_their_header():
    """A suite stands where it was closed, four columns in; statements keep their order."""
    w = Writer()
    w.line("x = 0")
    with w.block("for i in range(3):"):
        w.line("x += i")
        with w.block("if i == 1:"):
            w.line("x += 10")
        w.line("x += 100")
    w.line("y = x")
    assert w.render(0) == (
        "x = 0\n"
        "for i in range(3):\n"
        "    x += i\n"
        "    if i == 1:\n"
        "        x += 10\n"
        "    x += 100\n"
        "y = x\n"
    )
    assert executed(w)["y"] == 3 + 10 + 300
    assert w.render(2).startswith("        x = 0\n")


def test_empty_suites_pass():
    """A suite without statements, or of comments alone, is still one."""
    w = Writer()
    with w.block("if True:"):
        pass
    with w.block("if True:"):
        w.note("# nothing to do")
    assert w.render(0) == "if True:\n    pass\nif True:\n    pass\n    # nothing to do\n"
    executed(w)
    assert Writer().render(0) == "pass\n"


@settings(deadline=None)
@given(st.lists(st.sampled_from(["i", "u", "f", "c", "b", "t", "w"]), max_size=150))
def test_names_are_new(prefixes):
    """No name is given twice, and none is a dtype's."""
    w = Writer()
    names = [w.fresh(prefix) for prefix in prefixes]
    assert len(set(names)) == len(names)
    assert not RESERVED & set(names)
    assert all(
        n.startswith(p) and n[len(p) :].isdigit() for n, p in zip(names, prefixes, strict=True)
    )


def test_a_value_leaves_the_loops_it_does_not_depend_on():
    """Sent to an outer scope, an assignment stands before the suite that is open there."""
    w = Writer()
    with w.block("for i in range(2):"), w.block("for j in range(3):"):
        inner = w.assign("i + j")
        outer = w.assign("5", depth=0)
        middle = w.assign("i * 2", depth=1, prefix="m")
        w.line(f"last = {inner} + {outer} + {middle}")
    assert w.render(0) == (
        "t1 = 5\n"
        "for i in range(2):\n"
        "    m0 = i * 2\n"
        "    for j in range(3):\n"
        "        t0 = i + j\n"
        "        last = t0 + t1 + m0\n"
    )
    assert (w.depth_of[inner], w.depth_of[outer], w.depth_of[middle]) == (2, 0, 1)
    assert executed(w)["last"] == 1 + 2 + 5 + 2


def test_nothing_passes_a_barrier():
    """What is computed under a barrier stays there, however far out it asks to go."""
    w = Writer()
    with w.block("for i in range(2):"):
        assert w.floor == 0
        with w.block("if False:", barrier=True):
            assert w.floor == 2
            with w.block("for j in range(2):"):
                assert w.floor == 2
                name = w.assign("1 // 0", depth=0)
                w.remember("key", name, depth=0)
            assert w.recall("key") == name
        assert w.recall("key") is None
        assert w.floor == 0
    assert w.depth_of[name] == 2
    assert w.render(0) == (
        "for i in range(2):\n"
        "    if False:\n"
        "        t0 = 1 // 0\n"
        "        for j in range(2):\n"
        "            pass\n"
    )
    executed(w)


def test_values_are_known_inside_their_scope():
    """A remembered value is found from its scope inwards, the innermost first, then forgotten."""
    w = Writer()
    w.remember("a", "outside")
    with w.block("if True:"):
        assert w.recall("a") == "outside"
        w.remember("a", "inside")
        w.remember("b", "hoisted", depth=0)
        assert w.recall("a") == "inside"
        with w.block("if True:"):
            assert w.recall("a") == "inside"
    assert w.recall("a") == "outside"
    assert w.recall("b") == "hoisted"
    assert w.recall("c") is None


def test_declared_names_live_in_the_innermost_scope():
    """A loop's counter is known at the depth of its suite."""
    w = Writer()
    assert w.declare("x") == "x"
    with w.block("for i in range(2):"):
        w.declare("i")
    assert w.depth_of == {"x": 0, "i": 1}


def test_a_comment_is_not_repeated():
    """The scope's last comment stands for what follows, whatever statements lie between."""
    w = Writer()
    for comment in ("# a", "# a", "# b", "# a"):
        w.note(comment)
        w.line("x = 1")
    assert w.render(0).splitlines() == ["# a", "x = 1", "x = 1", "# b", "x = 1", "# a", "x = 1"]


#: What to do next: open a loop or a branch, close the innermost, or bind a sum of known names.
ACTIONS = st.lists(
    st.one_of(
        st.sampled_from(["loop", "taken", "not taken", "close"]),
        st.lists(st.integers(0, 50), max_size=3),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(ACTIONS)
def test_hoisted_values_are_what_they_would_be_in_place(actions):
    """As far out as its operands allow, a value is the same, and defined wherever it is used.

    A branch not taken divides by zero: a value that left it would raise.
    """
    w, blocks, names = Writer(), [], [[]]
    for action in actions:
        if action == "close":
            if blocks:
                blocks.pop().__exit__(None, None, None)
                names.pop()
            continue
        if isinstance(action, str):
            counter = w.fresh("i")
            header = (
                f"for {counter} in range(3):" if action == "loop" else f"if {action == 'taken'}:"
            )
            blocks.append(w.block(header, barrier=action != "loop"))
            blocks[-1].__enter__()
            names.append([w.declare(counter)] if action == "loop" else [])
            if action == "not taken":
                names[-1].append(w.assign("1 // 0", depth=0))
            continue
        known = [name for scope in names for name in scope]
        operands = [known[k % len(known)] for k in action if known]
        text = " + ".join([*operands, "1"])
        depth = max((w.depth_of[name] for name in operands), default=0)
        name = w.assign(text, depth=depth)
        assert depth <= w.depth_of[name] == max(depth, w.floor)
        names[w.depth_of[name]].append(name)
        w.line(f"assert {name} == {text}")
    while blocks:
        blocks.pop().__exit__(None, None, None)
    executed(w)
