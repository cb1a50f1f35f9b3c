"""Muon: its formula in NumPy, its state, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import CaptureError

USUAL = (3.4445, -4.775, 2.0315)


def muon(
    p, grads, *, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=USUAL, eps=1e-7, ns_steps=5,
    adjust_lr_fn=None,
):  # fmt: skip
    """Return the parameter after the steps, all of it in the parameter's dtype."""
    a, b, c = ns_coefficients
    m = np.zeros_like(p)
    rows, columns = p.shape
    size = 0.2 * max(rows, columns) ** 0.5 if adjust_lr_fn == "match_rms_adamw" else max(1, rows / columns) ** 0.5
    for g in grads:
        m = momentum * m + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * m if nesterov else m
        x = x / max(np.linalg.norm(x), eps)
        for _ in range(ns_steps):
            square = x @ x.T
            x = a * x + (b * square + c * square @ square) @ x
        p = (1 - lr * weight_decay) * p - lr * size * x
    return p


SETTINGS = {
    "usual": {},
    "plain momentum": {"momentum": 0.5, "nesterov": False, "weight_decay": 0.0},
    "as AdamW": {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 1.5},
    "another polynomial": {"ns_coefficients": (1.5, -0.5, 0.125), "ns_steps": 3},
    "short gradients": {"eps": 1e3, "ns_steps": 1, "adjust_lr_fn": "original"},
    "no iteration": {"ns_steps": 0, "momentum": 0.3},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("shape", [(3, 4), (7, 2), (5, 1)], ids=str)
def test_formula(settings, shape, rng):
    """Steps are those of the docstring, as exactly as bfloat16 holds what each of them changes."""
    start = rng.standard_normal(shape)
    # of gradients that take turns the steps cancel, to less than what rounds each of them
    grads = rng.choice([-1, 1], shape) * rng.uniform(0.5, 2, shape) + 0.2 * rng.standard_normal((5, *shape))
    x = lucid.tensor(start, requires_grad=True)
    optimizer = optim.Muon([x], lr=0.1, **settings)
    for grad in grads:
        x.grad = lucid.tensor(grad)
        optimizer.step()
    expected = muon(start, grads, lr=0.1, **settings)
    decayed = (1 - 0.1 * settings.get("weight_decay", 0.1)) ** 5 * start
    # the polynomial enlarges roundings of small singular values by its slope there, again and again
    moved = np.abs(expected - decayed).max()
    assert np.abs(x.numpy(force=True) - expected).max() <= 0.06 * moved


def test_singular_values_are_about_one(rng):
    """A step changes a matrix by one whose singular values lie around 1, whatever those of the gradient are."""
    x = lucid.tensor(np.zeros((8, 5)), requires_grad=True)
    x.grad = lucid.tensor(rng.standard_normal((8, 5)) * 1e3)
    optim.Muon([x], lr=1.0, adjust_lr_fn="original").step()
    values = np.linalg.svd(x.numpy(force=True), compute_uv=False) / (8 / 5) ** 0.5
    assert values.min() > 0.4
    assert values.max() < 1.4


def test_state_goes_on_after_a_load(rng):
    """A loaded optimizer takes the steps that the saved one would have taken; a state of another shape is refused."""
    start, grads, results = rng.standard_normal((3, 4)), rng.standard_normal((4, 3, 4)), []
    for reload in (False, True):
        x = lucid.tensor(start, requires_grad=True)
        optimizer = optim.Muon([x], lr=0.1)
        for step, grad in enumerate(grads):
            if reload and step == 2:
                saved = optimizer.state_dict()
                optimizer = optim.Muon([x], lr=1.0)
                optimizer.load_state_dict(saved)
            x.grad = lucid.tensor(grad)
            optimizer.step()
        results.append(x.tolist())
    assert results[0] == results[1]
    other = optim.Muon([lucid.ones(2, 2, requires_grad=True)])
    with pytest.raises(ValueError, match="momentum_buffer of shape"):
        other.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_dtypes_and_empty_matrices(kind, rng):
    """Parameters keep their dtype, and one without elements is no error."""
    x, empty = (lucid.tensor(rng.standard_normal(s), dtype=getattr(lucid, kind)) for s in ((3, 2), (0, 2)))
    before = x.tolist()
    for each in (x, empty):
        each.requires_grad_().grad = lucid.ones_like(each)
    optim.Muon([x, empty], lr=0.5).step()
    assert x.dtype is getattr(lucid, kind)
    assert x.tolist() != before


BAD = {
    "lr": (-1.0, "learning rate"),
    "weight_decay": (-0.1, "weight_decay"),
    "momentum": (-0.1, "momentum"),
    "eps": (-1.0, "epsilon"),
    "ns_steps": (100, "at most 99"),
    "ns_steps ": (-1, "whole number"),
    "ns_coefficients": ((1.0, 2.0), "expected three finite numbers"),
    "adjust_lr_fn": ("other", "'original', 'match_rms_adamw'"),
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_settings(setting):
    """What is out of its range is refused by constructor and group, and so is what is no real matrix."""
    value, text = BAD[setting]
    x = lucid.ones(2, 2, requires_grad=True)
    with pytest.raises(ValueError, match=text):
        optim.Muon([x], **{setting.strip(): value})
    with pytest.raises(ValueError, match=text):
        optim.Muon([{"params": [x], setting.strip(): value}])
    with pytest.raises(ValueError, match="2D"):
        optim.Muon([x, lucid.ones(2, requires_grad=True)])
    with pytest.raises(RuntimeError, match="complex"):
        optim.Muon([lucid.ones(2, 2, dtype=lucid.complex64, requires_grad=True)])


@pytest.mark.gpu
def test_other_settings_are_an_error_of_the_replay(rng):
    """Replays follow learning rate and decay; what else a graph was captured with has to stay."""
    x = lucid.tensor(rng.standard_normal((3, 2)), dtype=lucid.float32, device="cuda").requires_grad_()
    x.grad = lucid.ones(3, 2, device="cuda")
    optimizer = optim.Muon([x])
    step = lucid.cuda.graphed_step(optimizer.step, warmup=1)
    for _ in range(3):
        step()
    (group,) = optimizer.param_groups
    for name, value in (("momentum", 0.5), ("adjust_lr_fn", "match_rms_adamw"), ("ns_steps", 4)):
        before, group[name] = group[name], value
        values = x.tolist()
        with pytest.raises(CaptureError, match=f"'{name}': {value!r}.*capture anew"):
            step()
        assert x.tolist() == values
        group[name] = before
    step()
    assert x.tolist() != values
