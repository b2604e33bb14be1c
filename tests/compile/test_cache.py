"""The store and the index: what was put comes back whole, or not at all, whatever happens."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import pickle
import re
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from fnarray.compile.cache import KernelSource, programs, store
from fnarray.compile.cache import key as keys
from fnarray.compile.cpu import key as cpu_key
from fnarray.compile.cpu.key import kernel_name
from fnarray.config import config
from fnarray.core import store as core_store
from fnarray.errors import CacheWarning

KEY = "k_0123456789abcdef"


@pytest.fixture(autouse=True)
def root(tmp_path):
    """Keep each test's entries in a directory of its own, which does not exist yet."""
    before = config.cache_dir, config.cache_size_limit
    config.update("cache_dir", str(tmp_path / "store"))
    yield tmp_path / "store"
    config.update("cache_dir", before[0])
    config.update("cache_size_limit", before[1])


def limit(size):
    """Bound the cache for the rest of the test."""
    config.update("cache_size_limit", size)


@contextlib.contextmanager
def one_warning(match):
    """Expect exactly one warning, however often the block meets the trouble."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [warning.category for warning in caught] == [CacheWarning]
    assert re.search(match, str(caught[0].message))


def test_round_trip(root):
    """An entry comes back as it was put; a later one replaces it; another key finds nothing."""
    assert store.get(KEY) is None
    assert not root.exists(), "looking must not create the directory"
    for payload in (b"", b"one", bytes(range(256)) * 1000):
        store.put(KEY, payload)
        assert store.get(KEY) == payload
    assert store.get("k_fedcba9876543210") is None
    assert root.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in root.iterdir()] == [f"{KEY}.bin"]


def test_every_flipped_byte_is_noticed(root):
    """No single damaged byte, in header or payload, lets an entry through."""
    store.put(KEY, b"payload\n\x00")
    path = root / f"{KEY}.bin"
    good = path.read_bytes()
    for i in range(len(good)):
        path.write_bytes(good[:i] + bytes([good[i] ^ 0x20]) + good[i + 1 :])
        assert store.get(KEY) is None, f"byte {i} flipped unnoticed"


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: b"",
        lambda good: good[:20],
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: b"\x80\x04N.",
        lambda good: os.urandom(4096),
        lambda good: good.replace(b"fnarray-cache-1", b"fnarray-cache-2"),
    ],
    ids=["empty", "cut header", "cut end", "longer", "foreign", "noise", "other format"],
)
def test_damage_is_a_miss_and_is_repaired(root, damage):
    """A damaged or foreign file is a miss, and the next write mends it."""
    store.put(KEY, b"payload")
    path = root / f"{KEY}.bin"
    path.write_bytes(damage(path.read_bytes()))
    assert store.get(KEY) is None
    store.put(KEY, b"payload")
    assert store.get(KEY) == b"payload"


def test_entry_of_another_key_or_version_is_a_miss(root, monkeypatch):
    """An intact entry under a wrong name, or of other versions, does not pass."""
    store.put(KEY, b"payload")
    other = "k_aaaaaaaaaaaaaaaa"
    (root / f"{other}.bin").write_bytes((root / f"{KEY}.bin").read_bytes())
    assert store.get(other) is None
    monkeypatch.setattr(store, "versions", lambda: ("numba 0.1",))
    assert store.get(KEY) is None


def test_directory_where_a_file_should_be(root):
    """A directory in an entry's place is a miss; writing over it warns and goes on."""
    store.put("k_00", b"")
    (root / f"{KEY}.bin").mkdir()
    assert store.get(KEY) is None
    with one_warning("cannot write"):
        store.put(KEY, b"payload")
    assert sorted(p.name for p in root.iterdir()) == ["k_00.bin", f"{KEY}.bin"]


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o701])
def test_directory_open_to_others_is_refused(root, mode):
    """Code others could have written is never read, and one warning says what to do."""
    store.put(KEY, b"payload")
    root.chmod(mode)
    with one_warning("chmod 700"):
        assert store.get(KEY) is None
        store.put("k_00", b"")
        assert store.info().directory is None
        store.clear()
    root.chmod(0o700)
    assert store.get(KEY) == b"payload", "refused means untouched"


def test_directory_of_another_user_is_refused(root, monkeypatch):
    """A directory that belongs to somebody else is not used."""
    store.put(KEY, b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: root.stat().st_uid + 1)
    with one_warning("belongs to user"):
        assert store.get(KEY) is None


@pytest.mark.parametrize("where", ["/dev/null", "/dev/null/cache", "/proc/nowhere", "\0"])
def test_unusable_place_warns_once(where):
    """A place where no directory can be made costs one warning and the disk cache."""
    config.update("cache_dir", where)
    with one_warning("cannot be used"):
        for _ in range(3):
            store.put(KEY, b"payload")
            assert store.get(KEY) is None
            assert store.put_source(KEY, "text") is None


def test_unwritable_home(monkeypatch):
    """Without a setting the directory is the user's; a home that cannot be written warns."""
    config.update("cache_dir", None)
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with one_warning("cannot be used"):
        store.put(KEY, b"payload")


def test_full_disk(root):
    """A write cut short leaves nothing behind, warns once, and the next one that fits works."""
    store.put(KEY, b"payload")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with one_warning("cannot write"):
            store.put("k_00", bytes(100_000))
            store.put("k_01", bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in root.iterdir()] == [f"{KEY}.bin"]
    store.put("k_00", bytes(100_000))
    assert store.get("k_00") == bytes(100_000)


def test_no_space_at_rename(root, monkeypatch):
    """ENOSPC where the entry is put in place warns and keeps the old entry."""
    store.put(KEY, b"old")

    def replace(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with one_warning("No space left"):
        store.put(KEY, b"new")
    assert store.get(KEY) == b"old"
    assert len(list(root.iterdir())) == 1


def test_directory_deleted_while_in_use(root):
    """A cache removed by hand is a miss, then made anew."""
    store.put(KEY, b"payload")
    (root / f"{KEY}.bin").unlink()
    root.rmdir()
    assert store.get(KEY) is None
    assert store.info() == (None, 0, 0, 0, 0)
    store.put(KEY, b"payload")
    assert store.get(KEY) == b"payload"


def age(root, key, seconds):
    for path in root.glob(f"{key}.*"):
        os.utime(path, (time.time() - seconds,) * 2)


def test_least_recently_used_goes_first(root):
    """Above the limit the oldest entries go, object code with its source; a read renews."""
    for i in range(4):
        store.put(f"k_{i:02}", bytes(10_000))
        store.put_source(f"k_{i:02}", "pass")
        age(root, f"k_{i:02}", 1000 - i)
    assert store.get("k_00") is not None
    limit(42_000)
    store.put("k_04", bytes(10_000))
    assert {path.stem for path in root.iterdir()} == {"k_00", "k_03", "k_04"}


def test_bound_holds_over_many_writes(root):
    """The directory stays bounded however many entries are written."""
    limit(50_000)
    for i in range(200):
        store.put(f"k_{i:04x}", bytes(1000))
        assert store.info().bytes <= 50_000
    assert store.get(f"k_{199:04x}") is not None
    assert store.info().entries > 10


def test_limit_zero_keeps_nothing(root):
    """A limit of zero turns the disk cache off, silently."""
    limit(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put(KEY, b"payload")
    assert store.get(KEY) is None
    assert not root.exists()


def test_leftovers_of_killed_writers_are_swept(root):
    """Old temporary files go, fresh ones, whose writers may be alive, stay."""
    root.mkdir(mode=0o700)
    for name, seconds in (("old", 7200), ("new", 1)):
        (root / f".fnarray-tmp-{name}").write_bytes(b"half")
        os.utime(root / f".fnarray-tmp-{name}", (time.time() - seconds,) * 2)
    core_store._written.pop(root, None)
    store.put(KEY, b"payload")
    assert {path.name for path in root.iterdir()} == {f"{KEY}.bin", ".fnarray-tmp-new"}


def test_info_and_clear(root):
    """Both kinds are counted; clearing leaves files that are not the cache's."""
    store.put(KEY, b"12345")
    store.put_source(KEY, "def f(): ...")
    programs.put("p", 1)
    (root / "letter.txt").write_text("mine")
    (root / "k_letter.bin").write_text("mine")
    found = store.info()
    assert (found.directory, found.entries, found.kernels, found.programs) == (str(root), 2, 1, 1)
    assert found.bytes == sum(p.stat().st_size for p in root.iterdir() if "letter" not in p.name)
    store.clear()
    assert {path.name for path in root.iterdir()} == {"letter.txt", "k_letter.bin"}
    assert store.info().entries == 0


@pytest.mark.parametrize(
    "record", [("k_1", "k_2"), {"driver": "def main(): ...", "n": 3}, datetime.date(2024, 2, 29)]
)
def test_programs_round_trip(record):
    """Any picklable record comes back equal."""
    assert programs.get("key") is None
    programs.put("key", record)
    assert programs.get("key") == record
    assert programs.get("other") is None


def test_program_whose_class_is_gone_is_a_miss():
    """A record that no longer unpickles is a miss."""
    names = programs._loaded(())
    held = names, programs._contents(names), b"\x80\x04cno_such_module\nGone\n."
    store.put(keys.program_name("key", programs._PLACE), pickle.dumps(held))
    assert programs.get("key") is None


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Stand in for the package: a folder of which ``used.py`` is loaded, long after it was made."""
    monkeypatch.setattr(programs, "_PLACE", str(tmp_path / "package"))
    monkeypatch.setattr(programs, "_loaded", lambda more: ("used.py", *more))
    monkeypatch.setattr(programs, "BEGUN", time.time_ns() + 100_000_000_000)
    (tmp_path / "package").mkdir()
    for name in ("used", "idle", "maker"):
        (tmp_path / f"package/{name}.py").write_text(f"{name} = 1")
    restart()
    yield tmp_path / "package"
    restart()


def restart():
    """Forget what this process knows of sources, as the next one would not know it."""
    programs._looked_at.clear()
    programs._known.clear()
    keys._digest.cache_clear()


def test_program_dies_with_the_code_that_wrote_it(package):
    """An edit of what was loaded, or of what made its kernels, ends a program; no other does."""
    programs.put("key", 1, ["maker.py"])
    for name, lives in (("idle", True), ("used", False), ("maker", False)):
        path = package / f"{name}.py"
        text = path.read_text()
        path.write_text(text + "0")
        restart()
        assert (programs.get("key") == 1) is lives, name
        path.write_text(text)
        restart()
        assert programs.get("key") == 1, "the contents count, not when they were written"
    (package / "used.py").unlink()
    restart()
    assert programs.get("key") is None


def test_contents_in_place_of_others_are_seen(package):
    """A file of the same size and time of modification, put in the place of another, is another."""
    programs.put("key", 1)
    path = package / "used.py"
    times = path.stat()
    (package / "other").write_text("used = 2")
    os.utime(package / "other", ns=(times.st_atime_ns, times.st_mtime_ns))
    (package / "other").replace(path)
    restart()
    assert programs.get("key") is None


def test_sources_that_changed_since_the_start_keep_no_program(package, monkeypatch):
    """What a process runs may be older than its files: nothing it makes is said to be of them."""
    monkeypatch.setattr(programs, "BEGUN", time.time_ns() - 1)
    programs.put("key", 1)
    assert programs.get("key") is None


def test_a_source_that_was_settled_is_not_looked_at_again(package, monkeypatch):
    """What it was when it was loaded and read is known: a change since ends what is kept of it."""
    monkeypatch.setattr(programs, "_running", {"used.py"})
    monkeypatch.setattr(programs, "_settled", {})
    monkeypatch.setattr(programs.time, "time_ns", lambda now=time.time_ns: now() + 10**10)
    programs.put("first", 1)
    assert set(programs._settled) == {"used.py"}
    (package / "used.py").write_text("used = 2")
    programs.put("second", 2, ["maker.py"])
    restart()
    assert programs.get("second") is None
    (package / "used.py").write_text("used = 1")
    restart()
    assert programs.get("second") == 2


def test_what_is_loaded_is_listed():
    """The sources of a program are the modules of its process, and what it is told of."""
    names = programs._loaded(["/elsewhere/x.py"])
    assert {"fnarray/core/store.py", "fnarray/config.py", "/elsewhere/x.py"} <= {*names}


def test_unpicklable_record_is_an_error():
    """A record that cannot be pickled is the caller's mistake and says so."""
    with pytest.raises((TypeError, AttributeError)):
        programs.put("key", lambda: None)


def test_name_depends_on_everything(monkeypatch):
    """Text, types, versions, kernels, CPU and Numba's settings each change the name."""
    base = KernelSource("def kernel(x): ...", ("f32[1]",))
    clear = (keys.machine, cpu_key._standing)

    def name(src=base):
        for function in clear:
            function.cache_clear()
        return kernel_name(src)

    names = [name(), name(KernelSource(base.text + " ", base.signature))]
    names.append(name(KernelSource(base.text, ("f32[2]",))))
    names.append(name(KernelSource(base.text, ("f32[1]", "i64"))))
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CPU_NAME", "generic")
        names.append(name())
    with monkeypatch.context() as patch:
        patch.setattr(keys, "versions", lambda: ("numba 0.1",))
        names.append(name())
    with monkeypatch.context() as patch:
        patch.setattr(keys, "fingerprint", lambda package: "edited")
        names.append(name())
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_NUM_THREADS", "1")
        assert name() == names[0], "thread counts do not reach the code"
    assert len(set(names)) == len(names)
    assert name() == names[0]
    assert names[0].startswith("k_")
    assert len(names[0]) == 18


def test_importing_the_cache_leaves_numba_alone():
    """Names and entries cost no compiler: neither the import nor a lookup imports Numba."""
    code = (
        "import sys; from fnarray.compile.cpu import build; from fnarray.compile.cache import *; "
        "build.kernel_name(KernelSource('', ())); programs.get('x'); store.info(); "
        "assert not {'numba', 'jax', 'scipy'} & set(sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=600)
