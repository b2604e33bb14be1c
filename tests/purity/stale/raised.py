"""Exceptions that are kept, functions that handle errors of encoding, items that are told apart."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

ROWS: dict[str, Row] = {
    **rows(
        "cause of an exception",
        "E=ValueError('a')",
        "E.__cause__=KeyError()",
        "2.0 if E.__cause__ is None else 3.0",
        "2.0 if not E.__suppress_context__ else 3.0",
    ),
    **rows(
        "traceback of an exception",
        "E=ValueError('a')",
        "try: raise E\nexcept ValueError: pass",
        "2.0 if E.__traceback__ is None else 3.0",
        "2.0 if E.__traceback__ else 3.0",
        "float(getattr(E,'__traceback__') is None)+1",
    ),
    **rows(
        "arguments of an exception",
        "E=ValueError('a')",
        "E.args=(1,2,3)",
        "float(len(E.args))",
        "float(len(str(E)))",
    ),
    **rows(
        "what handles errors of encoding",
        "import codecs\ncodecs.register_error('row',lambda e:('a',e.end))",
        "codecs.register_error('row',lambda e:('aaa',e.end))",
        "float(len('\\u1234'.encode('ascii','row')))",
        "float(len(bytes([233]).decode('ascii',errors='row')))",
        "float(len(codecs.encode('\\u1234','ascii','row')))",
        "float(len(str(bytes([233]),'ascii','row')))",
        "float(len(bytes('\\u1234','ascii','row')))",
        "float(len(codecs.lookup_error('row')(UnicodeEncodeError('a','b',0,1,'c'))[0]))",
    ),
    **rows(
        "which array a list holds",
        "w=jnp.ones(2); v=jnp.zeros(2)\nD=[w]\ndef g(i): return D[i]",
        "D[0]=v",
        "2.0 if D[0] is w else 3.0",
        "2.0 if g(0) is w else 3.0",
        "2.0 if any(a is w for a in D) else 3.0",
        "(lambda a: 2.0 if a[0] is w else 3.0)(D)",
    ),
    **rows(
        "property of a metaclass",
        "class M(type):\n    h=[2.0]\n    @property\n    def k(c): return c.h[0]\nclass S(metaclass=M): pass",
        "M.h[0]=3.0",
        "S.k",
    ),
    **rows(
        "patterns and stars",
        "class N:\n    __match_args__=('k',)\n    k=2.0\n    j=3.0\nn=N()\ndef g(q):\n    match q:\n        case N(k): return k\n    return 1.0",
        "N.__match_args__=('j',)",
        "g(n)",
    ),
    **rows(
        "factory of a mapping",
        "d=collections.defaultdict(lambda: 2.0)",
        "d.default_factory=lambda: 3.0",
        "d['z']",
        "d.default_factory()",
    ),
}  # fmt: skip
