"""What nodes keep for backward, read under PyTorch's names, and its own hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.parity.pieces import LIBRARIES
from tests.pieces import function_of

# The op, and the attributes that its node has in PyTorch and that lucid's derivative needs too.
OPS = {
    "mul": (lambda lib, x, y: x * y, ["self", "other"]),
    "div": (lambda lib, x, y: x / y, ["self", "other"]),
    "pow with a number": (lambda lib, x, y: x**3, ["self", "exponent"]),
    "pow": (lambda lib, x, y: x.exp() ** y, ["self", "exponent", "result"]),
    "exp": (lambda lib, x, y: x.exp(), ["result"]),
    "log": (lambda lib, x, y: x.exp().log(), ["self"]),
    "sin": (lambda lib, x, y: x.sin(), ["self"]),
    "abs": (lambda lib, x, y: x.abs(), ["self"]),
    "tanh": (lambda lib, x, y: x.tanh(), ["result"]),
    "sigmoid": (lambda lib, x, y: lib.sigmoid(x), ["result"]),
    "sqrt": (lambda lib, x, y: x.exp().sqrt(), ["result"]),
    "relu": (lambda lib, x, y: lib.relu(x), ["result"]),
    "leaky_relu": (lambda lib, x, y: lib.nn.functional.leaky_relu(x, 0.2), ["self", "negative_slope"]),
    "gelu": (lambda lib, x, y: lib.nn.functional.gelu(x), ["self"]),
    "softmax": (lambda lib, x, y: x.softmax(1), ["result", "dim"]),
    "log_softmax": (lambda lib, x, y: x.log_softmax(1), ["result", "dim"]),
    "addmm": (lambda lib, x, y: lib.addmm(y[:2, :2], x, y.t()), ["mat1", "mat2", "alpha", "beta"]),
    "where": (lambda lib, x, y: lib.where(x > 0, x, y), ["condition"]),
    "clamp": (lambda lib, x, y: x.clamp(-0.5, 0.5), ["self", "min", "max"]),
    "std": (lambda lib, x, y: x.std(), ["self", "result"]),
    "cumsum": (lambda lib, x, y: x.cumsum(0), ["dim"]),
    "permute": (lambda lib, x, y: x.permute(1, 0), ["dims"]),
    "gather": (lambda lib, x, y: x.gather(1, lib.tensor([[0], [1]])), ["dim", "index"]),
    "atan2": (lambda lib, x, y: lib.atan2(x, y), ["self", "other"]),
    "maximum": (lambda lib, x, y: lib.maximum(x, y), ["self", "other"]),
}


def operands(lib):
    """Return two matrices that require grad, the same in either library."""
    numbers = np.random.default_rng(3)
    return [lib.tensor(numbers.standard_normal((2, 3)), requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("name", OPS)
def test_attributes_of_common_ops(name):
    """The attributes are there under PyTorch's names, with its values; tensors lead back into the graph as there."""
    function, attributes = OPS[name]
    theirs, ours = (function(lib, *operands(lib)).grad_fn for lib in LIBRARIES.values())
    for attribute in attributes:
        assert f"_saved_{attribute}" in dir(ours)
        expected, got = getattr(theirs, f"_saved_{attribute}"), getattr(ours, f"_saved_{attribute}")
        if isinstance(expected, torch.Tensor):
            np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-12)
            assert got.requires_grad == expected.requires_grad
            if expected.requires_grad:
                assert got.is_leaf == expected.is_leaf
            assert hasattr(ours, f"_raw_saved_{attribute}")
        else:
            assert tuple(np.atleast_1d(got)) == tuple(np.atleast_1d(expected))


def test_what_is_not_saved():
    """An operand that no gradient needs reads as None; ops that save nothing have no such attribute."""
    for lib in LIBRARIES.values():
        x, y = operands(lib)
        node = (x * y.detach()).grad_fn
        assert node._saved_self is None
        assert node._saved_other.tolist() == y.tolist()
        assert not hasattr((x + y).grad_fn, "_saved_self")
        with pytest.raises(RuntimeError, match="None"):
            node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_freed_and_changed():
    """After backward, and after an in-place change, reading raises as backward would."""
    for lib in LIBRARIES.values():
        x, y = operands(lib)
        out = x * y
        out.sum().backward()
        for read in (
            lambda node: node._saved_self,
            lambda node: node._raw_saved_self.register_hooks(lambda t: t, lambda t: t),
        ):
            with pytest.raises(RuntimeError, match="freed"):
                read(out.grad_fn)
        z = x * 1.0
        out = z * y
        z.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            out.grad_fn._saved_self


def test_hooks_of_one_saved_tensor(rng):
    """Packed at once, unpacked in backward and on reading; the other operand's version is still checked."""

    def program(lib):
        events = []
        x, y = operands(lib)
        z = y * 1.0
        out = x * z
        raw = out.grad_fn._raw_saved_self
        raw.register_hooks(
            lambda t: events.append(("pack", t.requires_grad, lib.is_grad_enabled())) or t.tolist(),
            lambda values: events.append("unpack") or lib.tensor(values, dtype=lib.float64) * 2,
        )
        events.append(out.grad_fn._saved_self.tolist())
        out.backward(lib.ones(2, 3, dtype=lib.float64) * 3, retain_graph=True)
        events.extend([x.grad.tolist(), y.grad.tolist()])
        with pytest.raises(RuntimeError, match="already been set"):
            out.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
        z.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            out.backward(lib.ones(2, 3, dtype=lib.float64))
        return events

    assert program(lucid) == program(torch)


def test_hooks_of_a_saved_tensor_whose_memory_changes():
    """What a hook has stored is not watched any more: the memory that it came from may change."""
    for lib in LIBRARIES.values():
        x, y = operands(lib)
        z = x * 1.0
        before = z.tolist()
        out = z * y
        out.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach().clone(), lambda t: t)
        z.mul_(2.0)
        out.sum().backward()
        assert y.grad.tolist() == before


def test_saved_tensors_of_a_function():
    """`_raw_saved_tensors` of a Function's node takes hooks one by one, and `saved_tensors` sees them."""

    def program(lib):
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

        Product = function_of(forward, backward, library=lib, name="Product")

        x, y = operands(lib)
        out = Product.apply(x, y)
        raw = out.grad_fn._raw_saved_tensors
        assert len(raw) == 2
        raw[1].register_hooks(lambda t: t.tolist(), lambda values: lib.tensor(values, dtype=lib.float64) * 10)
        with pytest.raises(RuntimeError, match="already been set"):
            out.grad_fn._raw_saved_tensors[1].register_hooks(lambda t: t, lambda t: t)
        seen = [t.tolist() for t in out.grad_fn.saved_tensors]
        out.backward(lib.ones(2, 3, dtype=lib.float64))
        with pytest.raises(RuntimeError, match="freed"):
            out.grad_fn._raw_saved_tensors
        return [seen, x.grad.tolist(), y.grad.tolist()]

    assert program(lucid) == program(torch)


def test_bad_hooks():
    """Hooks that cannot be called, or change their input, are refused, and what was saved stays."""
    x, y = operands(lucid)
    out = (x * 1.0) * y
    raw = out.grad_fn._raw_saved_self
    with pytest.raises(TypeError, match="pack_hook"):
        raw.register_hooks(3, lambda t: t)
    with pytest.raises(TypeError, match="unpack_hook"):
        raw.register_hooks(lambda t: t, None)
    with pytest.raises(RuntimeError, match="in place"):
        raw.register_hooks(lambda t: t.mul_(1.0), lambda t: t)
    out = x * y
    with pytest.raises(KeyError) as caught:
        out.grad_fn._raw_saved_self.register_hooks(lambda t: {}["missing"], lambda t: t)
    assert "pack hook" in caught.value.__notes__[0]
    out.sum().backward()
    assert y.grad.tolist() == x.tolist()


def test_saved_operands_of_a_checkpoint_are_recomputed():
    """Reading an attribute of a node inside a checkpoint runs the function again, as PyTorch does."""
    for lib in LIBRARIES.values():
        x, _ = operands(lib)
        runs = []

        def function(x, runs=runs):
            runs.append(1)
            return x.sin().exp()

        out = lib.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        assert out.grad_fn._saved_result.tolist() == out.tolist()
        assert len(runs) == 2
