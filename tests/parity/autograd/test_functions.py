"""Functions on lucid and on PyTorch: what they return, where it stands in the graph, and what flows back."""

from __future__ import annotations

import warnings

import pytest
import torch

import lucid
from tests.pieces import function_of


def twice(y):
    """Return one tensor in two places."""
    return y, y


def with_part(y):
    """Return a tensor and a view of it."""
    return y, y[:1]


def with_product(y):
    """Return a tensor and another made of it."""
    return y, y * 3


# What forward makes of its input.
BODIES = {
    "the input": lambda x: x,
    "the input twice": twice,
    "the input and another": with_product,
    "a view of the input": lambda x: x[:1],
    "two views": lambda x: (x[:1], x[1:]),
    "its chunks": lambda x: tuple(x.chunk(2)),
    "detached": lambda x: x.detach(),
    "one output twice": lambda x: twice(x * 2),
    "a view of an output": lambda x: with_part(x * 2),
    "a view made inside": lambda x: (x * 2)[:1],
    "an integer tensor": lambda x: x.argmax(),
    "a bool tensor": lambda x: (x * 2, x > 1),
    "another dtype": lambda x: x.to(x.dtype).float(),
    "no tensor": lambda x: (x * 2, 3, None, "text"),
    "nested": lambda x: (x * 2, ((1, "two"), [x * 3])),
    "a tuple of one": lambda x: (x * 2,),
    "a list": lambda x: [x * 2],
    "nothing": lambda x: (),
    "changed": lambda x: x.mul_(2),
    "changed, twice": lambda x: twice(x.mul_(2)),
    "changed, and another": lambda x: with_product(x.mul_(2)),
}
RETURNED = {
    "the input",
    "the input twice",
    "the input and another",
    "changed",
    "changed, twice",
    "changed, and another",
}
# in no_grad mode PyTorch lets these claim to require grad, and to be leaves
VIEWS = {"a view of the input", "two views", "its chunks"}
MARKS = ("", "dirty", "non-differentiable", "dirty, non-differentiable")
CASES = [
    (name, mark, mode)
    for name in BODIES
    for mark in (MARKS if name in RETURNED else MARKS[:1])
    for mode in (("grad",) if name in VIEWS else ("grad", "no_grad", "inference_mode"))
]
ACTS = ("", "multiply", "multiply unseen", "multiply the input", "multiply a slice")


def outcome(function):
    """Return what a function returns, or that it raises."""
    try:
        return function()
    except RuntimeError:
        return "RuntimeError"


def place_of(lib, tensor):
    """Return where a tensor stands in the graph, and what it holds."""
    if not isinstance(tensor, lib.Tensor):
        return type(tensor).__name__
    version = outcome(lambda: tensor._version)
    values = [tensor.requires_grad, version, tensor._base is not None, str(tensor.dtype).rpartition(".")[2]]
    try:
        node = tensor.grad_fn
    except RuntimeError:
        values.append("lost")
    else:
        values.append(node and node.name().rpartition(":")[2])
    return [*values, tensor.detach().double().tolist()]


def story(lib, body, mark, act, *, mode, needs, middle):
    """Return all that can be seen of one Function, from forward to the second derivative."""
    seen = []

    def forward(ctx, x):
        out = body(x)
        if "dirty" in mark:
            ctx.mark_dirty(x)
        if "non-differentiable" in mark:
            ctx.mark_non_differentiable(x)
        outs = out if isinstance(out, tuple) else (out,)
        ctx.save_for_backward(x, *(o if isinstance(o, lib.Tensor) else None for o in outs))
        seen.append(ctx.needs_input_grad)
        return out

    def backward(ctx, *grads):
        saved = ctx.saved_tensors
        seen.append([g if g is None else g.tolist() for g in grads])
        seen.extend(s is not None and (s.requires_grad, s.tolist()) for s in saved)
        total = sum((g.sum() * (k + 2) for k, g in enumerate(grads) if g is not None), saved[0].sum() * 0)
        return total * saved[0]

    Given = function_of(forward, backward, library=lib, name="Given")

    x = lib.tensor([0.5, 1.5, -2.0, 1.0], dtype=lib.float64, requires_grad=needs)
    y = x * 1 if middle else x
    with lib.enable_grad() if mode == "grad" else getattr(lib, mode)():
        out = outcome(lambda: Given.apply(y))
    if isinstance(out, str):
        return [*seen, out, place_of(lib, y)]
    outs = out if isinstance(out, tuple) else (out,)
    tensors = [o for o in outs if isinstance(o, lib.Tensor)]

    def change():
        if act == "multiply":
            tensors[0].mul_(3)
        elif act == "multiply unseen":
            with lib.no_grad():
                tensors[-1].mul_(3)
        elif act == "multiply the input":
            y.mul_(3)
        elif act == "multiply a slice":
            tensors[0].view(-1)[:1].mul_(3)

    if act and tensors:
        seen.append(outcome(lambda: change() or "done"))
    seen.append([type(out).__name__, [o is y for o in outs], [place_of(lib, o) for o in (*outs, y)]])
    roots = [t for t in (*tensors, y) if t.requires_grad]
    if not needs or not roots:
        return seen

    def differentiate():
        root = sum(r.sum().double() * (k + 1) for k, r in enumerate(roots))
        (first,) = lib.autograd.grad(root, x, create_graph=True)
        second = lib.autograd.grad(first.sum(), x, allow_unused=True)[0] if first.requires_grad else None
        return first.tolist(), second if second is None else second.tolist()

    return [*seen, outcome(differentiate)]


@pytest.mark.parametrize(("name", "mark", "mode"), CASES)
@pytest.mark.contract("3.5")
def test_what_a_function_returns(name, mark, mode):
    """Outputs that are inputs, views, given twice, marked or no tensors, in each mode, of leaves and others."""
    for needs, middle in ((True, True), (True, False), (False, True)):
        # what is changed outside of inference mode is another story: PyTorch changes it and then refuses
        for act in ACTS if mode != "inference_mode" else ACTS[:1]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stories = [
                    story(lib, BODIES[name], mark, act, mode=mode, needs=needs, middle=middle) for lib in (torch, lucid)
                ]
            assert stories[0] == stories[1], (needs, middle, act)
