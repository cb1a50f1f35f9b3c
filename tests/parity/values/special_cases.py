"""The special values of `test_special_values`: what each row of the table of samples is tried on."""

from __future__ import annotations

import itertools

import numpy as np

from lucid.base.dtype import bfloat16
from tests.device import DEVICE
from tests.gradients import is_floating
from tests.samples import FLOATS

DTYPES = {name: np.dtype(bfloat16.numpy if name == "bfloat16" else name) for name in FLOATS}
# Largest and smallest positive number, and the distance from 1 to the next.
MAX = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": float(np.finfo("f").max)}
MAX["float64"] = float(np.finfo("d").max)
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}
# From which on arithmetic keeps numbers: kernels are compiled with -ftz=true, which makes subnormal float32 zeros, and
# bfloat16 is computed in float32.
LEAST = SMALLEST if DEVICE == "cpu" else SMALLEST | {"float32": 2.0**-126, "bfloat16": 2.0**-126}
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

ORDINARY = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0)
BEYOND = (20.0, -20.0, 100.0, -100.0, 0.1, -0.1)
LAYOUTS = ("contiguous", "flipped", "transposed", "strided")


def specials(dtype):
    """Return the special values of a dtype by name."""
    large, huge = MAX[dtype] ** 0.55, MAX[dtype] * 0.75
    values = {"0": 0.0, "inf": np.inf, "subnormal": 3 * SMALLEST[dtype], "large": large, "huge": huge}
    return {"nan": np.nan, **values, **{f"-{name}": -value for name, value in values.items()}}


def is_real(array):
    """Tell whether special values are planted in an array: not among integers, bools and complex numbers."""
    return is_floating(array) and array.dtype.kind != "c"


def in_dtype(array, dtype):
    """Return an array in a dtype if it is of real numbers."""
    array = np.asarray(array)
    with np.errstate(all="ignore"):
        return array.astype(DTYPES[dtype]) if is_real(array) else array


def laid_out(array, layout):
    """Return an array with the same elements and other strides."""
    if array.ndim == 0 or layout == "contiguous":
        return array
    if layout == "flipped":
        backwards = (slice(None, None, -1),) * array.ndim
        return array[backwards].copy()[backwards]
    if layout == "transposed":
        return np.asfortranarray(array)
    wide = np.repeat(array, 2, axis=-1)
    return wide[..., ::2]


def grids(count, dtype):
    """Return all combinations of special and ordinary numbers, for each operand of an elementwise op an array."""
    more = {1: (*ORDINARY, *BEYOND), 2: ORDINARY}.get(count, (1.0, -2.0))
    values = np.array([*specials(dtype).values(), *more])
    return [in_dtype(grid.reshape(-1), dtype) for grid in np.meshgrid(*[values] * count, indexing="ij")]


def cases(sample, arrays, dtype, rng, *, elementwise):
    """Yield a name, arrays and a layout for each special case of a row.

    Parameters
    ----------
    sample : Sample
        The row.
    arrays : list of numpy.ndarray
        Its ordinary arguments in `dtype`.
    dtype : str
        The dtype of real numbers.
    rng : numpy.random.Generator
        Draws the places of special values.
    elementwise : bool
        Whether each element of the result depends on one element of each operand.
    """
    layouts = itertools.cycle(LAYOUTS[FLOATS.index(dtype) :] + LAYOUTS[: FLOATS.index(dtype)])
    if elementwise:
        operands = grids(len(arrays), dtype)
        yield "all pairs", operands, "contiguous"
        yield "all pairs", operands, LAYOUTS[1 + FLOATS.index(dtype) % 3]
        for name, value in specials(dtype).items():
            rest = [rng.choice(operands[0]) for _ in arrays[1:]]
            yield f"{name} of no dimension", [np.array(x, DTYPES[dtype]) for x in (value, *rest)], "contiguous"
    else:
        yield from planted(arrays, dtype, rng, layouts)
    yield from shaped(arrays, layouts)
    if sample.empty is not None:
        yield "empty", [in_dtype(array, dtype) for array in sample.empty(rng)], "contiguous"


def planted(arrays, dtype, rng, layouts):
    """Yield arguments with one special value in one of them, with several, and with nothing else."""
    values = specials(dtype)
    for place, array in enumerate(arrays):
        if not is_real(array) or not array.size:
            continue
        changed = {name: array.copy() for name in (*values, "several")}
        for name, value in values.items():
            changed[name][tuple(rng.integers(0, size) for size in array.shape)] = value
        for name in ("inf", "nan", "-inf", "0", "-0"):
            changed["several"][tuple(rng.integers(0, size) for size in array.shape)] = values[name]
        changed |= {f"only {name}": np.full_like(array, values[name]) for name in ("0", "-0", "subnormal", "-inf")}
        for name, one in changed.items():
            yield f"{name} in {place}", with_one(arrays, place, one), next(layouts)


def shaped(arrays, layouts):
    """Yield arguments of other sizes: none, one, no dimension, and 1 in one dimension of one of them."""
    yield "ordinary", arrays, "flipped"
    yield "first size 0", [array[:0] if array.ndim else array for array in arrays], "contiguous"
    yield "last size 0", [array[..., :0] if array.ndim else array for array in arrays], "contiguous"
    yield "one element", [array[(slice(0, 1),) * array.ndim] for array in arrays], "flipped"
    yield "one element of one dimension", [array.reshape(-1)[:1] for array in arrays], "flipped"
    if all(array.size for array in arrays):
        yield "no dimension", [array.reshape(-1)[0].reshape(()) for array in arrays], "contiguous"
    for place, array in enumerate(arrays if len(arrays) > 1 else ()):
        for axis, size in enumerate(array.shape):
            if size > 1:
                yield f"size 1 of {place}", with_one(arrays, place, array.take([0], axis)), next(layouts)
        if array.size:
            yield f"no dimension of {place}", with_one(arrays, place, array.reshape(-1)[0].reshape(())), "contiguous"


def with_one(arrays, place, array):
    """Return a list of arrays with that of one place replaced."""
    return [array if place == each else kept for each, kept in enumerate(arrays)]
