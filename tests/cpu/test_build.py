"""`python -m lucid.cpu.build` compiles what lucid declares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lucid.cpu import build
from lucid.cpu.functions import Function, Unit


def test_what_is_built_is_all_that_is_declared():
    """Files, formulas and optimizers are among it, also where optional packages are not installed."""
    code = (
        "import sys\nsys.modules.update(dict.fromkeys(('scipy', 'ray', 'mpi4py', 'matplotlib')))\n"
        "from lucid.cpu.build import libraries\nprint(*{each.unit.file for each in libraries()})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = {"random.cpp", "convolution.cpp", "optim_adam.cpp", "activation_gelu.cpp", "activation_sigmoid.cpp"}
    assert expected <= set(ran.stdout.split())


def test_the_command_says_what_it_built(monkeypatch, capsys, tmp_path):
    """It ends with the number of libraries and their folder."""
    text = '#include "cpu.h"\nnamespace lucid { __global__ void f(int n) {} }'
    units = [Unit("one.cpp", lambda: text), Unit("none.cpp", lambda: "")]
    for unit in units:
        Function(unit, "f")
    monkeypatch.setattr(build, "libraries", lambda: [each for unit in units for each in unit.libraries.values()])
    assert build.main([]) == 0
    assert capsys.readouterr().err.startswith("1 libraries in ")


def test_an_error_of_the_compiler_is_told(monkeypatch, capsys):
    """It is printed without a traceback, and the command fails."""
    unit = Unit("wrong.cpp", lambda: '#include "cpu.h"\nnamespace lucid { __global__ void f(int n) { nonsense } }')
    Function(unit, "f")
    monkeypatch.setattr(build, "libraries", lambda: list(unit.libraries.values()))
    assert build.main([]) == 1
    assert "error: " in (said := capsys.readouterr().err)
    assert "nonsense" in said
    assert "Traceback" not in said


def test_options_are_refused(capsys):
    """The command takes none."""
    with pytest.raises(SystemExit):
        build.main(["--arch", "sm_90"])
    assert "unrecognized arguments" in capsys.readouterr().err
