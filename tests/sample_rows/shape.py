"""Rows of the ops that change shape, order, size at the edges, or repeat."""

from __future__ import annotations

import numpy as np

from lucid.ops.base import strided
from lucid.ops.shape import axes, broadcasting, diagonal, padding, repeating, shuffling
from lucid.ops.shape import reshape as shape
from tests.samples import Sample


def normal(*sizes):
    """Return inputs of one array, or of several if the sizes are tuples."""
    shapes = sizes if sizes and isinstance(sizes[0], tuple) else (sizes,)
    return lambda rng: tuple(rng.standard_normal(s) for s in shapes)


def row(name, op, inputs, reference, torch, **settings):
    """Return a row, with an empty input if it says so."""
    return Sample(name, op, inputs, reference, torch, **settings)


def reshaped(*sizes):
    """Return the reference of a reshape."""
    return lambda x: x.reshape(sizes)


def turned(x, *dims):
    """Return a tensor transposed with copies on the way, so that views of it are none of the input."""
    return axes.permute(x, *dims)


ROWS = [
    row(
        "reshape",
        lambda x: shape.reshape(x, 3, -1),
        normal(2, 6),
        reshaped(3, -1),
        lambda t, x: x.reshape(3, -1),
        empty=lambda rng: (np.zeros((0, 6)),),
    ),
    row(
        "reshape:copy",
        lambda x: shape.reshape(turned(x, 1, 0), (4, 3)),
        normal(2, 6),
        lambda x: x.T.reshape(4, 3),
        lambda t, x: x.t().reshape(4, 3),
    ),
    row(
        "view",
        lambda x: shape.view(shape.contiguous(x), -1, 2),
        normal(2, 6),
        reshaped(6, 2),
        lambda t, x: x.contiguous().view(-1, 2),
    ),
    row(
        "as_strided",
        lambda x: strided.as_strided(shape.contiguous(x), (2, 3), (1, 3), 1),
        normal(2, 6),
        lambda x: x.reshape(-1)[1:10].reshape(3, 3)[:, :2].T,
        lambda t, x: x.contiguous().as_strided((2, 3), (1, 3), 1),
    ),
    row(
        "as_strided:overlapping",
        lambda x: strided.as_strided(shape.contiguous(x), (4, 3), (2, 1)),
        normal(3, 4),
        lambda x: np.lib.stride_tricks.sliding_window_view(x.reshape(-1), 3)[:8:2],
        lambda t, x: x.contiguous().as_strided((4, 3), (2, 1)),
    ),
    row(
        "view:merged",
        lambda x: shape.view(turned(shape.contiguous(x), 2, 0, 1), (4, 6)),
        normal(2, 3, 4),
        lambda x: x.transpose(2, 0, 1).reshape(4, 6),
        lambda t, x: x.contiguous().permute(2, 0, 1).view(4, 6),
    ),
    row(
        "view_as",
        lambda x, y: shape.view_as(shape.contiguous(x), y),
        normal((2, 6), (3, 4)),
        lambda x, y: x.reshape(3, 4),
        lambda t, x, y: x.contiguous().view_as(y),
        constants=(1,),
    ),
    row(
        "reshape_as",
        shape.reshape_as,
        normal((2, 6), (3, 4)),
        lambda x, y: x.reshape(3, 4),
        lambda t, x, y: x.reshape_as(y),
        constants=(1,),
    ),
    row(
        "flatten",
        lambda x: shape.flatten(x, 1),
        normal(2, 3, 4),
        lambda x: x.reshape(2, x[0].size),
        lambda t, x: t.flatten(x, 1),
        empty=lambda rng: (np.zeros((2, 0, 4)),),
    ),
    row(
        "unflatten",
        lambda x: shape.unflatten(x, 1, (2, -1)),
        normal(2, 6),
        reshaped(2, 2, 3),
        lambda t, x: t.unflatten(x, 1, (2, -1)),
    ),
    row("ravel", shape.ravel, normal(2, 3), np.ravel, lambda t, x: t.ravel(x), empty=lambda rng: (np.zeros((0, 2)),)),
    row("squeeze", shape.squeeze, normal(1, 3, 1), np.squeeze, lambda t, x: t.squeeze(x)),
    row(
        "squeeze:dim",
        lambda x: shape.squeeze(x, (0, 1)),
        normal(1, 3, 1),
        lambda x: x.squeeze(0),
        lambda t, x: t.squeeze(x, (0, 1)),
    ),
    row(
        "unsqueeze",
        lambda x: shape.unsqueeze(x, -2),
        normal(2, 3),
        lambda x: x[:, None],
        lambda t, x: t.unsqueeze(x, -2),
    ),
    row(
        "contiguous",
        lambda x: shape.contiguous(turned(x, 1, 0)),
        normal(2, 3),
        np.transpose,
        lambda t, x: x.permute(1, 0).contiguous(),
    ),
    row("clone", shape.clone, normal(2, 3), lambda x: x, lambda t, x: t.clone(x), empty=lambda rng: (np.zeros(0),)),
    row(
        "permute",
        lambda x: axes.permute(x, 2, 0, 1),
        normal(2, 3, 4),
        lambda x: x.transpose(2, 0, 1),
        lambda t, x: t.permute(x, (2, 0, 1)),
        empty=lambda rng: (np.zeros((2, 0, 4)),),
    ),
    row(
        "transpose",
        lambda x: axes.transpose(x, 0, -1),
        normal(2, 3, 4),
        lambda x: x.swapaxes(0, 2),
        lambda t, x: t.transpose(x, 0, -1),
    ),
    row("swapaxes", lambda x: axes.swapaxes(x, 0, 1), normal(2, 3), lambda x: x.T, lambda t, x: t.swapaxes(x, 0, 1)),
    row("t", axes.t, normal(2, 3), lambda x: x.T, lambda t, x: t.t(x)),
    row(
        "movedim",
        lambda x: axes.movedim(x, (0, 1), (2, 0)),
        normal(2, 3, 4),
        lambda x: np.moveaxis(x, (0, 1), (2, 0)),
        lambda t, x: t.movedim(x, (0, 1), (2, 0)),
    ),
    row(
        "flip",
        lambda x: axes.flip(x, 0, -1),
        normal(2, 3, 4),
        lambda x: np.flip(x, (0, 2)),
        lambda t, x: t.flip(x, (0, -1)),
        empty=lambda rng: (np.zeros((2, 0, 4)),),
    ),
    row("fliplr", axes.fliplr, normal(2, 3), np.fliplr, lambda t, x: t.fliplr(x)),
    row("flipud", axes.flipud, normal(2, 3), np.flipud, lambda t, x: t.flipud(x)),
    row(
        "roll",
        lambda x: axes.roll(x, (1, -2), (0, 1)),
        normal(3, 4),
        lambda x: np.roll(x, (1, -2), (0, 1)),
        lambda t, x: t.roll(x, (1, -2), (0, 1)),
        empty=lambda rng: (np.zeros((3, 0)),),
    ),
    row(
        "roll:of one dimension",
        lambda x: axes.roll(x, 2, 0),
        normal(3, 4),
        lambda x: np.roll(x, 2, 0),
        lambda t, x: t.roll(x, 2, 0),
    ),
    row("roll:flat", lambda x: axes.roll(x, 5), normal(3, 4), lambda x: np.roll(x, 5), lambda t, x: t.roll(x, 5)),
    *[
        row(
            f"rot90:{k}",
            lambda x, k=k: axes.rot90(x, k, (1, 2)),
            normal(2, 3, 4),
            lambda x, k=k: np.rot90(x, k, (1, 2)),
            lambda t, x, k=k: t.rot90(x, k, (1, 2)),
        )
        for k in (0, 1, 2, -1)
    ],
    row(
        "expand",
        lambda x: broadcasting.expand(x, 4, -1, 2),
        normal(3, 1),
        lambda x: np.broadcast_to(x, (4, len(x), 2)),
        lambda t, x: x.expand(4, -1, 2),
        empty=lambda rng: (np.zeros((0, 1)),),
    ),
    row(
        "expand_as",
        broadcasting.expand_as,
        normal((3, 1), (2, 3, 4)),
        lambda x, y: np.broadcast_to(x, y.shape),
        lambda t, x, y: x.expand_as(y),
        constants=(1,),
    ),
    row(
        "broadcast_to",
        lambda x: broadcasting.broadcast_to(x, (2, 3)),
        normal(3),
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda t, x: t.broadcast_to(x, (2, 3)),
    ),
    row(
        "broadcast_tensors",
        broadcasting.broadcast_tensors,
        normal((2, 1), (3,)),
        lambda *xs: tuple(np.broadcast_arrays(*xs)),
        lambda t, *xs: t.broadcast_tensors(*xs),
    ),
    row(
        "meshgrid",
        broadcasting.meshgrid,
        normal((2,), (3,), (4,)),
        lambda *xs: tuple(np.meshgrid(*xs, indexing="ij")),
        lambda t, *xs: t.meshgrid(*xs, indexing="ij"),
        empty=lambda rng: (np.zeros(2), np.zeros(0), np.zeros(3)),
    ),
    row(
        "meshgrid:xy",
        lambda *xs: broadcasting.meshgrid(*xs, indexing="xy"),
        normal((2,), (3,), (4,)),
        lambda *xs: tuple(np.meshgrid(*xs, indexing="xy")),
        lambda t, *xs: t.meshgrid(*xs, indexing="xy"),
    ),
    row(
        "repeat",
        lambda x: repeating.repeat(x, 2, 1, 3),
        normal(2, 3),
        lambda x: np.tile(x, (2, 1, 3)),
        lambda t, x: x.repeat(2, 1, 3),
        empty=lambda rng: (np.zeros((0, 3)),),
    ),
    row("tile", lambda x: repeating.tile(x, 2), normal(2, 3), lambda x: np.tile(x, 2), lambda t, x: t.tile(x, (2,))),
    row(
        "repeat_interleave",
        lambda x: repeating.repeat_interleave(x, 3, 1),
        normal(2, 3, 2),
        lambda x: np.repeat(x, 3, 1),
        lambda t, x: t.repeat_interleave(x, 3, 1),
        empty=lambda rng: (np.zeros((2, 0)),),
    ),
    row(
        "repeat_interleave:flat",
        lambda x: repeating.repeat_interleave(x, 2),
        normal(2, 3),
        lambda x: np.repeat(x, 2),
        lambda t, x: t.repeat_interleave(x, 2),
    ),
    row(
        "repeat_interleave:each",
        lambda x, n: repeating.repeat_interleave(x, n, 0),
        lambda rng: (rng.standard_normal((3, 2)), np.array([2, 0, 3])),
        lambda x, n: np.repeat(x, n, 0),
        lambda t, x, n: t.repeat_interleave(x, n, 0),
    ),
    row(
        "tril",
        lambda x: diagonal.tril(x, -1),
        normal(2, 3, 4),
        lambda x: np.tril(x, -1),
        lambda t, x: t.tril(x, -1),
        empty=lambda rng: (np.zeros((0, 3)),),
    ),
    row("triu", lambda x: diagonal.triu(x, 1), normal(2, 3, 4), lambda x: np.triu(x, 1), lambda t, x: t.triu(x, 1)),
    row(
        "diagonal",
        lambda x: diagonal.diagonal(x, 1, -2, 0),
        normal(3, 4, 2),
        lambda x: np.diagonal(x, 1, -2, 0),
        lambda t, x: t.diagonal(x, 1, -2, 0),
        empty=lambda rng: (np.zeros((3, 0, 2)),),
    ),
    row(
        "diagonal:below",
        lambda x: diagonal.diagonal(x, -2),
        normal(4, 3),
        lambda x: np.diagonal(x, -2),
        lambda t, x: t.diagonal(x, -2),
    ),
    row(
        "diag_embed",
        lambda x: diagonal.diag_embed(x, -1, 0, 2),
        normal(2, 3),
        lambda x: np.stack([np.diag(v, -1) for v in x], 1),
        lambda t, x: t.diag_embed(x, -1, 0, 2),
    ),
    row("diag", lambda x: diagonal.diag(x, 1), normal(3, 4), lambda x: np.diag(x, 1), lambda t, x: t.diag(x, 1)),
    row("diag:vector", lambda x: diagonal.diag(x, -1), normal(3), lambda x: np.diag(x, -1), lambda t, x: t.diag(x, -1)),
    row(
        "pad",
        lambda x: padding.pad(x, (1, 2, 0, 1), value=0.5),
        normal(2, 3, 4),
        lambda x: np.pad(x, ((0, 0), (0, 1), (1, 2)), constant_values=0.5),
        lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1), value=0.5),
        empty=lambda rng: (np.zeros((0, 2, 3)),),
    ),
    row(
        "pad:cut",
        lambda x: padding.pad(x, (-1, 2, 1, -2)),
        normal(3, 4),
        lambda x: np.pad(x[:1, 1:], ((1, 0), (0, 2))),
        lambda t, x: t.nn.functional.pad(x, (-1, 2, 1, -2)),
    ),
    *[
        row(
            f"pad:{mode} cut",
            lambda x, mode=mode, edges=edges: padding.pad(x, (*edges, 1, -1, 0, 0), mode),
            normal(2, 1, 3, 5),
            lambda x, how=how: how(x),
            lambda t, x, mode=mode, edges=edges: t.nn.functional.pad(x, (*edges, 1, -1, 0, 0), mode),
        )
        for mode, edges, how in (
            ("reflect", (-3, 4), lambda x: np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 4)), "reflect")[..., :-1, 3:]),
            ("replicate", (-3, 4), lambda x: np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 4)), "edge")[..., :-1, 3:]),
            ("circular", (-2, 2), lambda x: np.pad(x[..., :-1, 2:], ((0, 0), (0, 0), (1, 0), (0, 2)), "wrap")),
        )
    ],
    row(
        "pixel_shuffle",
        lambda x: shuffling.pixel_shuffle(x, 2),
        normal(2, 8, 2, 3),
        lambda x: np.moveaxis(x.reshape(2, 2, 2, 2, *x.shape[2:]), (2, 3), (3, 5)).reshape(2, 2, 2 * x.shape[2], 6),
        lambda t, x: t.pixel_shuffle(x, 2),
        empty=lambda rng: (np.zeros((2, 8, 0, 3)),),
    ),
    row(
        "pixel_unshuffle",
        lambda x: shuffling.pixel_unshuffle(x, 2),
        normal(2, 4, 6),
        lambda x: np.stack([x[c, i::2, j::2] for c in range(2) for i in range(2) for j in range(2)]),
        lambda t, x: t.pixel_unshuffle(x, 2),
        empty=lambda rng: (np.zeros((2, 0, 4)),),
    ),
    row(
        "channel_shuffle",
        lambda x: shuffling.channel_shuffle(x, 3),
        normal(2, 6, 2),
        lambda x: x[:, [0, 2, 4, 1, 3, 5]],
        lambda t, x: t.channel_shuffle(x, 3),
        empty=lambda rng: (np.zeros((0, 6, 2)),),
    ),
    *[
        row(
            f"pad:{mode}",
            lambda x, mode=mode: padding.pad(x, (2, 1, 1, 2), mode),
            normal(2, 3, 4),
            lambda x, how=how: np.pad(x, ((0, 0), (1, 2), (2, 1)), how),
            lambda t, x, mode=mode: t.nn.functional.pad(x, (2, 1, 1, 2), mode),
        )
        for mode, how in {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}.items()
    ],
]
