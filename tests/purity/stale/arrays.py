"""NumPy arrays, written in place or given another form."""

from __future__ import annotations

from . import Row, rows

_W = "w = np.full((2, 2), 2.0, np.float32)"
_SET = "w[...] = 3.0"

ROWS: dict[str, Row] = {
    **rows(
        "array", _W, _SET,
        "w[0, 0]", "w.T[0, 0]", "w.real[0, 0]", "w.flat[1]", "w.sum()", "w.mean()", "w.max()",
        "w.item(0)", "w.tolist()[0][0]", "w.ravel()[0]", "w.reshape(4)[0]", "w.copy()[0, 0]",
        "w.astype(np.float32)[0, 0]", "w.view()[0, 0]", "w.diagonal()[0]", "w.dot(w)[0, 0]",
        "np.sum(w)", "np.asarray(w)[0, 0]", "np.linalg.norm(w)", "jnp.asarray(w)[0, 0]",
        "jnp.sum(w)", "(w * 2)[0, 0]", "(-w)[0, 0]", "(w > 2.5).sum()", "(1 if w.all() else 2) * w[1, 1]",
        "next(iter(w))[0]", "[r[0] for r in w][0]", "sum(map(float, w.flat))", "float(w[0, 0])",
        "w.__array__()[0, 0]", "min(w.flat)", "list(w)[0][0]", "len(f'{w[0, 0]:.0f}') * w[0, 1]",
        "w.data[0, 0]", "getattr(w, 'T')[0, 0]", "operator.getitem(w, (0, 0))", "w.imag[0, 0] + w[0, 1]",
        "np.frombuffer(w, np.float32)[0]", "w.tobytes()[2]", "copy.copy(w)[0, 0]", "copy.deepcopy(w)[0, 0]",
        "functools.reduce(operator.add, w.flat)", "np.add.reduce(w)[0]", "{**{'a': w}}['a'][0, 0]",
        "(w, 1)[0][0, 0]", "[*w][0][0]", "max(*w[0])", "(lambda a: a[0, 0])(w)", "w.cumsum()[3]",
    ),
    **rows("array in a tuple", "w = (np.full(2, 2.0, np.float32), 1)", "w[0][...] = 3.0",
           "w[0][0]", "sum(w[0])", "[a for a in w][0][1]", "jnp.stack(w[0])[0]"),
    **rows("large array", "w = np.full(2**19, 2.0, np.float32)", _SET, "w[0]", "w.sum()", "w.T[0]"),
    **rows("array of objects", "w = np.array([2.0, [1]], dtype=object)", "w[0] = 3.0", "w[0]"),
    **rows("form of an array", "w = np.ones((2, 3), np.float32)", "w.shape = (3, 2)",
           "w.shape[0]", "len(w)", "jnp.asarray(w).shape[1]", "np.shape(w)[0]", "w.strides[0]"),
    **rows("dtype of an array", "w = np.ones(2, np.float32)", "w.dtype = np.int32", "w[0]", "w.sum()"),
    **rows("view of an array", "base = np.full(4, 2.0, np.float32); w = base[:2]", "base[...] = 3.0",
           "w[0]", "w.sum()", "w.base[0]"),
    **rows("read-only view", "base = np.full(4, 2.0, np.float32); w = base[:2]; w.flags.writeable = False",
           "base[...] = 3.0", "w[0]", "w.sum()"),
    **rows("broadcast view", "base = np.full(1, 2.0, np.float32); w = np.broadcast_to(base, (3,))",
           "base[...] = 3.0", "w[0]", "w.sum()"),
    **rows("transposed view", "base = np.full((2, 3), 2.0, np.float32); w = base.T", "base[...] = 3.0",
           "w[0, 0]", "w.sum()"),
    **rows("strided view", "base = np.full(6, 2.0, np.float32); w = base[::2]", "base[...] = 3.0",
           "w[0]", "w.sum()"),
    **rows("view of a bytearray", "raw = bytearray(b'\\2\\2'); w = np.frombuffer(raw, np.uint8)",
           "raw[0] = 3", "w[0]"),
    **rows("read-only view of a bytearray",
           "raw = bytearray(b'\\2\\2'); w = np.frombuffer(memoryview(raw).toreadonly(), np.uint8)",
           "raw[0] = 3", "w[0]"),
    **rows("read-only array made writable", "W = np.full(2, 2.0, np.float32); W.flags.writeable = False",
           "W.flags.writeable = True\nW[...] = 3.0", "W[0]"),
    **rows("large read-only array made writable",
           "W = np.full(2**19, 2.0, np.float32); W.flags.writeable = False",
           "W.flags.writeable = True\nW[...] = 3.0", "W[0]"),
    **rows("subclass of an array",
           "class A(np.ndarray):\n    scale = 1.0\n    def first(self): return self[0]\n"
           "    @property\n    def twice(self): return self[0] * 2\n"
           "w = np.full(2, 2.0, np.float32).view(A); w.scale = 2.0",
           "w[...] = 3.0; w.scale = 3.0", "w.scale", "w[0]", "w.first()", "w.twice"),
    **rows("other arrays", "w = np.ma.array([2.0, 2.0], mask=[False, True])", "w[0] = 3.0", "w[0]", "w.sum()"),
    **rows("recarray", "w = np.array([(2.0,)], dtype=[('a', 'f4')]).view(np.recarray)", "w.a[0] = 3.0", "w.a[0]"),
    **rows("array.array", "w = array.array('d', [2.0])", "w[0] = 3.0", "w[0]", "sum(w)", "list(w)[0]"),
    **rows("bytearray", "w = bytearray(b'\\2')", "w[0] = 3", "w[0]", "sum(w)", "bytes(w)[0]"),
    **rows("memoryview", "raw = bytearray(b'\\2'); w = memoryview(raw)", "raw[0] = 3", "w[0]", "w.tolist()[0]"),
    **rows("attribute of a frozen object",
           "@dataclasses.dataclass(frozen=True)\nclass P:\n    w: object\np = P(np.full(2, 2.0, np.float32))",
           "p.w[0] = 3.0", "p.w[0]", "p.w.T[0]", "sum(p.w)", "dataclasses.astuple(p)[0][0]",
           "dataclasses.asdict(p)['w'][0]", "dataclasses.replace(p).w[0]", "vars(p)['w'][0]"),
    **rows("default", "w = np.full(2, 2.0, np.float32)\ndef f(x, w=w):\n    return x * w[0]", "w[0] = 3.0", ""),
    **rows("partial", "w = np.full(2, 2.0, np.float32)\ndef g(w, x):\n    return x * w[0]\n"
           "f = functools.partial(g, w)", "w[0] = 3.0", ""),
    **rows("closure", "def make():\n    w = np.full(2, 2.0, np.float32)\n"
           "    def f(x):\n        return x * w.T[0]\n    return f, w\nf, held = make()", "held[0] = 3.0", ""),
    **rows("argument of the maker", "def make(w):\n    return lambda x: x * w[0]\n"
           "held = np.full(2, 2.0, np.float32)\nf = make(held)", "held[0] = 3.0", ""),
}  # fmt: skip
