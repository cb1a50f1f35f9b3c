"""`lucid.func` has PyTorch's signatures."""

from __future__ import annotations

import pytest
import torch

import lucid
from tests.parity.pieces import parameters


@pytest.mark.parametrize("name", lucid.func.__all__)
def test_signature(name):
    """Each function takes PyTorch's arguments."""
    assert parameters(getattr(lucid.func, name)) == parameters(getattr(torch.func, name))


def test_vmap_has_two_places():
    """`vmap` is `func.vmap`, as in PyTorch."""
    assert lucid.vmap is lucid.func.vmap
    assert torch.vmap is torch.func.vmap


def test_what_is_returned_has_the_parameters_of_pytorch():
    """`vjp_fn` takes PyTorch's arguments."""
    ours = lucid.func.vjp(lambda x: x, lucid.ones(2))[1]
    theirs = torch.func.vjp(lambda x: x, torch.ones(2))[1]
    assert parameters(ours) == parameters(theirs)
