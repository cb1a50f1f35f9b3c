"""Matrix products where PyTorch's rules are easy to miss: dtypes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.ops.linalg.einsum import einsum
from lucid.ops.linalg.products import matmul, outer

PAIRS = [
    ((3, 4), (5, 2)), ((3,), ()), ((2, 3, 4), (3, 4, 5)), ((3, 4), (4,)), ((0, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (3, 4, 5)), ((4,), (2, 5, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_same_shapes_are_refused(a, b):
    """Matmul takes the shapes that PyTorch takes, with results of the same shape, and refuses the others."""
    try:
        expected = tuple(torch.matmul(torch.ones(a), torch.ones(b)).shape)
    except RuntimeError:
        expected = None
    try:
        got = tuple(matmul(lucid.tensor(np.ones(a, np.float32)), lucid.tensor(np.ones(b, np.float32))).shape)
    except RuntimeError:
        got = None
    assert got == expected


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16", "bfloat16"])
def test_result_dtypes(dtype):
    """Matmul keeps the dtype, also of integers and half types; outer promotes."""
    mine, theirs = lucid.tensor(np.ones((2, 2)), dtype=dtype), torch.ones(2, 2, dtype=getattr(torch, dtype))
    assert str(matmul(mine, mine).dtype).split(".")[1] == str((theirs @ theirs).dtype).split(".")[1]
    got = outer(mine[0], lucid.tensor(np.ones(2, bool))).dtype
    expected = torch.outer(theirs[0], torch.ones(2, dtype=torch.bool)).dtype
    assert str(got).split(".")[1] == str(expected).split(".")[1]


EQUATIONS = [
    ("ij , jk -> i", (2, 3), (3, 4)),
    ("i...,...", (2, 3), (4, 3)),
    ("..., ...", (2, 1), (3,)),
    (",ij", (), (2, 3)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=[case[0] for case in EQUATIONS])
def test_equations(case, rng):
    """Spaces, an ellipsis in the middle and one without letters mean what they mean in PyTorch."""
    equation, *shapes = case
    arrays = [np.asarray(rng.standard_normal(shape)) for shape in shapes]
    expected = torch.einsum(equation, *map(torch.tensor, arrays)).numpy()
    got = einsum(equation, *map(lucid.tensor, arrays)).numpy(force=True)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
