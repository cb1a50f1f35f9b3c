"""`lucid.hooks.FunctionHook`: what one is told of, in which order, what it may return, and how it ends."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.function import Function
from lucid.autograd.modes.state import intercepted, thread
from lucid.errors import HookError, HookTypeError, ShapeError
from lucid.utils.checkpoint import checkpoint
from tests.device import DEVICE
from tests.hooks.functions.test_every_op import Seen
from tests.pieces import in_threads


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.int32, lucid.complex64], ids=str)
def test_short_and_general_paths(dtype):
    """An op counts once on whatever path it takes: its conversions are part of it."""
    x = lucid.ones(3, device=DEVICE).to(dtype)
    wide = lucid.ones(3, device=DEVICE, dtype=lucid.float64)
    for _ in range(3):  # on a device the second call has a plan
        with Seen() as seen:
            x * x, x * 2, 2 * x, x * wide, -x, x.sum(), x.view(3, 1), x @ x
        assert seen.names() == ["mul"] * 4 + ["neg", "sum", "view", "matmul"]


def test_operands_settings_and_output():
    x = ones(2, 3)
    with Seen() as seen:
        y = x.sum(dim=1, keepdim=True)
    ((call, output),) = seen.calls
    assert (call.name, call.phase, call.node) == ("sum", "forward", None)
    assert call.inputs == (x,)
    assert call.settings["dim"] == (1,)
    assert call.settings["keepdim"]
    assert output is y
    assert repr(call) == "<forward of sum>"


def test_backward(rng):
    """A node is told with the gradients that come to it, and its output is what goes on, None where nothing does."""
    x, y = ones(3), ones(3, grad=False)
    product = x * y
    given = lucid.tensor(rng.normal(size=3), dtype=lucid.float32, device=DEVICE)
    with Seen() as seen:
        product.backward(given)
    (call, output), (end, nothing) = seen.calls
    assert (call.name, call.phase, call.node) == ("MulBackward0", "backward", product.grad_fn)
    assert call.inputs[0].tolist() == given.tolist()
    assert output[0].tolist() == given.tolist()
    assert output[1] is None
    assert (end.name, end.inputs[0].tolist(), nothing) == ("AccumulateGrad", given.tolist(), ())


def test_in_place_ops_and_writes():
    x = ones(3, grad=False)
    with Seen() as seen:
        x.add_(1), x.exp_(), x.zero_(), x.fill_(2), x.copy_(x), x.uniform_()
        x[0] = 4
        ones(3, grad=False).unsqueeze_(0)
        x.add_(x.double())
    assert seen.names() == ["add_", "exp_", "zero_", "fill_", "copy_", "uniform_", "getitem", "copy_", "unsqueeze_",
                            "cast", "add_"]  # fmt: skip


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2


def test_functions_and_their_ops():
    """A user's Function is seen, and so are the ops inside, in both directions; they end before it does."""
    x = ones(3)
    with Seen() as seen:
        y = Square.apply(x)
        y.backward(ones(3, grad=False))
    assert seen.names() == ["mul", "Square", "mul", "mul"]
    assert seen.names("backward") == ["SquareBackward", "AccumulateGrad"]


def test_hooks_of_modules_and_of_saved_tensors():
    """What a user's hook runs inside of an op is an op of its own."""
    layer = nn.Linear(3, 3, device=DEVICE)
    layer.register_full_backward_hook(lambda module, grad_inputs, grad_outputs: (grad_inputs[0].exp(),))
    x = ones(2, 3)
    with lucid.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2), Seen() as seen:
        y = layer(x)
    assert seen.names() == ["mul", "mul", "linear"]
    with Seen() as seen:
        y.sum().backward()
    assert seen.names() == ["sum", "div", "div", "exp"]


def test_recomputation_is_seen():
    """A checkpointed function runs in a backward; both kinds of checkpoint."""
    x = ones(3)
    with Seen() as seen:
        y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=True).sum()
        y.backward()
    assert seen.names() == ["exp", "sin", "CheckpointFunction", "sum", "exp", "sin"]
    with Seen() as seen:
        y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum()
    assert seen.names() == ["exp", "sin", "sum"]
    with Seen() as again:
        y.backward()
    assert again.names() == ["exp", "sin"]


def test_second_derivative():
    """Under `create_graph` the ops of a node's rule are part of the node; the nodes that they record are seen."""
    x = ones(3)
    with Seen() as seen:
        (grad,) = lucid.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert seen.names() == ["mul", "mul", "sum", "add", "add"]  # the sums of gradients that meet are recorded, too
    with Seen() as seen:
        grad.sum().backward()
    assert seen.names("backward")[0] == "SumBackward0"
    np.testing.assert_allclose(x.grad.tolist(), [6, 6, 6])


def test_order_of_several():
    said = []

    class Says(hooks.FunctionHook):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def before(self, call):
            said.append(("before", self.name))

        def after(self, call, output):
            said.append(("after", self.name))

        def failed(self, call, error):
            said.append((type(error).__name__, self.name))

    with Says("outer"), Says("inner"):
        ones(2).exp()
        assert said == [("before", "outer"), ("before", "inner"), ("after", "inner"), ("after", "outer")]
        said.clear()
        with pytest.raises(ShapeError):
            ones(2) + ones(3)
    assert said == [("before", "outer"), ("before", "inner"), ("ShapeError", "inner"), ("ShapeError", "outer")]


def test_results_are_replaced(rng):
    """Forward and backward; what the outer one is given is what the inner one has made of it."""

    class Twice(hooks.FunctionHook):
        def __init__(self, *names):
            super().__init__()
            self.names = names

        def after(self, call, output):
            if call.name not in self.names:
                return None
            return tuple(None if g is None else g * 2 for g in output) if isinstance(output, tuple) else output * 2

    x = lucid.tensor(rng.normal(size=3), dtype=lucid.float32, device=DEVICE, requires_grad=True)
    plain = x.exp().tolist()
    with Twice("exp"), Twice("exp"):
        y = x.exp()
    np.testing.assert_allclose(y.tolist(), [4 * v for v in plain], rtol=1e-6)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [4 * v for v in plain], rtol=1e-6)
    for graph in (False, True):
        x.grad = None
        y = x.exp()
        with Twice("ExpBackward0"):
            y.sum().backward(create_graph=graph)
        np.testing.assert_allclose(x.grad.tolist(), [2 * v for v in plain], rtol=1e-6)
        assert x.grad.requires_grad == graph


def test_gradient_changed_in_place():
    """It is changed for what comes after, and for nothing else that shares its memory."""

    class Zeros(hooks.FunctionHook):
        def after(self, call, output):
            if call.name == "AddBackward0":
                output[0].zero_()

    x, y = ones(3), ones(3)
    z = x + y
    with Zeros():
        z.backward(ones(3, grad=False))
    assert (x.grad.tolist(), y.grad.tolist()) == ([0, 0, 0], [1, 1, 1])


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_changed_in_place_before_a_node(create_graph):
    """The node goes on with what the hook has made of it, and nobody else's memory is changed, as in a prehook."""

    class Doubles(hooks.FunctionHook):
        def before(self, call):
            if call.name in {"ExpBackward0", "SplitBackward0", "AccumulateGrad"}:
                for grad in call.inputs:
                    if grad is not None:
                        grad.mul_(2)

    x, given = ones(4), ones(2, grad=False)
    y = x.split(2)[0].exp()
    with Doubles():
        y.backward(given, create_graph=create_graph)
    np.testing.assert_allclose(x.grad.tolist(), [8 * np.e, 8 * np.e, 0, 0], rtol=1e-6)
    assert given.tolist() == [1, 1]
    assert x.grad.requires_grad == create_graph


@pytest.mark.parametrize(
    ("name", "result", "message"),
    [
        ("mul", 3, "expected None or a Tensor to be returned, got int"),
        ("MulBackward0", 3, "expected None or a tuple of 2 to be returned, got 3"),
        ("MulBackward0", (None,), "expected None or a tuple of 2 to be returned"),
        ("MulBackward0", (3, None), "expected None or a Tensor to be returned, got int"),
        ("MulBackward0", (lucid.ones(4), None), "must have the same shape, dtype and device"),
        ("add_", lucid.ones(3), "has changed its first operand"),
        ("split", (3, lucid.ones(1)), "expected as entry 0 a Tensor to be returned, got int"),
        ("split", (None, lucid.ones(1)), "expected as entry 0 a Tensor to be returned, got NoneType"),
    ],
)
def test_results_that_do_not_fit(name, result, message):
    class Wrong(hooks.FunctionHook):
        def after(self, call, output):
            return result if call.name == name else None

    x = ones(3)
    with pytest.raises((HookTypeError, HookError), match=message) as caught, Wrong():
        (x * ones(3)).backward(ones(3, grad=False))
        ones(3, grad=False).add_(1)
        ones(3).split(2)
    assert any("function hook number 0 of the" in note and name in note for note in caught.value.__notes__)
    assert not thread.state.function_hooks


def test_a_hook_that_raises():
    """The op has not run where `before` raises; whoever was told hears of the end; the block ends as any."""

    class Raises(hooks.FunctionHook):
        def before(self, call):
            raise KeyError("before")

    x = ones(3, grad=False)
    with pytest.raises(KeyError, match="before") as caught, Seen() as seen, Raises():
        x.add_(1)
    assert x.tolist() == [1, 1, 1]
    assert [(call.name, type(error)) for call, error in seen.calls] == [("add_", KeyError)]
    assert "function hook number 1 of the forward of add_" in caught.value.__notes__[0]
    with Seen() as seen:
        x.add_(1)
    assert seen.names() == ["add_"]


def test_what_a_hook_runs_is_not_seen():
    class Adds(Seen):
        def before(self, call):
            super().before(call)
            ones(2) * 2

    with Adds() as seen:
        ones(2).exp()
    assert seen.names() == ["exp"]


def test_only_this_thread_and_only_the_block():
    with Seen() as seen:
        in_threads(lambda: ones(2).exp())
        with pytest.raises(HookError, match="this Seen is open on this thread already"), seen:
            pass
        ones(2).sin()
    ones(2).cos()
    assert seen.names() == ["sin"]
    with seen:
        ones(2).tan()
    assert seen.names() == ["sin", "tan"]
    lucid.ones(1, requires_grad=True).exp().sum().backward()
    with lucid.no_grad():
        ones(1).exp()
    assert thread.state.recording
    assert thread.state not in intercepted


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_one_phase_alone(phase):
    class One(Seen):
        phases = (phase,)

    x = ones(2)
    with One() as seen, Seen() as both:
        (x * 2).sum().backward()
    assert seen.names(phase) == both.names(phase)
    assert len(seen.calls) == len(seen.names(phase)) > 0
    with One() as seen, pytest.raises(HookError, match="open on this thread already"), seen:
        pass
    assert not thread.state.function_hooks
    assert not thread.state.node_hooks


def test_autocast_inside():
    """Operands are cast as part of the op, and the block of a hook inside of one of autocast ends neither."""
    layer = nn.Linear(3, 3, device=DEVICE)
    with lucid.autocast(DEVICE, dtype=lucid.bfloat16):
        with Seen() as seen:
            assert layer(ones(2, 3)).dtype is lucid.bfloat16
        assert layer(ones(2, 3)).dtype is lucid.bfloat16
    assert seen.names() == ["linear"]


def test_nested_passes():
    """A pass that begins inside of a hook of a tensor is seen as the outer one is."""
    x = ones(2)
    y = x * 2
    y.register_hook(lucid.enable_grad()(lambda grad: (ones(2) * 3).exp().sum().backward()))
    with Seen() as seen:
        y.sum().backward()
    assert "ExpBackward0" in seen.names("backward")


def test_what_goes_by_keyword_alone_stays_so():
    """An op that is given its tensor by keyword is seen with it as an operand, other settings by their names."""
    x = lucid.tensor([0.0, 2.0], device=DEVICE)
    with Seen() as seen:
        (places,) = lucid.nonzero(input=x, as_tuple=True)
    assert places.tolist() == [1]
    ((call, _),) = seen.calls
    assert (call.name, call.settings) == ("nonzero", {"as_tuple": True})
    assert call.inputs[0] is x
