"""Lazy layers: what they become, state dicts of both kinds, conversions, copies, and what is refused before."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError, ShapeError, StateDictError
from tests.gradients import numbers

# The lazy layer, the layer that it becomes, and an input.
KINDS = {
    "Linear": (lambda: nn.LazyLinear(3), lambda: nn.Linear(5, 3), (2, 4, 5)),
    "Linear no bias": (lambda: nn.LazyLinear(3, bias=False), lambda: nn.Linear(5, 3, bias=False), (5,)),
    "Conv1d": (lambda: nn.LazyConv1d(6, 2, groups=2), lambda: nn.Conv1d(4, 6, 2, groups=2), (2, 4, 5)),
    "Conv2d": (
        lambda: nn.LazyConv2d(3, (2, 1), stride=2, padding="valid", bias=False),
        lambda: nn.Conv2d(4, 3, (2, 1), stride=2, padding="valid", bias=False),
        (4, 5, 6),
    ),
    "ConvTranspose1d": (
        lambda: nn.LazyConvTranspose1d(6, 3, stride=2, output_padding=1, groups=2, dilation=2),
        lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1, groups=2, dilation=2),
        (2, 4, 5),
    ),
    "Conv3d": (lambda: nn.LazyConv3d(2, 2, groups=2), lambda: nn.Conv3d(4, 2, 2, groups=2), (2, 4, 2, 3, 2)),
    "ConvTranspose3d": (lambda: nn.LazyConvTranspose3d(2, 1), lambda: nn.ConvTranspose3d(4, 2, 1), (4, 2, 3, 2)),
    "ConvTranspose2d": (lambda: nn.LazyConvTranspose2d(3, 2), lambda: nn.ConvTranspose2d(4, 3, 2), (2, 4, 5, 6)),
    "BatchNorm1d": (lambda: nn.LazyBatchNorm1d(momentum=0.3), lambda: nn.BatchNorm1d(4, momentum=0.3), (2, 4)),
    "BatchNorm2d": (lambda: nn.LazyBatchNorm2d(bias=False), lambda: nn.BatchNorm2d(4, bias=False), (2, 4, 2, 3)),
    "BatchNorm3d": (
        lambda: nn.LazyBatchNorm3d(affine=False, track_running_stats=False),
        lambda: nn.BatchNorm3d(4, affine=False, track_running_stats=False),
        (2, 4, 2, 3, 2),
    ),
    "InstanceNorm1d": (
        lambda: nn.LazyInstanceNorm1d(), lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (4, 6)
    ),
    "InstanceNorm2d": (
        lambda: nn.LazyInstanceNorm2d(affine=False),
        lambda: nn.InstanceNorm2d(4, affine=False, track_running_stats=True),
        (2, 4, 2, 3),
    ),
    "InstanceNorm3d": (
        lambda: nn.LazyInstanceNorm3d(track_running_stats=False),
        lambda: nn.InstanceNorm3d(4, affine=True),
        (2, 4, 2, 3, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_call_makes_an_ordinary_layer(name, rng):
    """It has the class, settings, shapes, first values and results of the layer for that many features or channels."""
    lazily, make, shape = KINDS[name]
    lucid.manual_seed(1)
    layer, ordinary = lazily(), make()
    assert type(layer).__name__ == f"Lazy{type(ordinary).__name__}"
    kept = list(layer.parameters())
    before, after = (re.search(r"\(\D*(\d+)", repr(each)).group(1) for each in (layer, ordinary))
    assert (before, after) == ("0", str(shape[-1] if "Linear" in name else shape[-ordinary.weight.dim() + 1]
                                    if "Conv" in name else 4))  # fmt: skip
    x = lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32)
    lucid.manual_seed(1)
    layer(x)
    assert type(layer) is type(ordinary)
    assert repr(layer) == repr(ordinary)
    assert not layer._forward_pre_hooks
    forms = [
        [(key, v.shape, v.dtype, type(v)) for key, v in m.state_dict(keep_vars=True).items()] for m in (layer, ordinary)
    ]
    assert forms[0] == forms[1]
    assert all(a is b for a, b in zip(kept, layer.parameters(), strict=True))
    for one, other in zip(layer.parameters(), ordinary.parameters(), strict=True):
        assert one.requires_grad
        np.testing.assert_array_equal(numbers(one), numbers(other))
    ordinary.load_state_dict(layer.state_dict())
    for module in (layer, ordinary):
        module.zero_grad()
    outs = [module(x) for module in (layer, ordinary)]
    np.testing.assert_array_equal(numbers(outs[0]), numbers(outs[1]))
    if kept:
        outs[0].sum().backward()
        assert all(p.grad.shape == p.shape for p in layer.parameters())


def test_state_dicts_of_both_kinds(rng):
    """Lazy into lazy stays lazy, ordinary into lazy gives the shapes, lazy into ordinary is refused; both roundtrip."""
    make = lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    lazy, other, ordinary = make(), make(), make()
    assert lazy.load_state_dict(other.state_dict()).missing_keys == []
    assert type(lazy[0].weight) is nn.UninitializedParameter
    x = lucid.tensor(rng.standard_normal((4, 5)), dtype=lucid.float32)
    ordinary(x)
    lazy.load_state_dict(ordinary.state_dict())
    assert type(lazy[0]) is nn.LazyLinear
    assert lazy[0].weight.shape == (3, 5)
    np.testing.assert_array_equal(numbers(lazy.eval()(x)), numbers(ordinary.eval()(x)))
    assert repr(lazy) == repr(ordinary)
    with pytest.raises(SettingError, match="has no shape and no elements"):
        ordinary.load_state_dict(other.state_dict())
    for name, (lazily, make_ordinary, shape) in KINDS.items():
        loaded, source = lazily(), make_ordinary()
        loaded.load_state_dict(source.state_dict())
        loaded(lucid.ones(shape))
        assert repr(loaded) == repr(source), name
    # all or nothing
    state = ordinary.state_dict()
    state["1.weight"] = 1
    with pytest.raises(StateDictError, match="expected a Tensor"):
        other.load_state_dict(state)
    assert type(other[0].weight) is nn.UninitializedParameter
    assert type(other[1].running_mean) is nn.UninitializedBuffer
    with pytest.raises(SettingError, match="not been fully initialized"):
        other[0].load_state_dict({"weight": lucid.ones(3, 5)}, strict=False)
        other[0](x)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer)), copy.copy])
def test_copies_and_conversions(way):
    """A copy finds out its own shapes; dtypes that the module is converted to before are kept, also in a pickle."""
    layer = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).double()
    layer[0].bias.requires_grad_(False)
    made = way(layer)
    made(lucid.ones(2, 4, dtype=lucid.float64))
    assert (made[0].weight.shape, made[0].weight.dtype) == ((3, 4), lucid.float64)
    assert (made[0].weight.requires_grad, made[0].bias.requires_grad) == (True, False)
    assert made[1].running_mean.dtype is lucid.float64
    if way is not copy.copy:
        assert type(layer[0].weight) is nn.UninitializedParameter
        layer(lucid.ones(2, 7, dtype=lucid.float64))
        assert layer[0].weight.shape == (3, 7)


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w.shape,
        lambda w: w.numel(),
        lambda w: w + 1,
        lambda w: w.sum(),
        lambda w: w.data,
        lambda w: lucid.zeros_like(w),
        lambda w: nn.init.zeros_(w),
        lambda w: w.add_(1),
        lambda w: lucid.nn.functional.linear(lucid.ones(2), w),
        lambda w: nn.utils.parameters_to_vector([w]),
        lambda w: w.tolist(),
    ],
)
def test_use_before_the_first_call_is_refused(use):
    """Sizes, elements, ops, changes and saves: each says that the module has to be called first."""
    for tensor in (nn.UninitializedParameter(), nn.UninitializedBuffer()):
        with pytest.raises(SettingError, match=f"{type(tensor).__name__} has no shape and no elements: call it with"):
            use(tensor)
        assert repr(tensor) == f"<{type(tensor).__name__}>"


def test_what_has_no_elements():
    """It has dtype, device and whether it requires grad, and becomes a leaf of the shape that it is given."""
    device = lucid.get_default_device()
    weight = nn.UninitializedParameter(requires_grad=False, dtype=lucid.float64)
    assert (weight.dtype, str(weight.device), weight.requires_grad) == (lucid.float64, str(lucid.ones(1).device), False)
    assert nn.parameter.is_lazy(weight)
    weight.requires_grad_()
    weight.materialize((2, 3))
    assert (type(weight), weight.shape, weight.requires_grad, weight.is_leaf) == (nn.Parameter, (2, 3), True, True)
    (weight * 2).sum().backward()
    assert weight.grad.shape == (2, 3)
    buffer = nn.UninitializedBuffer()
    buffer.materialize(4, dtype=lucid.int64)
    assert (type(buffer), buffer.shape, buffer.dtype) == (lucid.Tensor, (4,), lucid.int64)
    assert lucid.get_default_device() == device


def test_an_optimizer_keeps_the_parameters():
    """They stay the same objects, so that one that was made before the first call trains them."""
    layer = nn.LazyLinear(2)
    optimizer = lucid.optim.Adam(layer.parameters(), lr=0.1)
    layer(lucid.ones(1, 3)).sum().backward()
    before = numbers(layer.weight).copy()
    optimizer.step()
    np.testing.assert_allclose(before - numbers(layer.weight), 0.1, rtol=1e-4)


def test_mistakes():
    """Inputs of other dimensions and channels are refused before anything is made; what is forgotten is said."""
    for layer, shape in ((nn.LazyConv1d(2, 1), (3,)), (nn.LazyBatchNorm1d(), (3,)), (nn.LazyInstanceNorm2d(), (2, 3))):
        with pytest.raises(ShapeError, match="D input, got"):
            layer(lucid.ones(shape))
        assert layer.has_uninitialized_params()
    with pytest.raises(SettingError, match="in_channels must be divisible by groups: got 3 and 2"):
        nn.LazyConv1d(2, 1, groups=2)(lucid.ones(1, 3, 4))
    with pytest.raises(SettingError, match="out_channels must be divisible by groups: got 3 and 2"):
        nn.LazyConv1d(3, 1, groups=2)

    class Forgetful(nn.modules.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(SettingError, match="Forgetful has not been fully initialized"):
        Forgetful()(1)
    with pytest.raises(NotImplementedError, match="initialize_parameters"):
        nn.modules.lazy.LazyModuleMixin()(1)


@pytest.mark.parametrize("name", [name for name in KINDS if name.isalnum()])
def test_a_dtype_is_kept_until_there_are_elements(name, rng):
    """What is given as `dtype` holds for each parameter and buffer of real numbers, before the first call and after."""
    sizes = (3,) if name == "Linear" else () if "Norm" in name else (2, 1)
    layer = getattr(nn, f"Lazy{name}")(*sizes, dtype=lucid.float64)
    x = lucid.tensor(rng.standard_normal(KINDS[name][2]))
    for _ in range(2):
        tensors = [*layer.parameters(), *layer.buffers()]
        assert {tensor.dtype for tensor in tensors} <= {lucid.float64, lucid.int64}
        assert len(tensors) == (5 if "Norm" in name else 2)
        assert layer(x).dtype is lucid.float64
