"""Random tensors against PyTorch: what they accept, their dtypes and shapes; the numbers themselves differ."""

from __future__ import annotations

import pytest
import torch

import lucid
from lucid.ops.creation import random, sampling

OURS = {**vars(sampling), **vars(random)}


def described(result):
    """Return shape and dtype of a tensor, or that the call raised."""
    return tuple(result.shape), str(result.dtype).split(".")[1]


@pytest.mark.parametrize(
    ("name", "args", "settings"),
    [
        ("rand", (2, 3), {}),
        ("rand", ((2, 3),), {}),
        ("rand", ((),), {}),
        ("randn", (0, 3), {"dtype": "float64"}),
        ("randint", (5, (2, 3)), {}),
        ("randint", (2, 5, (2,)), {"dtype": "int8"}),
        ("randint", (5, (2,)), {"dtype": "float32"}),
        ("randperm", (0,), {}),
        ("randperm", (5,), {"dtype": "int32"}),
        ("normal", (0.0, 1.0, (2, 3)), {}),
    ],
)
def test_shapes_and_dtypes(name, args, settings):
    """Sizes and dtypes in all spellings give PyTorch's shapes and dtypes."""
    ours = {k: getattr(lucid, v) for k, v in settings.items()}
    theirs = {k: getattr(torch, v) for k, v in settings.items()}
    assert described(OURS[name](*args, **ours)) == described(getattr(torch, name)(*args, **theirs))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["rand_like", "randn_like", "bernoulli"])
def test_like_another(name, dtype):
    """Dtypes that cannot hold fractions are refused by both; all others are kept."""
    ours, theirs = lucid.zeros(2, 3, dtype=getattr(lucid, dtype)), torch.zeros(2, 3, dtype=getattr(torch, dtype))
    if dtype == "int64":
        for function, x in ((OURS[name], ours), (getattr(torch, name), theirs)):
            with pytest.raises(RuntimeError):
                function(x)
        return
    assert described(OURS[name](ours)) == described(getattr(torch, name)(theirs))


@pytest.mark.parametrize(("shape", "count"), [((4,), 2), ((3, 4), 4), ((1, 4), 1)])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(shape, count, replacement):
    """Draws have PyTorch's shape and dtype."""
    ours = sampling.multinomial(lucid.ones(shape), count, replacement)
    theirs = torch.multinomial(torch.ones(shape), count, replacement)
    assert described(ours) == described(theirs)
