"""Names with an underscore that libraries take from PyTorch."""

from __future__ import annotations

import lucid
from lucid._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def test_tensors_in_one(rng):
    """The elements stand one behind the other, come back in their shapes, and gradients go both ways."""
    tensors = [lucid.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((2, 3), (), (4,))]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [number for tensor in tensors for number in tensor.reshape(-1).tolist()]
    parts = _unflatten_dense_tensors(flat, tensors)
    assert all(lucid.equal(part, tensor) for part, tensor in zip(parts, tensors, strict=True))
    upstream = [lucid.tensor(rng.standard_normal(tensor.shape)) for tensor in tensors]
    lucid.autograd.backward(parts, upstream)
    assert all(lucid.equal(tensor.grad, grad) for tensor, grad in zip(tensors, upstream, strict=True))
