"""Decides whether two runs of a program saw the same values, where rounding may have been amplified on the way.

A value is right if it lies within a fixed tolerance of PyTorch's. Where it does not, PyTorch runs the program again a
few times with the result of each operation off by some units in the last place: a difference no larger than what that
does to the value is rounding, which the program itself has amplified.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

# By how many units in the last place each result is off, at most: what elementary functions of two libraries differ by
UNITS = 4.0
RUNS = 4
# How much of the spread of perturbed runs a difference may have: both sides round, and the runs are a sample
FACTOR = 8.0


def close(got, expected, room, tolerance):
    """Tell whether two noted values are the same: numbers up to the tolerance, and what `room` grants beside it."""
    if isinstance(expected, np.ndarray):
        if not (isinstance(got, np.ndarray) and got.shape == expected.shape and got.dtype == expected.dtype):
            return False
        if np.allclose(got, expected, *tolerance, equal_nan=True):
            return True
        if room is None:
            return False
        # where perturbed runs are not even all numbers, or none at all, anything is as near
        wild = np.isnan(room)
        return bool(np.all(wild | np.isclose(got, expected, 0.0, np.where(wild, 0.0, room), equal_nan=True)))
    if isinstance(expected, tuple | list):
        return (
            type(got) is type(expected)
            and len(got) == len(expected)
            and all(
                close(a, b, None if room is None else room[n], tolerance)
                for n, (a, b) in enumerate(zip(got, expected, strict=True))
            )
        )
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and list(got) == list(expected)
            and all(close(got[k], expected[k], None if room is None else room[k], tolerance) for k in got)
        )
    if isinstance(expected, float):
        return isinstance(got, float) and close(np.array(got), np.array(expected), room, tolerance)
    return type(got) is type(expected) and got == expected


def spread(expected, runs):
    """Return how far the values of perturbed runs lie from the expected ones, in the same structure.

    None where there are no values, or some run has others.
    """
    if isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
        if any(not isinstance(run, np.ndarray) or run.shape != expected.shape for run in runs):
            return None
        nowhere = np.all([np.isnan(each) for each in (expected, *runs)], axis=0)
        with np.errstate(invalid="ignore"):
            return np.where(nowhere, 0.0, FACTOR * np.max([np.abs(run - expected) for run in runs], axis=0))
    if isinstance(expected, float) and all(isinstance(run, float) for run in runs):
        return spread(np.array(expected), [np.array(run) for run in runs])
    if isinstance(expected, tuple | list | dict):
        if any(type(run) is not type(expected) or len(run) != len(expected) for run in runs):
            return None
        keys = expected if isinstance(expected, dict) else range(len(expected))
        rooms = {key: spread(expected[key], [run[key] for run in runs]) for key in keys}
        return rooms if isinstance(expected, dict) else list(rooms.values())
    return None


class Perturbed(TorchDispatchMode):
    """While entered, moves the floating-point results of every operation by up to `UNITS` units in the last place."""

    def __init__(self, seed):
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        returns = function._schema.returns
        for value, declared in zip(result if isinstance(result, tuple | list) else [result], returns):
            # what shares memory with an argument without having written to it is a view
            is_view = declared.alias_info is not None and not declared.alias_info.is_write
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not is_view:
                eps = torch.finfo(value.dtype).eps
                factors = 1.0 + eps * UNITS * self.rng.uniform(-1.0, 1.0, tuple(value.shape))
                value.mul_(torch.from_numpy(np.asarray(factors)).to(value.dtype))
        return result
