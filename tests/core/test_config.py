"""Settings: names, values, environment, scopes, threads, trace token."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from fnarray.config import SETTINGS, config, debug_nans, disable_jit, effects, enable_x64

module = sys.modules["fnarray.config"]  # the attribute of that name is the object, as in JAX


@pytest.fixture
def restore():
    """Put the global values back."""
    before = config.values
    yield
    for name, value in before.items():
        config.update(name, value)


def in_thread(f):
    """Result of a call in a new thread."""
    out = []
    thread = threading.Thread(target=lambda: out.append(f()))
    thread.start()
    thread.join()
    return out[0]


@pytest.mark.parametrize("spelling", ["debug_nans", "fnarray_debug_nans", "jax_debug_nans"])
def test_three_spellings(restore, spelling):
    """A setting is written and read under its bare name and both prefixes."""
    config.update(spelling, True)
    assert config.debug_nans is True
    assert getattr(config, spelling) is True
    assert config.read(spelling) is True


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("jax_enable_x46", True, AttributeError, "'enable_x64'"),
        ("nothing_like_it_zzz", 1, AttributeError, "The settings are enable_x64"),
        ("enable_x64", 1, TypeError, "must be a bool.*got 1 of type int"),
        ("enable_x64", "yes", TypeError, "must be a bool"),
        ("num_threads", True, TypeError, "must be an int of at least 1 or None"),
        ("num_threads", 0, ValueError, "must be an int of at least 1 or None, got 0"),
        ("numpy_rank_promotion", "no", ValueError, "'allow', 'warn', 'raise'"),
        ("effects", None, TypeError, "'error', 'warn', 'off'"),
        ("cache_dir", 3, TypeError, "must be a str or None"),
        ("default_matmul_precision", "low", ValueError, "'highest'.*or None"),
    ],
)
def test_bad_updates_are_explained(name, value, error, words):
    """An unknown name or an inadmissible value is an error that lists what is admitted."""
    before = config.values
    with pytest.raises(error, match=words):
        config.update(name, value)
    assert config.values == before


def test_assignment_is_refused():
    """`config.x = v` would be neither global nor scoped."""
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.enable_x64 = True


def test_every_row_is_complete():
    """Each default is admitted by its own row, and each row has a doc and three attributes."""
    for name, row in SETTINGS.items():
        assert row.check(row.default) == row.default
        assert row.doc
        assert {name, f"jax_{name}", f"fnarray_{name}"} <= set(dir(config))
    assert list(config) == list(SETTINGS)


def test_scopes_nest_and_end():
    """The innermost scope wins; leaving restores, also after an error."""
    assert config.enable_x64 is False
    with enable_x64(True):
        with enable_x64(False):
            assert config.enable_x64 is False
        assert config.enable_x64 is True
    with pytest.raises(KeyError), enable_x64():
        raise KeyError
    assert config.enable_x64 is False
    assert vars(config) == {}


def test_scopes_check_their_values():
    """A bad value is refused before the block is entered."""
    with pytest.raises(TypeError, match="enable_x64: 'enable_x64' must be a bool"):
        enable_x64("on")
    with pytest.raises(ValueError, match="'warn'"):
        effects("loud")


def test_scope_decorates_a_function():
    """A scope wraps each call, recursive ones too."""

    @disable_jit()
    def f(n):
        return config.disable_jit if n == 0 else f(n - 1)

    assert f(2) is True
    assert config.disable_jit is False


def test_every_scope_has_its_setting():
    """Exported context managers enter and leave without a trace."""
    before = config.values
    for name in module.__all__:
        if name in SETTINGS:
            with getattr(module, name)(SETTINGS[name].default):
                assert config.read(name) == SETTINGS[name].default
    with module.checking_leaks():
        assert config.check_tracer_leaks
    assert config.values == before


def test_scopes_belong_to_their_thread(restore):
    """A scope is seen by its thread alone, an update by all that have no scope of their own."""
    with enable_x64(True):
        assert in_thread(lambda: config.enable_x64) is False
        config.update("debug_nans", True)
        assert config.debug_nans is True
        assert in_thread(lambda: config.debug_nans) is True
        config.update("enable_x64", False)
        assert config.enable_x64 is True


def test_token_names_the_values(restore):
    """Equal trace-affecting values have equal tokens, by scope, by update, in any thread."""
    base = config.trace_token
    with enable_x64(True):
        wide = config.trace_token
        with debug_nans(True):
            assert config.trace_token not in (base, wide)
        assert config.trace_token == wide
    assert config.trace_token == base != wide
    config.update("enable_x64", True)
    assert config.trace_token == wide == in_thread(lambda: config.trace_token)
    with enable_x64(False):
        assert config.trace_token == base
    config.update("log_compiles", True)
    assert config.trace_token == wide


def test_token_of_a_scoped_thread_follows_an_update(restore):
    """A thread inside a scope sees a global change of another setting in its token at once."""
    entered, changed, tokens = threading.Event(), threading.Event(), []

    def work():
        with enable_x64(True):
            tokens.append(config.trace_token)
            entered.set()
            changed.wait()
            tokens.append(config.trace_token)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    config.update("debug_infs", True)
    changed.set()
    thread.join()
    with enable_x64(True):
        assert tokens[1] == config.trace_token != tokens[0]


def read_in_process(expression, **environ):
    """Evaluate an expression over `config` in a fresh interpreter."""
    code = f"from fnarray.config import config; print({expression})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr.splitlines()[-1]


def test_environment_is_read_at_import():
    """One process, many variables: FNARRAY_ wins, JAX_ counts, an empty one is not set."""
    got = read_in_process(
        "(config.enable_x64, config.debug_nans, config.disable_jit, config.num_threads,"
        " config.cache_dir, config.effects, config.num_cpu_devices, config.trace_token)",
        FNARRAY_ENABLE_X64="no",
        JAX_ENABLE_X64="1",
        JAX_DEBUG_NANS="On",
        FNARRAY_DISABLE_JIT="",
        FNARRAY_NUM_THREADS="3",
        FNARRAY_CACHE_DIR="/nowhere",
        FNARRAY_EFFECTS="warn",
        XLA_FLAGS="--xla_foo=1 --xla_force_host_platform_device_count=8",
    )
    assert got == "(False, True, False, 3, '/nowhere', 'warn', 8, 0)"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {
                "FNARRAY_NUM_CPU_DEVICES": "2",
                "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            },
            {"num_cpu_devices": 2},
        ),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}, {"num_cpu_devices": 8}),
        ({"FNARRAY_NUM_THREADS": "none"}, {"num_threads": None}),
        ({"FNARRAY_CACHE_SIZE_LIMIT": "0"}, {"cache_size_limit": 0}),
        ({"FNARRAY_VERIFY": "TRUE", "JAX_VERIFY": "0"}, {"verify": True}),
        ({"UNRELATED": "1"}, {}),
    ],
)
def test_environment_values(environ, expected):
    """What variables set, by precedence."""
    assert module.from_environment(environ) == expected


@pytest.mark.parametrize(
    "environ",
    [
        {"FNARRAY_ENABLE_X64": "maybe"},
        {"JAX_NUMPY_RANK_PROMOTION": "nope"},
        {"FNARRAY_NUM_THREADS": "four"},
        {"FNARRAY_NUM_THREADS": "0"},
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=0"},
    ],
)
def test_bad_environment_names_the_variable(environ):
    """A value that cannot be read is a `ValueError` with the variable's name."""
    with pytest.raises(ValueError, match=next(iter(environ))):
        module.from_environment(environ)


# ---- settings of JAX that have no row ------------------------------------------------------------


def _jax_names():
    import jax._src.config

    holders = vars(jax._src.config.config)["_value_holders"]
    return {name: holder.value for name, holder in holders.items()}


@pytest.mark.cpu
def test_every_setting_of_jax_is_known(restore):
    """A program that sets what JAX has by default runs; nothing warns, nothing changes."""
    names, before = _jax_names(), config.values
    assert len(names) > 100
    for name, value in names.items():
        row = name.removeprefix("jax_")
        if row not in SETTINGS and row != "platform_name":  # which is another's
            config.update(name, value)
            assert config.read(name) in (value, None)
    assert config.values == before


def test_settings_without_effect(restore):
    """What tunes XLA is kept; the platform by its old name is the platform."""
    config.update("jax_compilation_cache_dir", "/nowhere")
    assert config.jax_compilation_cache_dir == "/nowhere"
    assert config.cache_dir != "/nowhere"
    config.update("jax_platform_name", "cpu")
    assert (config.platforms, config.jax_platform_name) == ("cpu", "cpu")
    assert config.x64_enabled is config.enable_x64
    config.update("jax_platform_name", "")
    assert config.platforms is None


def test_settings_that_cannot_be_followed():
    """Checks that are not made warn; what would change results is refused."""
    with pytest.warns(UserWarning, match=r"jax_debug_key_reuse=True has no effect here.*lint"):
        config.update("jax_debug_key_reuse", True)
    config.update("jax_debug_key_reuse", False)
    with pytest.raises(ValueError, match=r"jax_random_seed_offset has no counterpart.*got 3"):
        config.update("jax_random_seed_offset", 3)
    assert config.read("jax_random_seed_offset") == 0
    assert not hasattr(config, "jax_nothing")


def test_flags_of_the_command_line(restore, monkeypatch):
    """``--jax_NAME=VALUE`` is set and taken off; others stay."""
    flags = ["--jax_debug_nans=true", "--jax_log_checkpoint_residuals=1", "--jax_enable_x64=0"]
    monkeypatch.setattr(sys, "argv", ["prog", flags[0], "--steps=3", *flags[1:], "file"])
    config.parse_flags_with_absl()
    assert sys.argv == ["prog", "--steps=3", "file"]
    assert (config.debug_nans, config.enable_x64) == (True, False)
    monkeypatch.setattr(sys, "argv", ["prog", "--jax_debug_nans=perhaps"])
    with pytest.raises(ValueError, match=r"--jax_debug_nans.*perhaps"):
        config.parse_flags_with_absl()


def test_the_old_variable_of_the_platform():
    """``JAX_PLATFORM_NAME`` chooses where nothing newer does."""
    read = module.from_environment
    assert read({"JAX_PLATFORM_NAME": "cpu"}) == {"platforms": "cpu"}
    newer = {"JAX_PLATFORM_NAME": "gpu", "JAX_PLATFORMS": "cpu"}
    assert read(newer) == {"platforms": "cpu"}
