"""Calls with a number in the place of each parameter that is one: there a tensor of no dimension stands for it.

A call is given `m`, the module `lucid` or PyTorch, its `F`, the tensors `x`, and `n`, which gives the number as it is,
or as a tensor. Where the number is an int, the parameter takes ints only.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Inputs:
    """The tensors that calls work on, in the module `m`."""

    def __init__(self, m: Any) -> None:
        numbers = np.random.default_rng(0)

        def normal(*shape: int) -> Any:
            return m.tensor(numbers.standard_normal(shape).astype(np.float32))

        self.vector = normal(4)
        self.matrix = normal(4, 4)
        self.row = normal(1, 4)
        self.cube = normal(2, 3, 4)
        self.images = normal(2, 4, 6, 6)
        self.volumes = normal(2, 4, 4, 4, 4)
        self.blocks = normal(4, 4, 3, 3, 3)
        self.pooled = [(m.ones(1, 1, *[2] * d), m.arange(2**d).reshape(1, 1, *[2] * d)) for d in range(4)]
        self.filters = normal(4, 4, 3, 3)
        self.sequences = normal(2, 4, 6)
        self.short = normal(4, 4, 3)
        self.classes = m.tensor([0, 2, 1, 3])
        self.places = m.tensor([[0, 1, 2, 0]])
        self.counts = m.tensor([1, 2, 0, 1])


def heads(m: Any, F: Any, x: Inputs, embed: Any, count: Any, dropout: Any) -> Any:
    """Return attention of several heads, with the numbers that it takes."""
    weight = m.cat([x.matrix] * 3)
    return F.multi_head_attention_forward(
        x.cube, x.cube, x.cube, embed, count, weight, None, None, None, False, dropout, x.matrix, None
    )


# function.parameter: the call
ROWS: dict[str, Any] = {
    "elu.alpha": lambda m, F, x, n: F.elu(x.matrix, n(0.5)),
    "elu_.alpha": lambda m, F, x, n: F.elu_(x.matrix, n(0.5)),
    "celu.alpha": lambda m, F, x, n: F.celu(x.matrix, n(0.5)),
    "celu_.alpha": lambda m, F, x, n: F.celu_(x.matrix, n(0.5)),
    "hardshrink.lambd": lambda m, F, x, n: F.hardshrink(x.matrix, n(0.25)),
    "softshrink.lambd": lambda m, F, x, n: F.softshrink(x.matrix, n(0.25)),
    "threshold.threshold": lambda m, F, x, n: F.threshold(x.matrix, n(0.5), 2.0),
    "threshold_.threshold": lambda m, F, x, n: F.threshold_(x.matrix, n(0.5), 2.0),
    "threshold.value": lambda m, F, x, n: F.threshold(x.matrix, 0.5, n(2.0)),
    "threshold_.value": lambda m, F, x, n: F.threshold_(x.matrix, 0.5, n(2.0)),
    "rrelu.lower": lambda m, F, x, n: F.rrelu(x.matrix, n(0.25), 0.5),
    "rrelu_.lower": lambda m, F, x, n: F.rrelu_(x.matrix, n(0.25), 0.5),
    "rrelu.upper": lambda m, F, x, n: F.rrelu(x.matrix, 0.25, n(0.5)),
    "rrelu_.upper": lambda m, F, x, n: F.rrelu_(x.matrix, 0.25, n(0.5)),
    "glu.dim": lambda m, F, x, n: F.glu(x.matrix, n(0)),
    "hardtanh.min_val": lambda m, F, x, n: F.hardtanh(x.matrix, n(-0.5), 1.0),
    "hardtanh_.min_val": lambda m, F, x, n: F.hardtanh_(x.matrix, n(-0.5), 1.0),
    "hardtanh.max_val": lambda m, F, x, n: F.hardtanh(x.matrix, -0.5, n(1.0)),
    "hardtanh_.max_val": lambda m, F, x, n: F.hardtanh_(x.matrix, -0.5, n(1.0)),
    "leaky_relu.negative_slope": lambda m, F, x, n: F.leaky_relu(x.matrix, n(0.5)),
    "leaky_relu_.negative_slope": lambda m, F, x, n: F.leaky_relu_(x.matrix, n(0.5)),
    "softplus.beta": lambda m, F, x, n: F.softplus(x.matrix, n(2.0)),
    "softplus.threshold": lambda m, F, x, n: F.softplus(x.matrix, 1.0, n(0.5)),
    "logit.eps": lambda m, F, x, n: m.logit(x.matrix, n(0.25)),
    "gumbel_softmax.tau": lambda m, F, x, n: F.gumbel_softmax(x.matrix, n(0.5)),
    "gumbel_softmax.eps": lambda m, F, x, n: F.gumbel_softmax(x.matrix, eps=n(0.5)),
    "gumbel_softmax.dim": lambda m, F, x, n: F.gumbel_softmax(x.matrix, dim=n(0)),
    "polygamma.n": lambda m, F, x, n: m.polygamma(n(2), x.matrix),
    "unravel_index.shape": lambda m, F, x, n: m.unravel_index(x.classes, (n(2), n(3))),
    "mvlgamma.p": lambda m, F, x, n: m.mvlgamma(x.matrix, n(2)),
    "add.alpha": lambda m, F, x, n: m.add(x.matrix, x.row, alpha=n(0.5)),
    "sub.alpha": lambda m, F, x, n: m.sub(x.matrix, x.row, alpha=n(0.5)),
    "rsub.alpha": lambda m, F, x, n: m.rsub(x.matrix, x.row, alpha=n(0.5)),
    "addcmul.value": lambda m, F, x, n: m.addcmul(x.matrix, x.row, x.matrix, value=n(0.5)),
    "addcdiv.value": lambda m, F, x, n: m.addcdiv(x.matrix, x.row, x.matrix, value=n(0.5)),
    "index_add.alpha": lambda m, F, x, n: m.index_add(x.matrix, 0, x.counts, x.matrix, alpha=n(0.5)),
    "addmm.beta": lambda m, F, x, n: m.addmm(x.matrix, x.matrix, x.matrix, beta=n(0.5)),
    "addmm.alpha": lambda m, F, x, n: m.addmm(x.matrix, x.matrix, x.matrix, alpha=n(0.5)),
    "multi_head_attention_forward.embed_dim_to_check": lambda m, F, x, n: heads(m, F, x, n(4), 2, 0.0),
    "multi_head_attention_forward.num_heads": lambda m, F, x, n: heads(m, F, x, 4, n(2), 0.0),
    "multi_head_attention_forward.dropout_p": lambda m, F, x, n: heads(m, F, x, 4, 2, n(0.0)),
    "baddbmm.beta": lambda m, F, x, n: m.baddbmm(x.short, x.short, x.short[:, :3, :3], beta=n(0.5)),
    "baddbmm.alpha": lambda m, F, x, n: m.baddbmm(x.short, x.short, x.short[:, :3, :3], alpha=n(0.5)),
    "cross.dim": lambda m, F, x, n: m.cross(x.cube, x.cube * 2, n(1)),
    "matrix_power.n": lambda m, F, x, n: m.matrix_power(x.matrix, n(2)),
    "pinverse.rcond": lambda m, F, x, n: m.pinverse(x.matrix, n(0.25)),
    "pinv.rcond": lambda m, F, x, n: m.linalg.pinv(x.matrix, n(0.25)),
    "pinv.atol": lambda m, F, x, n: m.linalg.pinv(x.matrix, atol=n(0.5)),
    "pinv.rtol": lambda m, F, x, n: m.linalg.pinv(x.matrix, rtol=n(0.25)),
    "matrix_rank.tol": lambda m, F, x, n: m.linalg.matrix_rank(x.matrix, n(0.5)),
    "matrix_rank.atol": lambda m, F, x, n: m.linalg.matrix_rank(x.matrix, atol=n(0.5)),
    "matrix_rank.rtol": lambda m, F, x, n: m.linalg.matrix_rank(x.matrix, rtol=n(0.25)),
    "lstsq.rcond": lambda m, F, x, n: m.linalg.lstsq(x.matrix, x.matrix, n(0.25)).rank,
    "cond.p": lambda m, F, x, n: m.linalg.cond(x.matrix, n(1.0)),
    "matrix_norm.ord": lambda m, F, x, n: m.linalg.matrix_norm(x.matrix, n(1.0)),
    "vector_norm.ord": lambda m, F, x, n: m.linalg.vector_norm(x.matrix, n(3.0)),
    "vector_norm.dim": lambda m, F, x, n: m.linalg.vector_norm(x.matrix, 2, n(1)),
    "matrix_norm.dim": lambda m, F, x, n: m.linalg.matrix_norm(x.cube, "fro", (n(1), 2)),
    "tensorinv.ind": lambda m, F, x, n: m.linalg.tensorinv(x.matrix, n(1)),
    "tensorsolve.dims": lambda m, F, x, n: m.linalg.tensorsolve(x.matrix, x.vector, (n(1),)),
    "vecdot.dim": lambda m, F, x, n: m.linalg.vecdot(x.matrix, x.matrix, dim=n(0)),
    "norm.ord": lambda m, F, x, n: m.linalg.norm(x.matrix, n(1.0)),
    "vander.N": lambda m, F, x, n: m.vander(x.vector, n(3)),
    "cdist.p": lambda m, F, x, n: m.cdist(x.matrix, x.row, n(3.0)),
    "dist.p": lambda m, F, x, n: m.dist(x.matrix, x.row, n(3.0)),
    "pdist.p": lambda m, F, x, n: m.pdist(x.matrix, n(3.0)),
    "pairwise_distance.p": lambda m, F, x, n: F.pairwise_distance(x.matrix, x.row, n(3.0)),
    "pairwise_distance.eps": lambda m, F, x, n: F.pairwise_distance(x.matrix, x.row, eps=n(0.5)),
    "renorm.p": lambda m, F, x, n: m.renorm(x.matrix, n(3.0), 0, 0.5),
    "renorm.dim": lambda m, F, x, n: m.renorm(x.matrix, 2, n(1), 0.5),
    "renorm.maxnorm": lambda m, F, x, n: m.renorm(x.matrix, 2, 0, n(0.5)),
    "scaled_dot_product_attention.dropout_p": lambda m, F, x, n: F.scaled_dot_product_attention(
        x.cube, x.cube, x.cube, dropout_p=n(0.0)
    ),
    "scaled_dot_product_attention.scale": lambda m, F, x, n: F.scaled_dot_product_attention(
        x.cube, x.cube, x.cube, scale=n(0.5)
    ),
    "as_strided.storage_offset": lambda m, F, x, n: m.as_strided(x.vector, (2,), (1,), n(1)),
    "channel_shuffle.groups": lambda m, F, x, n: m.channel_shuffle(x.images, n(2)),
    "pixel_shuffle.upscale_factor": lambda m, F, x, n: m.pixel_shuffle(x.images, n(2)),
    "pixel_unshuffle.downscale_factor": lambda m, F, x, n: m.pixel_unshuffle(x.images, n(2)),
    "unfold.kernel_size": lambda m, F, x, n: F.unfold(x.images, n(2)),
    "unfold.dilation": lambda m, F, x, n: F.unfold(x.images, 2, dilation=n(2)),
    "unfold.padding": lambda m, F, x, n: F.unfold(x.images, 2, padding=n(1)),
    "unfold.stride": lambda m, F, x, n: F.unfold(x.images, 2, stride=n(2)),
    "fold.output_size": lambda m, F, x, n: F.fold(x.matrix, n(3), 2),
    "fold.kernel_size": lambda m, F, x, n: F.fold(x.matrix, 3, n(2)),
    "fold.dilation": lambda m, F, x, n: F.fold(x.matrix, 4, 2, dilation=n(2)),
    "fold.padding": lambda m, F, x, n: F.fold(x.matrix, 1, 2, padding=n(1)),
    "fold.stride": lambda m, F, x, n: F.fold(x.matrix, 4, 2, stride=n(2)),
    "affine_grid.size": lambda m, F, x, n: F.affine_grid(x.cube[:, :2, :3], (n(2), 1, n(3), n(4)), False),
    "interpolate.scale_factor": lambda m, F, x, n: F.interpolate(x.images, scale_factor=n(0.5)),
    "interpolate.size": lambda m, F, x, n: F.interpolate(x.images, n(4)),
    "pad.value": lambda m, F, x, n: F.pad(x.matrix, (1, 2), value=n(0.5)),
    "flip.dims": lambda m, F, x, n: m.flip(x.matrix, (n(1),)),
    "permute.dims": lambda m, F, x, n: m.permute(x.cube, (n(2), n(0), n(1))),
    "roll.shifts": lambda m, F, x, n: m.roll(x.matrix, n(1), 0),
    "roll.dims": lambda m, F, x, n: m.roll(x.matrix, 1, n(1)),
    "rot90.k": lambda m, F, x, n: m.rot90(x.matrix, n(1), (0, 1)),
    "rot90.dims": lambda m, F, x, n: m.rot90(x.matrix, 1, (n(0), n(1))),
    "swapaxes.axis0": lambda m, F, x, n: m.swapaxes(x.cube, n(0), 1),
    "swapaxes.axis1": lambda m, F, x, n: m.swapaxes(x.cube, 0, n(1)),
    "swapdims.dim0": lambda m, F, x, n: m.swapdims(x.cube, n(0), 1),
    "swapdims.dim1": lambda m, F, x, n: m.swapdims(x.cube, 0, n(1)),
    "transpose.dim0": lambda m, F, x, n: m.transpose(x.cube, n(0), 1),
    "transpose.dim1": lambda m, F, x, n: m.transpose(x.cube, 0, n(1)),
    "as_strided.size": lambda m, F, x, n: m.as_strided(x.matrix, (n(2), n(3)), (4, 1)),
    "as_strided.stride": lambda m, F, x, n: m.as_strided(x.matrix, (2, 3), (n(4), n(1))),
    "as_strided_scatter.size": lambda m, F, x, n: m.as_strided_scatter(x.matrix, x.row, (n(1), n(4)), (4, 1)),
    "as_strided_scatter.stride": lambda m, F, x, n: m.as_strided_scatter(x.matrix, x.row, (1, 4), (n(4), n(1))),
    "as_strided_scatter.storage_offset": lambda m, F, x, n: m.as_strided_scatter(x.matrix, x.row, (1, 4), (4, 1), n(4)),
    "select_scatter.dim": lambda m, F, x, n: m.select_scatter(x.matrix, x.vector, n(1), 2),
    "select_scatter.index": lambda m, F, x, n: m.select_scatter(x.matrix, x.vector, 1, n(2)),
    "slice_scatter.dim": lambda m, F, x, n: m.slice_scatter(x.matrix, x.matrix[:, :2] * 2, n(1), 1, 3),
    "slice_scatter.start": lambda m, F, x, n: m.slice_scatter(x.matrix, x.row, 0, n(1), 2),
    "slice_scatter.end": lambda m, F, x, n: m.slice_scatter(x.matrix, x.row, 0, 0, n(1)),
    "slice_scatter.step": lambda m, F, x, n: m.slice_scatter(x.matrix, x.matrix[:2] * 2, 0, 0, 4, n(2)),
    "movedim.source": lambda m, F, x, n: m.movedim(x.cube, n(0), 1),
    "movedim.destination": lambda m, F, x, n: m.movedim(x.cube, 0, n(1)),
    "moveaxis.source": lambda m, F, x, n: m.moveaxis(x.cube, n(0), 1),
    "moveaxis.destination": lambda m, F, x, n: m.moveaxis(x.cube, 0, n(1)),
    "pad.pad": lambda m, F, x, n: F.pad(x.matrix, (n(1), n(2))),
    "batch_norm.momentum": lambda m, F, x, n: F.batch_norm(x.cube, None, None, training=True, momentum=n(0.5)),
    "batch_norm.eps": lambda m, F, x, n: F.batch_norm(x.cube, None, None, training=True, eps=n(0.5)),
    "instance_norm.momentum": lambda m, F, x, n: F.instance_norm(x.cube, momentum=n(0.5)),
    "instance_norm.eps": lambda m, F, x, n: F.instance_norm(x.cube, eps=n(0.5)),
    "local_response_norm.size": lambda m, F, x, n: F.local_response_norm(x.sequences, n(3)),
    "local_response_norm.alpha": lambda m, F, x, n: F.local_response_norm(x.sequences, 3, n(0.5)),
    "local_response_norm.beta": lambda m, F, x, n: F.local_response_norm(x.sequences, 3, beta=n(0.5)),
    "local_response_norm.k": lambda m, F, x, n: F.local_response_norm(x.sequences, 3, k=n(0.5)),
    "broadcast_to.size": lambda m, F, x, n: m.broadcast_to(x.row, (n(3), n(4))),
    "expand.sizes": lambda m, F, x, n: x.row.expand(n(3), n(4)),
    "allclose.rtol": lambda m, F, x, n: m.allclose(x.matrix, x.matrix, rtol=n(0.5)),
    "allclose.atol": lambda m, F, x, n: m.allclose(x.matrix, x.matrix, atol=n(0.5)),
    "isclose.rtol": lambda m, F, x, n: m.isclose(x.matrix, x.matrix + 0.25, rtol=n(0.5)),
    "isclose.atol": lambda m, F, x, n: m.isclose(x.matrix, x.matrix + 0.25, atol=n(0.5)),
    "conv1d.stride": lambda m, F, x, n: F.conv1d(x.sequences, x.short, stride=n(2)),
    "conv1d.padding": lambda m, F, x, n: F.conv1d(x.sequences, x.short, padding=n(1)),
    "conv1d.dilation": lambda m, F, x, n: F.conv1d(x.sequences, x.short, dilation=n(2)),
    "conv1d.groups": lambda m, F, x, n: F.conv1d(x.sequences, x.short[:, :2], groups=n(2)),
    "conv2d.stride": lambda m, F, x, n: F.conv2d(x.images, x.filters, stride=n(2)),
    "conv3d.stride": lambda m, F, x, n: F.conv3d(x.volumes, x.blocks, stride=n(2)),
    "conv2d.padding": lambda m, F, x, n: F.conv2d(x.images, x.filters, padding=n(1)),
    "conv3d.padding": lambda m, F, x, n: F.conv3d(x.volumes, x.blocks, padding=n(1)),
    "conv2d.dilation": lambda m, F, x, n: F.conv2d(x.images, x.filters, dilation=n(2)),
    "conv3d.dilation": lambda m, F, x, n: F.conv3d(x.volumes, x.blocks, padding=1, dilation=n(2)),
    "conv2d.groups": lambda m, F, x, n: F.conv2d(x.images, x.filters[:, :2], groups=n(2)),
    "conv3d.groups": lambda m, F, x, n: F.conv3d(x.volumes, x.blocks[:, :2], groups=n(2)),
    "conv_transpose1d.stride": lambda m, F, x, n: F.conv_transpose1d(x.sequences, x.short, stride=n(2)),
    "conv_transpose1d.padding": lambda m, F, x, n: F.conv_transpose1d(x.sequences, x.short, padding=n(1)),
    "conv_transpose1d.output_padding": lambda m, F, x, n: F.conv_transpose1d(
        x.sequences, x.short, stride=2, output_padding=n(1)
    ),
    "conv_transpose1d.groups": lambda m, F, x, n: F.conv_transpose1d(x.sequences, x.short, groups=n(2)),
    "conv_transpose1d.dilation": lambda m, F, x, n: F.conv_transpose1d(x.sequences, x.short, dilation=n(2)),
    "conv_transpose2d.stride": lambda m, F, x, n: F.conv_transpose2d(x.images, x.filters, stride=n(2)),
    "conv_transpose3d.stride": lambda m, F, x, n: F.conv_transpose3d(x.volumes, x.blocks, stride=n(2)),
    "conv_transpose2d.padding": lambda m, F, x, n: F.conv_transpose2d(x.images, x.filters, padding=n(1)),
    "conv_transpose3d.padding": lambda m, F, x, n: F.conv_transpose3d(x.volumes, x.blocks, padding=n(1)),
    "conv_transpose2d.output_padding": lambda m, F, x, n: F.conv_transpose2d(
        x.images, x.filters, stride=2, output_padding=n(1)
    ),
    "conv_transpose3d.output_padding": lambda m, F, x, n: F.conv_transpose3d(
        x.volumes, x.blocks, stride=2, output_padding=n(1)
    ),
    "conv_transpose2d.groups": lambda m, F, x, n: F.conv_transpose2d(x.images, x.filters, groups=n(2)),
    "conv_transpose3d.groups": lambda m, F, x, n: F.conv_transpose3d(x.volumes, x.blocks, groups=n(2)),
    "conv_transpose2d.dilation": lambda m, F, x, n: F.conv_transpose2d(x.images, x.filters, dilation=n(2)),
    "conv_transpose3d.dilation": lambda m, F, x, n: F.conv_transpose3d(x.volumes, x.blocks, dilation=n(2)),
    "cross_entropy.ignore_index": lambda m, F, x, n: F.cross_entropy(x.matrix, x.classes, ignore_index=n(2)),
    "cross_entropy.label_smoothing": lambda m, F, x, n: F.cross_entropy(x.matrix, x.classes, label_smoothing=n(0.5)),
    "nll_loss.ignore_index": lambda m, F, x, n: F.nll_loss(x.matrix, x.classes, ignore_index=n(2)),
    "huber_loss.delta": lambda m, F, x, n: F.huber_loss(x.matrix, x.matrix * 3, delta=n(0.5)),
    "smooth_l1_loss.beta": lambda m, F, x, n: F.smooth_l1_loss(x.matrix, x.matrix * 3, beta=n(0.5)),
    "ctc_loss.blank": lambda m, F, x, n: F.ctc_loss(
        m.log_softmax(x.cube, 2), x.classes[:3], (2, 2, 2), (1, 1, 1), n(3)
    ),
    "gaussian_nll_loss.eps": lambda m, F, x, n: F.gaussian_nll_loss(x.matrix, x.matrix * 2, x.row * 0, eps=n(0.5)),
    "poisson_nll_loss.eps": lambda m, F, x, n: F.poisson_nll_loss(x.matrix**2, x.matrix, False, eps=n(0.5)),
    "multi_margin_loss.p": lambda m, F, x, n: F.multi_margin_loss(x.matrix, x.classes, n(2)),
    "multi_margin_loss.margin": lambda m, F, x, n: F.multi_margin_loss(x.matrix, x.classes, margin=n(0.5)),
    "triplet_margin_loss.p": lambda m, F, x, n: F.triplet_margin_loss(x.matrix, x.row, x.row * 2, p=n(3.0)),
    "triplet_margin_loss.eps": lambda m, F, x, n: F.triplet_margin_loss(x.matrix, x.row, x.row * 2, eps=n(0.5)),
    "hinge_embedding_loss.margin": lambda m, F, x, n: F.hinge_embedding_loss(x.row, x.row * 0 - 1, n(0.5)),
    "cumprod.dim": lambda m, F, x, n: m.cumprod(x.matrix, n(1)),
    "cumsum.dim": lambda m, F, x, n: m.cumsum(x.matrix, n(1)),
    "prod.dim": lambda m, F, x, n: m.prod(x.matrix, n(1)),
    "diag.diagonal": lambda m, F, x, n: m.diag(x.matrix, n(1)),
    "diag_embed.offset": lambda m, F, x, n: m.diag_embed(x.matrix, n(1)),
    "diag_embed.dim1": lambda m, F, x, n: m.diag_embed(x.matrix, 0, n(1), 2),
    "diag_embed.dim2": lambda m, F, x, n: m.diag_embed(x.matrix, 0, 1, n(2)),
    "diagonal.offset": lambda m, F, x, n: m.diagonal(x.matrix, n(1)),
    "diagonal.dim1": lambda m, F, x, n: m.diagonal(x.matrix, 0, n(1), 0),
    "diagonal.dim2": lambda m, F, x, n: m.diagonal(x.matrix, 0, 0, n(1)),
    "diagonal_scatter.offset": lambda m, F, x, n: m.diagonal_scatter(x.matrix, x.vector[:3], n(1)),
    "diagonal_scatter.dim1": lambda m, F, x, n: m.diagonal_scatter(x.matrix, x.vector[:3], 1, n(1), 0),
    "diagonal_scatter.dim2": lambda m, F, x, n: m.diagonal_scatter(x.matrix, x.vector[:3], 1, 1, n(0)),
    "tril.diagonal": lambda m, F, x, n: m.tril(x.matrix, n(1)),
    "triu.diagonal": lambda m, F, x, n: m.triu(x.matrix, n(1)),
    "tril_indices.row": lambda m, F, x, n: m.tril_indices(n(2), 3),
    "tril_indices.col": lambda m, F, x, n: m.tril_indices(2, n(3)),
    "tril_indices.offset": lambda m, F, x, n: m.tril_indices(2, 3, n(1)),
    "triu_indices.row": lambda m, F, x, n: m.triu_indices(n(2), 3),
    "triu_indices.col": lambda m, F, x, n: m.triu_indices(2, n(3)),
    "triu_indices.offset": lambda m, F, x, n: m.triu_indices(2, 3, n(1)),
    "dropout.p": lambda m, F, x, n: F.dropout(x.matrix, n(1.0)),
    "dropout1d.p": lambda m, F, x, n: F.dropout1d(x.sequences, n(1.0)),
    "dropout2d.p": lambda m, F, x, n: F.dropout2d(x.images, n(1.0)),
    "dropout3d.p": lambda m, F, x, n: F.dropout3d(x.images, n(1.0)),
    "alpha_dropout.p": lambda m, F, x, n: F.alpha_dropout(x.matrix, n(1.0), True),
    "feature_alpha_dropout.p": lambda m, F, x, n: F.feature_alpha_dropout(x.matrix, n(1.0), True),
    "tensordot.dims": lambda m, F, x, n: m.tensordot(x.matrix, x.matrix, n(1)),
    "embedding.padding_idx": lambda m, F, x, n: F.embedding(x.classes, x.matrix, padding_idx=n(1)),
    "embedding.max_norm": lambda m, F, x, n: F.embedding(x.classes, x.matrix.clone(), max_norm=n(0.5)),
    "embedding.norm_type": lambda m, F, x, n: F.embedding(x.classes, x.matrix.clone(), max_norm=0.5, norm_type=n(1.0)),
    "embedding_bag.max_norm": lambda m, F, x, n: F.embedding_bag(x.places, x.matrix.clone(), max_norm=n(0.5)),
    "embedding_bag.norm_type": lambda m, F, x, n: F.embedding_bag(
        x.places, x.matrix.clone(), max_norm=0.5, norm_type=n(1.0)
    ),
    "embedding_bag.padding_idx": lambda m, F, x, n: F.embedding_bag(x.places, x.matrix, padding_idx=n(1)),
    "amax.dim": lambda m, F, x, n: m.amax(x.matrix, n(1)),
    "amin.dim": lambda m, F, x, n: m.amin(x.matrix, n(1)),
    "argmax.dim": lambda m, F, x, n: m.argmax(x.matrix, n(1)),
    "argmin.dim": lambda m, F, x, n: m.argmin(x.matrix, n(1)),
    "empty.size": lambda m, F, x, n: m.empty(n(0), n(3)),
    "zeros.size": lambda m, F, x, n: m.zeros(n(2), n(3)),
    "ones.size": lambda m, F, x, n: m.ones(n(2), n(3)),
    "full.size": lambda m, F, x, n: m.full((n(2), n(3)), 1.0),
    "full.fill_value": lambda m, F, x, n: m.full((2, 3), n(1.5)),
    "gather.dim": lambda m, F, x, n: m.gather(x.matrix, n(0), x.places),
    "scatter.dim": lambda m, F, x, n: m.scatter(x.matrix, n(0), x.places, x.row),
    "scatter_add.dim": lambda m, F, x, n: m.scatter_add(x.matrix, n(0), x.places, x.row),
    "scatter_reduce.dim": lambda m, F, x, n: m.scatter_reduce(x.matrix, n(0), x.places, x.row, "amax"),
    "index_reduce.dim": lambda m, F, x, n: m.index_reduce(x.matrix, n(0), x.classes, x.matrix, "amax"),
    "take_along_dim.dim": lambda m, F, x, n: m.take_along_dim(x.matrix, x.places, n(0)),
    "one_hot.num_classes": lambda m, F, x, n: F.one_hot(x.classes, n(5)),
    "manual_seed.seed": lambda m, F, x, n: m.manual_seed(n(5)).initial_seed(),
    "cat.dim": lambda m, F, x, n: m.cat([x.matrix, x.matrix], n(1)),
    "concat.dim": lambda m, F, x, n: m.concat([x.matrix, x.matrix], n(1)),
    "concatenate.dim": lambda m, F, x, n: m.concatenate([x.matrix, x.matrix], n(1)),
    "stack.dim": lambda m, F, x, n: m.stack([x.matrix, x.matrix], n(1)),
    "nan_to_num.nan": lambda m, F, x, n: m.nan_to_num(m.log(x.matrix), n(1.5)),
    "nan_to_num.posinf": lambda m, F, x, n: m.nan_to_num(-m.log(x.matrix * 0), 0.0, n(1.5)),
    "nan_to_num.neginf": lambda m, F, x, n: m.nan_to_num(m.log(x.matrix * 0), 0.0, 0.0, n(1.5)),
    "group_norm.num_groups": lambda m, F, x, n: F.group_norm(x.sequences, n(2)),
    "group_norm.eps": lambda m, F, x, n: F.group_norm(x.sequences, 2, eps=n(0.5)),
    "layer_norm.normalized_shape": lambda m, F, x, n: F.layer_norm(x.matrix, (n(4),)),
    "layer_norm.eps": lambda m, F, x, n: F.layer_norm(x.matrix, (4,), eps=n(0.5)),
    "rms_norm.normalized_shape": lambda m, F, x, n: F.rms_norm(x.matrix, (n(4),)),
    "rms_norm.eps": lambda m, F, x, n: F.rms_norm(x.matrix, (4,), eps=n(0.5)),
    "cosine_similarity.dim": lambda m, F, x, n: F.cosine_similarity(x.matrix, x.matrix * 2, n(0)),
    "cosine_similarity.eps": lambda m, F, x, n: F.cosine_similarity(x.matrix, x.matrix * 2, eps=n(0.5)),
    "logsumexp.dim": lambda m, F, x, n: m.logsumexp(x.matrix, n(0)),
    "norm.p": lambda m, F, x, n: m.norm(x.matrix, n(3.0)),
    "norm.dim": lambda m, F, x, n: m.norm(x.matrix, 2, n(1)),
    "normalize.p": lambda m, F, x, n: F.normalize(x.matrix, n(3.0)),
    "normalize.dim": lambda m, F, x, n: F.normalize(x.matrix, dim=n(0)),
    "normalize.eps": lambda m, F, x, n: F.normalize(x.matrix, eps=n(9.0)),
    "narrow.dim": lambda m, F, x, n: m.narrow(x.matrix, n(1), 1, 2),
    "narrow.start": lambda m, F, x, n: m.narrow(x.matrix, 1, n(1), 2),
    "narrow.length": lambda m, F, x, n: m.narrow(x.matrix, 1, 1, n(2)),
    "select.dim": lambda m, F, x, n: m.select(x.matrix, n(1), 1),
    "select.index": lambda m, F, x, n: m.select(x.matrix, 1, n(1)),
    "unfold.dimension": lambda m, F, x, n: x.matrix.unfold(n(1), 2, 1),
    "unfold.size": lambda m, F, x, n: x.matrix.unfold(1, n(2), 1),
    "unfold.step": lambda m, F, x, n: x.matrix.unfold(1, 2, n(1)),
    "adaptive_avg_pool1d.output_size": lambda m, F, x, n: F.adaptive_avg_pool1d(x.sequences, n(4)),
    "adaptive_avg_pool2d.output_size": lambda m, F, x, n: F.adaptive_avg_pool2d(x.images, (n(4), n(4))),
    "adaptive_avg_pool3d.output_size": lambda m, F, x, n: F.adaptive_avg_pool3d(x.images, (n(4), n(4), 2)),
    "adaptive_max_pool1d.output_size": lambda m, F, x, n: F.adaptive_max_pool1d(x.sequences, n(4)),
    "adaptive_max_pool2d.output_size": lambda m, F, x, n: F.adaptive_max_pool2d(x.images, (n(4), n(4))),
    "adaptive_max_pool3d.output_size": lambda m, F, x, n: F.adaptive_max_pool3d(x.images, (n(4), n(4), 2)),
    "lp_pool1d.norm_type": lambda m, F, x, n: F.lp_pool1d(x.sequences, n(2.0), 2),
    "lp_pool1d.kernel_size": lambda m, F, x, n: F.lp_pool1d(x.sequences, 2, n(2)),
    "lp_pool1d.stride": lambda m, F, x, n: F.lp_pool1d(x.sequences, 2, 2, n(1)),
    "lp_pool2d.norm_type": lambda m, F, x, n: F.lp_pool2d(x.images, n(2.0), 2),
    "lp_pool2d.kernel_size": lambda m, F, x, n: F.lp_pool2d(x.images, 2, (n(2), n(3))),
    "lp_pool2d.stride": lambda m, F, x, n: F.lp_pool2d(x.images, 2, 2, n(1)),
    "lp_pool3d.norm_type": lambda m, F, x, n: F.lp_pool3d(x.images, n(2.0), 2),
    "lp_pool3d.kernel_size": lambda m, F, x, n: F.lp_pool3d(x.images, 2, (n(2), n(3), 1)),
    "lp_pool3d.stride": lambda m, F, x, n: F.lp_pool3d(x.images, 2, 2, n(1)),
    "fractional_max_pool2d.kernel_size": lambda m, F, x, n: F.fractional_max_pool2d(x.images, n(3), 4),
    "fractional_max_pool2d.output_size": lambda m, F, x, n: F.fractional_max_pool2d(x.images, 3, n(4)),
    "fractional_max_pool2d.output_ratio": lambda m, F, x, n: F.fractional_max_pool2d(
        x.images, 4, output_ratio=(n(0.5), n(0.5))
    ),
    "fractional_max_pool3d.kernel_size": lambda m, F, x, n: F.fractional_max_pool3d(x.volumes, n(2), 3),
    "fractional_max_pool3d.output_size": lambda m, F, x, n: F.fractional_max_pool3d(x.volumes, 2, n(3)),
    "fractional_max_pool3d.output_ratio": lambda m, F, x, n: F.fractional_max_pool3d(
        x.volumes, 2, output_ratio=(n(0.5), n(0.5), n(0.5))
    ),
    **{
        f"max_unpool{d}d.{key}": lambda m, F, x, n, d=d, key=key, v=v: getattr(F, f"max_unpool{d}d")(
            *x.pooled[d], **{"kernel_size": 2, key: n(v) if key != "output_size" else (n(v),) * d}
        )
        for d in (1, 2, 3)
        for key, v in (("kernel_size", 3), ("stride", 3), ("padding", 1), ("output_size", 5))
    },
    "avg_pool2d.divisor_override": lambda m, F, x, n: F.avg_pool2d(x.images, 2, divisor_override=n(3)),
    "avg_pool3d.divisor_override": lambda m, F, x, n: F.avg_pool3d(x.images, 2, divisor_override=n(3)),
    "rand.size": lambda m, F, x, n: m.rand(n(2), n(3)).shape,
    "randn.size": lambda m, F, x, n: m.randn(n(2), n(3)).shape,
    "normal.size": lambda m, F, x, n: m.normal(0.0, 1.0, (n(2), n(3))).shape,
    "randint.low": lambda m, F, x, n: m.randint(n(2), 3, (4,)),
    "randint.high": lambda m, F, x, n: m.randint(2, n(3), (4,)),
    "randint.size": lambda m, F, x, n: m.randint(2, 3, (n(4),)),
    "randint_like.low": lambda m, F, x, n: m.randint_like(x.matrix, n(2), 3),
    "randint_like.high": lambda m, F, x, n: m.randint_like(x.matrix, 2, n(3)),
    "randperm.n": lambda m, F, x, n: m.randperm(n(1)),
    "bernoulli.p": lambda m, F, x, n: m.bernoulli(x.matrix, n(1.0)),
    "multinomial.num_samples": lambda m, F, x, n: m.multinomial(m.abs(x.matrix), n(2)).shape,
    "eye.n": lambda m, F, x, n: m.eye(n(2)),
    "eye.m": lambda m, F, x, n: m.eye(2, n(3)),
    "arange.start": lambda m, F, x, n: m.arange(n(1.0), 5),
    "arange.end": lambda m, F, x, n: m.arange(1, n(5.0)),
    "arange.step": lambda m, F, x, n: m.arange(1, 5, n(2.0)),
    "linspace.start": lambda m, F, x, n: m.linspace(n(1.0), 2.0, 3),
    "linspace.end": lambda m, F, x, n: m.linspace(1.0, n(2.0), 3),
    "linspace.steps": lambda m, F, x, n: m.linspace(1.0, 2.0, n(3)),
    "logspace.start": lambda m, F, x, n: m.logspace(n(1.0), 2.0, 3),
    "logspace.end": lambda m, F, x, n: m.logspace(1.0, n(2.0), 3),
    "logspace.steps": lambda m, F, x, n: m.logspace(1.0, 2.0, n(3)),
    "logspace.base": lambda m, F, x, n: m.logspace(1.0, 2.0, 3, base=n(2.0)),
    "hamming_window.alpha": lambda m, F, x, n: m.hamming_window(4, True, n(0.5)),
    "hamming_window.beta": lambda m, F, x, n: m.hamming_window(4, True, 0.5, n(0.25)),
    "kaiser_window.beta": lambda m, F, x, n: m.kaiser_window(4, True, n(2.0)),
    "all.dim": lambda m, F, x, n: m.all(x.matrix, n(1)),
    "any.dim": lambda m, F, x, n: m.any(x.matrix, n(1)),
    "count_nonzero.dim": lambda m, F, x, n: m.count_nonzero(x.matrix, n(1)),
    "aminmax.dim": lambda m, F, x, n: m.aminmax(x.matrix, dim=n(0)),
    "cov.correction": lambda m, F, x, n: m.cov(x.matrix, correction=n(2)),
    "diff.n": lambda m, F, x, n: m.diff(x.matrix, n(2)),
    "diff.dim": lambda m, F, x, n: m.diff(x.matrix, dim=n(0)),
    "histc.bins": lambda m, F, x, n: m.histc(x.matrix, n(3)),
    "histc.min": lambda m, F, x, n: m.histc(x.matrix, 3, n(-0.5), 0.5),
    "histc.max": lambda m, F, x, n: m.histc(x.matrix, 3, -0.5, n(0.5)),
    "kthvalue.k": lambda m, F, x, n: m.kthvalue(x.matrix, n(2)),
    "kthvalue.dim": lambda m, F, x, n: m.kthvalue(x.matrix, 2, n(0)),
    "mean.dim": lambda m, F, x, n: m.mean(x.matrix, n(1)),
    "nansum.dim": lambda m, F, x, n: m.nansum(x.matrix, n(1)),
    "sum.dim": lambda m, F, x, n: m.sum(x.matrix, n(1)),
    "sum.dims": lambda m, F, x, n: m.sum(x.matrix, (n(0), n(1))),
    "repeat.sizes": lambda m, F, x, n: x.matrix.repeat(n(2), n(1)),
    "repeat_interleave.repeats": lambda m, F, x, n: m.repeat_interleave(x.matrix, n(2), 0),
    "repeat_interleave.dim": lambda m, F, x, n: m.repeat_interleave(x.matrix, 2, n(0)),
    "repeat_interleave.output_size": lambda m, F, x, n: m.repeat_interleave(x.matrix, x.counts, 0, output_size=n(4)),
    "tile.dims": lambda m, F, x, n: m.tile(x.matrix, (n(2), n(1))),
    "round.decimals": lambda m, F, x, n: m.round(x.matrix, decimals=n(1)),
    "flatten.start_dim": lambda m, F, x, n: m.flatten(x.cube, n(1)),
    "flatten.end_dim": lambda m, F, x, n: m.flatten(x.cube, 0, n(1)),
    "reshape.shape": lambda m, F, x, n: m.reshape(x.matrix, (n(2), n(8))),
    "view.sizes": lambda m, F, x, n: x.matrix.view(n(2), n(8)),
    "squeeze.dim": lambda m, F, x, n: m.squeeze(x.row, n(0)),
    "unsqueeze.dim": lambda m, F, x, n: m.unsqueeze(x.row, n(1)),
    "unflatten.dim": lambda m, F, x, n: m.unflatten(x.matrix, n(1), (2, 2)),
    "unflatten.sizes": lambda m, F, x, n: m.unflatten(x.matrix, 1, (n(2), n(2))),
    "index_add.dim": lambda m, F, x, n: m.index_add(x.matrix, n(0), x.classes, x.matrix),
    "index_copy.dim": lambda m, F, x, n: m.index_copy(x.matrix, n(0), x.classes, x.matrix),
    "index_fill.dim": lambda m, F, x, n: m.index_fill(x.matrix, n(0), x.classes, 1.0),
    "index_select.dim": lambda m, F, x, n: m.index_select(x.matrix, n(1), x.classes),
    "softmax.dim": lambda m, F, x, n: m.softmax(x.matrix, n(0)),
    "log_softmax.dim": lambda m, F, x, n: m.log_softmax(x.matrix, n(0)),
    "softmin.dim": lambda m, F, x, n: F.softmin(x.matrix, n(0)),
    "sort.dim": lambda m, F, x, n: m.sort(x.matrix, n(0)),
    "argsort.dim": lambda m, F, x, n: m.argsort(x.matrix, n(0)),
    "topk.k": lambda m, F, x, n: m.topk(x.matrix, n(2)),
    "topk.dim": lambda m, F, x, n: m.topk(x.matrix, 2, n(0)),
    "unique.dim": lambda m, F, x, n: m.unique(x.matrix, dim=n(0)),
    "unique_consecutive.dim": lambda m, F, x, n: m.unique_consecutive(x.matrix, dim=n(0)),
    "bincount.minlength": lambda m, F, x, n: m.bincount(x.classes, minlength=n(7)),
    "tensor_split.indices_or_sections": lambda m, F, x, n: m.tensor_split(x.matrix, n(2)),
    "tensor_split.dim": lambda m, F, x, n: m.tensor_split(x.matrix, 2, n(1)),
    "combinations.r": lambda m, F, x, n: m.combinations(x.vector, n(3)),
    "unbind.dim": lambda m, F, x, n: m.unbind(x.matrix, n(1)),
    "median.dim": lambda m, F, x, n: m.median(x.matrix, n(1)),
}
for _kind in ("avg", "max"):
    for _d in (1, 2, 3):
        for _key, _value in (("kernel_size", 2), ("stride", 1), ("padding", 1), ("dilation", 1)):
            if _kind == "max" or _key != "dilation":
                ROWS[f"{_kind}_pool{_d}d.{_key}"] = (
                    lambda m, F, x, n, name=f"{_kind}_pool{_d}d", d=_d, key=_key, v=_value: getattr(F, name)(
                        x.sequences if d == 1 else x.images, **{"kernel_size": 3, key: n(v)}
                    )
                )
for _name in ("std", "std_mean", "var", "var_mean"):
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, n(1))
    ROWS[f"{_name}.correction"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, 0, correction=n(2.0))
for _name in ("cummax", "cummin", "logcumsumexp", "mode", "nanmean", "nanmedian"):
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, n(0))
for _name in ("quantile", "nanquantile"):
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, 0.5, n(0))
for _name in ("trapezoid", "trapz", "cumulative_trapezoid"):
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, dim=n(0))
    ROWS[f"{_name}.dx"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, dx=n(0.5))
for _name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
    ROWS[f"{_name}_window.window_length"] = lambda m, F, x, n, name=f"{_name}_window": getattr(m, name)(n(4))
for _name in ("cosine_embedding", "margin_ranking", "triplet_margin", "triplet_margin_with_distance"):
    ROWS[f"{_name}_loss.margin"] = lambda m, F, x, n, name=f"{_name}_loss": getattr(F, name)(
        x.matrix, x.matrix + 1, x.vector if name[0] == "c" else x.row, margin=n(0.5)
    )
for _name in ("hsplit", "vsplit", "dsplit"):
    ROWS[f"{_name}.indices_or_sections"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.cube[:, :2], n(2))
for _name in ("split", "unsafe_split"):
    ROWS[f"{_name}.split_size_or_sections"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, n(2))
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, 2, n(1))
for _name in ("chunk", "unsafe_chunk"):
    ROWS[f"{_name}.chunks"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, n(2))
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, 2, n(1))
for _name in ("split_with_sizes", "unsafe_split_with_sizes"):
    ROWS[f"{_name}.split_sizes"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, (n(1), n(3)))
    ROWS[f"{_name}.dim"] = lambda m, F, x, n, name=_name: getattr(m, name)(x.matrix, (1, 3), n(1))
for _name in ("addbmm", "addmv", "addr"):
    for _key in ("beta", "alpha"):
        ROWS[f"{_name}.{_key}"] = lambda m, F, x, n, name=_name, key=_key: getattr(m, name)(
            *{
                "addbmm": (x.matrix, x.short, x.short.mT),
                "addmv": (x.vector, x.matrix, x.row[0]),
                "addr": (x.matrix, x.vector, x.row[0]),
            }[name],
            **{key: n(0.5)},
        )
for _key, _value in (("count", 1), ("offset", 1)):
    ROWS[f"frombuffer.{_key}"] = lambda m, F, x, n, key=_key, value=_value: m.frombuffer(
        bytearray(b"abc"), dtype=m.uint8, **{key: n(value)}
    )
for _key, _value in (("n_fft", 4), ("hop_length", 2), ("win_length", 3)):
    ROWS[f"stft.{_key}"] = lambda m, F, x, n, key=_key, value=_value: m.stft(
        x.row, **{"n_fft": 4, "return_complex": True, "window": m.ones(3 if key == "win_length" else 4), key: n(value)}
    )
for _key, _value in (("n_fft", 4), ("hop_length", 2), ("win_length", 3), ("length", 5)):
    ROWS[f"istft.{_key}"] = lambda m, F, x, n, key=_key, value=_value: m.istft(
        m.complex(x.cube[0], x.cube[1]),
        **{"n_fft": 4, "window": m.ones(3 if key == "win_length" else 4), key: n(value)},
    )
