"""``fnarray lint``: options, exit status, and the commands beside it."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from ..findings import Finding
from ..rules import RULES, rule
from . import baseline as base
from . import discover
from .config import (
    FORMATS,
    STDIN,
    Settings,
    UsageError,
    check_codes,
    find_pyproject,
    load,
    relative,
)
from .jobs import outcomes
from .linter import Result, conclude
from .report import REPORTERS, Report
from .report.text import plural, statistics
from .source import SourceFile, from_bytes, read

EXIT = (
    "exit status: 0 nothing found, 1 findings, 2 unusable arguments, "
    "3 the linter itself failed on some file (FNA005)"
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of ``fnarray lint``."""
    top = argparse.ArgumentParser(
        prog="fnarray lint",
        description="Find effects and tracing pitfalls in functions traced by fnarray or JAX. "
        "Reads files only; imports nothing.",
        epilog=EXIT,
        formatter_class=_formatter,
    )
    add = top.add_argument
    add("paths", nargs="*", default=["."], metavar="PATH", help="files, folders, or - for stdin")
    what = top.add_argument_group("rules")
    for option, text in (
        ("--select", "rules to check instead of all: codes, prefixes, names, or ALL"),
        ("--extend-select", "rules to check besides"),
        ("--ignore", "rules to leave out"),
    ):
        what.add_argument(option, action="append", type=_codes, metavar="CODES", help=text)
    what.add_argument("--max-unrolled", type=_positive, metavar="N",
                      help="shortest constant loop that FNA607 reports")  # fmt: skip
    what.add_argument("--presumed", action="store_true", default=None,
                      help="also say what the text does not show, where JAX traces")  # fmt: skip
    where = top.add_argument_group("files and settings")
    where.add_argument("--config", type=Path, metavar="FILE", help="pyproject.toml to read")
    where.add_argument("--isolated", action="store_true", help="read no configuration")
    where.add_argument("--exclude", action="append", type=_codes, metavar="PATTERNS")
    where.add_argument("--extend-exclude", action="append", type=_codes, metavar="PATTERNS")
    where.add_argument("--stdin-filename", metavar="PATH", help="name for what comes from -")
    where.add_argument("--show-files", action="store_true", help="list the files and stop")
    how = top.add_argument_group("output")
    how.add_argument("--format", "--output-format", choices=FORMATS, dest="format")
    how.add_argument("--output-file", "-o", type=Path, metavar="FILE")
    how.add_argument("--statistics", action="store_true", help="count findings per rule")
    how.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    how.add_argument("--quiet", "-q", action="store_true", help="say nothing but findings")
    how.add_argument("--verbose", "-v", action="store_true", help="print what led to FNA005")
    how.add_argument("--exit-zero", action="store_true", help="exit 0 despite findings")
    keep = top.add_argument_group("living with findings")
    keep.add_argument("--add-ignore", action="store_true",
                      help="write a comment that silences each finding")  # fmt: skip
    keep.add_argument("--baseline", type=Path, metavar="FILE", help="report only what is not in it")
    keep.add_argument("--no-baseline", action="store_true", help="report what is in it, too")
    keep.add_argument("--write-baseline", nargs="?", type=Path, const=Path(), metavar="FILE",
                      help="write all findings into the baseline")  # fmt: skip
    mend = top.add_argument_group("repairs")
    mend.add_argument("--fix", action="store_true", help="make the repairs that take no decision")
    mend.add_argument("--diff", action="store_true", help="show what --fix would change, and stop")
    mend.add_argument("--explain", action="append", metavar="CODE", help="explain a rule and stop")
    fast = top.add_argument_group("speed")
    fast.add_argument("--jobs", "-j", type=_positive, metavar="N",
                      help="processes to use, instead of one for each core")  # fmt: skip
    fast.add_argument("--no-cache", action="store_true", help="take nothing from earlier runs")
    top.add_argument("--verify", action="store_true",
                     help="also run each file, tracing twice (runs code!)")  # fmt: skip
    return top


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return what writes help; each argument makes one, which asks `shutil` for its width."""
    return argparse.HelpFormatter(prog, width=_width())


def _width() -> int:
    # As shutil.get_terminal_size has it, which loads three compressors beside.
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdecimal() else 0
    if not columns:
        with suppress(OSError):  # no terminal
            columns = os.get_terminal_size().columns
    return (columns or 80) - 2


def _out(text: object) -> None:
    sys.stdout.write(f"{text}\n")


def _err(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _codes(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be positive, got {value}")
    return value


def last(argv: Sequence[str]) -> NoReturn:
    """Run the linter, and end the process at once: nobody takes the trees of all files apart."""
    gc.disable()
    status = main(argv, _held=[])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(argv: Sequence[str] | None = None, *, _held: list[Any] | None = None) -> int:
    """Run the linter on command-line arguments (those after ``lint``); return the exit status."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed help or the fault
        return int(stop.code or 0)
    try:
        return _run(args, _held)
    except UsageError as error:
        _err(f"fnarray lint: {error}")
        return 2
    except BrokenPipeError:  # the reader, head say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        _err(f"fnarray lint: {error}")
        return 2
    except Exception as error:  # of the linter itself, and of no file: those are findings
        _err(f"fnarray lint: internal error: {type(error).__name__}: {error}")
        if args.verbose:
            import traceback

            traceback.print_exc()
        return 3


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the configuration file's settings overlaid by the arguments."""
    known = [(r.code, r.name) for r in RULES.values()]
    path = args.config
    if path is None and not args.isolated:
        first = next((p for p in args.paths if p != "-" and Path(p).exists()), ".")
        path = find_pyproject(Path(first)) or find_pyproject(Path.cwd())
    settings = Settings() if args.isolated else load(path, known)
    given = {
        name: tuple(code for codes in value for code in codes)
        for name in ("select", "extend_select", "ignore", "exclude", "extend_exclude")
        if (value := getattr(args, name))
    }
    # Options of the command line add to what is left out, and replace what is chosen.
    for name in ("ignore", "extend_select", "extend_exclude"):
        if name in given:
            given[name] = (*getattr(settings, name), *given[name])
    names = ("format", "max_unrolled", "presumed")
    others = {n: v for n in names if (v := getattr(args, n)) is not None}
    settings = settings._replace(**given, **others)
    check_codes(settings, known, "command line")
    return settings


def sources_of(args: argparse.Namespace, settings: Settings) -> list[SourceFile]:
    """Read every file to lint."""
    found: list[SourceFile] = []
    if "-" in args.paths:
        name = args.stdin_filename or STDIN
        found.append(from_bytes(name, sys.stdin.buffer.read()))
    paths = [p for p in args.paths if p != "-"]
    return found + [read(path) for path in discover.files(paths, settings)]


def _run(args: argparse.Namespace, held: list[Any] | None = None) -> int:
    start = time.perf_counter()
    if args.explain:
        return explain(args.explain)
    settings = settings_of(args)
    if args.show_files:
        for path in discover.files([p for p in args.paths if p != "-"], settings):
            _out(path)
        return 0
    # Trees and scopes all live to the end: looking for garbage among them takes most of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        sources = sources_of(args, settings)
        cached = not args.no_cache and "-" not in args.paths
        found = outcomes(sources, settings, jobs=args.jobs, cached=cached)
        seen = _verified(sources, settings) if args.verify else None
        result = conclude(sources, found, settings, seen)
        if held is not None:
            held += [sources, found]
    finally:
        if collecting:
            gc.enable()
    if args.verbose:
        for crash in result.crashes:
            _err(f"fnarray lint: internal error: {crash}")
    path = args.baseline or (settings.root / settings.baseline if settings.baseline else None)
    if args.write_baseline is not None:
        target = args.write_baseline if args.write_baseline.name else path
        target = target or settings.root / "fnarray-baseline.json"
        count = base.write(target, result.findings, settings.root)
        _say(args, f"Wrote {plural(count, 'finding')} to {target}.")
        return 3 if result.crashes else 0
    if path is not None and not args.no_baseline and (path.exists() or args.baseline):
        result.findings, gone = base.subtract(result.findings, base.read(path), settings.root)
        looked = {relative(s.path, settings.root) for s in sources}
        stale = sum(n for (file, _, _), n in gone.items() if file in looked)
        if stale:
            are = "is" if stale == 1 else "are"
            gone_now = f"{plural(stale, 'finding')} of {path} {are} gone"
            _say(args, f"{gone_now}; --write-baseline renews it.")
    if args.fix or args.diff:
        return _repair(args, result, sources, settings)
    if args.add_ignore:
        return _add_ignores(args, result)
    report = Report(
        tuple(result.findings), result.sources, settings.root, len(sources),
        time.perf_counter() - start, _color(args),
    )  # fmt: skip
    _write(args, settings, report)
    if result.crashes:
        return 3
    return 1 if result.findings and not args.exit_zero else 0


def _verified(sources: list[SourceFile], settings: Settings) -> Iterator[Finding]:
    from .verify import verify

    return verify(sources, settings)


def _write(args: argparse.Namespace, settings: Settings, report: Report) -> None:
    def emit(out: TextIO) -> None:
        if args.statistics:
            statistics(report, out)
        elif not (args.quiet and settings.format == "full" and not report.findings):
            REPORTERS[settings.format](report, out)

    if args.output_file is None:
        # A source line may hold what the terminal's encoding lacks.
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
        emit(sys.stdout)
        sys.stdout.flush()
    else:
        with args.output_file.open("w", encoding="utf-8", errors="backslashreplace") as file:
            emit(file)


def _color(args: argparse.Namespace) -> bool:
    if args.color != "auto":
        return args.color == "always"
    if args.output_file is not None or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.quiet:
        _err(text)


def _repair(
    args: argparse.Namespace, result: Result, sources: list[SourceFile], settings: Settings
) -> int:
    """Show what repairs change, or make them and report what is left."""
    from .fix import repaired
    from .suppress import write_back

    changed = repaired(result.findings, sources, settings)
    if args.diff:
        for one in changed:
            sys.stdout.write(one.diff())
        return 1 if changed and not args.exit_zero else 0
    for one in changed:
        write_back(one.source, one.lines)
    fixed = plural(sum(one.fixed for one in changed), "repair")
    _say(args, f"Made {fixed} in {plural(len(changed), 'file')}.")
    args.fix = False
    return _run(args)


def _add_ignores(args: argparse.Namespace, result: Result) -> int:
    """Silence each finding by a comment; return 1 when some file could not be changed."""
    from . import notebook, suppress

    wanted: dict[str, list[tuple[int, str]]] = {}
    left = 0
    for finding in result.findings:
        source = result.sources.get(finding.file)
        if source is None or source.tree is None or finding.code.startswith("FNA0"):
            left += 1
        else:
            wanted.setdefault(finding.file, []).append((finding.line, finding.code))
    added = 0
    for file, places in wanted.items():
        source = result.sources[file]
        done = notebook.rewrite if source.cells else suppress.rewrite
        if file != STDIN and Path(file).is_file() and done(source, places):
            added += len(places)
        else:
            left += len(places)
    silenced, files = plural(added, "finding"), plural(len(wanted), "file")
    _say(args, f"Silenced {silenced} in {files}; left: {left}.")
    return 1 if left and not args.exit_zero else 0


# --- fnarray rule --------------------------------------------------------------------------------


def explain(argv: Sequence[str] | None = None) -> int:
    """``fnarray rule CODE``: why a rule exists, with a bad and a good example."""
    from .pages import page, summary

    top = argparse.ArgumentParser(prog="fnarray rule", description="Explain rules.")
    top.add_argument("codes", nargs="*", metavar="CODE", help="code or name; none: list them all")
    top.add_argument("--all", action="store_true", help="list all rules")
    try:
        args = top.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if args.all or not args.codes:
        for code in sorted(RULES):
            known = RULES[code]
            _out(f"{code}  {known.name:20} {summary(known)}")
        return 0
    try:
        chosen = [rule(code) for code in args.codes]
    except KeyError as error:
        _err(f"fnarray rule: {error.args[0]}")
        return 2
    _out("\n\n".join(page(known) for known in chosen))
    return 0
