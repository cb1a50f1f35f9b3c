"""In-place ops on tensors, views and bases give PyTorch's values, gradients and errors."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lucid

SHAPE = (4, 3)

# Each view is of a (4, 3) tensor and has its own shape; each works in both libraries as written.
VIEWS = {
    "row": lambda t: t[1],
    "rows": lambda t: t[1:3],
    "every other row": lambda t: t[::2],
    "column": lambda t: t[:, 2],
    "element": lambda t: t[3, 0],
    "block": lambda t: t[1:, :2],
    "transposed": lambda t: t.t(),
    "in a row": lambda t: t.view(12),
    "other shape": lambda t: t.view(2, 6),
    "part of a row": lambda t: t.view(12)[3:9],
    "view of a view of a view": lambda t: t.t()[1:].t()[0],
    "diagonal": lambda t: t.diagonal(),
    "new dimension": lambda t: t.unsqueeze(1),
    "narrow": lambda t: t.narrow(0, 1, 2),
    "select": lambda t: t.select(1, 1),
}

# In-place ops of a target and an operand that broadcasts to it.
CHANGES = {
    "add_": lambda t, o: t.add_(o),
    "sub_": lambda t, o: t.sub_(o, alpha=2),
    "mul_": lambda t, o: t.mul_(o),
    "div_": lambda t, o: t.div_(o + 4.0),
    "copy_": lambda t, o: t.copy_(o),
    "fill_": lambda t, o: t.fill_(0.75),
    "zero_": lambda t, o: t.zero_(),
    "neg_": lambda t, o: t.neg_(),
    "exp_": lambda t, o: t.mul_(0.1).exp_(),
    "tanh_": lambda t, o: t.tanh_(),
    "sigmoid_": lambda t, o: t.sigmoid_(),
    "relu_": lambda t, o: t.relu_(),
    "square": lambda t, o: t.pow_(2).mul_(0.1),
    "clamp_": lambda t, o: t.clamp_(-0.5, 0.9),
    "masked_fill_": lambda t, o: t.masked_fill_(t.detach() > 0.2, 0.3),
    "addcmul_": lambda t, o: t.addcmul_(o, o, value=0.5),
    "lerp_": lambda t, o: t.lerp_(o.expand(t.shape), 0.25),
    "assign": lambda t, o: assign(t, o),
    "floor_": lambda t, o: t.floor_(),
    "+=": lambda t, o: t.__iadd__(o),
    "*=": lambda t, o: t.__imul__(o),
}


def assign(target, operand):
    """Write into all of a tensor by an index."""
    target[...] = operand
    return target


# A step changes a view, reads the base, or puts a tensor that requires grad into a view.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["change", "change", "change", "read", "keep view", "change kept", "index"]),
        st.sampled_from(sorted(VIEWS)),
        st.sampled_from(sorted(CHANGES)),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


def run(library, arrays, steps, *, base_is_leaf):
    """Return what a program of in-place steps gives: values, gradients, versions; or the kind of its error.

    The operands are a scalar that requires grad and one that does not.
    """
    x, w, c, upstream = (library.tensor(a) for a in arrays)
    x.requires_grad_(not base_is_leaf)
    w.requires_grad_()
    base = x if base_is_leaf else x * 1.5
    kept = []
    total = library.tensor(np.float64(0.0))
    for kind, view, change, with_grad in steps:
        operand = w if with_grad else c
        if kind == "change":
            CHANGES[change](VIEWS[view](base), operand)
        elif kind == "keep view":
            kept.append(VIEWS[view](base))
        elif kind == "change kept" and kept:
            CHANGES[change](kept[-1], operand)
        elif kind == "index":
            base[[2, 0]] = operand * 2
        elif kind == "read":
            total = total + (VIEWS[view](base) * 1.25).sum()
    result = (base * upstream).sum() + total
    for view in kept:
        result = result + view.sum() * 0.5
    versions = base._version > 0
    if result.requires_grad:
        result.backward()
    grads = [None if t.grad is None else t.grad.numpy(force=True) for t in ((w,) if base_is_leaf else (x, w))]
    values = [base.numpy(force=True), *(view.numpy(force=True) for view in kept)]
    return values, grads, versions


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, base_is_leaf=st.booleans(), seed=st.integers(0, 2**16))
def test_programs(steps, base_is_leaf, seed):
    """Any sequence of in-place ops on a base and views of it gives PyTorch's values and gradients."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(SHAPE), np.array(rng.uniform(0.5, 1.5)), np.array(0.8), rng.standard_normal(SHAPE)]
    try:
        values, grads, changed = run(torch, arrays, steps, base_is_leaf=base_is_leaf)
    except RuntimeError as error:
        if "inplace" in str(error) or "in-place" in str(error):
            # lucid keeps apart what PyTorch then misses, so it may have an answer where PyTorch refuses
            return
        raise
    ours, our_grads, our_changed = run(lucid, arrays, steps, base_is_leaf=base_is_leaf)
    for a, b in zip(ours, values, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(our_grads, grads, strict=True):
        if b is None or a is None:
            assert a is None or not np.any(a)
            assert b is None or not np.any(b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert our_changed == changed
