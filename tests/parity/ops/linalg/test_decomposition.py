"""Values, gradients and second derivatives of complex matrices, and what is empty, against PyTorch's.

Those of real ones are compared by the table of samples.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
import torch

import lucid


def positive(x):
    """Return Hermitian positive-definite matrices of any."""
    return x @ x.conj().swapaxes(-1, -2) + x.shape[-1] * np.eye(x.shape[-1])


def hermitian(x):
    """Return the Hermitian part."""
    return (x + x.conj().swapaxes(-1, -2)) / 2


def regular(x):
    """Return matrices that are well-conditioned."""
    return x + 3 * np.eye(*x.shape[-2:])


def same(x):
    """Return the array."""
    return x


def sizes(result):
    """Return what phases of vectors do not change."""
    return tuple(abs(part) for part in result)


def stacks(*shapes):
    """Return the shapes of one matrix, of a stack and of an empty one."""
    return [shapes, tuple((2, *s) for s in shapes), tuple((0, *s) for s in shapes)]


SQUARE = stacks((3, 3))
# function, shapes, what changes the first array, settings, what makes the result unique
ROWS = [
    *[("linalg.inv", s, regular, {}, None) for s in SQUARE],
    *[("linalg.det", s, same, {}, None) for s in SQUARE],
    *[("linalg.slogdet", s, same, {}, None) for s in SQUARE],
    *[("linalg.matrix_exp", s, same, {}, None) for s in SQUARE],
    *[("logdet", s, positive, {}, None) for s in SQUARE],
    *[("linalg.eigvalsh", s, hermitian, {}, None) for s in SQUARE],
    *[("linalg.eigh", s, hermitian, {"UPLO": side}, sizes) for s in SQUARE for side in "LU"],
    *[("linalg.lu", s, same, {}, tuple) for s in [*SQUARE, ((4, 3),), ((2, 3, 4),)]],
    *[("linalg.lu_factor", s, same, {}, tuple) for s in [*SQUARE, ((4, 3),), ((2, 3, 4),)]],
    *[("linalg.solve", s, regular, {}, None) for s in stacks((3, 3), (3, 2))],
    ("linalg.solve", ((3, 3), (2, 3)), regular, {"left": False}, None),
    ("linalg.solve", ((2, 3, 3), (2, 3)), regular, {}, None),
    *[
        ("linalg.solve_triangular", ((2, 3, 3), (3, 2)), regular, {"upper": upper, "unitriangular": unit}, None)
        for upper in (False, True)
        for unit in (False, True)
    ],
    *[
        ("linalg.svd", s, same, {"full_matrices": False}, sizes)
        for s in (*stacks((4, 3)), *stacks((3, 4)), *stacks((3, 3)))
    ],
    *[("linalg.qr", s, same, {}, None) for s in (*stacks((4, 3)), *stacks((3, 3)))],
    *[("linalg.pinv", s, same, {}, None) for s in (*stacks((4, 3)), *stacks((3, 4)))],
    *[("linalg.lstsq", s, same, {"driver": "gelsd"}, None) for s in (((4, 3), (4, 2)), ((2, 3, 4), (2, 3, 2)))],
    *[("linalg.householder_product", s, same, {}, None) for s in (((4, 3), (3,)), ((2, 4, 3), (2, 2)))],
    *[
        ("ormqr", ((4, 3), (3,), (4, 2) if left else (2, 4)), same, {"left": left, "transpose": turned}, None)
        for left in (True, False)
        for turned in (True, False)
    ],
    *[("linalg.matrix_norm", ((2, 3, 4),), same, {"ord": p}, None) for p in ("fro", "nuc", 1, -1, 2, -2, math.inf)],
    *[("linalg.vector_norm", ((3, 4),), same, {"ord": p, "dim": -1}, None) for p in (2, 1, 3)],
    ("linalg.cond", ((2, 3, 3),), same, {}, None),
    ("linalg.matrix_rank", ((2, 4, 3),), same, {}, None),
    ("linalg.vecdot", ((2, 3), (2, 3)), same, {}, None),
    ("linalg.cross", ((2, 3), (1, 3)), same, {}, None),
    ("linalg.vander", ((2, 3),), same, {"N": 4}, None),
    ("linalg.tensorinv", ((2, 3, 6),), same, {}, None),
    ("linalg.tensorsolve", ((2, 6, 3), (2, 3)), same, {"dims": (1,)}, None),
]


def numbers(tensor):
    """Return the array of a tensor of either library."""
    tensor = tensor.detach()
    return tensor.resolve_conj().numpy(force=True) if isinstance(tensor, torch.Tensor) else tensor.cpu().numpy()


def loss_of(module, tensors, weights):
    """Return a real sum of tensors by weights, conjugated, so that it depends on both parts of each."""
    total = 0
    for tensor, weight in zip(tensors, weights, strict=True):
        product = tensor * module.tensor(weight)
        total = total + (product.real if weight.dtype.kind == "c" else product).sum()
    return total


def answers(module, name, arrays, settings, after, seed):
    """Return values, gradients, and gradients of a weighted sum of the gradients."""
    draw = np.random.default_rng(seed)
    tensors = [module.tensor(a).requires_grad_() for a in arrays]
    result = functools.reduce(getattr, name.split("."), module)(*tensors, **settings)
    result = result if after is None else after(result)
    parts = list(result) if isinstance(result, tuple) else [result]

    def weights(some):
        return [
            draw.standard_normal(a.shape) + (1j * draw.standard_normal(a.shape) if a.dtype.kind == "c" else 0)
            for a in map(numbers, some)
        ]

    grads = seconds = ()
    moving = [part for part in parts if part.requires_grad]
    if moving:
        loss = loss_of(module, moving, weights(moving))
        grads = module.autograd.grad(loss, tensors, create_graph=True)
        loss = loss_of(module, grads, weights(grads))
        if loss.requires_grad:
            seconds = module.autograd.grad(loss, tensors, allow_unused=True)
    return [[None if t is None else numbers(t) for t in some] for some in (parts, grads, seconds)]


@pytest.mark.parametrize(
    ("name", "shapes", "before", "settings", "after"),
    ROWS,
    ids=[f"{name} {shapes} {settings}" for name, shapes, _, settings, _ in ROWS],
)
def test_complex_matrices(name, shapes, before, settings, after, rng):
    """Values and both derivatives are PyTorch's."""
    first, *rest = [rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes]
    seed = int(rng.integers(1 << 30))
    arrays = [before(first), *rest]
    ours = answers(lucid, name, arrays, settings, after, seed)
    theirs = answers(torch, name, arrays, settings, after, seed)
    for what, got, expected in zip(("value", "gradient", "second"), ours, theirs, strict=True):
        for one, other in itertools.zip_longest(got, expected):
            if other is None or one is None:
                assert not np.any(other if one is None else one), what
                continue
            assert one.shape == other.shape, what
            assert one.dtype == other.dtype, what
            scale = np.abs(other).max(initial=1.0)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * scale, err_msg=what)
