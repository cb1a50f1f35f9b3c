"""The examples of `examples/from_cupy` as modules, and the programs of CuPy's or NumPy's that they were."""

from __future__ import annotations

import re
import types
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "examples" / "from_cupy"
NAMES = ("waveform", "tomography", "phase", "ode")
LINE = re.compile(r"^( *)(.*\S)  # changed(?:: (.*))?$")


def source(name):
    """Return the text of an example."""
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def before(text, library="cupy"):
    """Return what a program was before its lines were changed: what stands behind each mark, or nothing."""
    lines = []
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None:
            lines.append(line)
        elif found[3]:
            lines.append(found[1] + found[3].replace("import cupy as cp", f"import {library} as cp"))
    return "\n".join(lines) + "\n"


def module(text, **constants):
    """Return a program as a module, with other values of its constants."""
    made = types.ModuleType("program")
    exec(compile(text, "program", "exec"), made.__dict__)
    assert constants.keys() <= made.__dict__.keys()
    made.__dict__.update(constants)
    return made
