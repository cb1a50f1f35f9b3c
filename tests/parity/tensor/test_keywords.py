"""Keywords beside an op's own: what PyTorch takes of them, and what it returns."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest
import torch

import lucid
from lucid.ops.base.keywords import FAMILIES, NEVER_OUT
from lucid.public import written_in

CALLS = {
    "sum axis": lambda m, x: x.sum(axis=1, keepdims=True),
    "mean axes": lambda m, x: m.mean(x, axis=(0, 1)),
    "max axis": lambda m, x: m.max(x, axis=0, keepdims=True).values,
    "var axis": lambda m, x: x.var(axis=1),
    "argmin axis": lambda m, x: x.argmin(axis=1),
    "softmax axis": lambda m, x: m.softmax(x, axis=0),
    "cumsum axis": lambda m, x: x.cumsum(axis=1),
    "cat axis": lambda m, x: m.cat([x, x], axis=1),
    "stack axis": lambda m, x: m.stack((x, x), axis=-1),
    "squeeze axis": lambda m, x: m.unsqueeze(x, axis=1).squeeze(axis=1),
    "squeeze several": lambda m, x: x[None, None].squeeze((0, 1)),
    "unbind axis": lambda m, x: x.unbind(axis=1)[2],
    "chunk axis": lambda m, x: x.chunk(2, axis=1)[1],
    "x1 x2": lambda m, x: m.mul(x1=x, x2=x),
    "zeros size": lambda m, x: m.zeros(size=(2, 3), layout=m.strided),
    "ones size": lambda m, x: m.ones(size=[2], dtype=m.int32, pin_memory=False),
    "new_zeros size": lambda m, x: x.new_zeros(size=(2, 0)),
    "new": lambda m, x: x.new([1.0, 2.0]),
    "clone format": lambda m, x: x.clone(memory_format=m.contiguous_format),
    "like format": lambda m, x: m.zeros_like(x, memory_format=m.preserve_format),
    "type name": lambda m, x: x.type("torch.DoubleTensor"),
    "add out": lambda m, x: m.add(x, 1, out=m.empty(2, 3)),
    "add out empty": lambda m, x: m.add(x, 1, out=m.empty(0)),
    "add out wider": lambda m, x: m.add(x, 1, out=m.empty(2, 3, dtype=m.float64)),
    "gt out float": lambda m, x: m.gt(x, 0, out=m.empty(2, 3)),
    "sum out": lambda m, x: m.sum(x, 0, out=m.empty(3, dtype=m.float64)),
    "max out": lambda m, x: m.max(x, 1, out=(m.empty(0), m.empty(0, dtype=m.int64))).indices,
    "sort out": lambda m, x: m.sort(x, 1, out=(m.empty(0), m.empty(0, dtype=m.int64)))[0],
    "matmul out": lambda m, x: m.matmul(x, x.T, out=m.empty(2, 2)),
    "cat out": lambda m, x: m.cat([x, x], out=m.empty(4, 3)),
    "arange out": lambda m, x: m.arange(3, out=m.empty(3)),
    "full out": lambda m, x: m.full((2,), 3, out=m.empty(0, dtype=m.int16)),
    "eye out": lambda m, x: m.eye(2, out=m.empty(2, 2, dtype=m.float64)),
    "clamp out": lambda m, x: m.clamp(x, 0, out=x),
    "where out": lambda m, x: m.where(x > 0, x, x * 2, out=m.empty(0)),
    "multinomial out": lambda m, x: m.multinomial(m.tensor([0.0, 1.0]), 1, out=m.empty(0, dtype=m.int64)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(rng, name):
    """Values, dtype and shape are PyTorch's."""
    values = rng.standard_normal((2, 3)).astype(np.float32)
    ours, theirs = CALLS[name](lucid, lucid.tensor(values)), CALLS[name](torch, torch.tensor(values))
    assert str(ours.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(force=True), theirs.numpy(), rtol=1e-6, atol=1e-6)


REFUSED = {
    "both names": lambda m, x: x.sum(dim=0, axis=0),
    "axis of exp": lambda m, x: m.exp(x, axis=0),
    "requires grad": lambda m, x: m.exp(x.requires_grad_(), out=m.empty(2, 3)),
    "out requires grad": lambda m, x: m.exp(x, out=m.empty(2, 3).requires_grad_()),
    "whole numbers": lambda m, x: m.exp(x, out=m.empty(2, 3, dtype=m.int64)),
    "no tensor": lambda m, x: m.exp(x, out=3),
    "shared elements": lambda m, x: m.exp(x[0], out=m.empty(1).expand(3)),
    "reshape": lambda m, x: m.reshape(x, (6,), out=x),
    "no format": lambda m, x: x.clone(memory_format=3),
    "no layout": lambda m, x: m.zeros(2, layout=3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(rng, name):
    """What PyTorch refuses is refused, by an error of the same kind."""
    values = rng.standard_normal((2, 3)).astype(np.float32)
    with pytest.raises((TypeError, RuntimeError)) as theirs:
        REFUSED[name](torch, torch.tensor(values))
    with pytest.raises(theirs.type):
        REFUSED[name](lucid, lucid.tensor(values))


def test_every_function_that_writes():
    """What PyTorch has `out` for takes it in these families."""
    missing = set()
    for name in lucid.__all__:
        function = getattr(lucid, name)
        overloads = getattr(getattr(torch.ops.aten, name, None), "overloads", list)
        if not isinstance(getattr(torch, name, None), types.BuiltinFunctionType) or not inspect.isfunction(function):
            continue
        if written_in(inspect.unwrap(function)).startswith(FAMILIES) and "out" in overloads() and name in NEVER_OUT:
            missing.add(name)
    assert not missing


def test_memory(rng):
    """What tools ask of the memory has PyTorch's answers."""
    values = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    ours, theirs = lucid.tensor(values), torch.tensor(values)
    for m, x in ((lucid, ours), (torch, theirs)):
        assert x[1].untyped_storage().nbytes() == 480
        assert x[1].untyped_storage().data_ptr() == x.data_ptr()
        assert x[1].storage_offset() == 60
        assert x.is_same_size(x.clone())
        assert x.is_set_to(x.detach())
        last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        forms = m.contiguous_format, m.channels_last
        assert [last.is_contiguous(memory_format=form) for form in forms] == [False, True]
        assert [x.is_contiguous(memory_format=form) for form in forms] == [True, False]
