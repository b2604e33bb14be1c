"""``python -m fnarray``: lint files, run programs for jax, look at the cache, source, installation.

Linting needs neither NumPy nor Numba, so everything else is imported by the command it is for.
"""

from __future__ import annotations

import argparse
import builtins
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import __version__

_SPEC = re.compile(r"(?P<name>[a-z]+\d*)\[(?P<shape>[\d,\s]*)\]")
#: Texts of a program, and those of them that are Python.
_DIALECTS = ("numba", "cuda", "numba-cuda", "jaxpr", "plan")
_SOURCES = _DIALECTS[:3]
_PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "optree", "opt_einsum", "ml_dtypes")


def parse_spec(text: str) -> Any:
    """Read an argument's stand-in from ``f32[3,4]`` or ``float32[3,4]``.

    Raises
    ------
    ValueError
        For text of another form or an unknown dtype.
    """
    from .core import dtypes
    from .core.avals import ShapeDtypeStruct

    found = _SPEC.fullmatch(text.strip())
    known = {dtypes.short_name(d): d for d in dtypes.ALL}
    known |= {d.name: d for d in dtypes.ALL}
    if found is None or found["name"] not in known:
        raise ValueError(f"{text!r} is no array: write dtype[shape], such as f32[3,4] or i32[].")
    shape = tuple(int(n) for n in found["shape"].split(",") if n.strip())
    return ShapeDtypeStruct(shape, known[found["name"]])


def load_function(target: str) -> Any:
    """Return the function that ``FILE:FUNC`` names, from the file run as a module.

    Raises
    ------
    ValueError
        When the file or the function is not there.
    """
    import importlib.util

    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(f"{target!r}: write FILE:FUNC, FILE a Python file that exists.")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{path} has no {name!r}.")
        found = getattr(found, part)
    return found


def show(args: argparse.Namespace) -> int:
    """Print a function's graph, plan or emitted source."""
    from . import jit

    fun, specs = called(args, parse_spec)
    lowered = (fun if hasattr(fun, "lower") else jit(fun)).lower(*specs)
    text = lowered.as_text(dialect=args.dialect)
    if args.dialect in _SOURCES and sys.stdout.isatty():
        from rich.console import Console
        from rich.syntax import Syntax

        Console().print(Syntax(text, "python"))
    else:
        print(text)
    return 0


def explain(args: argparse.Namespace) -> int:
    """Print the report of a function, or write it as a page."""
    from . import explain as explained

    fun, arrays = called(args, example)
    report = explained(fun)(*arrays)
    if args.output is None:
        from rich.console import Console

        Console().print(report)
    else:
        print(report.save(args.output))
    return int(report.facts.failure is not None)


def called(args: argparse.Namespace, argument: Callable[[str], Any]) -> tuple[Any, list[Any]]:
    """Return the function of a command, and its arguments, made of their descriptions."""
    import inspect

    fun, given = load_function(args.target), [argument(text) for text in args.arrays]
    if callable(fun):
        try:
            inspect.signature(fun).bind(*given)
        except TypeError as error:
            raise ValueError(
                f"{args.target}: {error}. Describe each argument after it, as in: "
                f"fnarray {args.run.__name__} {args.target} 'f32[3,4]' 'i32[]'."
            ) from None
    return fun, given


def example(text: str) -> Any:
    """Return an array to run on, of a description as in `parse_spec`: numbers from 0 to 1."""
    import numpy as np

    from .numpy import asarray

    spec = parse_spec(text)
    numbers = np.linspace(0, 1, max(int(np.prod(spec.shape)), 1), endpoint=False)
    return asarray(numbers[: int(np.prod(spec.shape))].reshape(spec.shape), spec.dtype)


def lint(argv: Sequence[str]) -> int:
    """Find effects and tracing pitfalls in files."""
    from .purity.lint.cli import main

    return main(argv)


def rule(argv: Sequence[str]) -> int:
    """Explain a rule of the linter, or list them all."""
    from .purity.lint.cli import explain

    return explain(argv)


def run(argv: Sequence[str]) -> int:
    """Run a program written for jax: run SCRIPT ARGS, or run -m MODULE ARGS."""
    module = argv[:1] == ["-m"]
    rest = argv[1:] if module else argv
    if not rest or rest[0] in ("-h", "--help"):
        print("usage: fnarray run SCRIPT [ARGS ...] | fnarray run -m MODULE [ARGS ...]")
        return 0 if rest else 2
    if not module and not Path(rest[0]).exists():
        print(f"fnarray: {rest[0]!r} is no file.", file=sys.stderr)
        return 2
    import runpy
    import zipfile

    from . import as_jax  # noqa: F401 - from here on jax is fnarray

    sys.argv = list(rest)
    if module:
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif Path(rest[0]).is_dir() or zipfile.is_zipfile(rest[0]):
        runpy.run_path(rest[0], run_name="__main__")
    else:
        sys.path.insert(0, str(Path(rest[0]).resolve().parent))
        script(Path(rest[0]))
    return 0


def script(path: Path) -> None:
    """Run a file as Python runs the one that it is given: ``__main__`` stays until the end.

    `runpy.run_path` calls it by the path as it was given, which is no file once a program has
    changed its directory, and takes the module away before what is registered for the exit runs.
    """
    import io
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    main, file = ModuleType("__main__"), os.path.abspath(path)  # noqa: PTH100 - links stay links
    main.__dict__.update(
        __file__=file, __builtins__=builtins, __loader__=SourceFileLoader("__main__", file)
    )
    main.__package__ = None
    sys.modules["__main__"] = main
    with io.open_code(file) as source:
        code = compile(source.read(), file, "exec", dont_inherit=True)
    exec(code, main.__dict__)


#: Commands with a parser of their own.
_OWN = {"lint": lint, "rule": rule, "run": run}


def cache(args: argparse.Namespace) -> int:
    """Print, empty or fill the cache on disk."""
    from .compile.cache import store

    if (args.action == "build") is not bool(args.script and args.target):
        raise ValueError("write: fnarray cache build SCRIPT --target ARCHITECTURE, such as sm_90.")
    if args.action == "clear":
        store.clear()
    if args.action == "build":
        return _build(args.script, args.target)
    for name, value in zip(store.Info._fields, store.info(), strict=True):
        print(f"{name:10} {value}")
    return 0


def _build(script: str, target: str) -> int:
    """Run a script, and build all that it compiles for a GPU that need not be here."""
    import runpy

    from .compile.cuda.lower import check_capability
    from .errors import UnsupportedOnTarget
    from .runtime.dispatch import built_for, executable_on_gpu, watchers

    check_capability(target)
    if not Path(script).is_file():
        raise ValueError(f"{script!r} is no file.")
    programs, kernels, refused = 0, set[str](), 0

    def build(graph: Any) -> None:
        nonlocal programs, refused
        try:
            kernels.update(k.name for k in built_for(executable_on_gpu(graph), target))
            programs += 1
        except UnsupportedOnTarget as error:
            refused += 1
            print(f"refused: {str(error).splitlines()[0]}", file=sys.stderr)

    watchers.append(build)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        watchers.remove(build)
    print(f"{programs} programs, {len(kernels)} kernels for {target}, {refused} programs refused")
    return int(refused > 0)


def _gpus() -> str:
    """Return the GPUs that programs may use, or why there are none, and what links for them."""
    from importlib.metadata import packages_distributions, version

    from .compile.cuda import cublas, toolkit
    from .compile.cuda.device import count, gpu
    from .compile.cuda.libcuda import libcuda
    from .errors import JaxRuntimeError

    try:
        found = [gpu(k) for k in range(count())]
        driver = libcuda().version
    except JaxRuntimeError as error:
        there = f"none: {str(error).splitlines()[0]}"
    else:
        there = ", ".join(f"{g.name} ({g.capability})" for g in found)
        there += f"; driver for CUDA {driver // 1000}.{driver % 1000 // 10}"
    libraries = [cublas.version()] if cublas.library() else []
    libraries += [f"{p} {version(p)}" for p in packages_distributions().get("cupy", ())]
    linker = toolkit.linker() or "none, the driver compiles"
    return f"{there} [linker: {linker}] [libraries: {', '.join(libraries) or 'none'}]"


def env(args: argparse.Namespace) -> int:
    """Print versions, processor and settings: what a bug report needs."""
    import importlib.metadata
    import platform

    from .compile.cpu.launch import threads
    from .config import SETTINGS, config
    from .threads.cores import available_cores

    print(f"fnarray {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package in _PACKAGES:
        print(f"{package:12} {importlib.metadata.version(package)}")
    print(f"cores        {available_cores()} (threads in use: {threads()})")
    print(f"gpu          {_gpus()}")
    for setting in SETTINGS:
        name = getattr(setting, "name", setting)
        print(f"{name:26} {getattr(config, name)}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    top = argparse.ArgumentParser(
        prog="fnarray", description="Lint files for effects, and look at what fnarray compiles."
    )
    top.add_argument("--version", action="version", version=f"fnarray {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, command in _OWN.items():
        commands.add_parser(name, help=_first_line(command), add_help=False)
    one = commands.add_parser("cache", help="the cache of compiled kernels")
    one.add_argument("action", choices=("info", "clear", "build"))
    one.add_argument("script", nargs="?", help="build: run this file, and build what it compiles")
    one.add_argument("--target", help="build: the architecture of a GPU, such as sm_90")
    one.set_defaults(run=cache)
    one = commands.add_parser("show", help="the source a function compiles to")
    one.add_argument("target", metavar="FILE:FUNC")
    one.add_argument("arrays", nargs="*", metavar="ARRAY", help="an argument, such as f32[3,4]")
    one.add_argument("--dialect", choices=_DIALECTS, default="numba")
    one.set_defaults(run=show)
    one = commands.add_parser("explain", help="what a function compiles to, measured")
    one.add_argument("target", metavar="FILE:FUNC")
    one.add_argument("arrays", nargs="*", metavar="ARRAY", help="an argument, such as f32[3,4]")
    one.add_argument("--output", metavar="PAGE", help="write a page of HTML, in place of text")
    one.set_defaults(run=explain)
    one = commands.add_parser("env", help="versions and settings")
    one.set_defaults(run=env)
    return top


def _first_line(command: Callable[..., int]) -> str:
    doc = command.__doc__ or ""
    return doc.splitlines()[0].rstrip(".").lower()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status (2 for unusable arguments)."""
    given = list(sys.argv[1:] if argv is None else argv)
    if argv is None and given[:1] == ["lint"]:
        from .purity.lint.cli import last

        last(given[1:])
    if given and given[0] in _OWN:
        return _OWN[given[0]](given[1:])
    args = parser().parse_args(given)
    try:
        return args.run(args)
    except (ValueError, OSError) as error:
        print(f"fnarray: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
