"""`lucid.hooks.guard` with ``ops=True``: the first op, its line, what it was given; forward and backward."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.modes.state import thread
from tests.device import DEVICE
from tests.pieces import function_of

HERE = __file__


def line():
    """Return the number of the line that calls."""
    return sys._getframe(1).f_lineno


class Entropy(nn.Module):
    def forward(self, x):
        self.at = line() + 1
        return (x.log() * x).sum()


def model():
    return nn.Sequential(nn.Softmax(-1), Entropy())


def ones(*shape):
    return lucid.ones(*shape, device=DEVICE, requires_grad=True)


def far(*numbers):
    return lucid.tensor(numbers, device=DEVICE, requires_grad=True)


def test_the_op_and_not_what_follows():
    """`log` is what makes infinity of a finite number; the product with it, and the sum, only hand on."""
    net = model()
    with pytest.raises(hooks.NotFiniteError) as caught, hooks.guard(net, ops=True):
        net(far(0.0, 1000.0))
    assert (caught.value.path, caught.value.what) == ("1", "op")
    assert str(caught.value) == (
        f"log in 1 at {HERE}:{net[1].at} gives 0 NaN and 1 infinite of 2 numbers; the others reach from 0 to 0. "
        "It got numbers from 0 to 1, of shape (2,)"
    )
    with pytest.raises(hooks.NotFiniteError, match="output of 1 ") as plain, hooks.guard(net):
        net(far(0.0, 1000.0))
    assert plain.value.what == "output"
    assert len(hooks.table(net)) == 0
    assert not thread.state.function_hooks
    assert not thread.state.node_hooks


def test_backward_names_the_line_of_the_forward():
    net = model()
    x = lucid.tensor([0.0, 1.0], device=DEVICE, requires_grad=True)
    with hooks.guard(net, ops=True):
        at = line() + 1
        y = x.sqrt()
        with pytest.raises(hooks.NotFiniteError) as caught:
            (y * 2).sum().backward()
    assert (caught.value.path, caught.value.what) == ("", "gradient")
    assert str(caught.value).startswith(f"SqrtBackward0 at {HERE}:{at} gives 0 NaN and 1 infinite of 2 numbers")
    y = x.sqrt()
    outside = "SqrtBackward0, of an op that was recorded outside of the block"
    with pytest.raises(hooks.NotFiniteError, match=outside), hooks.guard(net, ops=True):
        y.sum().backward()
    with hooks.guard(net, ops=True, backward=False):
        x.sqrt().sum().backward()


def test_what_was_not_finite_before_is_told_by_the_module():
    net = nn.Sequential(nn.Identity(), nn.Linear(2, 1, device=DEVICE))
    with pytest.raises(hooks.NotFiniteError, match=r"output of 0 \(Identity\)"), hooks.guard(net, ops=True):
        net(far(float("nan"), 1.0))


Divides = function_of(lambda ctx, x: x / 2, lambda ctx, grad: grad / 0)


def test_functions_in_place_ops_and_modules_that_raise():
    net = nn.Sequential(Entropy())
    with hooks.guard(net, ops=True):
        with pytest.raises(hooks.NotFiniteError, match=r"div in \? at|div at"):
            Divides.apply(ones(2)).sum().backward()
        with pytest.raises(hooks.NotFiniteError, match=r"log_ at .* gives 0 NaN and 2 infinite of 2 numbers"):
            lucid.zeros(2, device=DEVICE).log_()
        far(float("inf")).detach().add_(1)  # was infinite before
        with pytest.raises(AttributeError):
            net(None)
        with pytest.raises(hooks.NotFiniteError, match="log at"):
            far(0.0).log()


def test_gradients_are_not_looked_at_on_request():
    net, x = nn.Sequential(nn.Identity()), ones(2)
    for backward in (True, False):
        with hooks.guard(net, backward=backward):
            y = net(x * 1)
            if backward:
                with pytest.raises(hooks.NotFiniteError, match="gradient of the output of 0"):
                    (y * float("inf")).sum().backward()
            else:
                (y * float("inf")).sum().backward()
    assert x.grad.tolist() == [float("inf")] * 2


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode, lucid.enable_grad])
def test_outputs_are_looked_at_in_every_mode(mode):
    net = model()
    with mode(), pytest.raises(hooks.NotFiniteError, match=r"output of 1 \(Entropy\)"), hooks.guard(net):
        net(lucid.tensor([0.0, 1000.0], device=DEVICE))


class Lowers(nn.Module):
    """Gives back its input, which it has changed in place, and what is a part of it."""

    def forward(self, x):
        x[0] -= 1
        return x.log_()


def test_what_a_module_changes_in_place_and_gives_back():
    """The tensor is the one that was sound when the module before gave it; what it only hands on is not looked at."""
    net = nn.Sequential(nn.Identity(), nn.Identity(), Lowers(), nn.Identity())
    with (
        pytest.raises(hooks.NotFiniteError, match=r"output of 2 \(Lowers\)") as caught,
        hooks.guard(net),
    ):
        net(lucid.ones(2, device=DEVICE))
    assert (caught.value.path, caught.value.what) == ("2", "output")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_travel(again):
    """To another process, as of a worker, with the path and what it was."""
    error = hooks.NotFiniteError("text", "1.0", "gradient")
    other = again(error)
    assert (type(other), str(other), other.path, other.what) == (hooks.NotFiniteError, "text", "1.0", "gradient")


def test_complex_numbers_have_no_extent():
    """They are counted, and named, as they are not ordered."""
    z = lucid.tensor([0j, 1 + 1j], device=DEVICE)
    with pytest.raises(hooks.NotFiniteError) as caught, hooks.guard(nn.Identity(), ops=True):
        z.reciprocal()
    assert str(caught.value).endswith(" of 2 numbers. It got numbers complex numbers, of shape (2,)")


def test_a_training_that_is_sound_is_as_without(rng):
    net = nn.Sequential(nn.Linear(3, 4, device=DEVICE), nn.GELU(), nn.BatchNorm1d(4, device=DEVICE))
    x = lucid.tensor(rng.normal(size=(5, 3)), dtype=lucid.float32, device=DEVICE)
    net(x).square().sum().backward()
    expected = [p.grad.tolist() for p in net.parameters()]
    net.zero_grad()
    with hooks.guard(net, ops=True):
        net(x).square().sum().backward()
    assert [p.grad.tolist() for p in net.parameters()] == expected


def test_infinities_that_are_given_are_not_made():
    """A mask fills with minus infinity on purpose, by a number or by a tensor; what it makes of that is looked at."""
    x = lucid.tensor([1.0, -1.0], device=DEVICE, requires_grad=True)
    mask = x > 0
    with hooks.guard(nn.Identity(), ops=True):
        x.masked_fill(mask, float("-inf")).softmax(-1).sum().backward()
        lucid.where(mask, x, float("-inf")).max()
        (x.detach().clone().masked_fill_(mask, float("-inf")) * 1).exp()
        nn.functional.pad(x, (1, 1), value=float("-inf")).max()
        with pytest.raises(hooks.NotFiniteError, match=r"div at .* gives 0 NaN and 2 infinite"):
            x / 0


def test_ops_of_a_second_derivative():
    """A node that a backward with `create_graph` has recorded is told by the op of the forward."""
    x = lucid.zeros(2, device=DEVICE, requires_grad=True)
    with hooks.guard(nn.Identity(), ops=True):
        (grad,) = lucid.autograd.grad(((x + 1).sqrt() - 1).pow(1.5).sum(), x, create_graph=True)
        with pytest.raises(hooks.NotFiniteError, match=r"^\w+ at .*test_guarding.py:\d+ gives ") as caught:
            grad.sum().backward()
    assert caught.value.what == "gradient"


def test_ops_in_place_on_views():
    """The node of a view's change, and of the view, are known by the lines where they stand."""
    x = lucid.zeros(2, device=DEVICE, requires_grad=True)
    y = x * 1
    with hooks.guard(nn.Identity(), ops=True):
        y[:1].sqrt_()
        with pytest.raises(hooks.NotFiniteError, match=r"^SqrtBackward0 at .*test_guarding.py:\d+ gives "):
            y.sum().backward()
