"""Matrix products, sums of products over named dimensions, attention."""

from __future__ import annotations

import functools
import math

import numpy as np

import lucid
from lucid.ops.layers.attention import scaled_dot_product_attention
from lucid.ops.layers.linear import bilinear, linear
from lucid.ops.linalg.addmm import addmm, baddbmm
from lucid.ops.linalg.einsum import einsum, inner, tensordot
from lucid.ops.linalg.products import bmm, dot, matmul, mm, mv, outer
from tests.samples import Sample


def normal(*shapes, kind=float, mean=0.0):
    """Return the inputs of a row: normal numbers of deviation 1 in these shapes."""

    def inputs(rng):
        if kind is complex:
            return tuple(rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes)
        return tuple(rng.standard_normal(s) + mean for s in shapes)

    return inputs


SHAPES = {
    "vectors": ((3,), (3,)),
    "matrix and vector": ((2, 3), (3,)),
    "vector and matrix": ((3,), (3, 2)),
    "matrices": ((2, 3), (3, 4)),
    "square": ((3, 3), (3, 3)),
    "stack and vector": ((5, 2, 3), (3,)),
    "vector and stack": ((3,), (5, 3, 2)),
    "stack and matrix": ((5, 2, 3), (3, 4)),
    "matrix and stack": ((2, 3), (5, 3, 4)),
    "stacks": ((5, 2, 3), (5, 3, 4)),
    "broadcast stacks": ((4, 1, 2, 3), (5, 3, 2)),
    "stack of one": ((1, 2, 3), (5, 3, 4)),
}

ROWS = [
    Sample(
        f"matmul:{name}",
        matmul,
        normal(*shapes, mean=4.0 if name == "vectors" else 0.0),
        reference=np.matmul,
        torch=lambda torch, a, b: torch.matmul(a, b),
        empty=normal((0, 3), (3, 2)) if name == "matrices" else None,
    )
    for name, shapes in SHAPES.items()
]
ROWS += [
    Sample(
        f"matmul:complex {name}",
        matmul,
        normal(*SHAPES[name], kind=complex),
        reference=np.matmul,
        torch=lambda torch, a, b: torch.matmul(a, b),
    )
    for name in ("vectors", "stack and matrix", "broadcast stacks")
]
ROWS += [
    Sample(
        "matmul:integers",
        matmul,
        lambda rng: (rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4))),
        reference=np.matmul,
        torch=lambda torch, a, b: torch.matmul(a, b),
        differentiable=False,
    ),
    Sample("matmul:nothing to sum", matmul, normal((2, 0), (0, 3)), np.matmul, empty=normal((2, 0), (0, 3))),
    Sample(
        "mm", mm, normal((2, 3), (3, 4)), np.matmul, lambda torch, a, b: torch.mm(a, b), empty=normal((0, 3), (3, 2))
    ),
    Sample(
        "bmm",
        bmm,
        normal((5, 2, 3), (5, 3, 4)),
        np.matmul,
        lambda torch, a, b: torch.bmm(a, b),
        empty=normal((0, 2, 3), (0, 3, 4)),
    ),
    Sample("mv", mv, normal((2, 3), (3,)), np.matmul, lambda torch, a, b: torch.mv(a, b)),
    Sample(
        "dot", dot, normal((3,), (3,), mean=4.0), np.dot, lambda torch, a, b: torch.dot(a, b), empty=normal((0,), (0,))
    ),
    Sample(
        "outer", outer, normal((3,), (4,)), np.outer, lambda torch, a, b: torch.outer(a, b), empty=normal((0,), (3,))
    ),
    Sample("inner", inner, normal((2, 3), (4, 5, 3)), np.inner, lambda torch, a, b: torch.inner(a, b)),
]

for shape in ((4,), (2, 1), (2, 4), ()):
    for beta, alpha in ((1, 1), (0.5, -2.0)):
        settings = {"beta": beta, "alpha": alpha}
        ROWS += [
            Sample(
                f"addmm:{shape} {beta} {alpha}",
                functools.partial(addmm, **settings),
                normal(shape, (2, 3), (3, 4)),
                lambda x, a, b, beta=beta, alpha=alpha: beta * x + alpha * (a @ b),
                lambda torch, x, a, b, settings=settings: torch.addmm(x, a, b, **settings),
            ),
            Sample(
                f"baddbmm:{shape} {beta} {alpha}",
                functools.partial(baddbmm, **settings),
                normal(shape, (5, 2, 3), (5, 3, 4)),
                lambda x, a, b, beta=beta, alpha=alpha: beta * x + alpha * (a @ b),
                lambda torch, x, a, b, settings=settings: torch.baddbmm(x, a, b, **settings),
            ),
        ]

for shape in ((3,), (2, 3), (4, 2, 3)):
    ROWS += [
        Sample(
            f"linear:{shape}",
            linear,
            normal(shape, (5, 3), (5,)),
            lambda x, w, b: x @ w.T + b,
            lambda torch, x, w, b: torch.nn.functional.linear(x, w, b),
            empty=normal((0, 3), (5, 3), (5,)),
        ),
        Sample(
            f"linear:{shape} without bias",
            linear,
            normal(shape, (5, 3)),
            lambda x, w: x @ w.T,
            lambda torch, x, w: torch.nn.functional.linear(x, w),
        ),
    ]
ROWS += [
    Sample(
        "linear:one output",
        linear,
        normal((2, 3), (3,), ()),
        lambda x, w, b: x @ w + b,
    ),
    *[
        Sample(
            f"bilinear:{shape}",
            bilinear,
            normal((*shape, 3), (*shape, 2), (4, 3, 2), (4,)),
            lambda x, y, w, b: np.einsum("...i,oij,...j->...o", x, w, y) + b,
            lambda torch, x, y, w, b: torch.nn.functional.bilinear(x, y, w, b),
            tolerance={"float16": 4e-3, "bfloat16": 3e-2},
        )
        for shape in ((5,), (), (2, 2))
    ],
    Sample("linear:complex", linear, normal((2, 3), (5, 3), (5,), kind=complex), lambda x, w, b: x @ w.T + b),
]

EQUATIONS = {
    "ij,jk": ((2, 3), (3, 4)),
    "ij,jk->ki": ((2, 3), (3, 4)),
    "ii": ((3, 3),),
    "ii->i": ((3, 3),),
    "iij,jk->ki": ((2, 2, 3), (3, 4)),
    "iii->i": ((3, 3, 3),),
    "ij->": ((2, 3),),
    "ba": ((2, 3),),
    "bA": ((2, 3),),
    "ij->ij": ((2, 3),),
    "i,j->ij": ((2,), (3,)),
    "ij,ij->ij": ((2, 3), (2, 3)),
    "ij,ij->i": ((2, 3), (2, 3)),
    "ij,ij->": ((2, 3), (2, 3)),
    "i,->i": ((3,), ()),
    "...ij,...jk->...ik": ((5, 1, 2, 3), (4, 3, 6)),
    "...i": ((2, 3, 4),),
    "b...,b->...": ((2, 3, 4), (2,)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "aij,bij->ab": ((2, 3, 4), (5, 3, 4)),
    "ijkl,lj->ki": ((2, 3, 4, 5), (5, 3)),
    "ij,kl->ki": ((2, 3), (4, 5)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "ij,kj,k,ab->ib": ((2, 3), (4, 3), (4,), (2, 6)),
    "ij,ij,ij->": ((2, 3), (2, 3), (2, 3)),
}
ROWS += [
    Sample(
        f"einsum:{equation}",
        functools.partial(einsum, equation),
        # an error is judged by the largest result: where there is one alone, its terms must not cancel
        normal(*shapes, mean=4.0 if equation.endswith("->") else 0.0),
        functools.partial(np.einsum, equation),
        lambda torch, *operands, equation=equation: torch.einsum(equation, *operands),
    )
    for equation, shapes in EQUATIONS.items()
]
ROWS += [
    Sample(
        "einsum:ellipsis that is summed over",
        functools.partial(einsum, "...i->i"),
        normal((2, 3, 4)),
        lambda a: a.sum((0, 1)),
        lambda torch, a: torch.einsum("...i->i", a),
    ),
    Sample(
        "einsum:size 1 broadcasts",
        functools.partial(einsum, "ij,jk->ik"),
        normal((2, 3), (1, 4)),
        lambda a, b: a @ np.repeat(b, 3, 0),
        lambda torch, a, b: torch.einsum("ij,jk->ik", a, b),
    ),
    Sample(
        "einsum:sublists",
        lambda a, b: einsum(a, [0, ...], b, [..., 30, 0], [30, ...]),
        normal((2, 3), (3, 4, 2)),
        lambda a, b: np.einsum("ij,jki->kj", a, b),
        lambda torch, a, b: torch.einsum(a, [0, ...], b, [..., 30, 0], [30, ...]),
    ),
    Sample(
        "einsum:complex",
        functools.partial(einsum, "ij,jk->ki"),
        normal((2, 3), (3, 4), kind=complex),
        functools.partial(np.einsum, "ij,jk->ki"),
        lambda torch, a, b: torch.einsum("ij,jk->ki", a, b),
    ),
]
TENSORDOTS = [
    (2, (2, 3, 4), (3, 4, 5)),
    (1, (2, 3, 4), (4, 5)),
    (0, (2, 3), (4,)),
    (([1], [0]), (2, 3, 4), (3, 5)),
    (([-1, 0], [1, 2]), (2, 3, 4), (5, 4, 2)),
]
ROWS += [
    Sample(
        f"tensordot:{dims}",
        lambda a, b, dims=dims: tensordot(a, b, dims),
        normal(one, other),
        lambda a, b, dims=dims: np.tensordot(a, b, dims),
        lambda torch, a, b, dims=dims: torch.tensordot(a, b, dims),
    )
    for dims, one, other in TENSORDOTS
]


def attended(q, k, v, bias=0.0, scale=None):
    """Return attention in plain NumPy."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def torch_attended(torch, *operands, **settings):
    """Return attention in PyTorch."""
    return torch.nn.functional.scaled_dot_product_attention(*operands, **settings)


HEADS = ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))
ROWS += [
    Sample("scaled_dot_product_attention", scaled_dot_product_attention, normal(*HEADS), attended, torch_attended),
    Sample(
        "scaled_dot_product_attention:matrices",
        functools.partial(scaled_dot_product_attention, scale=0.3),
        normal((4, 5), (6, 5), (6, 7)),
        functools.partial(attended, scale=0.3),
        functools.partial(torch_attended, scale=0.3),
    ),
    Sample(
        "scaled_dot_product_attention:causal",
        functools.partial(scaled_dot_product_attention, is_causal=True),
        normal(*HEADS),
        functools.partial(attended, bias=np.where(np.tri(4, 6, dtype=bool), 0, -np.inf)),
        functools.partial(torch_attended, is_causal=True),
    ),
    Sample(
        "scaled_dot_product_attention:broadcast",
        scaled_dot_product_attention,
        normal((2, 3, 4, 5), (3, 6, 5), (1, 1, 6, 7)),
        attended,
        torch_attended,
    ),
    Sample(
        "scaled_dot_product_attention:shared heads",
        functools.partial(scaled_dot_product_attention, enable_gqa=True),
        normal((2, 4, 4, 5), (2, 2, 6, 5), (2, 2, 6, 7)),
        lambda q, k, v: attended(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1)),
        functools.partial(torch_attended, enable_gqa=True),
    ),
    Sample(
        "scaled_dot_product_attention:bool mask",
        scaled_dot_product_attention,
        lambda rng: (*normal(*HEADS)(rng), rng.random((2, 1, 4, 6)) < np.arange(6)),
        lambda q, k, v, mask: attended(q, k, v, np.where(mask, 0, -np.inf)),
        torch_attended,
    ),
]


def several_heads(module, x, memory, weight, bias, out, mask, *, need_weights):
    """Return attention of two heads, or its weights, in lucid or PyTorch."""
    found = module.nn.functional.multi_head_attention_forward(
        x, memory, memory, 4, 2, weight, bias, None, None, True, 0.0, out, None, attn_mask=mask,
        need_weights=need_weights,
    )  # fmt: skip
    return found[need_weights]


def in_numpy(x, memory, weight, bias, out, mask, *, need_weights):
    """Return the same in plain NumPy."""
    projected = [
        np.stack(np.split(y @ w.T + b, 2, -1)).swapaxes(1, 2)
        for y, w, b in zip((x, memory, memory), np.split(weight, 3), np.split(bias, 3), strict=True)
    ]
    q, k, v = projected[0], *(np.pad(y, ((0, 0), (0, 0), (0, 1), (0, 0))) for y in projected[1:])
    mask = np.pad(mask, ((0, 0), (0, 1)))
    if need_weights:
        return attended(q, k, np.broadcast_to(np.eye(6), (2, 3, 6, 6)), mask).mean(0)
    return np.concatenate([*attended(q, k, v, mask)], -1).swapaxes(0, 1) @ out.T


ROWS += [
    Sample(
        "multi_head_attention_forward" + ":weights" * need_weights,
        functools.partial(several_heads, lucid, need_weights=need_weights),
        normal((4, 3, 4), (5, 3, 4), (12, 4), (12,), (4, 4), (4, 5)),
        functools.partial(in_numpy, need_weights=need_weights),
        functools.partial(several_heads, need_weights=need_weights),
    )
    for need_weights in (False, True)
]
ROWS += [
    Sample(
        f"scaled_dot_product_attention:mask {shape}",
        scaled_dot_product_attention,
        normal(*HEADS, shape),
        attended,
        torch_attended,
    )
    for shape in ((4, 6), (2, 1, 4, 6), (3, 1, 6), (2, 3, 4, 6))
]
