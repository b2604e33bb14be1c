"""``fnarray cache build``: kernels for a GPU that is elsewhere."""

from __future__ import annotations

import re

import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.__main__ import main
from fnarray.compile.cache import key, store
from fnarray.compile.cache.key import KernelSource
from fnarray.compile.cuda import build

SCRIPT = """
import numpy as np
import fnarray
import fnarray.numpy as jnp

@fnarray.jit
def loss(x):
    return jnp.sum(jnp.tanh(x) ** 2)

fnarray.jit(fnarray.grad(loss))(np.ones(12, np.float32))
fnarray.jit(lambda x: jnp.cumsum(x) + {number})(np.ones(12, np.float32))
"""


def test_a_scripts_programs_are_built(tmp_path, capsys) -> None:
    """What the script compiles here is built for the other machine too, and kept."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(number=41.5))
    before = store.info().kernels
    assert main(["cache", "build", str(script), "--target", "sm_90"]) == 0
    assert "2 programs, 3 kernels for sm_90, 0 programs refused" in capsys.readouterr().out
    assert store.info().kernels >= before + 2
    assert build._binaries


def test_a_program_for_a_gpu_has_a_report() -> None:
    """Source, graph, kernels and launches of a program whose GPU is elsewhere; nothing is run."""
    lowered = fnarray.jit(lambda x: jnp.tanh(x).sum(0) + 1).lower(jnp.ones((64, 8)))
    report = lowered.compile(target="sm_90").report()
    facts = report.facts
    assert facts.not_run == "its kernels are for a GPU"
    assert {o.name for o in facts.operations} >= {"tanh", "reduce_sum", "add"}
    assert all("for sm_90" in k.made and k.text.lines for k in facts.kernels if not k.is_step)
    assert any("launch(" in line for line in facts.driver.lines)
    assert "for sm_90" in report.html


def test_what_leaves_a_gpu_is_in_the_report() -> None:
    """Who computes a step that is no kernel, and the bytes that are copied for it."""
    programs = (
        (300, lambda a: fnarray.scipy.linalg.schur(a)[0]),
        (300, lambda a: lax.linalg.eig(a, compute_left_eigenvectors=True)[1]),
        (300, lambda a: fnarray.scipy.linalg.sqrtm(a)),
        (1100, lambda a: lax.linalg.qr(a, pivoting=True)[0]),
        (40, lambda a: fnarray.scipy.linalg.solve_sylvester(a, a, a)),
    )
    for n, fun in programs:
        lowered = fnarray.jit(fun).lower(jnp.ones((n, n)))
        steps = [k for k in lowered.compile(target="sm_90").report().facts.kernels if k.is_step]
        said = "; ".join(text for k in steps for _, text in k.reasons)
        copied = re.search(r"no kernel on a GPU: the host computes it.* ([\d,]+) bytes", said)
        assert copied, said
        assert int(copied[1].replace(",", "")) >= 2 * n * n * 4


def test_names_are_the_same_on_another_machine(monkeypatch) -> None:
    """A name has nothing of this processor, Python or linker; it has the compiler's text."""
    source = KernelSource("def kernel(x): ...", ("f32[1]",))
    name = build.name_of(source, "sm_90")
    assert build.name_of(source, "sm_80") != name
    with monkeypatch.context() as patch:
        patch.setattr(key, "machine", lambda: ("another",))
        patch.setattr(build.toolkit, "linker", lambda: "another 1.0")
        build.key.cache_clear()
        assert build.name_of(source, "sm_90") == name
        patch.setattr(build, "hashed", lambda paths: "edited")
        build.key.cache_clear()
        assert build.name_of(source, "sm_90") != name
    build.key.cache_clear()


def test_a_kernel_is_found_by_another_python(monkeypatch) -> None:
    """What one Python and NumPy built, another one loads: machines that share a cache differ."""
    source = KernelSource("def kernel(out0):\n    out0[0] = f32(37.25)\n", ("f32[1]",))
    built = build.build(source, "sm_90")
    build.forget()
    monkeypatch.setattr(store, "versions", lambda: ("another",))
    monkeypatch.setattr(key, "machine", lambda: ("another",))
    monkeypatch.setattr(build, "_made", None)
    assert build.build(source, "sm_90") == built


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["build"], "write: fnarray cache build SCRIPT"),
        (["info", "--target", "sm_90"], ""),
        (["build", "absent.py", "--target", "sm_90"], "is no file"),
        (["build", "absent.py", "--target", "gpu"], "architecture is one of"),
    ],
)
def test_bad_arguments_say_what_to_write(arguments, says, capsys) -> None:
    """Unusable arguments exit with 2, a message and no traceback."""
    status = main(["cache", *arguments])
    assert status == (2 if says else 0)
    assert says in capsys.readouterr().err
