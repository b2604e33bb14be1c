"""Functions that go through containers and iterators: what is put in comes out."""

from __future__ import annotations

from . import Row, rows

KNOWN = """
K = [2.0]
def g(v): return v * K[0]
"""

ROWS: dict[str, Row] = rows(
    "a function",
    KNOWN,
    "K[0] = 5.0",
    'dict(zip(("a","b"), (g, g)))["a"](1.0)',
    '[dict(zip(("a",), (g,)))[n] for n in ("a",)][0](1.0)',
    'copy.deepcopy({"k": g})["k"](1.0)',
    'collections.ChainMap({}, {"k": g})["k"](1.0)',
    '({} | {"k": g})["k"](1.0)',
    '{"k": g}.popitem()[1](1.0)',
    'collections.defaultdict(lambda: g)["k"](1.0)',
    "([] + [g])[0](1.0)",
    "([g] * 2)[1](1.0)",
    "next(itertools.chain.from_iterable([[g]]))(1.0)",
    "next(itertools.product([g], [1]))[0](1.0)",
    "next(itertools.zip_longest([g], [1]))[0](1.0)",
    "next(itertools.starmap(lambda h, v: h(v), [(g, 1.0)]))",
    "[list(v) for k, v in itertools.groupby([g], key=id)][0][0](1.0)",
    'operator.methodcaller("__call__", 1.0)(g)',
    "g.__call__(1.0)",
    "functools.cache(g)(2.0) * x",
    "((1,) + (g,))[1](1.0)",
    'collections.OrderedDict([("k", g)])["k"](1.0)',
    'collections.defaultdict(list, [("k", g)])["k"](1.0)',
    '[h(1.0) for h in dict(zip("ab", [g, g])).values()][0]',
    "next(itertools.pairwise([g, g]))[0](1.0)",
    "next(itertools.combinations([g, 1], 2))[0](1.0)",
    "next(itertools.permutations([g], 1))[0](1.0)",
    "list(zip(*[iter([g, g])] * 2))[0][1](1.0)",
    '({"a": 1} | dict(k=g))["k"](1.0)',
)
