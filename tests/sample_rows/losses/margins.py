"""Losses with margins, of counts, of noisy numbers and of sequences."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

import lucid
from lucid.ops.loss import counts, ctc, margin
from tests.samples import Sample, kinks

SHAPE = (4, 5)


def signs(rng, shape):
    """Draw the classes 1 and -1."""
    return rng.choice([-1, 1], shape)


def numbers(rng):
    """Draw numbers of either sign."""
    return rng.uniform(-2, 2, SHAPE)


def of(op, inputs, reference, variant="", reduction="mean", constants=(), tolerance=None, gaps=None, **settings):
    """Return the row of a loss that PyTorch has under the same name."""
    name = op.__name__
    after = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction]
    return Sample(
        f"{name}{variant}:{reduction}",
        functools.partial(op, reduction=reduction, **settings),
        inputs,
        lambda *arrays: after(reference(*arrays)),
        lambda torch, *tensors: getattr(torch.nn.functional, name)(*tensors, reduction=reduction, **settings),
        constants=constants,
        tolerance=tolerance or {},
        gaps=gaps,
    )


def logistic(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def softly(x, t, w=1.0):
    """Return the mean binary cross entropy of the classes."""
    return -(w * (t * np.log(logistic(x)) + (1 - t) * np.log(logistic(-x)))).mean(-1)


def stirling(t):
    """Return what depends on counts alone."""
    return np.where(t > 1, t * np.log(np.maximum(t, 1)) - t + np.log(2 * math.pi * np.maximum(t, 1)) / 2, 0)


def gaussian(x, t, var):
    """Return minus the log-likelihood of normal numbers, up to a constant."""
    return (np.log(var) + (x - t) ** 2 / var) / 2


def hinges(x, classes, power=1, weight=None, wanted=1.0):
    """Return the mean loss of the classes that are not the targets."""
    own = np.eye(x.shape[-1])[classes] > 0
    losses = np.maximum(wanted - x[own].reshape(*classes.shape, 1) + x, 0) ** power
    factor = 1.0 if weight is None else weight[classes]
    return np.where(own, 0, losses).mean(-1) * factor


def labels(x, targets):
    """Return the loss of several targets for each example, -1 after the last."""
    losses = []
    for row, own in zip(np.atleast_2d(x), np.atleast_2d(targets), strict=True):
        own = own[: list(own).index(-1)] if -1 in own else own
        others = [c for c in range(len(row)) if c not in own]
        losses.append(sum(max(1 - row[t] + row[c], 0) for t in own for c in others) / len(row))
    return np.array(losses).reshape(np.shape(x)[:-1])


def cosine(a, b, y):
    """Return the loss of angles."""
    cos = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.where(y == 1, 1 - cos, np.maximum(cos - 0.1, 0))


def norms(order):
    """Return the distances of an order."""
    return lambda a, b: np.linalg.norm(a - b + 1e-6, order, -1)


def triplet(distance, margin, swap):
    """Return the loss of anchors, positives and negatives."""

    def loss(a, p, n):
        far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
        return np.maximum(distance(a, p) - far + margin, 0)

    return loss


def triplet_gaps(distance, margin, swap):
    """Return how near a loss is to its kink, and two distances of which the smaller counts are to each other."""

    def gaps(a, p, n):
        near, far, other = distance(a, p), distance(a, n), distance(p, n)
        kink = (near - (np.minimum(far, other) if swap else far)) / margin + 1
        return (kink, (far - other) / (far + other)) if swap else (kink,)

    return gaps


def reads(path, blank):
    """Return the labels that a path of classes reads as."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def of_paths(x, targets, blank=0):
    """Return minus the log-likelihood of labels, from all paths one by one, and infinity where there is none."""
    chances = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    steps = range(len(x))
    paths = [p for p in itertools.product(range(x.shape[1]), repeat=len(x)) if reads(p, blank) == list(targets)]
    return -np.log(sum(math.prod(chances[t, path[t]] for t in steps) for path in paths))


SEQUENCES = ([1, 2], [2], [])


def of_sequences(library, x, **settings):
    """Return a library's loss of three sequences, of 4, 3 and 4 steps."""
    targets = library.tensor([label for labels in SEQUENCES for label in labels], device=x.device)
    loss = ctc.ctc_loss if library is lucid else library.nn.functional.ctc_loss
    return loss(x, targets, (4, 3, 4), tuple(map(len, SEQUENCES)), **settings)


def apart(a, b):
    """Return squared distances, of arrays and of tensors."""
    return ((a - b) ** 2).sum(-1)


LABELS = np.array([[2, 0, -1, 1, 1], [4, -1, -1, -1, -1], [0, 1, 2, 3, 4], [-1, 0, 1, 2, 3]])
spread = [0.1, 0.9, 1.6, 2.3, 3.1]


def scores(rng):
    """Draw scores of which no two are 1 apart."""
    return rng.permuted(np.tile(spread, (4, 1)), axis=1) + rng.uniform(-0.02, 0.02, SHAPE)


def embeddings(rng):
    """Draw distances whose losses are of one sign, so that halves of them do not cancel."""
    x, y = numbers(rng), signs(rng, SHAPE)
    return np.where(y == 1, np.abs(x), x), y


ROWS = [
    *(
        of(
            margin.hinge_embedding_loss,
            embeddings,
            lambda x, y: np.where(y == 1, x, np.maximum(0.7 - x, 0)),
            reduction=reduction,
            gaps=kinks(0.7),
            margin=0.7,
        )
        for reduction in ("mean", "sum", "none")
    ),
    of(
        margin.margin_ranking_loss,
        lambda rng: (numbers(rng), numbers(rng), signs(rng, SHAPE)),
        lambda a, b, y: np.maximum(-y * (a - b) + 0.4, 0),
        gaps=lambda a, b, y: (y * (a - b) - 0.4,),
        margin=0.4,
    ),
    of(
        margin.soft_margin_loss,
        lambda rng: (rng.standard_normal(SHAPE), signs(rng, SHAPE).astype(float)),
        lambda x, y: np.log(1 + np.exp(-y * x)),
        constants=(1,),
    ),
    of(margin.multilabel_soft_margin_loss, lambda rng: (rng.standard_normal(SHAPE), rng.integers(0, 2, SHAPE)), softly),
    of(
        margin.multilabel_soft_margin_loss,
        lambda rng: (rng.standard_normal(SHAPE), rng.integers(0, 2, SHAPE), rng.uniform(0.5, 2, 5)),
        softly,
        ":weight",
        "none",
    ),
    *(
        of(
            margin.multi_margin_loss,
            lambda rng: (scores(rng), rng.integers(0, 5, 4)),
            functools.partial(hinges, power=p, wanted=0.3),
            f":{p}",
            p=p,
            margin=0.3,
        )
        for p in (1, 2)
    ),
    of(margin.multi_margin_loss, lambda rng: (scores(rng)[0], np.array(3)), hinges, ":one"),
    *(
        Sample(
            f"multi_margin_loss:weight:{p}",
            lambda x, y, w, p=p: margin.multi_margin_loss(x, y, p, weight=w),
            lambda rng: (scores(rng), rng.integers(0, 5, 4), rng.uniform(0.5, 2, 5)),
            lambda x, y, w, p=p: hinges(x, y, p, w).mean(),
            lambda torch, x, y, w, p=p: torch.nn.functional.multi_margin_loss(x, y, p, weight=w),
            constants=(2,),
        )
        for p in (1, 2)
    ),
    of(margin.multilabel_margin_loss, lambda rng: (scores(rng), LABELS), labels, reduction="none"),
    of(margin.multilabel_margin_loss, lambda rng: (scores(rng)[0], LABELS[0]), labels, ":one"),
    of(
        margin.cosine_embedding_loss,
        lambda rng: (
            np.array([[1, 2, 3.0], [1, 0, 2], [1, 1, 1]]) + rng.uniform(0, 0.1, (3, 3)),
            np.array([[2, 1, 3.0], [1, 1, 0], [-1, 0, -1]]) + rng.uniform(0, 0.1, (3, 3)),
            np.array([1, -1, -1]),
        ),
        cosine,
        margin=0.1,
    ),
    *(
        of(
            margin.triplet_margin_loss,
            lambda rng: tuple(rng.standard_normal((3, 4)) for _ in range(3)),
            triplet(norms(p), 5.0, swap),
            f":{p}:{swap}",
            gaps=triplet_gaps(norms(p), 5.0, swap),
            p=p,
            swap=swap,
            margin=5.0,
        )
        for p, swap in ((2, False), (3, True))
    ),
    of(
        margin.triplet_margin_with_distance_loss,
        lambda rng: tuple(rng.standard_normal((3, 4)) for _ in range(3)),
        triplet(apart, 9.0, True),
        gaps=triplet_gaps(apart, 9.0, True),
        distance_function=apart,
        swap=True,
        margin=9.0,
    ),
    of(
        counts.poisson_nll_loss,
        lambda rng: (rng.standard_normal(SHAPE), rng.uniform(0.2, 0.8, SHAPE)),
        lambda x, t: np.exp(x) - t * x,
    ),
    of(
        counts.poisson_nll_loss,
        lambda rng: (rng.uniform(0.5, 2, SHAPE), rng.uniform(0, 4, SHAPE)),
        lambda x, t: x - t * np.log(x + 1e-3) + stirling(t),
        ":full",
        "none",
        gaps=lambda x, t: (t - 1,),
        log_input=False,
        full=True,
        eps=1e-3,
    ),
    of(
        counts.gaussian_nll_loss,
        lambda rng: (rng.standard_normal(SHAPE), rng.standard_normal(SHAPE), rng.uniform(0.5, 2, SHAPE)),
        gaussian,
    ),
    of(
        counts.gaussian_nll_loss,
        lambda rng: (rng.standard_normal(SHAPE), rng.standard_normal(SHAPE), rng.uniform(0.5, 2, (4, 1))),
        lambda x, t, var: gaussian(x, t, var) + math.log(2 * math.pi) / 2,
        ":one",
        full=True,
    ),
    of(
        counts.gaussian_nll_loss,
        lambda rng: (rng.standard_normal(SHAPE), rng.standard_normal(SHAPE), rng.uniform(0.5, 2, 4)),
        lambda x, t, var: gaussian(x, t, var[:, None]),
        ":rows",
        "sum",
    ),
    *(
        Sample(
            f"ctc_loss:{reduction}",
            lambda x, reduction=reduction: of_sequences(lucid, x.log_softmax(-1), reduction=reduction),
            lambda rng: (rng.standard_normal((4, 3, 3)),),
            lambda x, after=after: after(
                np.array([of_paths(x[:4, 0], [1, 2]), of_paths(x[:3, 1], [2]), of_paths(x[:, 2], [])])
            ),
            lambda torch, x, reduction=reduction: of_sequences(torch, x.log_softmax(-1), reduction=reduction),
            twice=False,
        )
        for reduction, after in (("none", lambda x: x), ("mean", lambda x: np.mean(x / np.array([2, 1, 1]))))
    ),
    Sample(
        "ctc_loss:of batches first",
        lambda x: of_sequences(lucid, x.log_softmax(-1).transpose(0, 1), reduction="none"),
        lambda rng: (rng.standard_normal((3, 4, 3)),),
        lambda x: np.array([of_paths(x[0], [1, 2]), of_paths(x[1, :3], [2]), of_paths(x[2], [])]),
        lambda torch, x: of_sequences(torch, x.log_softmax(-1).transpose(0, 1), reduction="none"),
        twice=False,
    ),
]
