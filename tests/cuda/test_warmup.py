"""`lucid.cuda.warmup` compiles what a model needs, and leaves no other trace, however it ends."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.backend.random.generator import get_rng_states
from lucid.errors import CudaUnavailableError


class Net(nn.Module):
    """It has what a run can change: running statistics, random numbers, a counter, an in-place layer."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 5)
        self.norm = nn.BatchNorm1d(5)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(5, 3)
        self.calls = 0
        self.fail = False

    def forward(self, x):
        self.calls += 1
        x = self.dropout(self.norm(self.hidden(x.mul_(2.0)).relu_()))
        if self.fail:
            raise ArithmeticError("the model's own")
        return self.head(x)


def picture(model, x):
    """Return everything of a model and its input that a run could change."""
    return (
        {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()},
        [id(tensor) for tensor in (*model.parameters(), *model.buffers())],
        [(p.grad, None if p.grad is None else p.grad.cpu().numpy().copy(), p._version) for p in model.parameters()],
        [module.training for module in model.modules()],
        model.calls,
        (x.cpu().numpy().copy(), x.grad, x._version),
        get_rng_states(),
    )


def same(first, second):
    """Compare two pictures, arrays by value."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return first is second or (not isinstance(first, lucid.Tensor) and first == second)


@pytest.fixture
def net():
    """Return a model on the device, one parameter of which has a gradient, and an input."""
    lucid.manual_seed(0)
    model = Net().cuda()
    model.dropout.eval()
    model.head.weight.grad = lucid.ones_like(model.head.weight)
    return model, lucid.randn(4, 6, device="cuda")


@pytest.mark.gpu
def test_nothing_but_compiled_kernels_is_left(net):
    """Parameters, gradients, buffers, flags, counters, inputs and generators are what they were."""
    model, x = net
    before = picture(model, x)
    assert lucid.cuda.warmup(model, x) is None
    assert same(picture(model, x), before)


@pytest.mark.gpu
def test_the_picture_sees_a_run(net):
    """The comparison of this file notices what an ordinary step changes."""
    model, x = net
    before = picture(model, x)
    model(x).sum().backward()
    after = picture(model, x)
    assert [same(a, b) for a, b in zip(after, before, strict=True)] == [False, True, False, True, False, False, True]


@pytest.mark.gpu
def test_an_error_leaves_the_model_as_it_was(net):
    """What the model raises comes out, and nothing has changed."""
    model, x = net
    model.fail = True
    before = picture(model, x)
    with pytest.raises(ArithmeticError, match="own"):
        lucid.cuda.warmup(model, x)
    assert same(picture(model, x), before)


@pytest.mark.gpu
def test_hooks_do_not_fire(net):
    """Neither those of modules nor those of parameters see the run, and all are still there."""
    model, x = net
    fired = []
    model.register_forward_hook(lambda *_: fired.append("forward"))
    model.hidden.register_forward_pre_hook(lambda *_: fired.append("pre"))
    model.head.register_full_backward_hook(lambda *_: fired.append("backward"))
    model.head.weight.register_hook(lambda _: fired.append("tensor"))
    model.head.bias.register_post_accumulate_grad_hook(lambda _: fired.append("accumulated"))
    lucid.cuda.warmup(model, x)
    assert fired == []
    model(x.clone()).sum().backward()
    assert sorted(fired) == ["accumulated", "backward", "forward", "pre", "tensor"]


@pytest.mark.gpu
def test_backward_runs_from_the_loss_that_is_given(net):
    """`loss` gets the output, and its kernels are compiled with the rest; backward reaches copies of the parameters."""
    model, x = net
    labels = lucid.tensor([0, 1, 2, 0], device="cuda")
    seen = []

    def loss(output):
        seen.append(output.shape)
        value = nn.functional.cross_entropy(output, labels)
        value.register_hook(lambda grad: seen.append(grad.item()))
        return value

    lucid.cuda.warmup(model, x, loss=loss)
    assert seen == [(4, 3), 1.0]


@pytest.mark.gpu
def test_every_tensor_of_an_output_takes_part():
    """Outputs in tuples, lists and dicts all send gradients back; without one that requires grad, only forward runs."""
    reached = []

    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(lucid.ones(3, device="cuda"))

        def forward(self, x):
            parts = [self.weight * x, self.weight + x, x * 2, self.weight - x]
            for name, part in enumerate(parts):
                if part.requires_grad:
                    part.register_hook(lambda _, name=name: reached.append(name))
            return {"a": parts[0], "b": [parts[1], (parts[2], parts[3])], "c": "no tensor"}

    model, x = Several(), lucid.ones(3, device="cuda")
    lucid.cuda.warmup(model, x)
    assert sorted(reached) == [0, 1, 3]
    reached.clear()
    model.requires_grad_(False)
    lucid.cuda.warmup(model, x)
    assert reached == []


@pytest.mark.gpu
def test_inputs_that_require_grad_get_none():
    """Backward computes an input's gradient, as in training, but for a copy of the input."""
    reached = []

    class Watched(nn.Linear):
        def forward(self, x):
            x.register_hook(lambda _: reached.append("input"))
            return super().forward(x)

    x = lucid.randn(4, 3, device="cuda").requires_grad_()
    lucid.cuda.warmup(Watched(3, 2).cuda(), x)
    assert reached == ["input"]
    assert x.grad is None


@pytest.mark.gpu
def test_what_is_no_module_is_refused():
    """A function has no parameters to copy."""
    with pytest.raises(TypeError, match="expected a module, got function"):
        lucid.cuda.warmup(lambda x: x, lucid.ones(1, device="cuda"))


def test_without_a_device_it_says_so(no_cupy):
    """As everything in `lucid.cuda` that needs a device."""
    with pytest.raises(CudaUnavailableError):
        lucid.cuda.warmup(nn.Linear(1, 1), lucid.ones(1))
