"""`capture` and `edit` of the gradients of outputs: those of one call, and as they were when they came."""

from __future__ import annotations

import pytest

import lucid
from lucid import hooks, nn
from tests.device import DEVICE


def made(rng, *, leaf=False):
    """Return a tensor on the graph, with the leaf that it is made of."""
    x = lucid.tensor(rng.standard_normal(2), device=DEVICE, requires_grad=True)
    return (x, x) if leaf else (x, x * 1.0)


class Hands(nn.Module):
    """Returns what it keeps, or the first tensor in what it is given, alone or with a product."""

    def __init__(self, kept=None, several=False):
        super().__init__()
        self.kept, self.several = kept, several

    def forward(self, x=None):
        given = x if self.kept is None else self.kept
        given = given[0] if isinstance(given, list) else given
        return (given, given * 4) if self.several else given


def calls(z):
    """Yield modules that return a tensor that they have not made, with a call of each."""
    yield nn.Dropout(0.5).eval(), lambda m: m(z)
    yield Hands(), lambda m: m(x=z)
    yield Hands(), lambda m: m([z])
    yield Hands(z), lambda m: m()


@pytest.mark.parametrize("leaf", [False, True], ids=["made before", "leaf"])
def test_an_output_that_the_call_has_not_made(leaf, rng):
    """What else is done with that tensor is neither captured nor edited, nor what a second call returns of it."""
    for number in range(4):
        x, z = made(rng, leaf=leaf)
        module, call = [*calls(z)][number]
        model = nn.Sequential(module)
        with hooks.capture(model, "0", what=("output", "grad")) as kept:
            (call(module) * 2 + call(module) * 3 + z * 5).sum().backward()
        assert [kept["0", "grad", k].tolist() for k in range(2)] == [[2.0] * 2, [3.0] * 2], number
        assert kept["0", "output", 0].tolist() == z.tolist()
        x.grad = None
        x, z = made(rng, leaf=leaf)
        module, call = [*calls(z)][number]
        with hooks.edit(nn.Sequential(module), grads={"0": lambda grad: grad * 10}):
            (call(module) * 2 + z * 5).sum().backward()
        assert x.grad.tolist() == [25.0] * 2, number
        with lucid.no_grad(), hooks.edit(nn.Sequential(module), grads={"0": print}):
            assert call(module) is z


def test_one_of_several_outputs(rng):
    """In a tuple that a module returns, each tensor counts for itself."""
    x, z = made(rng)
    model = Hands(several=True)
    with hooks.capture(model, "", what="grad") as kept:
        same, product = model(z)
        (same * 2 + product * 3 + z * 5).sum().backward()
    assert [grad.tolist() for grad in kept[""]] == [[2.0] * 2, [3.0] * 2]
    assert x.grad.tolist() == [19.0] * 2


def test_an_output_that_the_call_has_made_is_itself(rng):
    """No view takes its place, in modules inside of each other, either."""
    outputs = []
    model = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Sigmoid())
    for module in model.modules():
        module.register_forward_hook(lambda m, args, output: outputs.append(output))
    _, z = made(rng)
    with hooks.capture(model, what="grad"), hooks.edit(model, grads={"**": lambda grad: grad}):
        y = model(z)
    first, outer, last, whole = outputs
    assert first is outer
    assert last is whole is y
    assert y.grad_fn.next_functions[0][0] is first.grad_fn


@pytest.mark.parametrize("folder", [False, True], ids=["memory", "folder"])
@pytest.mark.parametrize("dtype", [None, lucid.float32], ids=["as it is", "cast"])
def test_gradients_that_later_hooks_change(folder, dtype, rng, tmp_path):
    """Those of several outputs stay as they came, as that of one does, also where they are kept in files."""
    for several in (False, True):
        _, z = made(rng)
        model = Hands(several=several)
        where = tmp_path / str(several) if folder else None
        with hooks.capture(model, "", what="grad", dtype=dtype, folder=where) as kept:
            output = model(z)
            parts = output if several else (output,)
            for part in parts:
                part.register_hook(lambda grad: (grad.mul_(10.0), None)[1])
            sum(part.sum() for part in parts).backward()
        grads = kept[""] if several else (kept[""],)
        assert [grad.tolist() for grad in grads] == [[1.0] * 2] * len(parts)
        assert {grad.dtype for grad in grads} == {dtype or z.dtype}
