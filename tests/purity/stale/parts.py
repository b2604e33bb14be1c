"""What functions of libraries ask of the user's objects that they find in what they are given.

Each row replaces a special method of a frozen class, whose objects are captured.
"""

from __future__ import annotations

from . import Row, rows

BOX = """
@dataclasses.dataclass(frozen=True)
class Box:
    v: float
    def as_integer_ratio(self): return self.v.as_integer_ratio()
    def __float__(self): return self.v
    def __index__(self): return int(self.v)
    def __lt__(self, o): return self.v < getattr(o, 'v', o)
    def __gt__(self, o): return self.v > getattr(o, 'v', o)
    def __le__(self, o): return self.v <= getattr(o, 'v', o)
    def __ge__(self, o): return self.v >= getattr(o, 'v', o)
    def __eq__(self, o): return self.v == getattr(o, 'v', o)
    def __hash__(self): return hash(self.v)
    def __add__(self, o): return self.v + float(o)
    __radd__ = __add__
    def __sub__(self, o): return self.v - float(o)
    def __rsub__(self, o): return float(o) - self.v
    def __mul__(self, o): return self.v * float(o)
    __rmul__ = __mul__
    def __truediv__(self, o): return self.v / float(o)
    def __abs__(self): return abs(self.v)
    def __neg__(self): return -self.v
    def __str__(self): return str(self.v)
    def __repr__(self): return str(self.v)
    def __format__(self, s): return str(self.v)
    def __bool__(self): return self.v > 1.0
    def __len__(self): return int(self.v)
    def __iter__(self): return iter((self.v, self.v))
    def __contains__(self, x): return x == self.v
    def __getitem__(self, i):
        if i > 1: raise IndexError
        return self.v
    def __call__(self, *a): return self.v
    def __copy__(self): return self
    def key(self): return self.v
    def __round__(self, n=0): return round(self.v)
b = Box(2.0); c = Box(4.0)
import bisect, fractions, heapq, pprint, reprlib, statistics, string, struct
"""


def r(name: str, change: str, *reads: str) -> dict[str, Row]:
    """Return rows that read two boxes."""
    return rows(name, BOX, change, *reads)


ROWS: dict[str, Row] = {
    **r(
        "float",
        "Box.__float__ = lambda s: 10.0",
        "math.fsum([b,c])",
        "statistics.fmean([b,c])",
        "math.prod([1.0]) * math.fsum((b,))",
        "math.dist([b],[c])",
        "math.hypot(*[b, c])",
        "float(np.sum([float(x) for x in [b,c]]))",
        "jnp.asarray([float(x) for x in (b,c)])[0]",
        "struct.unpack('d', struct.pack('d', b))[0]",
        "float('%f' % b)",
        "array.array('d',[b,c])[0]",
        "next(map(float,[b,c]))",
        "sum(map(float,(b,c)))",
        "[*map(float,{'k':b}.values())][0]",
        "float(max(map(float,[b,c])))",
        "complex(b).real",
        "np.fromiter((float(x) for x in [b,c]), float)[0]",
    ),
    **r(
        "lt",
        "Box.__lt__ = lambda s,o: s.v > o.v",
        "statistics.median_low([b,c]).v",
        "heapq.nsmallest(1,[b,c])[0].v",
        "sorted([b,c])[0].v",
        "min([b,c]).v",
        "min(b,c).v",
        "sorted([(b,1),(c,1)])[0][0].v",
        "bisect.bisect_left([b,c], Box(3.0)) + 1.0",
        "next(heapq.merge([b],[c])).v",
        "sorted({'a':b,'z':c}.items(), key=lambda kv: kv[1])[0][1].v",
        "min([b,c], key=lambda q: q).v",
        "(lambda l: (l.sort(), l[0].v)[1])([b,c])",
        "(lambda h: (heapq.heapify(h), h[0].v)[1])([c,b])",
        "2.0 if [b] < [c] else 3.0",
        "2.0 if (1,b) < (1,c) else 3.0",
        "sorted([c,b], key=functools.cmp_to_key(lambda p,q: -1 if p<q else 1))[0].v",
    ),
    **r(
        "eq",
        "Box.__eq__ = lambda s,o: True",
        "float([b,c].index(c)) + 1",
        "float([b,c].count(b)) + 1",
        "len([*itertools.groupby([b,c])]) + 0.0",
        "2.0 if [b]==[c] else 3.0",
        "2.0 if (b,)==(c,) else 3.0",
        "2.0 if {'k':b}=={'k':c} else 3.0",
        "2.0 if c in [b] else 3.0",
        "2.0 if c in (b,) else 3.0",
        "(lambda l: (l.remove(c), len(l)>0 and l[0].v)[1])([b,c])",
        "operator.indexOf([b,c], c) + 1.0",
        "operator.countOf([b,c], c) + 1.0",
        "2.0 if all(map(operator.eq,[b],[c])) else 3.0",
    ),
    **r(
        "hash",
        "Box.__hash__ = lambda s: 7; Box.__eq__ = lambda s,o: True",
        "len({b,c}) + 0.0",
        "len(set([b,c])) + 0.0",
        "len({b:1,c:2}) + 0.0",
        "len(dict.fromkeys([b,c])) + 0.0",
        "len(collections.Counter([b,c])) + 0.0",
        "len(frozenset((b,c))) + 0.0",
        "len(dict([(b,1),(c,2)])) + 0.0",
        "len(set() | {b,c}) + 0.0",
    ),
    **r(
        "hash alone",
        "Box.__hash__ = lambda s: 7",
        "float(hash((b,)))",
        "float(hash(frozenset([b])) % 97)",
    ),
    **r(
        "add",
        "Box.__add__ = lambda s,o: 50.0; Box.__radd__ = lambda s,o: 50.0",
        "sum([b,c])",
        "functools.reduce(operator.add,[b,c])",
        "[*itertools.accumulate([b,c])][1]",
        "sum((b,c), 0.0)",
        "[*map(operator.add,[b],[c])][0]",
        "[*itertools.starmap(operator.add,[(b,c)])][0]",
        "functools.reduce(lambda p,q: p+q, (b,c))",
    ),
    **r(
        "mul",
        "Box.__mul__ = lambda s,o: 50.0; Box.__rmul__ = Box.__mul__",
        "math.prod([b,c])",
        "math.sumprod([b],[c]) if hasattr(math,'sumprod') else math.prod((b,c))",
        "functools.reduce(operator.mul,[b,c])",
    ),
    **r(
        "str",
        "Box.__str__ = Box.__repr__ = Box.__format__ = lambda s,*a: '9.0'",
        "float(str([b])[1:-1])",
        "float(f'{[b]}'[1:-1])",
        "float('%s' % [b][0])",
        "float('{}'.format((b,))[1:-2])",
        "float(repr({'k':b})[6:-1])",
        "float(','.join(map(str,[b])))",
        "float('%s' % (b,))",
        "float(json.dumps([b], default=str)[2:-2])",
        "float(string.Template('$k').substitute(k=b))",
        "float(pprint.pformat([b])[1:-1])",
        "float('{0[0]}'.format([b]))",
        "float(reprlib.repr([b])[1:-1])",
        "float('{k}'.format_map({'k':b}))",
        "float(format([b],'')[1:-1])",
        "float(str(b))",
        "float(f'{b!r}')",
    ),
    **r(
        "bool",
        "Box.__bool__ = lambda s: False",
        "2.0 if any([b]) else 3.0",
        "2.0 if all((b,c)) else 3.0",
        "len([*filter(None,[b,c])]) + 1.0",
        "float(len([x for x in (b,c) if x])) + 1",
        "len([*itertools.compress([1,1],[b,c])]) + 1.0",
        "len([*itertools.takewhile(bool,[b])]) + 1.0",
        "2.0 if next((x for x in [b] if x),None) else 3.0",
    ),
    **r(
        "iter",
        "Box.__iter__ = lambda s: iter((30.0,))",
        "sum([*itertools.chain(*[b,c])])",
        "sum([*itertools.chain.from_iterable([b,c])])",
        "[*zip(*[b,c])][0][0]",
        "sum(sum(x) for x in [b,c])",
        "[*map(list,[b])][0][0]",
        "(lambda p, *q: p)(*b)",
        "max([*b])",
        "[y for x in [b] for y in x][0]",
        "[*itertools.product(*[b,c])][0][0]",
        "np.array([*b])[0]",
        "tuple(map(tuple,[b]))[0][0]",
    ),
    **r(
        "len",
        "Box.__len__ = lambda s: 7",
        "float(max(map(len,[b,c])))",
        "float(sorted([c,b], key=len)[0].v) + len(b)",
        "sum(map(len,(b,))) + 0.0",
        "float(len(max([b,c], key=len))) + len(min([b,c],key=len))",
    ),
    **r(
        "index",
        "Box.__index__ = lambda s: 1",
        "sum(map(operator.index,[b,c])) + 0.0",
        "float(bytes([b])[0])",
        "float(bytearray((b,c))[1])",
        "np.arange(9.0)[[operator.index(x) for x in (b,c)]].sum()",
        "float(np.arange(9.0)[np.array([b.__index__()])][0])",
        "float(range(9)[b])",
        "float([0,1,2,3][b])",
        "float(math.gcd(*[b,c]))",
        "float(math.comb(4,b))",
        "float(math.lcm(b,c))",
        "float(chr(b) == chr(2)) + 1.0",
    ),
    **r(
        "ratio",
        "Box.as_integer_ratio = lambda s: (9, 1)",
        "float(fractions.Fraction(*b.as_integer_ratio()))",
        "float(b.as_integer_ratio()[0])",
        "float([*map(Box.as_integer_ratio,[b])][0][0])",
        "float([*map(operator.methodcaller('as_integer_ratio'),[b])][0][0])",
    ),
    **r(
        "key",
        "Box.key = lambda s: -s.v",
        "sorted([b,c], key=Box.key)[0].v",
        "sorted([b,c], key=operator.methodcaller('key'))[0].v",
        "max([b,c], key=lambda q: q.key()).v",
        "float(next(itertools.groupby([b,c], Box.key))[0])",
        "heapq.nlargest(1,[b,c],key=Box.key)[0].v",
        "[*map(operator.attrgetter('key'),[b])][0]()",
    ),
    **r(
        "call",
        "Box.__call__ = lambda s,*a: 11.0",
        "[*map(b,[1])][0]",
        "[*map(lambda f: f(), [b,c])][0]",
        "next(iter(b, 5.0))",
        "functools.partial(b)()",
        "functools.reduce(b,[1.0,2.0])",
        "sorted([1.0],key=b)[0] + b()",
        "[f() for f in (b,c)][0]",
        "operator.call(b) if hasattr(operator,'call') else b()",
        "json.loads(json.dumps([Ellipsis], default=b))[0]",
        "collections.defaultdict(b)['q']",
        "np.vectorize(b)(1.0) + 0.0",
        "np.frompyfunc(b,1,1)(1.0) + 0.0",
        "float(np.apply_along_axis(b,0,np.ones(2)))",
        "float(np.fromfunction(b,(2,)))",
    ),
    **r(
        "contains",
        "Box.__contains__ = lambda s,x: True",
        "sum(7.0 in x for x in [b,c]) + 1.0",
        "float(operator.contains(b,7.0)) + 1.0",
        "float(any(map(lambda x: 7.0 in x,[b]))) + 1.0",
    ),
    **r(
        "getitem",
        "Box.__getitem__ = lambda s,i: 13.0",
        "[*map(operator.itemgetter(0),[b,c])][0]",
        "sum(x[0] for x in (b,c))",
        "max([b,c], key=operator.itemgetter(0))[0]",
        "[x[1] for x in [b]][0]",
        "operator.getitem(b,0)",
    ),
    **r(
        "abs",
        "Box.__abs__ = lambda s: 17.0",
        "sum(map(abs,[b,c]))",
        "max([b,c], key=abs).v + abs(b)",
        "[*map(operator.abs,[b])][0]",
    ),
    **r(
        "neg",
        "Box.__neg__ = lambda s: -21.0",
        "[*map(operator.neg,[b])][0]",
        "sorted([b,c],key=operator.neg)[0].v + -b",
    ),
    **r(
        "sub",
        "Box.__sub__ = lambda s,o: 19.0",
        "[*map(operator.sub,[b],[c])][0]",
        "[p-q for p,q in itertools.pairwise([b,c])][0]",
        "float(np.diff(np.array([1.0, b.v]))[0]) + (b - 0.0)",
    ),
    **r(
        "round",
        "Box.__round__ = lambda s,n=0: 23.0",
        "[*map(round,[b])][0]",
        "round(b)",
        "sum(round(x) for x in [b])",
    ),
    **r(
        "object arrays",
        "Box.__add__ = Box.__radd__ = lambda s,o: 50.0",
        "float(np.array([1.0,b],object)[1] + 1.0)",
    ),
}
