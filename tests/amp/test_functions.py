"""Functions of the user's own under autocast, and PyTorch's older names."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import lucid
from lucid import amp
from lucid.errors import LucidError
from tests.device import DEVICE

HALF = lucid.float16 if DEVICE == "cuda" else lucid.bfloat16


class Pair(NamedTuple):
    """Two values."""

    one: object
    two: object


def function(cast_inputs):
    """Return a Function that notes what its forward gets and in which mode both of its methods run."""
    seen = {}

    class Scale(lucid.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type=DEVICE, cast_inputs=cast_inputs)
        def forward(ctx, x, factor=2.0, *others):
            seen["forward"] = x.dtype, lucid.is_autocast_enabled(DEVICE)
            seen["others"] = others
            ctx.factor = factor
            return x * factor

        @staticmethod
        @amp.custom_bwd(device_type=DEVICE)
        def backward(ctx, grad):
            seen["backward"] = lucid.is_autocast_enabled(DEVICE), lucid.get_autocast_dtype(DEVICE)
            return grad * ctx.factor, None, *[None] * len(seen["others"])

    return Scale, seen


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("cast_inputs", [None, lucid.float32])
def test_backward_runs_as_forward_did(cast_inputs, inside):
    """With cast_inputs forward gets them and runs with autocast off, else as it is; backward runs as forward did."""
    other = lucid.bfloat16 if HALF is lucid.float16 else lucid.float16
    scale, seen = function(cast_inputs)
    x = lucid.ones(2, dtype=HALF).requires_grad_()
    with lucid.autocast(DEVICE, dtype=other, enabled=inside):
        y = scale.apply(x)
    with lucid.autocast(DEVICE, enabled=not inside):
        y.sum().backward()
        # what forward ran in is what it put back
        assert lucid.is_autocast_enabled(DEVICE) is not inside
    cast = inside and cast_inputs is not None
    assert seen["forward"] == (lucid.float32 if cast else HALF, inside and not cast)
    assert seen["backward"] == (inside and not cast, other)
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.grad.dtype is HALF


def test_structures_are_cast_inside():
    """Tensors in lists, tuples and dicts are cast; float64, integers, and what is no tensor are not."""
    scale, seen = function(lucid.float32)
    half, double = lucid.ones(1, dtype=HALF), lucid.ones(1, dtype=lucid.float64)
    with lucid.autocast(DEVICE):
        scale.apply(half, 3.0, [half, double], {"key": (half, "text")}, Pair(half, lucid.arange(2)))
    (one, two), mapping, pair = seen["others"]
    assert (one.dtype, two.dtype) == (lucid.float32, lucid.float64)
    assert mapping["key"][0].dtype is lucid.float32
    assert mapping["key"][1] == "text"
    assert isinstance(pair, Pair)
    assert (pair.one.dtype, pair.two.dtype) == (lucid.float32, lucid.int64)
    named = amp.custom_fwd(lambda ctx, *, x: x.dtype, device_type=DEVICE, cast_inputs=lucid.float32)
    with lucid.autocast(DEVICE):
        assert named(lambda: None, x=half) is lucid.float32


def test_older_names():
    """`lucid.cuda.amp` has the same for CUDA devices: a decorator with and without arguments, and a scaler."""
    from lucid.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd

    assert lucid.cuda.amp.autocast is autocast
    assert issubclass(autocast, lucid.autocast)
    given = (4.0, 3.0, 0.25, 7)
    assert GradScaler(*given).state_dict() == amp.GradScaler("cuda", *given).state_dict()
    assert (GradScaler().is_enabled(), GradScaler(*given, False).is_enabled()) == (True, False)

    class Context:
        pass

    forward, backward = custom_fwd(lambda ctx, x: x), custom_bwd(lambda ctx, x: lucid.is_autocast_enabled("cuda"))
    assert custom_fwd(cast_inputs=lucid.float32)(lambda ctx, x: x)(Context(), 1) == 1
    ctx = Context()
    lucid.set_autocast_enabled("cuda", True)
    try:
        assert forward(ctx, 3) == 3
    finally:
        lucid.set_autocast_enabled("cuda", False)
    assert backward(ctx, 3) is True
    with autocast(enabled=False, dtype=lucid.bfloat16, cache_enabled=False):
        assert not lucid.is_autocast_enabled("cuda")
        assert lucid.get_autocast_dtype("cuda") is lucid.bfloat16
        assert not lucid.is_autocast_cache_enabled()
    # its dtype is half precision, whatever was set for others
    before = lucid.get_autocast_dtype("cuda")
    lucid.set_autocast_dtype("cuda", lucid.bfloat16)
    try:
        with autocast(enabled=False):
            assert lucid.get_autocast_dtype("cuda") is lucid.float16
    finally:
        lucid.set_autocast_dtype("cuda", before)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: amp.custom_fwd(device_type="tpu"), "custom_fwd: expected the device_type 'cuda' or 'cpu', got 'tpu'"),
        (lambda: amp.custom_bwd(device_type=None), "device_type: expected a string, got None"),
        (lambda: amp.custom_fwd(3, device_type="cpu"), "custom_fwd: fwd: expected a function, got int 3"),
        (lambda: amp.custom_bwd(3, device_type="cpu"), "custom_bwd: bwd: expected a function, got int 3"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    """What cannot be is refused where the decorator is made."""
    with pytest.raises(LucidError, match=message):
        wrong()
