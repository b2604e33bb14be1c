"""Settings of the process, patched libraries, weak references: what nobody hands to a function."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

ROWS: dict[str, Row] = {
    **rows(
        "context of decimal numbers",
        "import decimal\nD=decimal.Decimal",
        "decimal.getcontext().prec=3",
        "float(D(1)/D(3))",
    ),
    **rows(
        "how NumPy writes arrays",
        "W=np.float32([1.23456789,2.0]); W.flags.writeable=False",
        "np.set_printoptions(precision=2)",
        "len(str(W))",
    ),
    **rows(
        "weak reference that dies",
        "class O: pass\no=O()\nr=weakref.ref(o)",
        "del o",
        "2.0 if r() is not None else 3.0",
        "2.0 if r() else 3.0",
    ),
    **rows(
        "attribute of what dies",
        "class O: K=2.0\no=O()\nr=weakref.ref(o)",
        "del o",
        "r().K if r() is not None else 3.0",
        "getattr(r(), 'K', 3.0)",
    ),
    **rows(
        "weak containers",
        "class O: pass\no=O()\ns=weakref.WeakSet([o])\nd=weakref.WeakValueDictionary(a=o)",
        "del o",
        "len(s)+2",
        "len(d)+2",
        "2.0 if 'a' in d else 3.0",
    ),
    **rows(
        "defaults, by inspect",
        "import inspect\ndef g(a,b=2): return a",
        "g.__defaults__=(5,)",
        "inspect.signature(g).parameters['b'].default",
        "len(inspect.getfullargspec(g).args)+inspect.getfullargspec(g).defaults[0]",
    ),
    **rows(
        "code, by inspect",
        "import inspect\ndef g(a,b=2): return a",
        "g.__code__=(lambda a: a).__code__",
        "float(len(inspect.signature(g).parameters))",
        "float(g.__code__.co_argcount)",
    ),
    **rows(
        "function, by inspect",
        "import inspect\ndef g(a,b=2): return a",
        "def g(a): return a",
        "float(len(inspect.signature(g).parameters))",
    ),
    **rows(
        "math, patched",
        "",
        "math.sin=math.cos",
        "math.sin(2.0)",
    ),
    **rows(
        "name from math",
        "from math import sin",
        "global sin\nsin=math.cos",
        "sin(2.0)",
    ),
    **rows(
        "constant of math, patched",
        "",
        "math.pi=3.0",
        "math.pi",
    ),
    **rows(
        "NumPy, patched",
        "",
        "np.sum=np.prod",
        "np.sum((2.0,3.0))",
    ),
    **rows(
        "module of NumPy's, patched",
        "",
        "np.linalg.norm=lambda a: 7.0",
        "np.linalg.norm((2.0,3.0))",
    ),
    **rows(
        "fnarray, patched",
        "",
        "jnp.sin=jnp.cos",
        "jnp.sin(2.0)",
    ),
    **rows(
        "functools, patched",
        "",
        "functools.reduce=lambda f,xs: 7.0",
        "functools.reduce(operator.add,(2.0,3.0))",
    ),
    **rows(
        "operator, patched",
        "",
        "operator.add=operator.mul",
        "operator.add(2.0,5.0)",
    ),
    **rows(
        "json, patched",
        "",
        "json.loads=lambda s: 7.0",
        "json.loads('2.0')",
    ),
    **rows(
        "math, by mock",
        "from unittest import mock",
        "P=mock.patch('math.sqrt', lambda x: 9.0); P.start()",
        "math.sqrt(2.0)",
    ),
    **rows(
        "private part of a fraction",
        "from fractions import Fraction\nF=Fraction(1,2)",
        "F._numerator=3",
        "float(F)",
        "F.numerator",
        "float(F+1)",
        "float(F*2)",
    ),
    **rows(
        "time zone of the user's",
        "import datetime\nclass T(datetime.tzinfo):\n    h=2\n    def utcoffset(self,d): return datetime.timedelta(hours=self.h)\nt=T()\nd=datetime.datetime(2020,1,1,tzinfo=t)",
        "t.h=5",
        "d.utcoffset().total_seconds()",
        "d.timestamp()",
    ),
    **rows(
        "environment",
        "import os",
        "os.environ['ZZZ']='3'",
        "float(os.environ.get('ZZZ','2'))",
        "2.0 if 'ZZZ' in os.environ else 3.0",
    ),
    **rows(
        "contextvar",
        "v=contextvars.ContextVar('v',default=2.0)",
        "v.set(3.0)",
        "v.get()",
        "contextvars.copy_context().get(v,2.0)",
    ),
    **rows(
        "environment, set",
        "import os\nos.environ['YYY']='2'",
        "os.environ['YYY']='5'",
        "float(os.environ['YYY'])",
        "float(os.getenv('YYY'))",
        "float(os.path.expandvars('$YYY'))",
    ),
}
