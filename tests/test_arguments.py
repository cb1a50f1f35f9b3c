"""How an argument that does not fit is named, and which errors are left as they are."""

from __future__ import annotations

import contextlib
import weakref

import numpy as np
import pytest

import lucid
from lucid import Tensor, nn
from lucid.arguments import checked
from lucid.errors import ArgumentError
from lucid.utils.checkpoint import checkpoint_sequential

ones = lucid.ones


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lucid.concatenate([ones(1), "a"]), r"cat: tensors\[1\]: expected"),
        (lambda: lucid.concat([ones(1), "a"]), r"concat: tensors\[1\]: expected"),
        (lambda: lucid.swapaxes(ones(2, 2), 0, 1.5), "swapaxes: axis1: expected"),
        (lambda: ones(2).addcmul_(ones(2), "a"), "addcmul: tensor2: expected"),
        (lambda: ones(4).reshape(2, 2.0), r"reshape: shape\[1\]: expected"),
        (lambda: nn.Linear(2, 2)("a"), "Linear.forward: input: expected"),
        (lambda: nn.Sequential(nn.ReLU(), nn.Tanh())(None), "Sequential.forward: input: expected"),
        (lambda: lucid.zeros(2, dtype="f"), "zeros: dtype: expected"),
        (lambda: nn.LayerNorm(2, eps="a"), "LayerNorm: eps: expected"),
        (lambda: nn.Dropout(p="a"), "Dropout: p: expected"),
        (lambda: nn.Conv2d(2, 2, 3, bias="no"), "Conv2d: bias: expected"),
        (lambda: nn.LayerNorm(2, eps=np.complex64(1)), "LayerNorm: eps: expected"),
        (lambda: nn.ModuleDict([1, 2]), "ModuleDict: modules.*: expected a pair of a name and a value"),
        (lambda: nn.ParameterDict([("a", 1, 2)]), "ParameterDict: parameters.*: expected a pair of a name and a value"),
        (lambda: nn.init.sparse_(ones(2, 2), float("nan")), "sparse_: sparsity: expected a share"),
        (lambda: checkpoint_sequential([1], 1, ones(2)), "checkpoint_sequential: functions.*: expected a callable"),
    ],
)
def test_the_function_that_was_called_and_its_parameter_are_named(call, message):
    """It is the one that the user wrote, whatever it calls, with the place in a sequence."""
    with pytest.raises(TypeError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("register", ["register_module_forward_hook", "register_module_forward_pre_hook"])
def test_hooks_leave_the_name_of_the_module(register):
    """Where a hook waits, too, an error names the module's forward, and none of what calls it."""
    with (
        getattr(nn.modules.module, register)(lambda *_: None),
        pytest.raises(ArgumentError, match=r"^Linear.forward: input: expected"),
    ):
        nn.Linear(2, 2)("a")
    linear = nn.Linear(2, 2)
    linear.register_forward_hook(lambda *_: None, always_call=True)
    with pytest.raises(ArgumentError, match=r"^Linear.forward: input: expected"):
        linear("a")


def test_of_one_object_given_twice_the_wrong_one_is_named():
    """What a conversion calls its argument decides between parameters that hold the same object."""
    with pytest.raises(ArgumentError, match=r"^bincount: minlength: expected"):
        lucid.bincount(lucid.tensor([1]), None, None)
    with pytest.raises(ArgumentError, match=r"^topk: k: expected"):
        lucid.topk(ones(3), None)


def test_functions_of_the_user_are_not_named():
    """An error inside of a hook, a closure or a forward of the user's names what was called there."""

    class Wrong(nn.Module):
        def forward(self, x):
            return lucid.sin("a")

    x = lucid.tensor([1.0], requires_grad=True)
    x.register_hook(lambda grad: lucid.sin("a"))
    for call in (lambda: Wrong()(x), lambda: (x * 2).backward(), lambda: lucid.autograd.functional.vjp(Wrong(), x)):
        with pytest.raises(ArgumentError, match=r"^sin: input: expected"):
            call()


class Own(TypeError):
    """An error of the user's own."""


class Raising:
    """An argument whose conversion raises."""

    def __index__(self):
        raise Own

    def __float__(self):
        raise Own


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.init.normal_(ones(2), mean=Raising()),
        lambda: lucid.optim.SGD(raising(), lr=0.1),
        lambda: nn.utils.clip_grad_norm_(raising(), 1.0),
        lambda: lucid.optim.SGD([nn.Parameter(ones(1))]).step(next_of(raising())),
        lambda: lucid.autograd.gradcheck(next_of(raising()), nn.Parameter(ones(1, dtype=lucid.float64))),
    ],
)
def test_errors_of_the_user_stay_as_they_are(call):
    """What iterators, closures and conversions of the user's raise is not rewritten."""
    with pytest.raises(Own):
        call()


def raising():
    """Raise on the first step."""
    raise Own
    yield


def next_of(iterator):
    """Return a function that takes one step."""
    return lambda *_: next(iterator)


def test_an_error_holds_no_argument_once_it_is_dropped():
    """Walking the stack leaves no cycle behind: the argument goes with the error."""

    class Thing:
        pass

    thing = Thing()
    seen = weakref.ref(thing)
    with contextlib.suppress(ArgumentError):
        lucid.sin(thing)
    del thing
    assert seen() is None


def test_checked_looks_at_what_annotations_say():
    """Unions, sequences and names of classes are checked; a missing argument is Python's error as ever."""

    @checked
    def f(
        n: int, x: float | None = None, flag: bool = False, sizes: int | tuple[int, ...] = 1, t: Tensor | None = None
    ) -> str:
        return f"{n} {x} {flag} {sizes}"

    assert f(1, 2, flag=True, sizes=[3, 4], t=ones(1)) == "1 2 True [3, 4]"
    assert f(lucid.tensor(3), lucid.tensor(0.5)) == "3 0.5 False 1"
    for arguments, message in (
        ({"n": 1.5}, "n: expected an int, got float 1.5"),
        ({"n": 1, "x": "a"}, "x: expected a number or None, got str 'a'"),
        ({"n": 1, "x": True}, "x: expected a number or None, got bool True"),
        ({"n": 1, "flag": 2}, "flag: expected a bool, got int 2"),
        ({"n": 1, "flag": 1.0}, "flag: expected a bool, got float 1.0"),
        ({"n": 1, "sizes": (1, "a")}, "sizes: expected an int or a sequence of ints, got tuple"),
        ({"n": 1, "t": 3}, "t: expected a Tensor or None, got int 3"),
    ):
        with pytest.raises(ArgumentError, match=f"f: {message}$"):
            f(**arguments)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        f()
