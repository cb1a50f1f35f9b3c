"""Calls with each of their tensors in turn on another device: refused before anything has changed, or the same."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import KernelError, LucidError
from tests.gradients import numbers


def placements():
    """Return the pairs of devices that there are: where all lies, and where one tensor does."""
    both = [("cuda:0", "cpu"), ("cpu", "cuda:0")]
    return [*both, ("cuda:0", "cuda:1")] if lucid.cuda.device_count() > 1 else both


def t(array, *, grad=False):
    """Return a tensor, of float32 if it has fractions."""
    array = np.asarray(array)
    return lucid.tensor(array, dtype=lucid.float32 if array.dtype.kind == "f" else None, requires_grad=grad)


def drawn(rng, *shape, grad=False):
    """Return random numbers."""
    return t(rng.standard_normal(shape), grad=grad)


def each(table):
    """Return what makes a test of each row."""
    return pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in table.items()])


def tensors_in(value, found=None):
    """Return the tensors in a structure, a module or an optimizer, each once; those of the user, no gradients."""
    found = {} if found is None else found
    if isinstance(value, lucid.Tensor):
        found[id(value)] = value
    elif isinstance(value, nn.Module):
        tensors_in([*value.parameters(), *value.buffers()], found)
    elif isinstance(value, lucid.optim.Optimizer):
        tensors_in([value.param_groups, [*value.state.values()]], found)
    elif isinstance(value, dict):
        tensors_in([*value.values()], found)
    elif isinstance(value, list | tuple | set):
        for each in value:
            tensors_in(each, found)
    return list(found.values())


def recorded(tensors):
    """Return what a refused call leaves: where tensors and gradients are, what they hold, how often they changed."""
    grads = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    return [(str(t.device), t.dtype, numbers(t).tobytes(), t._version) for t in (*tensors, *grads)]


@contextlib.contextmanager
def default_device(device):
    """Make tensors without a device there."""
    before = lucid.get_default_device()
    lucid.set_default_device(device)
    try:
        yield
    finally:
        lucid.set_default_device(before)


def made(build, device, seed):
    """Return what `build` makes on a device, of the same numbers each time."""
    lucid.manual_seed(0)
    with default_device(device):
        return build(np.random.default_rng(seed))


def values(result):
    """Return the numbers of the tensors in a result."""
    return [numbers(tensor) for tensor in tensors_in(result)]


def check_elsewhere(build, call, rng, *, counts=()):
    """Fail unless each tensor of a call may lie elsewhere, with the same result, or is refused with nothing changed.

    Parameters
    ----------
    build : callable
        Makes of a generator what the call takes; of another device by default each time.
    call : callable
        Is given that.
    rng : Generator
    counts : tuple of int
        Numbers of tensors that are not moved.

    Returns
    -------
    int
        How many calls were refused.
    """
    seed, refused = int(rng.integers(2**32)), 0
    for here, there in placements():
        given = made(build, here, seed)
        expected = values(call(given))
        for number in range(len(tensors_in(made(build, here, seed)))):
            if number in counts:
                continue
            given = made(build, here, seed)
            tensors = tensors_in(given)
            moved = tensors[number]
            with lucid.no_grad():
                moved.data = moved.detach().to(there)
            before, where = recorded(tensors), f"all on {here}, tensor {number} of {tuple(moved.shape)} on {there}"
            try:
                result = call(given)
            except Exception as error:
                refused += 1
                error.add_note(where)
                if not isinstance(error, LucidError) or isinstance(error, KernelError):
                    raise
                if not re.search(r"\bcpu\b|\bCPU\b|cuda", str(error)) or "cupy" in str(error).lower():
                    pytest.fail(f"{where}: no device is named: {error}")
                if recorded(tensors) != before:
                    pytest.fail(f"{where}: refused by what has changed something: {error}")
            else:
                for got, wanted in zip(values(result), expected, strict=True):
                    np.testing.assert_allclose(got, wanted, 1e-4, 1e-5, err_msg=where)
    return refused
