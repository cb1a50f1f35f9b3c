"""Losses."""

from __future__ import annotations

import functools

import numpy as np

from lucid.ops.loss import cross_entropy as entropy
from lucid.ops.loss import likelihood, probability_loss, regression
from tests.samples import Sample

SHAPE = (4, 5)
REDUCTIONS = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}


def draw_pair(rng):
    """Draw predictions and targets."""
    return rng.standard_normal(SHAPE), rng.standard_normal(SHAPE)


def draw_chances(rng):
    """Draw two arrays of probabilities."""
    return rng.uniform(0.1, 0.9, SHAPE), rng.uniform(0.1, 0.9, SHAPE)


def draw_logits(rng):
    """Draw logits and probabilities."""
    return rng.standard_normal(SHAPE), rng.uniform(0.1, 0.9, SHAPE)


def huber(d, delta):
    """Return Huber's loss."""
    return np.where(np.abs(d) < delta, d * d / 2, delta * (np.abs(d) - delta / 2))


def logistic(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def binary(p, t):
    """Return the binary cross entropy."""
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


def theirs(torch, name, x, y, reduction, settings):
    """Return PyTorch's loss; of its kl_div the mean of all elements, about which it warns, is taken by hand."""
    loss = getattr(torch.nn.functional, name)
    if name == "kl_div" and reduction == "mean":
        return loss(x, y, reduction="none", **settings).mean()
    return loss(x, y, reduction=reduction, **settings)


def pointwise(op, reference, inputs=draw_pair, variant="", kinks=(), **settings):
    """Return the rows of a loss of pairs, in each reduction; `kinks` are sizes of differences."""
    return [
        Sample(
            f"{op.__name__}{variant}:{reduction}",
            functools.partial(op, reduction=reduction, **settings),
            inputs,
            lambda x, y, after=after: after(reference(x, y)),
            lambda torch, x, y, reduction=reduction: theirs(torch, op.__name__, x, y, reduction, settings),
            empty=lambda rng: (np.zeros((0, 5)), np.zeros((0, 5))),
            gaps=lambda x, y: [np.abs(x - y) - kink for kink in kinks],
        )
        for reduction, after in REDUCTIONS.items()
    ]


def with_weights(op, reference, inputs, name):
    """Return the row of a loss with a weight for each element, and for positive ones if there are four inputs."""

    def call(x, t, weight, *positive):
        return op(x, t, weight, **({"pos_weight": positive[0]} if positive else {}))

    return Sample(
        f"{op.__name__}:{name}",
        call,
        inputs,
        lambda *arrays: np.mean(reference(*arrays)),
        lambda torch, x, t, weight, *positive: getattr(torch.nn.functional, op.__name__)(
            x, t, weight, **({"pos_weight": positive[0]} if positive else {})
        ),
        constants=(2, 3),
    )


SHAPES = {"": (5,), ":n": (4, 5), ":nd": (2, 5, 3), ":ndd": (2, 5, 3, 2)}


def draw_log_chances(rng):
    """Draw logarithms of small probabilities, and probabilities: all losses are positive."""
    return rng.uniform(-4, -2.5, SHAPE), rng.uniform(0.1, 0.9, SHAPE)


def draw_classes(shape, *, log, weighted):
    """Return what draws logits, classes of which one is ignored if there are several, and a weight of each class."""

    def inputs(rng):
        counts = () if len(shape) == 1 else (shape[0], *shape[2:])
        classes = np.array(rng.integers(0, 5, counts))
        if classes.ndim:
            classes.flat[1] = -100
        weight = (np.array([0.5, 1.0, 2.0, 0.25, 1.5]),) if weighted else ()
        return rng.standard_normal(shape) if log else rng.uniform(-3, -0.5, shape), classes, *weight

    return inputs


def of_classes(x, classes, weight, reduction, smoothing, *, log):
    """Return the cross entropy, from its definition with one probability for each class."""
    axis = 0 if x.ndim == 1 else 1
    shape = [1] * x.ndim
    shape[axis] = -1
    log_chances = x if not log else x - np.log(np.exp(x).sum(axis=axis, keepdims=True))
    counted = np.expand_dims(classes != -100, axis)
    truth = (np.expand_dims(classes, axis) == np.arange(5).reshape(shape)).astype(float)
    each = weight.reshape(shape)
    smooth = (1 - smoothing) * truth + smoothing / 5 * counted
    losses = -(smooth * each * log_chances).sum(axis=axis)
    if reduction == "none":
        return losses
    return losses.sum() / ((truth * each).sum() if reduction == "mean" else 1)


def classes_rows(op, *, log, weighted, smoothing):
    """Return the rows of a loss of classes."""
    name = op.__name__ + (":weight" if weighted else "") + (f":smoothing={smoothing}" if smoothing else "")
    extra = {"label_smoothing": smoothing} if smoothing else {}

    def row(form, shape, reduction):
        return Sample(
            f"{name}{form}:{reduction}",
            lambda x, classes, weight=None: op(x, classes, weight, reduction=reduction, **extra),
            draw_classes(shape, log=log, weighted=weighted),
            lambda x, classes, weight=np.ones(5): of_classes(x, classes, weight, reduction, smoothing, log=log),
            lambda torch, x, classes, weight=None: getattr(torch.nn.functional, op.__name__)(
                x, classes, weight, reduction=reduction, **extra
            ),
            constants=(2,),
        )

    return [row(form, shape, reduction) for form, shape in SHAPES.items() for reduction in REDUCTIONS]


def draw_distributions(rng):
    """Draw logits and probabilities of the classes."""
    truth = rng.uniform(0.1, 1.0, SHAPE)
    return rng.standard_normal(SHAPE), truth / truth.sum(1, keepdims=True)


def of_distributions(x, truth, smoothing=0.0):
    """Return the mean cross entropy with probabilities."""
    smooth = (1 - smoothing) * truth + smoothing / truth.shape[1]
    return -(smooth * np.log(np.exp(x) / np.exp(x).sum(1, keepdims=True))).sum(1).mean()


ROWS = [
    *pointwise(regression.mse_loss, lambda x, y: (x - y) ** 2),
    *pointwise(regression.l1_loss, lambda x, y: np.abs(x - y), kinks=(0.0,)),
    *pointwise(regression.smooth_l1_loss, lambda x, y: huber(x - y, 1.0), kinks=(1.0,)),
    *pointwise(
        regression.smooth_l1_loss, lambda x, y: huber(x - y, 0.7) / 0.7, variant=":beta", kinks=(0.7,), beta=0.7
    ),
    *pointwise(regression.huber_loss, lambda x, y: huber(x - y, 1.3), variant=":delta", kinks=(1.3,), delta=1.3),
    *pointwise(probability_loss.binary_cross_entropy, binary, draw_chances),
    *pointwise(probability_loss.binary_cross_entropy_with_logits, lambda x, t: binary(logistic(x), t), draw_logits),
    *pointwise(probability_loss.kl_div, lambda x, t: t * (np.log(t) - x), draw_log_chances),
    *pointwise(
        probability_loss.kl_div, lambda x, t: np.exp(t) * (t - x), draw_log_chances, variant=":log", log_target=True
    ),
    with_weights(
        probability_loss.binary_cross_entropy,
        lambda p, t, w: w * binary(p, t),
        lambda rng: (*draw_chances(rng), rng.uniform(0.5, 2, SHAPE[1:])),
        "weight",
    ),
    with_weights(
        probability_loss.binary_cross_entropy_with_logits,
        lambda x, t, w, positive: -w * (positive * t * np.log(logistic(x)) + (1 - t) * np.log(logistic(-x))),
        lambda rng: (*draw_logits(rng), rng.uniform(0.5, 2, SHAPE), rng.uniform(0.5, 2, SHAPE[1:])),
        "weights",
    ),
    # PyTorch has no gradient of this
    Sample(
        "binary_cross_entropy_with_logits:pos_weight",
        lambda x, t, positive: probability_loss.binary_cross_entropy_with_logits(x, t, pos_weight=positive),
        lambda rng: (*draw_logits(rng), rng.uniform(0.5, 2, SHAPE[1:])),
        lambda x, t, positive: -np.mean(positive * t * np.log(logistic(x)) + (1 - t) * np.log(logistic(-x))),
    ),
    Sample(
        "kl_div:batchmean",
        lambda x, t: probability_loss.kl_div(x, t, reduction="batchmean"),
        draw_log_chances,
        lambda x, t: (t * (np.log(t) - x)).sum() / len(x),
        lambda torch, x, t: torch.nn.functional.kl_div(x, t, reduction="batchmean"),
    ),
    *classes_rows(likelihood.nll_loss, log=False, weighted=False, smoothing=0.0),
    *classes_rows(likelihood.nll_loss, log=False, weighted=True, smoothing=0.0),
    *classes_rows(entropy.cross_entropy, log=True, weighted=False, smoothing=0.0),
    *classes_rows(entropy.cross_entropy, log=True, weighted=True, smoothing=0.0),
    *classes_rows(entropy.cross_entropy, log=True, weighted=False, smoothing=0.2),
    *classes_rows(entropy.cross_entropy, log=True, weighted=True, smoothing=0.2),
    Sample(
        "cross_entropy:probabilities",
        entropy.cross_entropy,
        draw_distributions,
        of_distributions,
        lambda torch, x, t: torch.nn.functional.cross_entropy(x, t),
    ),
    Sample(
        "cross_entropy:probabilities:smoothing",
        lambda x, t: entropy.cross_entropy(x, t, label_smoothing=0.3),
        draw_distributions,
        lambda x, t: of_distributions(x, t, 0.3),
        lambda torch, x, t: torch.nn.functional.cross_entropy(x, t, label_smoothing=0.3),
    ),
]
