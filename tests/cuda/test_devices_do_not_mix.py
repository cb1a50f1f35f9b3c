"""Every op of several tensors refuses those of two devices, naming one, before anything has changed."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DeviceError
from tests.gradients import tensors_of
from tests.samples import all_samples

pytestmark = pytest.mark.gpu

# These read no element of one tensor together with another: shapes, counts that the host reads, a view of each.
SHAPES_ONLY = {
    "view_as", "reshape_as", "expand_as", "broadcast_tensors", "meshgrid", "meshgrid:xy", "repeat_interleave:each",
}  # fmt: skip
SAMPLES = [
    sample
    for sample in all_samples()
    if sample.name not in SHAPES_ONLY and len(sample.inputs(np.random.default_rng(0))) > 1
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.parametrize("mixed", [("cpu", "cuda:0"), ("cuda:1", "cpu"), ("cuda:0", "cuda:1")], ids="+".join)
def test_devices_do_not_mix(sample, mixed, rng):
    """The tensors lie on the two devices by turns."""
    arrays = sample.inputs(rng)
    if "cuda:1" in mixed and lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    tensors = [tensors_of([a], device=mixed[place % 2], requires_grad=False)[0] for place, a in enumerate(arrays)]
    before = [tensor.tolist() for tensor in tensors]
    with pytest.raises(DeviceError, match="|".join(mixed)):
        sample.op(*tensors)
    assert [tensor.tolist() for tensor in tensors] == before


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda:0"), ("cuda:1", "cpu"), ("cuda:0", "cuda:1")])
def test_gradients_of_another_device(here, there):
    """What is given to backward, and what a Function's backward returns, lies where its tensor lies."""
    if "cuda:1" in (here, there) and lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    x, grad = lucid.ones(4, device=here, requires_grad=True), lucid.ones(4, device=there)

    class Returning(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, _):
            return grad

    with pytest.raises(ValueError, match=f"{there}.*{here}"):
        (x * 2).backward(grad)
    with pytest.raises(DeviceError, match=f"expected {here}, got .*{there}"):
        Returning.apply(x).sum().backward()
    assert x.grad is None
