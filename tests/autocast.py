"""What each op's result is under `autocast`, by type of device, for operands of float32, of its dtype, and of both."""

from __future__ import annotations

from typing import NamedTuple

LOWER, WIDE, SAME, PROMOTED = "lower", "float32", "same", "promoted"


class Row(NamedTuple):
    """``call(library, a, b)`` of two matrices of shape (4, 4) in (0, 1), and what comes out on each device."""

    call: object
    cpu: str
    cuda: str


def _row(call, cpu, cuda=None):
    return Row(call, cpu, cuda or cpu)


def _classes(library, a):
    return library.arange(4, device=a.device)


ROWS = {
    "matmul": _row(lambda lib, a, b: a @ b, LOWER),
    "mm": _row(lambda lib, a, b: lib.mm(a, b), LOWER),
    "bmm": _row(lambda lib, a, b: lib.bmm(a[None], b[None]), LOWER),
    "addmm": _row(lambda lib, a, b: lib.addmm(a, b, a), LOWER),
    "baddbmm": _row(lambda lib, a, b: lib.baddbmm(a[None], b[None], a[None]), LOWER),
    "einsum": _row(lambda lib, a, b: lib.einsum("ij,kj->ik", a, b), LOWER),
    "einsum of products alone": _row(lambda lib, a, b: lib.einsum("ij,ij->ij", a, b), PROMOTED),
    "einsum of all pairs": _row(lambda lib, a, b: lib.einsum("i,j->ij", a[0], b[0]), PROMOTED),
    "inner": _row(lambda lib, a, b: lib.inner(a, a), LOWER),
    "inner of vectors": _row(lambda lib, a, b: lib.inner(a[0], a[1]), SAME),
    "vecdot": _row(lambda lib, a, b: lib.linalg.vecdot(a, b), LOWER),
    "lstsq": _row(lambda lib, a, b: lib.linalg.lstsq(a, b).solution, WIDE),
    "index_copy": _row(lambda lib, a, b: a.index_copy(0, lib.arange(2, device=a.device), a[2:]), SAME),
    "linear": _row(lambda lib, a, b: lib.nn.functional.linear(a, b, b[0]), LOWER),
    "conv1d": _row(lambda lib, a, b: lib.nn.functional.conv1d(a[None], b[:, :, None], a[0]), LOWER),
    "conv2d": _row(lambda lib, a, b: lib.nn.functional.conv2d(a[None, None], b[None, None]), LOWER),
    "conv_transpose1d": _row(lambda lib, a, b: lib.nn.functional.conv_transpose1d(a[None], b[:, :, None], a[0]), LOWER),
    "attention": _row(
        lambda lib, a, b: lib.nn.functional.scaled_dot_product_attention(a[None, None], b[None, None], a[None, None]),
        LOWER,
    ),
    "mse_loss": _row(lambda lib, a, b: lib.nn.functional.mse_loss(a, b), WIDE),
    "l1_loss": _row(lambda lib, a, b: lib.nn.functional.l1_loss(a, b), WIDE),
    "smooth_l1_loss": _row(lambda lib, a, b: lib.nn.functional.smooth_l1_loss(a, b), WIDE),
    "huber_loss": _row(lambda lib, a, b: lib.nn.functional.huber_loss(a, b), WIDE),
    "kl_div": _row(lambda lib, a, b: lib.nn.functional.kl_div(a, b, reduction="sum"), WIDE),
    "nll_loss": _row(lambda lib, a, b: lib.nn.functional.nll_loss(a, _classes(lib, a)), WIDE),
    "cross_entropy": _row(lambda lib, a, b: lib.nn.functional.cross_entropy(a, _classes(lib, a)), WIDE),
    "cross_entropy of probabilities": _row(lambda lib, a, b: lib.nn.functional.cross_entropy(a, b), WIDE),
    "logits": _row(lambda lib, a, b: lib.nn.functional.binary_cross_entropy_with_logits(a, b), WIDE),
    "prod": _row(lambda lib, a, b: a.prod(), WIDE),
    "prod of rows": _row(lambda lib, a, b: a.prod(1), WIDE),
    "sum": _row(lambda lib, a, b: a.sum(), SAME, WIDE),
    "sum of rows": _row(lambda lib, a, b: a.sum(1, True), SAME, WIDE),
    "cumsum": _row(lambda lib, a, b: a.cumsum(0), SAME, WIDE),
    "cumprod": _row(lambda lib, a, b: a.cumprod(0), SAME, WIDE),
    "softmax": _row(lambda lib, a, b: a.softmax(1), SAME, WIDE),
    "log_softmax": _row(lambda lib, a, b: a.log_softmax(1), SAME, WIDE),
    "layer_norm": _row(lambda lib, a, b: lib.nn.functional.layer_norm(a, (4,), a[0], a[1]), SAME, WIDE),
    "rms_norm": _row(lambda lib, a, b: lib.nn.functional.rms_norm(a, (4,), a[0]), SAME, WIDE),
    "group_norm": _row(lambda lib, a, b: lib.nn.functional.group_norm(a, 1, a[0], a[1]), SAME, WIDE),
    "cosine_similarity": _row(lambda lib, a, b: lib.cosine_similarity(a, a), SAME, WIDE),
    "norm": _row(lambda lib, a, b: a.norm(), SAME, WIDE),
    "logsumexp": _row(lambda lib, a, b: a.logsumexp(0), SAME, WIDE),
    "prelu": _row(lambda lib, a, b: lib.nn.functional.prelu(a - 0.5, b[0, :1]), LOWER),
    "cdist": _row(lambda lib, a, b: lib.cdist(a, b), WIDE),
    "dist": _row(lambda lib, a, b: lib.dist(a, a - 1), SAME, WIDE),
    "interpolate": _row(lambda lib, a, b: lib.nn.functional.interpolate(a[None, None], scale_factor=2), SAME, WIDE),
    "grid_sample": _row(
        lambda lib, a, b: lib.nn.functional.grid_sample(a[None, None], a.reshape(1, 2, 4, 2), align_corners=False),
        WIDE,
        SAME,
    ),
    "softplus": _row(lambda lib, a, b: lib.nn.functional.softplus(a), SAME, WIDE),
    **{
        name: _row(lambda lib, a, b, name=name: getattr(lib, name)(a), SAME, WIDE)
        for name in (
            "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan".split()  # noqa: SIM905
        )
    },
    "pow": _row(lambda lib, a, b: a**3.0, SAME, WIDE),
    "pow of tensors": _row(lambda lib, a, b: a**a, SAME, WIDE),
    "number to a power": _row(lambda lib, a, b: 2.0**a, SAME, WIDE),
    "addmv": _row(lambda lib, a, b: lib.addmv(a[0], a, a[1]), SAME, LOWER),
    "addr": _row(lambda lib, a, b: lib.addr(a, a[0], a[1]), SAME, LOWER),
    "poisson_nll_loss": _row(lambda lib, a, b: lib.nn.functional.poisson_nll_loss(a, b), WIDE),
    "hinge_embedding_loss": _row(
        lambda lib, a, b: lib.nn.functional.hinge_embedding_loss(a, (b > 0.5) * 2 - 1, margin=2.0), WIDE
    ),
    "margin_ranking_loss": _row(
        lambda lib, a, b: lib.nn.functional.margin_ranking_loss(a, b, (b > 0.5) * 2 - 1, margin=2.0), WIDE
    ),
    "soft_margin_loss": _row(lambda lib, a, b: lib.nn.functional.soft_margin_loss(a, (b > 0.5) * 2 - 1), WIDE),
    "multi_margin_loss": _row(lambda lib, a, b: lib.nn.functional.multi_margin_loss(a, _classes(lib, a)), WIDE),
    "multilabel_margin_loss": _row(
        lambda lib, a, b: lib.nn.functional.multilabel_margin_loss(a[0], _classes(lib, a)), WIDE
    ),
    "cosine_embedding_loss": _row(
        lambda lib, a, b: lib.nn.functional.cosine_embedding_loss(a, b, _classes(lib, a) * 2 - 1), WIDE
    ),
    "triplet_margin_loss": _row(lambda lib, a, b: lib.nn.functional.triplet_margin_loss(a, b, a + b), WIDE),
    "ctc_loss": _row(
        lambda lib, a, b: lib.nn.functional.ctc_loss(a[:, None], _classes(lib, a)[None, 1:3], (4,), (2,)), WIDE, SAME
    ),
    "trace": _row(lambda lib, a, b: lib.trace(a), WIDE),
    "avg_pool3d": _row(lambda lib, a, b: lib.nn.functional.avg_pool3d(a.expand(1, 2, 4, 4), 2), WIDE, SAME),
    "max_pool3d": _row(lambda lib, a, b: lib.nn.functional.max_pool3d(a.expand(1, 2, 4, 4), 2), WIDE, SAME),
    "adaptive_avg_pool3d": _row(
        lambda lib, a, b: lib.nn.functional.adaptive_avg_pool3d(a.expand(1, 2, 4, 4), 2), WIDE, SAME
    ),
    "adaptive_max_pool3d": _row(
        lambda lib, a, b: lib.nn.functional.adaptive_max_pool3d(a.expand(1, 2, 4, 4), 2), WIDE, SAME
    ),
    "max_unpool2d": _row(
        lambda lib, a, b: lib.nn.functional.max_unpool2d(
            *lib.nn.functional.max_pool2d(a[None], 2, return_indices=True), 2
        ),
        WIDE,
        SAME,
    ),
    "fractional_max_pool2d": _row(
        lambda lib, a, b: lib.nn.functional.fractional_max_pool2d(a[None], 1, output_size=4), WIDE, SAME
    ),
    "reflecting pad": _row(lambda lib, a, b: lib.nn.functional.pad(a, (1, 2), mode="reflect"), WIDE, SAME),
    "reflecting pad of volumes": _row(
        lambda lib, a, b: lib.nn.functional.pad(a.expand(1, 2, 4, 4), (1,) * 6, mode="reflect"), SAME
    ),
    "replicating pad": _row(lambda lib, a, b: lib.nn.functional.pad(a[None], (1, 2), mode="replicate"), WIDE, SAME),
    "local_response_norm of sequences": _row(
        lambda lib, a, b: lib.nn.functional.local_response_norm(a[None], 2), SAME, WIDE
    ),
    "local_response_norm of images": _row(
        lambda lib, a, b: lib.nn.functional.local_response_norm(a[None, None], 2), WIDE
    ),
    "max_pool2d": _row(lambda lib, a, b: lib.nn.functional.max_pool2d(a[None], 2), SAME),
    # what is on no list
    "mul": _row(lambda lib, a, b: a * a, SAME),
    "mean": _row(lambda lib, a, b: a.mean(), SAME),
    "sin": _row(lambda lib, a, b: a.sin(), SAME),
    "sqrt": _row(lambda lib, a, b: a.sqrt(), SAME),
    "tanh": _row(lambda lib, a, b: a.tanh(), SAME),
    "relu": _row(lambda lib, a, b: a.relu(), SAME),
    "batch_norm": _row(lambda lib, a, b: lib.nn.functional.batch_norm(a, None, None, training=True), SAME),
    "max": _row(lambda lib, a, b: a.max(), SAME),
    "outer": _row(lambda lib, a, b: lib.outer(a[0], a[1]), SAME),
    "dot": _row(lambda lib, a, b: lib.dot(a[0], a[1]), SAME),
    "mv": _row(lambda lib, a, b: lib.mv(a, a[0]), SAME, LOWER),
    "bilinear": _row(lambda lib, a, b: lib.nn.functional.bilinear(a, a, a[None]), SAME),
    "out": _row(lambda lib, a, b: lib.mm(a.detach(), a.detach(), out=lib.empty_like(a)), SAME),
    "cat": _row(lambda lib, a, b: lib.cat([a, a]), SAME),
    "sum with a dtype": _row(lambda lib, a, b: a.sum(dtype=a.dtype), SAME),
    "softmax with a dtype": _row(lambda lib, a, b: a.softmax(0, dtype=a.dtype), SAME),
    "in place": _row(lambda lib, a, b: a.clone().exp_(), SAME),
}
