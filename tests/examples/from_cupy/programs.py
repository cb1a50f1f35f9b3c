"""The examples of `examples/from_cupy` as modules, and the programs of CuPy's or NumPy's that they were."""

from __future__ import annotations

import re
import types
from pathlib import Path

import numpy as np

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


def problem(program, name, rng, device):
    """Return the misfit of a program as a function of what it looks for, and a place to start from."""
    cp = program.cp
    if name == "waveform":
        heard = program.record(program.true_speed())
        return lambda speed: program.misfit(speed, heard), 2 + 0.1 * rng.standard_normal(program.CELLS)
    if name == "tomography":
        rays = program.paths(program.SIDE, program.ANGLES)
        seen = program.project(program.phantom(program.SIDE), *rays)
        return lambda image: program.misfit(image, *rays, seen, 1.0), rng.standard_normal((program.SIDE, program.SIDE))
    if name == "phase":
        masks = cp.asarray(np.sign(rng.standard_normal((program.MASKS, program.SIDE, program.SIDE))))
        seen = program.diffract(program.flower(program.SIDE), masks)
        return lambda thing: program.misfit(thing, masks, seen), rng.random((program.SIDE, program.SIDE))
    animals = [cp.asarray(rng.random(program.VALLEYS)) for _ in range(2)]
    step = program.kernel_step() if device == "cuda" else program.step_on_cpu
    seen = program.grow(step, *animals, cp.array(program.RATES))
    return lambda rates: program.misfit(step, *animals, rates, seen), np.array(program.RATES) + 0.1 * rng.random(4)
