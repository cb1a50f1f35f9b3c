"""`lucid.hooks.FlopHook` beside PyTorch's `FlopCounterMode`: the same programs, the same counts."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import lucid
from lucid import hooks


def ones(m, *shape, **settings):
    return m.ones(*shape, requires_grad=True, **settings)


def asked_for(m):
    a, b = ones(m, 2, 3), ones(m, 3, 4)
    m.autograd.grad((a @ b).sum(), a)


def second(m):
    a, b = ones(m, 2, 3, 5, 5), ones(m, 4, 3, 3, 3)
    (grad,) = m.autograd.grad((m.nn.functional.conv2d(a, b) ** 2).sum(), a, create_graph=True)
    (grad**2).sum().backward()


def third(m):
    a = ones(m, 3, 3)
    (first,) = m.autograd.grad((a @ a @ a).sum(), a, create_graph=True)
    (again,) = m.autograd.grad((first * first).sum(), a, create_graph=True)
    (again * again).sum().backward()


def in_checkpoint(use_reentrant):
    def program(m):
        a, b = ones(m, 2, 3), ones(m, 3, 4)
        m.utils.checkpoint.checkpoint(lambda a, b: (a @ b).sin(), a, b, use_reentrant=use_reentrant).sum().backward()

    return program


def retained(m):
    y = (ones(m, 2, 3) @ ones(m, 3, 4)).sum()
    y.backward(retain_graph=True)
    y.backward()


def in_autocast(m):
    layer = m.nn.Linear(3, 4)
    with m.autocast("cpu", dtype=m.bfloat16):
        layer(m.ones(2, 3)).float().sum().backward()


def layers(make, *shape):
    def program(m):
        out = make(m)(ones(m, *shape))
        (out if isinstance(out, m.Tensor) else out[0]).sum().backward()

    return program


def network(m):
    nn = m.nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
    net(m.ones(2, 3, 8, 8)).sum().backward()


def of(function, *shapes):
    return lambda m: function(m, *(ones(m, *shape) for shape in shapes)).sum().backward()


PROGRAMS = {
    "matmul": of(lambda m, a, b: a @ b, (3, 4), (4, 5)),
    "batched": of(lambda m, a, b: a @ b, (2, 3, 4), (2, 4, 5)),
    "addmm": of(lambda m, c, a, b: m.addmm(c, a, b), (3, 5), (3, 4), (4, 5)),
    "baddbmm": of(lambda m, c, a, b: m.baddbmm(c, a, b), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "linear": of(lambda m, x, w, b: m.nn.functional.linear(x, w, b), (6, 3), (4, 3), (4,)),
    "conv1d": of(lambda m, x, w: m.nn.functional.conv1d(x, w, stride=2), (2, 3, 9), (4, 3, 3)),
    "conv2d": of(lambda m, x, w, b: m.nn.functional.conv2d(x, w, b, padding=1), (2, 3, 8, 8), (4, 3, 3, 3), (4,)),
    "einsum": of(lambda m, a, b: m.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 5)),
    "a network whose input needs no gradient": network,
    "asked for": asked_for,
    "second derivative": second,
    "third derivative": third,
    "reentrant checkpoint": in_checkpoint(use_reentrant=True),
    "checkpoint": in_checkpoint(use_reentrant=False),
    "autocast": in_autocast,
    "broadcast": lambda m: (ones(m, 5, 1, 2, 3) @ ones(m, 6, 3, 4)).sum().backward(),
    "einsum of stacks": lambda m: m.einsum("...ij,...jk", ones(m, 2, 5, 2, 3), ones(m, 5, 3, 4)).sum().backward(),
    "einsum of three": lambda m: m.einsum("ij,jk,kl->il", ones(m, 2, 3), ones(m, 3, 4), ones(m, 4, 5)).sum().backward(),
    "tensordot": lambda m: m.tensordot(ones(m, 2, 3, 4), ones(m, 3, 4, 5), 2).sum().backward(),
    "retained graph": retained,
    "complex": lambda m: (ones(m, 2, 3, dtype=m.complex64) @ ones(m, 3, 4, dtype=m.complex64)).abs().sum().backward(),
    "empty": lambda m: (ones(m, 0, 3) @ ones(m, 3, 4)).sum().backward(),
    "strided": layers(lambda m: m.nn.Conv1d(4, 6, 3, stride=2, padding=1), 2, 4, 8),
    "dilated": layers(lambda m: m.nn.Conv2d(4, 6, 3, dilation=2), 2, 4, 8, 8),
    "transposed": layers(lambda m: m.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), 2, 4, 8, 8),
    "GRU": layers(lambda m: m.nn.GRU(3, 5, num_layers=2, bidirectional=True), 7, 2, 3),
    "RNN with a first state": lambda m: m.nn.RNN(3, 5)(ones(m, 7, 2, 3), ones(m, 1, 2, 5))[1].sum().backward(),
    "LSTM of no input gradient": lambda m: m.nn.LSTM(3, 5, proj_size=2)(m.ones(7, 2, 3))[0].sum().backward(),
    "packed": lambda m: m.nn.GRU(3, 5, bidirectional=True)(
        m.nn.utils.rnn.pack_sequence([ones(m, 4, 3), ones(m, 2, 3)])
    )[0].data.sum().backward(),
    "vjp": lambda m: m.func.vjp(lambda w: m.ones(5, 3) @ w, m.ones(3, 4))[1](m.ones(5, 4)),
    "vmap of grad": lambda m: m.func.vmap(m.func.grad(lambda v: ((v @ m.ones(3, 4)) ** 2).sum()))(m.ones(5, 3)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("name", PROGRAMS)
def test_counts(name):
    """Of forward and backward as many operations are counted as PyTorch counts."""
    with hooks.FlopHook() as counted:
        PROGRAMS[name](lucid)
    with FlopCounterMode(display=False) as theirs:
        PROGRAMS[name](torch)
    assert counted.total == theirs.get_total_flops()
