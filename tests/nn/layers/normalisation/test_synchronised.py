"""Batch normalisation over processes: among several, and in one that is alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.errors import ArgumentError, SettingError, ShapeError
from tests.device import DEVICE
from tests.distributed.together import Twins


@pytest.mark.parametrize(
    ("kind", "shape"), [("1d", (4, 3)), ("1d", (2, 3, 4)), ("2d", (2, 3, 2, 2)), ("3d", (2, 3, 2, 1, 2))]
)
@pytest.mark.parametrize("momentum", [0.3, None])
def test_alone_it_is_batch_norm(kind, shape, momentum, rng):
    """A process that is alone computes what the layer of so many dimensions does, in training and evaluation."""
    plain = getattr(nn, f"BatchNorm{kind}")(3, momentum=momentum, device=DEVICE)
    ours = nn.SyncBatchNorm(3, momentum=momentum, device=DEVICE)
    x = lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32, device=DEVICE)
    for training in (True, True, False):
        assert ours.train(training)(x).tolist() == plain.train(training)(x).tolist()
    assert {name: value.tolist() for name, value in ours.state_dict().items()} == {
        name: value.tolist() for name, value in plain.state_dict().items()
    }


def test_converted_layers():
    """Layers of all dimensions become new ones with their parameters, statistics, settings and hooks; others stay."""
    model = nn.Sequential(
        nn.BatchNorm1d(2, eps=0.1), nn.Sequential(nn.BatchNorm2d(3, affine=False)), nn.InstanceNorm1d(2)
    )
    model.append(model[0])
    model[1][0].eval()
    old, others = [model[0], model[1][0]], model[2]
    calls = []
    handle = old[0].register_forward_hook(lambda *_: calls.append("called"))
    group = dist.new_group()
    assert nn.SyncBatchNorm.convert_sync_batchnorm(model, group) is model
    new = [model[0], model[1][0]]
    assert model[3] is model[0]
    assert model[2] is others
    for one, other in zip(new, old, strict=True):
        assert type(one) is nn.SyncBatchNorm
        assert (one.eps, one.training, one.weight, one.process_group) == (
            other.eps,
            other.training,
            other.weight,
            group,
        )
        assert one.running_mean is other.running_mean
    new[0](lucid.ones(3, 2))
    handle.remove()
    new[0](lucid.ones(3, 2))
    assert calls == ["called"]
    assert copy.deepcopy(model)[0].process_group is group
    single = nn.BatchNorm1d(2)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(single).weight is single.weight
    assert type(single) is nn.BatchNorm1d
    plain = nn.Linear(2, 2)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(plain) is plain


def test_what_is_refused():
    """Wrong groups, lazy layers and inputs of one dimension are refused."""
    with pytest.raises(ArgumentError, match="process_group: expected a ProcessGroup"):
        nn.SyncBatchNorm(2, process_group=3)
    with pytest.raises(ArgumentError, match="module: expected a Module"):
        nn.SyncBatchNorm.convert_sync_batchnorm(3)
    with pytest.raises(SettingError, match="LazyBatchNorm1d: its channels are not known"):
        nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.LazyBatchNorm1d()))
    with pytest.raises(ShapeError, match="expected at least 2D input"):
        nn.SyncBatchNorm(2)(lucid.ones(2))
    with pytest.raises(ShapeError, match="more than 1 value per channel"):
        nn.SyncBatchNorm(2)(lucid.ones(1, 2))
    assert np.isfinite(nn.SyncBatchNorm(2)(lucid.ones(2, 2)).tolist()).all()


@pytest.mark.parametrize("dtype", [lucid.float64, lucid.float32, lucid.float16, lucid.bfloat16])
def test_twins(dtype, rng):
    """Two processes with the same batch compute what one does with that batch twice, on each device."""
    ours = nn.SyncBatchNorm(3, process_group=Twins(), device=DEVICE, dtype=dtype)
    one = nn.BatchNorm2d(3, device=DEVICE, dtype=dtype)
    for parameter in ours.parameters():  # zeros, or ones, would say nothing of the order of product and sum
        parameter.data.copy_(lucid.tensor(rng.standard_normal(3)))
    one.load_state_dict(ours.state_dict())
    x, upper = (lucid.tensor(rng.standard_normal((4, 3, 5, 2)), dtype=dtype, device=DEVICE) for _ in range(2))
    x.requires_grad_()
    out, expected = ours(x), one(lucid.cat([x, x]))
    (grad,) = lucid.autograd.grad(out, x, upper)
    (grad_of_both,) = lucid.autograd.grad(expected, x, lucid.cat([upper, upper]))
    tolerance = {lucid.float64: 1e-12, lucid.float32: 1e-5, lucid.float16: 4e-3, lucid.bfloat16: 3e-2}[dtype]
    for found, known in (
        (out, expected[:4]),
        (2 * grad, grad_of_both),
        *zip(ours.buffers(), one.buffers(), strict=True),
    ):
        found, known = (each.detach().cpu().double().numpy() for each in (found, known))
        np.testing.assert_allclose(found, known, rtol=tolerance, atol=tolerance)
