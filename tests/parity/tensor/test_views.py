"""Views taken in one mode and changed in another give PyTorch's values, gradients and refusals."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
import torch

import lucid
from tests.parity.pieces import as_in_pytorch
from tests.pieces import function_of

MODES = {
    "normal": lambda lib: contextlib.nullcontext(),
    "no_grad": lambda lib: lib.no_grad(),
    "inference": lambda lib: lib.inference_mode(),
}
BASES = ("plain", "leaf", "result")
TARGETS = ("view", "base", "sibling")


def functions(lib):
    """Return Functions that return their input as it is, a view of it, and two views."""
    Same = function_of(lambda ctx, x: x, lambda ctx, grad: grad * 5, lib)

    Inside = function_of(lambda ctx, x: x.view(2, 2), lambda ctx, grad: grad.view(4) * 5, lib)

    Halves = function_of(lambda ctx, x: (x[:2], x[2:]), lambda ctx, first, second: lib.cat([first, second]) * 5, lib)

    return Same, Inside, Halves


FUNCTIONS = {lib: functions(lib) for lib in (torch, lucid)}
TAKES = {
    "view": lambda lib, t: t.view(2, -1),
    "slice": lambda lib, t: t[1:],
    "alias": lambda lib, t: t[:],
    "expand": lambda lib, t: t.expand(1, *t.shape),
    "unbind": lambda lib, t: t.unbind()[1],
    "chunk": lambda lib, t: t.chunk(2)[0],
    "detach": lambda lib, t: t.detach(),
    "input of a Function": lambda lib, t: FUNCTIONS[lib][0].apply(t),
    "made in a Function": lambda lib, t: FUNCTIONS[lib][1].apply(t),
    "one of two of a Function": lambda lib, t: FUNCTIONS[lib][2].apply(t)[0],
}


def attempt(act):
    """Return what `act` gives, or that it is refused."""
    try:
        return act()
    except RuntimeError:
        return "refused"


def run(lib, base_kind, takes, changed, change_mode, operand):
    """Return what a program gives that takes views, changes one tensor in place, and uses base and view.

    `takes` are pairs of a way to take a view and the mode in which it is taken.
    """
    values = np.array([1.0, 2.0, 3.0, 4.0])
    x = lib.tensor(values, requires_grad=base_kind != "plain")
    w = lib.tensor(2.0, dtype=lib.float64, requires_grad=True)
    base = x * 1.0 if base_kind == "result" else x
    view = base
    for take, mode in takes:
        with MODES[mode](lib):
            view = TAKES[take](lib, view)
    target = {"view": view, "base": base, "sibling": base[2:]}[changed]
    with MODES[change_mode](lib):
        change = attempt(lambda: bool(target.mul_(w if operand == "tensor" else 2.0) is target))

    def gradients(tensor):
        loss = (tensor * 3.0 * lib.tensor(np.arange(tensor.numel()) + 1.0).view(tensor.shape)).sum()
        if not loss.requires_grad:
            return "none"
        inputs = [x, w] if x.requires_grad else [w]
        grads = lib.autograd.grad(loss, inputs, allow_unused=True, retain_graph=True)
        return [None if g is None else g.tolist() for g in grads]

    return {
        "change": change,
        "versions": (base._version, view._version),
        "values": (base.tolist(), view.tolist()),
        "base requires grad": base.requires_grad,
        "gradients of the base": attempt(lambda: gradients(base)),
        "view requires grad": view.requires_grad,
        "gradients of the view": attempt(lambda: gradients(view)),
    }


def differs(torchs, lucids, takes):
    """Return the parts in which the results differ other than as docs/users/hooks.md says."""
    parts = {part for part in torchs if torchs[part] != lucids[part]}
    if any(mode != "normal" for _, mode in takes):
        # a view of a tensor on the graph that was taken without recording is in no graph, before and after changes
        assert lucids["view requires grad"] or lucids["gradients of the view"] == "none"
        parts -= {"view requires grad", "gradients of the view"}
    if any(take in {"unbind", "chunk"} for take, _ in takes) and torchs["gradients of the view"] == "refused":
        # one of several views has the gradient of a slice after a change of its base
        parts -= {"gradients of the view"}
    return parts


@pytest.mark.parametrize("take", TAKES)
def test_every_combination(take):
    """View of every kind, taken in every mode, and changed in every mode itself, or its base, or another view."""
    programs = itertools.product(BASES, MODES, TARGETS, MODES, ("number", "tensor"))
    for base, mode, changed, change_mode, operand in programs:
        program = base, [(take, mode)], changed, change_mode, operand
        torchs, lucids = run(torch, *program), run(lucid, *program)
        assert not differs(torchs, lucids, program[1]), (program, torchs, lucids)


@pytest.mark.parametrize("inner", ["slice", "chunk", "made in a Function"])
@pytest.mark.parametrize("outer", ["alias", "detach", "input of a Function"])
def test_views_of_views(outer, inner):
    """The same for a view of a view, each taken in a mode of its own."""
    programs = itertools.product(BASES, MODES, MODES, ("view", "base"), MODES, ("number", "tensor"))
    for base, first, second, changed, change_mode, operand in programs:
        program = base, [(outer, first), (inner, second)], changed, change_mode, operand
        torchs, lucids = run(torch, *program), run(lucid, *program)
        assert not differs(torchs, lucids, program[1]), (program, torchs, lucids)


both = pytest.mark.parametrize("lib", [torch, lucid], ids=["torch", "lucid"])


@both
def test_views_of_inference_tensors(lib):
    """A view of an inference tensor that requires grad is one too, requires none, and has no base."""
    with lib.inference_mode():
        x = lib.ones(2, 2, requires_grad=True)
    for take in (lambda: x.view(4), lambda: x[0], lambda: x.t(), lambda: x.unbind()[0], lambda: x.chunk(2)[1]):
        view = take()
        assert x.requires_grad
        assert view.is_inference()
        assert (view.requires_grad, view.is_leaf, view.grad_fn, view._base) == (False, True, None, None)
        assert not (view * 1.0).is_inference()


@both
def test_a_change_in_inference_mode_leaves_a_view_in_the_graph(lib):
    """A view that is looked at in inference mode after its base was changed there keeps its place in the graph."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    view = y[1:]
    with lib.inference_mode():
        y.mul_(2.0)
        assert view.requires_grad
        assert view.grad_fn is not None
    assert view.requires_grad
    view.backward()
    assert x.grad.tolist() == [0.0, 1.0]


@both
def test_a_view_that_was_made_a_leaf(lib):
    """A leaf that is a view cannot be changed in place while that is recorded, nor can its views."""
    x = lib.zeros(2, 3)[0].requires_grad_()
    for target in (x, x[1:]):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            target.mul_(2.0)
    with lib.no_grad():
        x.add_(1.0)
    assert (x.is_leaf, x.requires_grad, x.tolist()) == (True, True, [1.0, 1.0, 1.0])


@both
def test_a_view_cannot_be_detached_in_place(lib):
    """Views refuse detach_, whether or not they are in a graph; what is no view leaves its graph."""
    x = lib.ones(2, requires_grad=True)
    for view in ((x * 1.0)[:1], (x * 1.0).unbind()[0], lib.ones(2)[:1]):
        with pytest.raises(RuntimeError, match=r"in.place.*detach"):
            view.detach_()
    y = x * 1.0
    assert y.detach_() is y
    assert y.is_leaf


# In-place changes of the shape of a view of the last two rows of a (3, 4) tensor.
SHAPES = {
    "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(-1, 0),
    "swapaxes_": lambda t: t.swapaxes_(0, 1),
    "unsqueeze_": lambda t: t.unsqueeze_(1),
    "squeeze_": lambda t: t.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda t: t.as_strided_((3, 2), (1, 4), 5),
    "as_strided_ with overlap": lambda t: t.as_strided_((4, 3), (1, 2)),
}


@pytest.mark.parametrize("steps", [("shape",), ("shape", "view"), ("base", "shape"), ("shape", "base", "view")])
@pytest.mark.parametrize("name", SHAPES)
@as_in_pytorch
def test_shapes_in_place(lib, events, name, steps):
    """A view whose shape is changed in place stays a view of its base; values are changed before and after that."""
    x = lib.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    w = lib.tensor(1.5, dtype=lib.float64, requires_grad=True)
    base = x * 2.0
    view = base[1:]
    for step in steps:
        if step == "shape":
            SHAPES[name](view)
        elif not ("overlap" in name and step == "view"):
            {"view": view, "base": base}[step].mul_(w)
    weights = lib.tensor(np.arange(float(view.numel())).reshape(view.shape))
    grads = lib.autograd.grad((view * weights).sum() + base.sum() * 0.5, [x, w], allow_unused=True)
    strides = [step for step, size in zip(view.stride(), view.shape, strict=True) if size != 1]
    events += [tuple(view.shape), strides, view.storage_offset(), view.tolist(), base.tolist()]
    events += [(view._version, base._version), [None if g is None else g.tolist() for g in grads]]
