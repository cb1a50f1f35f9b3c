"""Running statistics of batch and instance normalisation: when they move, and how they begin anew."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import StateDictError
from lucid.utils.checkpoint import checkpoint
from tests.gradients import numbers

KINDS = [nn.BatchNorm1d, nn.InstanceNorm1d]


def statistics(layer):
    """Return the running statistics as numbers."""
    return [numbers(layer.running_mean).tolist(), numbers(layer.running_var).tolist(), int(layer.num_batches_tracked)]


@pytest.mark.parametrize("kind", KINDS)
def test_beginning_anew(kind, rng):
    """A reset gives the statistics that the layer was made with, and that of the parameters those too."""
    layer = kind(2, affine=True, track_running_stats=True)
    first = statistics(layer)
    assert first == [[0, 0], [1, 1], 0]
    for reset in (layer.reset_running_stats, layer.reset_parameters):
        layer(lucid.tensor(rng.standard_normal((3, 2, 4)), dtype=lucid.float32))
        assert statistics(layer)[:2] != first[:2]
        with lucid.no_grad():
            layer.weight.fill_(3)
            layer.bias.fill_(4)
        reset()
        assert statistics(layer) == first
    assert (layer.weight.tolist(), layer.bias.tolist()) == ([1, 1], [0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_no_tracking_of_a_layer_that_has_statistics(kind, rng):
    """Where `track_running_stats` is set to False later, a batch in training is normalised by its own."""
    layer = kind(2, track_running_stats=True)
    layer.track_running_stats = False
    x = rng.standard_normal((3, 2, 4)) + 5
    axes = (0, 2) if kind is nn.BatchNorm1d else 2
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    got = numbers(layer(lucid.tensor(x, dtype=lucid.float32)))
    np.testing.assert_allclose(got, (x - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-5)
    if kind is nn.BatchNorm1d:
        assert statistics(layer) == [[0, 0], [1, 1], 0]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recomputation_counts_no_batch(use_reentrant, rng):
    """A batch that a checkpoint computes twice moves the statistics once and counts once."""
    layer, other = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    for _ in range(2):
        x = lucid.tensor(rng.standard_normal((3, 2, 4)), dtype=lucid.float32, requires_grad=True)
        checkpoint(layer, x, use_reentrant=use_reentrant).sum().backward()
        other(x)
        assert statistics(layer) == statistics(other)
    assert statistics(layer)[2] == 2


def test_no_momentum(rng):
    """Without one the statistics of batches are their mean over all of them, and those of instances stay."""
    batches = rng.standard_normal((3, 4, 2, 5)) + 5
    layer, alone = nn.BatchNorm1d(2, momentum=None), nn.InstanceNorm1d(2, momentum=None, track_running_stats=True)
    for batch in lucid.tensor(batches, dtype=lucid.float32):
        layer(batch)
        alone(batch)
    np.testing.assert_allclose(numbers(layer.running_mean), batches.mean((0, 1, 3)), rtol=1e-5)
    assert statistics(alone) == [[0, 0], [1, 1], 0]


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_both_versions(kind):
    """Only a state from before there was a count may lack it; misfits are told as those of any module."""
    model = nn.Sequential(kind(2, affine=True, track_running_stats=True))
    state = model.state_dict()
    versions = state._metadata
    model[0].num_batches_tracked.fill_(7)
    del state["0.num_batches_tracked"]
    with pytest.raises(StateDictError, match=r'Missing key.*"0\.num_batches_tracked"'):
        model.load_state_dict(state)
    for version in (1, None):
        versions["0"] = {} if version is None else {"version": version}
        model.load_state_dict(state)
        assert int(model[0].num_batches_tracked) == 7
    versions["0"] = {"version": 2}
    state |= {"0.num_batches_tracked": lucid.tensor(1), "0.more": lucid.ones(1), "0.running_mean": lucid.ones(3)}
    with pytest.raises(StateDictError, match=r'Unexpected key.*"0\.more".*\n.*size mismatch for 0\.running_mean'):
        model.load_state_dict(state)
