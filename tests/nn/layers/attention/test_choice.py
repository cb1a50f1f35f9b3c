"""`lucid.nn.attention`: PyTorch's choice among ways to compute attention is taken, and changes nothing."""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError
from lucid.nn.attention import SDPBackend, sdpa_kernel
from lucid.nn.functional import scaled_dot_product_attention


@pytest.mark.parametrize("choice", [SDPBackend.MATH, [*SDPBackend], (*SDPBackend,)], ids=["one", "list", "tuple"])
def test_a_choice_changes_nothing(choice, rng):
    """Values and gradients are those of attention anywhere, and a decorated function keeps its result."""
    q = lucid.tensor(rng.standard_normal((2, 3, 4)), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal((2, 3, 4)))
    expected = lucid.autograd.grad(scaled_dot_product_attention(q, q, q), q, upstream)[0]
    with nn.attention.sdpa_kernel(choice, set_priority=True):
        assert lucid.equal(lucid.autograd.grad(scaled_dot_product_attention(q, q, q), q, upstream)[0], expected)
    assert lucid.equal(
        sdpa_kernel(choice)(scaled_dot_product_attention)(q, q, q), scaled_dot_product_attention(q, q, q)
    )


@pytest.mark.parametrize("choice", ["math", 1, [], [0], None], ids=str)
def test_what_is_no_choice_is_refused(choice):
    """Anything but these ways is named, before the block runs."""
    with pytest.raises(ArgumentError, match="sdpa_kernel: backends: expected"), sdpa_kernel(choice):
        raise AssertionError("the block ran")
