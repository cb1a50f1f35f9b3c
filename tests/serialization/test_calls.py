"""What each call of a pickle gives of which arguments, and what of others: one row for every name that is called."""

from __future__ import annotations

import sys
from collections import OrderedDict

import numpy as np
import pytest

import lucid
from lucid.nn.parameter import Parameter
from lucid.serialization.bounded import Budget
from lucid.serialization.calls import CALLS, Name, Storage, called
from lucid.serialization.refusals import NotLoaded, shown
from lucid.tensor.layout import Size

STORAGE = Storage(np.arange(6, dtype=np.float32))
VIEW = (STORAGE, 1, (2, 2), (2, 1), True)  # of it
CUT = (STORAGE, 0, (3,), (1,), False, None, lucid.int64)
MATRIX = Name("torch._utils._rebuild_tensor_v2")
SET = [((), set()), (([3, "a", 3],), {3, "a"}), (((1,),), {1})], [({},), ("ab",), (3,), ([[]],)]
COMPLEX = [((1.5, 2), 1.5 + 2j)], [("1", 2), (1, None), (True, 1), (1,)]
BYTES = [((), b""), ((b"ab",), b"ab")], [("ab",), (3,), ([1],), (bytearray(b"a"),)]


def of_view(x):
    """Return whether it is the view."""
    return x.requires_grad and x.numpy(force=True).tolist() == [[1, 2], [3, 4]] and type(x) is lucid.Tensor


# by call: what comes of which arguments, as a value or what holds of it, and arguments of which nothing comes
CALLED = {
    **{f"{module}.set": SET for module in ("builtins", "__builtin__")},
    **{f"{module}.complex": COMPLEX for module in ("builtins", "__builtin__")},
    **{f"{module}.bytes": BYTES for module in ("builtins", "__builtin__")},
    **{f"{module}.bytearray": BYTES for module in ("builtins", "__builtin__")},
    "_codecs.encode": (
        [(("\xe4b", "latin1"), b"\xe4b"), (("\xe4", "utf-8"), b"\xc3\xa4")],
        [("a", "rot13"), (b"a", "latin1"), ("\u20ac", "latin1"), ("a", None)],
    ),
    "collections.Counter": ([((), {}), ((None,), {}), (({3: 2},), {3: 2})], [([3],), ("ab",), (3,)]),
    "collections.OrderedDict": (
        [
            ((), OrderedDict()), (([["a", 1], ["b", 2]],), OrderedDict(a=1, b=2)),
            ((([1, 2],),), OrderedDict([(1, 2)])),
        ],
        [({"a": 1},), ([("a", 1)],), ([["a"]],), ([["a", 1, 2]],), ("ab",), ([[[], 1]],)],
    ),
    "torch.Size": (
        [((), Size(())), (((2, 0),), Size((2, 0))), (([3],), Size((3,)))],
        [((1.0,),), ((True,),), (("1",),), ((2, None),), (3,), ({2: 1},)],
    ),
    **{
        f"torch._utils.{name}": (
            [(VIEW, of_view)],
            [
                ([1.0], *VIEW[1:]), (STORAGE, 1.0, *VIEW[2:]), (STORAGE, True, *VIEW[2:]), (STORAGE, -1, *VIEW[2:]),
                (STORAGE, 0, {2: 2}, (1,), True), (STORAGE, 0, (2,), "1", True), (STORAGE, 0, (2, 2), (1,), True),
                (STORAGE, 0, (-2,), (1,), True), (STORAGE, 0, (2.0,), (1,), True), (STORAGE, 0, (2,), (-1,), True),
                (STORAGE, 0, (2,), (1,), 1), (STORAGE, 0, (2,), (1,), None), (STORAGE, 5, (2,), (1,), True),
                (STORAGE, 0, (2, 2), (5, 1), True), (STORAGE, 0, (1,) * 65, (1,) * 65, True),
                (STORAGE, 0, (0, 2**62), (1, 1), True), (STORAGE, 0, (1,), (2**59,), True),
                (*VIEW, None, {"conj": True}), (*VIEW, None, {"neg": True}), VIEW[:3],
            ],
        )
        for name in ("_rebuild_tensor", "_rebuild_tensor_v2")
    },
    "torch._utils._rebuild_tensor_v3": (
        [
            ((*CUT, *bits), lambda x: x.dtype is lucid.int64 and x.numpy().tobytes() == STORAGE.array.tobytes())
            for bits in ((), (None,), ({},), ({"conj": False},))
        ],
        [
            *[(*CUT, {bit: True}) for bit in ("conj", "neg")],
            CUT[:6], (*CUT[:6], "int64"), (*CUT[:6], lucid.bool), (STORAGE, 1, *CUT[2:]), (None, *CUT[1:]),
        ],
    ),
    **{
        f"torch._utils.{name}": (
            [((lucid.ones(2), False, None), lambda x: type(x) is Parameter and not x.requires_grad)],
            [(np.ones(2), True), (lucid.ones(2), 1), (lucid.ones(2),)],
        )
        for name in ("_rebuild_parameter", "_rebuild_parameter_with_state")
    },
    "torch._tensor._rebuild_from_type_v2": (
        [
            ((MATRIX, Name(f"torch.{kind}"), VIEW, {"a": 1}), of_view)
            for kind in ("Tensor", "_tensor.Tensor", "nn.parameter.Parameter")
        ],
        [
            (MATRIX, Name("torch.Size"), VIEW, {}), (MATRIX, "torch.Tensor", VIEW, {}),
            (MATRIX, Name("torch.Tensor"), [*VIEW], {}), ("os.system", Name("torch.Tensor"), VIEW, {}),
            (Name("os.system"), Name("torch.Tensor"), VIEW, {}),
        ],
    ),
    "torch.device": (
        [(("cpu",), lucid.device("cpu")), (("cuda", 3), lucid.device("cuda", 3))],
        [(3,), ("cuda", -1), ("cuda", 2**16), ("cuda", 1.0), ("abacus",), ("cuda", True)],
    ),
}  # fmt: skip


def test_each_call_makes_what_it_says_and_refuses_other_arguments():
    """Of arguments that fit comes the value, of its type and taken from the budget; of others a CheckpointError."""
    assert CALLED.keys() == CALLS.keys()
    for name, (given, refused) in CALLED.items():
        for arguments, expected in given:
            budget = Budget(1000)
            before = budget.remaining
            made = called(budget, Name(name), arguments)
            assert before - budget.remaining >= sys.getsizeof(made) / 4, (name, arguments)
            if callable(expected):
                assert expected(made), (name, arguments)
            else:
                kind = bytearray if name.endswith("bytearray") else type(expected)
                assert made == expected, (name, arguments)
                assert type(made) is kind
        for arguments in refused:
            with pytest.raises((NotLoaded, ValueError, TypeError)):
                called(Budget(1000), Name(name), arguments)
                pytest.fail(f"{name} takes {arguments}")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (5, "5"), (-(2**64) + 1, str(1 - 2**64)), (2**64, "int"), (-(2**64), "int"), (None, "None"), (True, "True"),
        (1.5, "float"), ([1], "list"), (b"a", "bytes"), ("a\n", "'a\\n'"), ("a" * 80, repr("a" * 80)),
        ("a" * 81, repr("a" * 80) + "..."),
    ],
)  # fmt: skip
def test_how_names_are_shown(name, words):
    """Texts are quoted and cut, numbers as they are, and of all else, or a number that has no end, the type alone."""
    assert shown(name) == words
