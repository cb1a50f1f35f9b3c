"""What `lucid.save` takes comes back equal, of the same type and with its attributes, or is refused."""

from __future__ import annotations

import io
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.serialization.tree import UnsupportedObjectError
from tests.pieces.memory import reloaded


def state_of_a_model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()


def with_versions():
    entries = OrderedDict(weight=lucid.ones(2))
    entries._metadata = OrderedDict({"": {"version": 7}})
    return entries


def same(a, b):
    """Tell whether two objects are of the same type, with the same entries, elements and attributes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, lucid.Tensor):
        alike = (a.dtype, a.shape, a.requires_grad, str(a.device)) == (b.dtype, b.shape, b.requires_grad, str(b.device))
        return alike and lucid.equal(a.detach(), b.detach())
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        kept, found = (getattr(each, "__dict__", None) for each in (a, b))
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a) and (kept is found or same(kept, found))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or a != a


KEPT = {
    "state dict": state_of_a_model,
    "state dict of parameters": lambda: nn.Linear(2, 3).state_dict(keep_vars=True),
    "ordered": lambda: OrderedDict(b=1, a=[OrderedDict(), {}]),
    "ordered with versions": with_versions,
    "counts": lambda: Counter("aab"),
    "parameter": lambda: nn.Parameter(lucid.ones(2, 3)),
    "frozen parameter": lambda: [nn.Parameter(lucid.ones(2), requires_grad=False)],
    "leaf": lambda: lucid.ones(2, requires_grad=True),
    "plain": lambda: {"a": (1, 2.5, None, "x", True, 1 + 2j), 3: [np.float32(2), np.arange(3), lucid.Size([1, 2])]},
    "optimizer": lambda: lucid.optim.AdamW(nn.Linear(2, 2).parameters()).state_dict(),
    "bfloat16": lambda: lucid.ones(3, dtype=lucid.bfloat16),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_saved_comes_back(name):
    """Equal, and of the same types, with the attributes that it had."""
    made = KEPT[name]()
    assert same(reloaded(made), made)


def test_versions_of_modules_come_back():
    """So that a module knows from which layout it is to migrate, once."""
    made = state_of_a_model()
    back = reloaded({"model": made})["model"]
    assert back._metadata == made._metadata
    assert back._metadata["1"] == {"version": 2}


class Own(OrderedDict):
    """A dictionary of the user's."""


def tagged():
    entries = OrderedDict(a=1)
    entries.tag = "x"
    return entries


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: defaultdict(list, a=[1]), "is a defaultdict, which a checkpoint cannot hold.*save dict.. of it"),
        (lambda: Own(a=1), "is a Own, which a checkpoint cannot hold"),
        (lambda: np.ma.array([1.0, 2.0], mask=[False, True]), "is a MaskedArray, which a checkpoint cannot hold"),
        (lambda: np.ma.masked, "is a MaskedConstant, which a checkpoint cannot hold"),
        (tagged, r"is a OrderedDict with the attributes \['tag'\], of which a checkpoint holds none but _metadata"),
    ],
)
def test_what_would_be_another_is_refused(make, words):
    """What would come back as another kind, or without its attributes or mask, is not written."""
    with pytest.raises(UnsupportedObjectError, match=words):
        lucid.save({"here": make()}, io.BytesIO())
