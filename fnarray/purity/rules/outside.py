"""What depends on the world outside the arguments, or acts on it."""

from __future__ import annotations

from ._base import LintRule


class Random(LintRule):
    """Python's or NumPy's hidden random state is used, or the system's entropy."""

    code = "FNA301"
    name = "random"
    message = "{name} runs once, at trace time"
    repair = "Pass a key and draw with fnarray.random."
    watches = """
        random secrets numpy.random os.urandom os.getrandom uuid.uuid1 uuid.uuid4 uuid.getnode
        tempfile.mktemp
    """
    repairs = dict.fromkeys(
        ["uuid.uuid1", "uuid.uuid4", "uuid.getnode", "os.urandom", "os.getrandom"],
        "Draw it outside, and pass it as an argument.",
    )
    spares = """
        random.Random numpy.random.default_rng numpy.random.RandomState numpy.random.Generator
        numpy.random.SeedSequence numpy.random.PCG64 numpy.random.Philox numpy.random.MT19937
    """
    why = """
The number is drawn while tracing and compiled in: every call gets the same one.
"""
    bad = """
import random

import fnarray

@fnarray.jit
def step(x):
    return x + random.gauss(0.0, 1.0)
"""
    good = """
import fnarray

@fnarray.jit
def step(x, key):
    return x + fnarray.random.normal(key)
"""


class Clock(LintRule):
    """The time or the date is read."""

    code = "FNA302"
    name = "clock"
    message = "{name} reads the clock once, at trace time"
    repair = "Read the clock outside; pass the time as an argument if it is needed."
    watches = """
        time datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today
        datetime.date.today timeit numpy.datetime64.now os.times
    """
    spares = "time.strptime time.struct_time"
    why = """
The clock is read while tracing. Measured this way, every call takes the time of the trace.
"""
    bad = """
import time

import fnarray

@fnarray.jit
def step(x):
    return x + time.time()
"""
    good = """
import fnarray

@fnarray.jit
def step(x, now):
    return x + now
"""


class OuterGenerator(LintRule):
    """A random generator is captured, handed in, or made without a seed."""

    code = "FNA303"
    name = "outer-generator"
    message = "draws from {name!r}, a random generator with hidden state"
    repair = "Pass a key and draw with fnarray.random."
    why = """
A generator's state advances with each draw. A generator with a literal seed, made inside the
function, gives the same numbers at every call, and is accepted.
"""
    bad = """
import fnarray
import numpy as np

rng = np.random.default_rng(0)

@fnarray.jit
def step(x):
    return x + rng.normal()
"""
    good = """
import fnarray
import numpy as np

@fnarray.jit
def step(x):
    rng = np.random.default_rng(0)
    return x + rng.normal()
"""


class Identity(LintRule):
    """A number made of ``id``, or the hash of a string, which differ between processes."""

    code = "FNA304"
    name = "identity"
    message = "{name!r} differs from one process to the next"
    repair = "Use a value that is part of the data, or zlib.crc32 for a hash of text."
    why = """
The result depends on addresses or on the process's hash seed, and is compiled in, and cached on
disk. To compare two identities, or to look one up, says the same in each process, and is no effect.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x):
    return x + id(x) % 7
"""
    good = """
import fnarray

@fnarray.jit
def step(x, tag):
    return x + tag % 7
"""


#: What to do about what stops, and about what shows how far a loop is.
_OF_TOOLS = {
    **dict.fromkeys(
        ("breakpoint", "pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "IPython.embed"),
        "Use fnarray.debug.breakpoint, which stops when the compiled program runs.",
    ),
    **dict.fromkeys(
        ("tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange", "rich.progress.track"),
        "Show progress in the loop that calls the traced function.",
    ),
}


class Print(LintRule):
    """``print`` and its like."""

    code = "FNA311"
    name = "print"
    message = "{name} runs once, at trace time"
    repair = "Use fnarray.debug.print, which prints when the compiled program runs."
    watches = """
        builtins.print pprint.pprint pprint.pp rich.print traceback.print_exc
        traceback.print_stack traceback.print_list traceback.print_tb traceback.print_exception
        traceback.print_last pdb bdb ipdb pudb IPython.embed sys.displayhook sys.excepthook tqdm
        rich.progress rich.console alive_progress progressbar icecream builtins.breakpoint
    """
    repairs = _OF_TOOLS
    why = """
Tracing runs once per signature, so the text appears at the first call only, and shows tracers.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x):
    print("x is", x)
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    fnarray.debug.print("x is {}", x)
    return x * 2
"""


class FileAccess(LintRule):
    """A file or the console is read or written."""

    code = "FNA312"
    name = "file-access"
    message = "{name} reads or writes outside the program, once, at trace time"
    repair = "Read before and pass the data; write after, from the returned value."
    watches = """
        builtins.input builtins.open io.open os.open os.read os.write os.remove os.unlink
        os.rename os.replace os.mkdir os.makedirs os.rmdir os.listdir os.scandir os.walk os.stat
        os.chdir os.getcwd os.path.exists os.path.isfile os.path.isdir os.path.getmtime
        os.path.getsize glob.glob glob.iglob shutil tempfile getpass numpy.load numpy.save
        numpy.savez numpy.savez_compressed numpy.loadtxt numpy.savetxt numpy.genfromtxt
        numpy.fromfile numpy.memmap pickle.dump pickle.load json.dump json.load marshal.dump
        marshal.load cloudpickle.dump cloudpickle.load gzip.open bz2.open lzma.open
        zipfile.ZipFile tarfile.open sqlite3.connect shelve.open fileinput yaml.dump_all
        mmap.mmap linecache joblib.dump joblib.load pandas.read_csv pandas.read_parquet
        pandas.read_json pathlib.Path.read_text pathlib.Path.write_text pathlib.Path.read_bytes
        pathlib.Path.write_bytes pathlib.Path.open pathlib.Path.exists pathlib.Path.is_file
        pathlib.Path.is_dir pathlib.Path.mkdir pathlib.Path.unlink pathlib.Path.touch
        pathlib.Path.rename pathlib.Path.replace pathlib.Path.stat pathlib.Path.iterdir
        pathlib.Path.glob pathlib.Path.rglob pathlib.Path.cwd pathlib.Path.home
        pathlib.Path.resolve pathlib.Path.absolute
    """
    why = """
The file is read or written while tracing only.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x):
    with open("scale.txt") as file:
        return x * float(file.read())
"""
    good = """
import fnarray

@fnarray.jit
def step(x, scale):
    return x * scale
"""


class Logging(LintRule):
    """A message is logged."""

    code = "FNA313"
    name = "logging"
    message = "{name} logs once, at trace time"
    repair = "Log outside, or use fnarray.debug.callback."
    watches = "logging absl.logging loguru.logger syslog"
    spares = "logging.getLogger"
    why = """
The message appears at the first call of each signature, and shows tracers.
"""
    bad = """
import logging

import fnarray

@fnarray.jit
def step(x):
    logging.info("step")
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    return x * 2
"""


class StandardStream(LintRule):
    """``sys.stdout``, ``sys.stderr`` or ``sys.stdin`` is used."""

    code = "FNA314"
    name = "standard-stream"
    message = "{name} is used once, at trace time"
    repair = "Use fnarray.debug.print, which prints when the compiled program runs."
    repairs = dict.fromkeys(["sys.stdin"], "Read it before the call, and pass what was read.")
    watches = "sys.stdout sys.stderr sys.stdin sys.__stdout__ sys.__stderr__"
    on_sight = True
    why = """
The stream is written or read while tracing only.
"""
    bad = """
import sys

import fnarray

@fnarray.jit
def step(x):
    sys.stdout.write("step")
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    fnarray.debug.print("step")
    return x * 2
"""


#: Which functions are running: those of the trace, not those of the call.
_STACK = """
    inspect.stack inspect.trace inspect.currentframe inspect.getouterframes sys._getframe
    sys._getframemodulename sys._current_frames traceback.extract_stack traceback.format_stack
    traceback.walk_stack
"""


#: What to do about those that are not read, or not to be passed.
_OF_SETTINGS = {
    **dict.fromkeys(
        ("fnarray.config.update", "jax.config.update"),
        "Set it before, or for a block by the setting's own name: with fnarray.enable_x64(): ...",
    ),
    **dict.fromkeys(
        ("locale.setlocale", "decimal.setcontext", "os.putenv", "os.unsetenv"),
        "Set it outside, before the call.",
    ),
    **dict.fromkeys(_STACK.split(), "Pass what it tells of the caller as an argument."),
}


class Environment(LintRule):
    """The process's environment is read or changed."""

    code = "FNA315"
    name = "environment"
    message = "{name} reads or changes the process's environment, once, at trace time"
    repair = "Read it outside, and pass the value or make it a constant in CAPITALS."
    watches = """
        os.environ os.environb os.getenv os.putenv os.unsetenv sys.argv decimal.getcontext
        decimal.setcontext argparse.ArgumentParser getopt.getopt optparse.OptionParser
        absl.flags.FLAGS locale.getlocale locale.localeconv os.getpid os.cpu_count os.uname
        platform.node os.path.abspath os.path.realpath os.path.expanduser os.path.expandvars
        sys.getrecursionlimit numpy.geterr numpy.get_printoptions threading.active_count
        threading.enumerate threading.current_thread threading.get_ident sys.getswitchinterval
        fnarray.config.update jax.config.update locale.setlocale locale.getpreferredencoding
        locale.getencoding locale.str locale.format_string locale.currency locale.atof locale.atoi
        locale.delocalize locale.localize locale.strcoll locale.strxfrm logging.getLevelName
        csv.field_size_limit numpy.getbufsize numpy.geterrcall sys.get_int_max_str_digits
        sys.gettrace sys.getprofile threading.gettrace threading.getprofile threading.stack_size
        os.getppid os.getuid os.getlogin os.getloadavg os.get_terminal_size os.sched_getaffinity
        calendar.firstweekday calendar.weekheader calendar.monthcalendar calendar.month
        calendar.calendar psutil
    """ + _STACK  # fmt: skip
    repairs = _OF_SETTINGS
    on_sight = True
    why = """
The environment may change, and differs between processes that share the cache on disk.
"""
    bad = """
import os

import fnarray

@fnarray.jit
def step(x):
    return x * float(os.environ["SCALE"])
"""
    good = """
import os

import fnarray

SCALE = float(os.environ.get("SCALE", "1"))

@fnarray.jit
def step(x):
    return x * SCALE
"""


class SystemCall(LintRule):
    """A process, a socket, a thread, a pause: the operating system is asked to act."""

    code = "FNA316"
    name = "system-call"
    message = "{name} acts on the world outside, once, at trace time"
    repair = "Do it outside the traced function, or through fnarray.debug.callback."
    watches = """
        time.sleep cProfile profile tracemalloc faulthandler os.system os.popen os.fork os.kill
        os._exit os.abort os.execv os.spawnv os.posix_spawn sys.exit sys.setrecursionlimit
        sys.settrace subprocess socket select ssl urllib.request http.client requests httpx
        smtplib ftplib threading.Thread threading.Timer threading.Event threading.Semaphore
        threading.BoundedSemaphore threading.Condition threading.Barrier multiprocessing
        concurrent.futures asyncio.run asyncio.sleep signal atexit gc webbrowser ctypes
        warnings.filterwarnings warnings.simplefilter warnings.resetwarnings numpy.seterr
        numpy.set_printoptions builtins.exit builtins.quit
    """
    spares = """
        socket.AF_INET socket.SOCK_STREAM signal.SIGINT
        ctypes.c_int ctypes.c_uint ctypes.c_long ctypes.c_float ctypes.c_double ctypes.c_void_p
        ctypes.c_char_p ctypes.c_size_t ctypes.byref ctypes.sizeof ctypes.POINTER
    """
    why = """
What the operating system does, it does while tracing only.
"""
    bad = """
import time

import fnarray

@fnarray.jit
def step(x):
    time.sleep(0.1)
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    return x * 2
"""
