"""Attributes that users set on tensors, and what takes them along; tensors in the place of numbers."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import DeviceError
from tests.pieces import no_collections

MAKERS = {
    "tensor": lambda: lucid.tensor([1.0, 2.0]),
    "leaf": lambda: lucid.tensor([1.0, 2.0], requires_grad=True),
    "Parameter": lambda: nn.Parameter(lucid.tensor([1.0, 2.0])),
    "Buffer": lambda: nn.Buffer(lucid.tensor([1.0, 2.0])),
}


@pytest.fixture(params=MAKERS)
def tensor(request):
    """Return a tensor of one kind with an attribute of the user's."""
    made = MAKERS[request.param]()
    made.note = ["mine"]
    return made


def test_a_tensor_takes_attributes(tensor):
    """They are set, read, listed and deleted as on any object; a name that is not there is an AttributeError."""
    assert tensor.note == ["mine"]
    assert vars(tensor)["note"] is tensor.note
    del tensor.note
    assert not hasattr(tensor, "note")
    with pytest.raises(AttributeError, match="note"):
        tensor.note


def test_an_op_result_takes_attributes_and_hands_none_on(tensor):
    """Results of ops, views and detached tensors begin without attributes; changed in place, a tensor keeps its own."""
    for result in (tensor * 2, tensor[0], tensor.view(2), tensor.detach(), tensor.clone(), tensor.data):
        assert vars(result) == {}
        result.mark = 1
        assert result.mark == 1
    with lucid.no_grad():
        tensor.mul_(2)
    assert tensor.note == ["mine"]
    assert not hasattr(tensor, "mark")


def test_what_a_tensor_has_of_its_own_cannot_be_set(tensor):
    """Properties that cannot be set stay as they are."""
    for name in ("shape", "is_leaf", "dtype", "grad_fn"):
        with pytest.raises(AttributeError):
            setattr(tensor, name, 3)
    assert tensor.shape == (2,)


def test_copies_take_attributes_along(tensor):
    """A shallow copy shares them, a deep copy and pickle make copies of their own."""
    shallow, deep = copy.copy(tensor), copy.deepcopy(tensor)
    thawed = pickle.loads(pickle.dumps(tensor))
    assert shallow.note is tensor.note
    for made in (deep, thawed):
        assert type(made) is type(tensor)
        assert made.note == ["mine"]
        assert made.note is not tensor.note
    assert deep.tolist() == thawed.tolist() == [1.0, 2.0]


def test_a_deep_copy_keeps_what_attributes_share():
    """One object behind two attributes, or the tensor itself, is one in the copy too."""
    x = lucid.ones(2)
    x.first = x.second = {}
    x.own = x
    made = copy.deepcopy(x)
    assert made.first is made.second
    assert made.own is made
    assert made.first is not x.first


def test_attributes_cost_nothing_of_an_engine(rng):
    """Gradients flow through tensors that have them, and a tensor goes at once when nobody holds it."""
    values = rng.standard_normal(3)
    x = lucid.tensor(values, requires_grad=True)
    x.note = y_note = object()
    y = x * x
    y.note = y_note
    y.sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * values)
    gone = weakref.ref(y)
    with no_collections():
        del y
        assert gone() is None


def test_tensors_in_a_sequence_are_numbers() -> None:
    """A list of tensors of one element becomes a tensor of their numbers, whether or not they require grad."""
    x = lucid.tensor(2.0, requires_grad=True)
    made = lucid.tensor([x, x * 2, lucid.tensor([[5]]), 1])
    assert made.tolist() == [2.0, 4.0, 5.0, 1.0]
    assert not made.requires_grad
    assert lucid.tensor([[x], (1,)], requires_grad=True).tolist() == [[2.0], [1.0]]
    assert lucid.as_tensor([x]).tolist() == x.new_tensor([x]).tolist() == lucid.asarray([x]).tolist() == [2.0]
    assert lucid.tensor([lucid.tensor(3), lucid.tensor(True)]).dtype is lucid.int64
    with pytest.raises(ValueError, match=r"shape \(2,\).*lucid.stack"):
        lucid.tensor([lucid.ones(2), lucid.ones(2)])


@pytest.mark.gpu
def test_a_gradient_is_of_the_tensors_own_device():
    """One of any other device is refused, another of CUDA's too, and the old one stays."""
    places = ["cpu", *(f"cuda:{index}" for index in range(lucid.cuda.device_count()))]
    for own in places:
        x = lucid.ones(2, device=own, requires_grad=True)
        x.grad = kept = lucid.full((2,), 3.0, device=own)
        for other in places:
            if other != own:
                with pytest.raises(DeviceError, match=f"on a different device: expected {own}, got {other}"):
                    x.grad = lucid.ones(2, device=other)
        assert x.grad is kept
