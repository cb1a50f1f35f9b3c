"""`parametrizations.orthogonal` against PyTorch's, on the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.gradients import numbers

ours, theirs = lucid.nn.utils.parametrizations.orthogonal, torch.nn.utils.parametrizations.orthogonal


@pytest.mark.parametrize("trivialization", [True, False])
@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_same_weights(shape, orthogonal_map, trivialization, rng):
    """Names of the state dict, first weights where nothing is drawn, values and gradients are PyTorch's."""
    start = rng.standard_normal(shape)
    here = lucid.nn.Linear(shape[1], shape[0], dtype=lucid.float64)
    there = torch.nn.Linear(shape[1], shape[0], dtype=torch.float64)
    with torch.no_grad():
        there.weight.copy_(torch.tensor(start))
    with lucid.no_grad():
        here.weight.copy_(lucid.tensor(start))
    ours(here, orthogonal_map=orthogonal_map, use_trivialization=trivialization)
    theirs(there, orthogonal_map=orthogonal_map, use_trivialization=trivialization)
    assert list(here.state_dict()) == list(there.state_dict())
    if shape[0] == shape[1] or not trivialization:
        np.testing.assert_allclose(numbers(here.weight), there.weight.detach().numpy(), atol=1e-9)
    state = {
        name: value.numpy() + (0.3 * rng.standard_normal(value.shape) if name.endswith("original") else 0)
        for name, value in there.state_dict().items()
    }
    there.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    here.load_state_dict({name: lucid.tensor(value) for name, value in state.items()})
    np.testing.assert_allclose(numbers(here.weight), there.weight.detach().numpy(), atol=1e-9)
    upstream = rng.standard_normal(shape)
    (here.weight * lucid.tensor(upstream)).sum().backward()
    (there.weight * torch.tensor(upstream)).sum().backward()
    got, expected = here.parametrizations.weight.original.grad, there.parametrizations.weight.original.grad
    np.testing.assert_allclose(numbers(got), expected.numpy(), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [(("w",), {}), (("bias",), {}), ((), {"orthogonal_map": "qr"})],
    ids=["name", "vector", "map"],
)
def test_same_refusals(arguments, settings):
    """What PyTorch refuses is refused by an error of the same kind."""
    with pytest.raises(ValueError):
        theirs(torch.nn.Linear(2, 3), *arguments, **settings)
    with pytest.raises(ValueError):
        ours(lucid.nn.Linear(2, 3), *arguments, **settings)
