"""Nested structures of tensors: what parts take and return, and what is noted of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.device import DEVICE

# far more than the two libraries round differently in float32, as each of them compares with it
NEAR = 1e-3


def mapped(function, value):
    """Return nested tuples, lists and dictionaries with `function` of each leaf."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, v) for v in value))
    if isinstance(value, tuple | list):
        return type(value)([mapped(function, v) for v in value])
    if isinstance(value, dict):
        return {key: mapped(function, v) for key, v in value.items()}
    return function(value)


def leaves_of(value):
    """Return the leaves of a nested structure, in order."""
    found: list[Any] = []
    mapped(found.append, value)
    return found


def tensors_of(lib, value):
    """Return the tensors in a nested structure, in order."""
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, lib.Tensor)]


def merged(lib, value):
    """Return the sum of the tensors in what a part returned."""
    first, *others = tensors_of(lib, value)
    for other in others:
        first = first + other
    return first


def values_of(value):
    """Return a copy of the elements of each tensor in a nested structure, everything else as it is."""
    return mapped(
        lambda leaf: np.array(leaf.numpy(force=True), copy=True) if hasattr(leaf, "requires_grad") else leaf, value
    )


def refused(lib, tensors):
    """Tell whether a change of these in place is refused: PyTorch changes the values of inference tensors first."""
    return not lib.is_inference_mode_enabled() and any(t.is_inference() for t in tensors)


def largest(tensor):
    """Return the largest magnitude in a tensor, 0 for an empty one."""
    return float(np.abs(tensor.numpy(force=True)).max(initial=0.0))


def flat(tensor):
    """Return a view of a tensor as a vector; another view on CUDA, where new tensors are contiguous in lucid only."""
    return tensor.view(-1) if DEVICE == "cpu" else tensor[...]


def apart(tensor, axis):
    """Tell whether no two elements along an axis lie so near that rounding may decide which is the larger one."""
    values = tensor.numpy(force=True).astype(np.float64)
    return values.ndim == 0 or bool((np.diff(np.sort(values, axis), axis=axis) > NEAR).all())


class PlannedError(Exception):
    """What parts and hooks of a program raise on purpose."""
