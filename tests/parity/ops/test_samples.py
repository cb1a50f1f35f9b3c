"""Every row of `tests.samples` that names PyTorch's op: the same values, dtypes and gradients there."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

import lucid
from tests.gradients import flat, is_floating, numbers, random_like, tensors_of
from tests.ops.test_samples import errors_by, moves
from tests.samples import all_samples

SAMPLES = [sample for sample in all_samples() if sample.torch is not None]

# Both sides round in the same dtype and in their own order: a few units in the last place of the largest element.
ERROR = {"float32": 4e-6, "float64": 1e-12}


def flat_torch(result):
    """Return the tensors of a nest that PyTorch returned."""
    if isinstance(result, tuple | list):
        return [tensor for part in result for tensor in flat_torch(part)]
    return [result] if isinstance(result, torch.Tensor) else []


def torch_numbers(tensor):
    """Return the elements of a PyTorch tensor as an array."""
    return tensor.numpy(force=True)


def check_close(got, expected, error, what, moved=lambda: 0.0):
    """Fail unless shape and dtype agree and the values do, relative to the largest element.

    Or by no more than what `moved()` says, where terms cancel in all elements and none of them is large.
    """
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), what
    if not is_floating(expected):
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    allowed = float(error * np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    if not np.allclose(got, expected, rtol=0, atol=allowed, equal_nan=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=allowed + moved(), equal_nan=True, err_msg=what)


@pytest.mark.filterwarnings(
    "ignore:.*divides the total loss by both the batch size:UserWarning",
    r"ignore:torch\.\w+ is deprecated in favor of torch\.linalg:UserWarning",
    # once in a process: in whichever test of it comes first
    "ignore:Using padding='same' with even kernel lengths:UserWarning",
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in SAMPLES])
def test_like_pytorch(sample, dtype, rng):
    """Value, dtype, which results require grad, and gradients for random upstream gradients are PyTorch's."""
    arrays = [
        a.astype(dtype) if dtype in sample.dtypes and is_floating(a) and a.dtype.kind != "c" else a
        for a in map(np.asarray, sample.inputs(rng))
    ]
    tensors = tensors_of(arrays, sample.constants, requires_grad=sample.differentiable)
    theirs = [torch.tensor(a, requires_grad=t.requires_grad) for a, t in zip(arrays, tensors, strict=True)]
    outputs, expected = flat(sample.op(*tensors)), flat_torch(sample.torch(torch, *theirs))
    assert len(outputs) == len(expected)
    error = max(ERROR[dtype], sample.tolerance.get(dtype, 0.0))
    roots = [place for place, out in enumerate(outputs) if out.requires_grad]
    upstream = {place: random_like(rng, numbers(outputs[place])) for place in roots}
    moved = functools.cache(lambda: moves(sample, arrays, dtype, lambda place, _: upstream[place], rng))
    for at, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
        check_close(
            numbers(got), torch_numbers(wanted), error, "value", functools.partial(errors_by, moved, dtype, 0, at)
        )
        assert got.requires_grad == wanted.requires_grad, (
            f"result {at} requires grad in {'lucid' if got.requires_grad else 'PyTorch'} alone; where it may, as "
            "PyTorch has no gradient of the op, the row gives no `torch`, and says why"
        )
    if not sample.differentiable:
        return
    ours = lucid.autograd.grad(
        [outputs[place] for place in roots],
        [t for t in tensors if t.requires_grad],
        [lucid.tensor(u) for u in upstream.values()],
        allow_unused=True,
    )
    wanted = torch.autograd.grad(
        [expected[place] for place in roots],
        [t for t in theirs if t.requires_grad],
        [torch.tensor(u) for u in upstream.values()],
        allow_unused=True,
    )
    for at, (got, reference) in enumerate(zip(ours, wanted, strict=True)):
        zero_or_none = reference is None and (got is None or not numbers(got).any())
        assert zero_or_none or (got is not None and reference is not None)
        if not zero_or_none:
            by = functools.partial(errors_by, moved, dtype, 1, at)
            check_close(numbers(got), torch_numbers(reference), 4 * error, "gradient", by)
