"""Every row of `tests.samples` that names PyTorch's op: the same values, dtypes and gradients there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.gradients import flat, is_floating, numbers, random_like, tensors_of
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


def check_close(got, expected, error, what):
    """Fail unless shape and dtype agree and the values do, relative to the largest element."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), what
    if not is_floating(expected):
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(got, expected, rtol=0, atol=float(error * largest), equal_nan=True, err_msg=what)


@pytest.mark.filterwarnings(
    "ignore:.*divides the total loss by both the batch size:UserWarning",
    r"ignore:torch\.\w+ is deprecated in favor of torch\.linalg:UserWarning",
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
    for got, wanted in zip(outputs, expected, strict=True):
        check_close(numbers(got), torch_numbers(wanted), error, "value")
        assert got.requires_grad == wanted.requires_grad
    if not sample.differentiable:
        return
    roots = [place for place, out in enumerate(outputs) if out.requires_grad]
    upstream = [random_like(rng, numbers(outputs[place])) for place in roots]
    ours = lucid.autograd.grad(
        [outputs[place] for place in roots],
        [t for t in tensors if t.requires_grad],
        [lucid.tensor(u) for u in upstream],
        allow_unused=True,
    )
    wanted = torch.autograd.grad(
        [expected[place] for place in roots],
        [t for t in theirs if t.requires_grad],
        [torch.tensor(u) for u in upstream],
        allow_unused=True,
    )
    for got, reference in zip(ours, wanted, strict=True):
        zero_or_none = reference is None and (got is None or not numbers(got).any())
        assert zero_or_none or (got is not None and reference is not None)
        if not zero_or_none:
            check_close(numbers(got), torch_numbers(reference), 4 * error, "gradient")
