"""`lucid.hooks.FlopHook` against PyTorch's `FlopCounterMode`."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import lucid
from lucid import hooks
from tests.device import DEVICE

# Of each function the shapes of its operands; all require grad.
ROWS = {
    "matmul": (lambda m, a, b: a @ b, (3, 4), (4, 5)),
    "batched": (lambda m, a, b: a @ b, (2, 3, 4), (2, 4, 5)),
    "addmm": (lambda m, c, a, b: m.addmm(c, a, b), (3, 5), (3, 4), (4, 5)),
    "baddbmm": (lambda m, c, a, b: m.baddbmm(c, a, b), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "linear": (lambda m, x, w, b: m.nn.functional.linear(x, w, b), (6, 3), (4, 3), (4,)),
    "conv1d": (lambda m, x, w: m.nn.functional.conv1d(x, w, stride=2), (2, 3, 9), (4, 3, 3)),
    "conv2d": (lambda m, x, w, b: m.nn.functional.conv2d(x, w, b, padding=1), (2, 3, 8, 8), (4, 3, 3, 3), (4,)),
    "einsum": (lambda m, a, b: m.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 5)),
}


@pytest.mark.parametrize("name", ROWS)
def test_flops(name):
    function, *shapes = ROWS[name]
    theirs = [torch.ones(shape, requires_grad=True) for shape in shapes]
    with FlopCounterMode(display=False) as expected:
        function(torch, *theirs).sum().backward()
    ours = [lucid.ones(shape, requires_grad=True, device=DEVICE) for shape in shapes]
    with hooks.FlopHook() as counted:
        function(lucid, *ours).sum().backward()
    assert counted.total == expected.get_total_flops()


def test_network():
    """A small convolutional network whose input needs no gradient."""

    def net(m):
        nn = m.nn
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
        )

    with FlopCounterMode(display=False) as expected:
        net(torch)(torch.ones(2, 3, 8, 8)).sum().backward()
    with hooks.FlopHook() as counted:
        net(lucid).to(DEVICE)(lucid.ones(2, 3, 8, 8, device=DEVICE)).sum().backward()
    assert counted.total == expected.get_total_flops()
