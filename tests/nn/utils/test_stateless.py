"""Calls of a module with other parameters and buffers."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError, StateDictError
from lucid.func import functional_call
from tests.gradients import numbers


def test_gradients_flow_to_what_is_given(rng):
    """The result is that of the module with these values, and second derivatives go through them."""
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1)).double()
    before = dict(net.named_parameters())
    given = {name: lucid.tensor(rng.standard_normal(p.shape), requires_grad=True) for name, p in before.items()}
    x = lucid.tensor(rng.standard_normal((4, 3)))
    first, second = (numbers(given[f"{place}.weight"]) for place in (0, 2))
    hidden = np.tanh(numbers(x) @ first.T + numbers(given["0.bias"]))
    out = functional_call(net, given, x)
    np.testing.assert_allclose(numbers(out), hidden @ second.T + numbers(given["2.bias"]), rtol=1e-12)
    grads = lucid.autograd.grad(out.sum(), list(given.values()), create_graph=True)
    assert lucid.autograd.grad(sum((g * g).sum() for g in grads), given["0.weight"])[0].shape == (2, 3)
    assert all(net.get_parameter(name) is p for name, p in before.items())
    part = functional_call(net, {"2.weight": given["2.weight"]}, (x,))
    np.testing.assert_allclose(numbers(part), numbers(net[1](net[0](x))) @ second.T + numbers(net[2].bias), rtol=1e-12)


def test_buffers():
    """Those that are given are changed in place of the module's; those that the call replaces are in the dictionary."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", lucid.zeros(()))

        def forward(self, *, by):
            self.count = self.count + by
            return self.count

    counter, given = Counter(), {"count": lucid.tensor(5.0)}
    assert functional_call(counter, given, None, {"by": 2}).item() == 7
    assert (given["count"].item(), counter.count.item()) == (7, 0)
    norm = nn.BatchNorm1d(2)
    given = {name: value.clone() for name, value in norm.state_dict().items()}
    functional_call(norm, given, lucid.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert given["num_batches_tracked"].item() == 1
    assert norm.num_batches_tracked.item() == 0
    assert norm.running_mean.tolist() == [0.0, 0.0]


def test_tied_weights():
    """A tensor in two places is replaced in both, unless that is not wanted; two values of one are refused."""
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    x, new = lucid.tensor([[1.0, 2.0]]), lucid.eye(2) * 3
    assert functional_call(net, {"0.weight": new}, x).tolist() == [[9.0, 18.0]]
    assert functional_call(net, {"1.weight": new}, x, strict=True).tolist() == [[9.0, 18.0]]
    half = functional_call(net, {"0.weight": new}, x, tie_weights=False)
    np.testing.assert_allclose(numbers(half), numbers(net[1](x * 3)), rtol=1e-6)
    with pytest.raises(SettingError, match="tied to another name"):
        functional_call(net, {"0.weight": new, "1.weight": lucid.eye(2)}, x)
    both = {"0.weight": new, "1.weight": lucid.eye(2)}
    assert functional_call(net, both, x, tie_weights=False).tolist() == [[3.0, 6.0]]
    assert net[1].weight is net[0].weight


def test_a_module_in_two_places():
    """Its parameters go by the names of each place, and what is given for one of them is for both."""
    layer = nn.Linear(2, 2, bias=False)
    x, new = lucid.tensor([[1.0, 2.0]]), lucid.eye(2) * 3
    for name in ("0.weight", "1.weight"):
        assert functional_call(nn.Sequential(layer, layer), {name: new}, x, strict=True).tolist() == [[9.0, 18.0]]


def test_mistakes_leave_the_module_as_it_is():
    """Names that are not there or missing, several dictionaries with one name, and a call that raises."""
    layer, x = nn.Linear(2, 1), lucid.ones(2)
    before = layer.weight
    with pytest.raises(StateDictError, match=r"has no parameter or buffer \['other'\]"):
        functional_call(layer, {"other": x, **layer.state_dict()}, x, strict=True)
    assert functional_call(layer, {"other": x}, x).item() == layer(x).item()
    with pytest.raises(StateDictError, match=r"without values are \['bias'\]"):
        functional_call(layer, {"weight": before}, x, strict=True)
    assert functional_call(layer, ({"weight": lucid.ones(1, 2)}, {"bias": lucid.ones(1)}), x).tolist() == [3.0]
    with pytest.raises(SettingError, match=r"\['bias'\] appeared in multiple dictionaries"):
        functional_call(layer, ({"bias": lucid.ones(1)}, {"bias": lucid.ones(1)}), x)
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": lucid.ones(1, 3)}, x)
    assert layer.weight is before
