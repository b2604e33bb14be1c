"""What ``import jax`` finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dis import opmap
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..config import config, first_read, from_environment
from ..core.lazy import Surface, shown
from .missing import NoSuchModule, watch

#: The version whose interface is implemented; setup.cfg's oracle is of the same series.
VERSION = "0.10.2"
_NAMES = ("jax", "jaxlib")
_OWN = __name__.rpartition(".")[0]
_FNARRAY = _OWN.rpartition(".")[0]

#: Private modules whose names are public ones of a module that is called otherwise. Those that
#: are parts of a module are asked for by its name: ``from jax._src.lax import slicing``.
_PUBLIC = {
    f"{package}.{private}": public
    for public, package, names in (
        ("jax", "jax._src", "api"),
        ("jax.sharding", "jax._src", "mesh named_sharding partition_spec sharding"),
        ("jax.lax", "jax.lax", "control_flow convolution lax parallel slicing"),
        ("jax.nn", "jax.nn", "functions"),
        ("jax.numpy", "jax.numpy", "lax_numpy reductions ufuncs"),
    )
    for private in names.split()
}


def home(name: str) -> str | None:
    """Return the module of fnarray that a module of JAX is, or None where there is none.

    A private module that has no file of its own is the public one of the same name:
    ``jax._src.scipy.special`` is ``jax.scipy.special``, ``jax._src.linear_util`` that of
    ``jax.extend``.
    """
    if name.startswith("jax._src.") and not _exists(f"{_OWN}.{name}"):
        public = _PUBLIC.get(name) or name.replace("_src.", "", 1)
        return home(public) or home(public.replace("jax.", "jax.extend.", 1))
    name = _PUBLIC.get(name, name)
    top, _, rest = name.partition(".")
    places = [f"{_OWN}.{name}"]
    first = rest.partition(".")[0]
    if top == "jax" and rest.startswith(("experimental.", "extend.")):  # packages of fnarray
        places.append(f"{_OWN}.jax._{rest}")
    fnarray = sys.modules[_FNARRAY]
    # The settings are an object, and a module of the same name.
    if (
        top == "jax"
        and first in fnarray.__all__
        and isinstance(getattr(fnarray, first), ModuleType)
    ):
        places.append(f"{_FNARRAY}.{rest}")
    return next(filter(_exists, places), None)


def _exists(place: str) -> bool:
    try:
        return place in sys.modules or find_spec(place) is not None
    except ModuleNotFoundError:  # of a parent that is no package
        return False


def _refuse(name: str, asked: str) -> None:
    """Raise the error of a module that there is not, unless a program only asks whether it is.

    Python lets a module be missing that `__import__` is to find by its ``fromlist``: it goes by the
    name that the error has. A statement, which would end in an error of fewer words, has this one,
    which then has the package's name, as that would.
    """
    frame, within = sys._getframe(1), set[str]()
    while frame.f_back and frame.f_code.co_filename.startswith(("<frozen importlib", __file__)):
        within.add(frame.f_code.co_name)
        frame = frame.f_back
    if "_find_and_load" not in within:  # importlib.util.find_spec
        return
    statement = frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_NAME"]
    package = statement and "_handle_fromlist" in within
    raise NoSuchModule(name, name=name.rpartition(".")[0] if package else asked)


def _jax_name(module: str) -> str:
    """Return JAX's name for a module of fnarray."""
    if module.startswith(f"{_OWN}."):
        return module.removeprefix(f"{_OWN}.").replace("jax._e", "jax.e")
    return "jax" + module.removeprefix(_FNARRAY)


class Same(Loader):
    """Gives a module that has a name already under another one."""

    def __init__(self, module: str):
        self.module = module
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself."""
        module = import_module(self.module)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it keeps the name that it has."""
        module.__spec__ = self._spec
        # Of a package `from` asks for a submodule where there is no attribute: the finder's error
        # then says what there is instead.
        if not hasattr(module, "__path__"):
            module.__path__ = []

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, which ``python -m`` runs."""
        loader: Any = getattr(find_spec(self.module), "loader", None)
        return loader and loader.get_code(self.module)


class _Installed(Distribution):
    """What ``importlib.metadata`` says of jax."""

    def __init__(self, name: str):
        self._name = name

    def read_text(self, filename: str) -> str | None:
        """Return name and version as a wheel would have them."""
        if filename not in ("METADATA", "PKG-INFO"):
            return None
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        """Return a path that is no file: nothing of jax is on the disk."""
        return path


class Finder(MetaPathFinder):
    """Finds jax and jaxlib in fnarray."""

    def __init__(self) -> None:
        self._asked: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of JAX is; refuse those that there are not."""
        top = fullname.partition(".")[0]
        if top == _FNARRAY:
            return self._look_again(fullname, path)
        if fullname.startswith("multiprocessing.popen_"):  # what starts a process: its first
            import_module(f"{_OWN}.children").prepare()
        if top not in _NAMES:
            return None
        module = home(fullname)
        if module is None:
            return _refuse(fullname, fullname)
        found = import_module(module)
        watch(fullname, found)
        if isinstance(found, Surface):
            shown[module] = _jax_name(module)
        return ModuleSpec(fullname, Same(module), is_package=True)

    def _look_again(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return what ``from jax.x import y`` asks for by fnarray's name of the module, or refuse.

        Python asks for a submodule where a package has no attribute, and its own error would say
        nothing of what there is instead.
        """
        parent, _, last = fullname.rpartition(".")
        known = _jax_name(parent)
        if f"{known}.{last}" in _PUBLIC and not parent.startswith(_OWN):
            return self.find_spec(f"{known}.{last}", path)
        if known not in sys.modules or PathFinder.find_spec(fullname, path) is not None:
            return None
        if parent.startswith(_OWN) or fullname in self._asked:  # `home` looks for it by this name
            return _refuse(f"{known}.{last}", fullname)
        self._asked.add(fullname)
        try:
            return self.find_spec(f"{known}.{last}", path)
        except NoSuchModule as error:
            if error.name == f"{known}.{last}":
                error.name = fullname
            raise
        finally:
            self._asked.discard(fullname)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """Yield the two packages that are stood in for."""
        asked = context.name if context is not None else None
        return [_Installed(name) for name in _NAMES if asked in (name, None)]


@cache
def _devices_of(flags: str) -> int:
    return from_environment({"XLA_FLAGS": flags}).get("num_cpu_devices", 1)


def read_again() -> None:
    """Take what the environment sets by now, and did not when fnarray was imported."""
    for name, value in from_environment(os.environ).items():
        if (name, value) not in first_read.items():
            config.update(name, value)


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    for below in kind.__subclasses__():
        yield from _with_subclasses(below)


def install() -> None:
    """Let ``import jax`` give fnarray from now on.

    Raises
    ------
    ImportError
        The real jax is imported already: the modules that have it would keep it.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    real = next((name for name in _NAMES if name in sys.modules), None)
    if real is not None:
        raise ImportError(
            f"fnarray.as_jax: the real {real} is imported already, from "
            f"{getattr(sys.modules[real], '__file__', None)}; whoever imported it keeps it. Put "
            "`import fnarray.as_jax` first, or run the program by `python -m fnarray run`."
        )
    sys.meta_path.insert(0, Finder())
    from ..core.array import Array
    from ..core.trace import Tracer, state
    from ..runtime import device
    from ..transforms import batch, derivative  # noqa: F401 - their tracers are arrays

    # As many as JAX has, which asks when it first needs one.
    device.default_count = lambda: _devices_of(os.environ.get("XLA_FLAGS", ""))
    # Libraries for several array packages (autoray, einops' kin) go by the home of a value's class.
    for kind in _with_subclasses(Array):
        kind.__module__ = "jax._src.core" if issubclass(kind, Tracer) else "jaxlib._jax"
    # `bool(jnp.asarray(False))` is how libraries ask whether `jit` traces them (decision 0123).
    type(state).stages_bools = True
    if "multiprocessing.popen_spawn_posix" in sys.modules:
        import_module(f"{_OWN}.children").prepare()
    if "FNARRAY_EFFECTS" not in os.environ:
        config.update("effects", "off")
