"""The module-hook examples of the documentation that lucid's hooks are specified by, run as they stand there."""

from __future__ import annotations

import lucid
from lucid import nn


def test_forward_pre_hook():
    """A pre-hook that returns new inputs changes what forward sees; calling what registration returned removes it."""

    class Scale(nn.Module):
        def forward(self, x):
            return x * 2

    def pre_hook(module, args):
        (x,) = args
        return (x + 1,)

    m = Scale()
    remove = m.register_forward_pre_hook(pre_hook)
    x = lucid.ones((2, 2))
    y = m(x)
    remove()
    assert y.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert m(x).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_forward_hook():
    """A forward hook that returns a value replaces the output."""

    class LinearBias(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Parameter(lucid.ones((1,)))

        def forward(self, x):
            return x + self.b

    def post_hook(module, args, output):
        return output * 3

    m = LinearBias()
    remove = m.register_forward_hook(post_hook)
    x = lucid.ones((1,))
    y = m(x)
    remove()
    assert y.tolist() == [6.0]
    assert m(x).tolist() == [2.0]


def test_backward_hook(capsys):
    """A backward hook gets the output tensor and its gradient."""

    class Square(nn.Module):
        def forward(self, x):
            return x * x

    def grad_hook(tensor, grad):
        print("grad:", grad)

    m = Square()
    m.register_backward_hook(grad_hook)
    x = lucid.ones((1,), requires_grad=True)
    y = m(x)
    y.backward()
    assert capsys.readouterr().out == "grad: tensor([1.])\n"
    assert x.grad.tolist() == [2.0]


def test_full_backward_pre_hook(capsys):
    """A full backward pre-hook gets the gradients of the outputs, and may return them."""

    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    def pre_full_backward(module, grad_out):
        print("grad_out:", grad_out)
        return grad_out

    m = Add()
    m.register_full_backward_pre_hook(pre_full_backward)
    x = lucid.ones((1,), requires_grad=True)
    y = lucid.ones((1,), requires_grad=True)
    out = m(x, y)
    out.backward()
    assert capsys.readouterr().out == "grad_out: (tensor([1.]),)\n"
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0], [1.0])


def test_full_backward_hook(capsys):
    """A full backward hook gets the gradients of inputs and outputs."""

    class Mul(nn.Module):
        def forward(self, x, y):
            return x * y

    def full_backward(module, grad_in, grad_out):
        print("grad_in:", grad_in)
        print("grad_out:", grad_out)

    m = Mul()
    m.register_full_backward_hook(full_backward)
    x = lucid.ones((1,), requires_grad=True)
    y = lucid.ones((1,), requires_grad=True)
    out = m(x, y)
    out.backward()
    assert capsys.readouterr().out == "grad_in: (tensor([1.]), tensor([1.]))\ngrad_out: (tensor([1.]),)\n"


def test_state_dict_hooks(capsys):
    """State-dict hooks run around saving and may add entries."""

    def pre_state(module, prefix, keep_vars):
        print("saving with prefix:", prefix)

    def post_state(module, state_dict, prefix, keep_vars):
        state_dict[prefix + "note"] = "custom"

    m = nn.Module()
    m.register_state_dict_pre_hook(pre_state)
    m.register_state_dict_hook(post_state)
    sd = m.state_dict()
    assert capsys.readouterr().out == "saving with prefix: \n"
    assert sd["note"] == "custom"


def test_load_state_dict_hooks(capsys):
    """Load hooks run around loading and see what is missing."""

    def pre_load(module, state_dict, strict):
        state_dict.pop("legacy_key", None)

    def post_load(module, missing, unexpected, strict):
        if missing:
            print("missing:", missing)

    m = nn.Module()
    m.register_load_state_dict_pre_hook(pre_load)
    m.load_state_dict({})
    m.load_state_dict({"legacy_key": lucid.ones(1)})
    m.register_load_state_dict_post_hook(post_load)
    m.load_state_dict({}, strict=False)
    assert not capsys.readouterr().out
    m.weight = nn.Parameter(lucid.ones(1))
    m.load_state_dict({}, strict=False)
    assert capsys.readouterr().out == "missing: ['weight']\n"
