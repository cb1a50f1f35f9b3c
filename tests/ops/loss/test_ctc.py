"""Labels of sequences: all paths, labels that do not fit in, repeats, lengths and forms of targets, errors."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, LucidError, NotDifferentiableError, ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers
from tests.sample_rows.losses.margins import of_paths

CASES = {
    "one label": ([2], 0),
    "no label": ([], 0),
    "a repeat": ([1, 1], 0),
    "as long as it can be": ([1, 2, 1, 2], 0),
    "another blank": ([0, 1, 0], 2),
}


@pytest.mark.parametrize("case", CASES)
def test_all_paths(case, rng):
    """The loss counts every path that reads as the labels, and its gradient is that of float64 differences."""
    labels, blank = CASES[case]
    x = rng.standard_normal((4, 3))
    target = np.array(labels, np.int64)

    def loss(array):
        return F.ctc_loss(array.log_softmax(-1), lucid.tensor(target), (4,), (len(labels),), blank, "sum")

    leaf = lucid.tensor(x, requires_grad=True)
    out = loss(leaf)
    np.testing.assert_allclose(numbers(out), of_paths(x, labels, blank), rtol=1e-10)
    (grad,) = lucid.autograd.grad(out, leaf)
    way = rng.standard_normal(x.shape) * 1e-5
    slope = of_paths(x + way, labels, blank) - of_paths(x - way, labels, blank)
    np.testing.assert_allclose((numbers(grad) * way).sum() * 2, slope, rtol=1e-5, atol=1e-12)


def sequences(rng, dtype=np.float64):
    """Return log-probabilities of 5 sequences, of up to 40 steps and 300 classes, and labels, one of which repeats."""
    x = rng.standard_normal((40, 5, 300)).astype(dtype)
    # the fourth has as many labels as steps, and another repetition would take one more
    targets = np.array([1 + rng.permutation(299)[:12] for _ in range(5)])
    targets[0, 3] = targets[0, 2]
    return x, targets, (40, 31, 40, 12, 3), (12, 5, 0, 12, 8)


def both(x, *arguments, **settings):
    """Return the loss and the gradient of what log_softmax is given, of random upstream gradients."""
    leaf = lucid.tensor(x, requires_grad=True)
    out = F.ctc_loss(leaf.log_softmax(-1), *arguments, **settings)
    (grad,) = lucid.autograd.grad(out, leaf, lucid.ones(*out.shape, dtype=out.dtype) * 0.3)
    return numbers(out), numbers(grad)


def test_targets_of_both_forms_and_single_sequences(rng):
    """Padded labels, those in one dimension, and sequences one by one give the same, whatever the form of lengths."""
    x, targets, time, length = sequences(rng)
    padded = both(x, lucid.tensor(targets), time, length, reduction="none", zero_infinity=True)
    flat = np.concatenate([row[:count] for row, count in zip(targets, length, strict=True)])
    lengths = lucid.tensor(time), lucid.tensor(length)
    for got, expected in zip(
        both(x, lucid.tensor(flat), *lengths, reduction="none", zero_infinity=True), padded, strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    for n, row in enumerate(targets):
        loss, grad = both(
            x[:, n], lucid.tensor(row[: length[n]]), (time[n],), (length[n],), reduction="none", zero_infinity=True
        )
        assert loss.shape == ()
        np.testing.assert_allclose(loss, padded[0][n], rtol=1e-12)
        np.testing.assert_allclose(grad, padded[1][:, n], rtol=1e-9, atol=1e-15)
    assert not padded[1][31:, 1].any()
    total, grad = both(x, lucid.tensor(targets), time, length, reduction="sum", zero_infinity=True)
    np.testing.assert_allclose(total, padded[0].sum(), rtol=1e-12)
    np.testing.assert_array_equal(grad, padded[1])


def test_labels_that_do_not_fit_in(rng):
    """Labels longer than their sequence cost infinity and have no gradient that is a number, or cost nothing."""
    x, targets, time, length = sequences(rng)
    loss, grad = both(x, lucid.tensor(targets), time, length, reduction="none")
    assert np.isinf(loss).tolist() == [False, False, False, False, True]
    assert np.isnan(grad[:3, 4]).all()
    assert not grad[3:, 4].any()
    assert np.isfinite(grad[:, :4]).all()
    loss, grad = both(x, lucid.tensor(targets), time, length, reduction="none", zero_infinity=True)
    assert loss[4] == 0
    assert not grad[:, 4].any()


def test_many_labels_of_few_classes(rng):
    """The gradient of more labels than there are threads for classes is that of float64 differences."""
    x, labels = rng.standard_normal((100, 1, 3)), rng.integers(1, 3, (1, 40))
    given = lucid.tensor(labels), (100,), (40,)
    _, grad = both(x, *given, reduction="sum")
    way = rng.standard_normal(x.shape) * 1e-5
    ahead, behind = (both(x + sign * way, *given, reduction="sum")[0] for sign in (1, -1))
    np.testing.assert_allclose((grad / 0.3 * way).sum() * 2, ahead - behind, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_other_dtypes(dtype, rng):
    """Half types are summed in float32: losses of hundreds have the digits of the dtype, and gradients too."""
    x, targets, time, length = sequences(rng)
    leaf = lucid.tensor(x, dtype=getattr(lucid, dtype), requires_grad=True)
    out = F.ctc_loss(leaf.log_softmax(-1), lucid.tensor(targets), time, length, zero_infinity=True)
    assert str(out.dtype) == f"lucid.{dtype}"
    (grad,) = lucid.autograd.grad(out, leaf)
    expected = both(x, lucid.tensor(targets), time, length, zero_infinity=True)
    error = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(out.item(), expected[0], rtol=error)
    np.testing.assert_allclose(numbers(grad).astype(float), expected[1] / 0.3, atol=error)


def test_no_sequences_and_no_steps():
    """A batch of none has no losses; a sequence of no steps reads as no labels, for certain, and as no others."""
    none = F.ctc_loss(lucid.zeros(3, 0, 4), lucid.zeros(0, 2, dtype=lucid.int64), (), (), reduction="none")
    assert none.shape == (0,)
    got = F.ctc_loss(lucid.zeros(0, 2, 4), lucid.tensor([[1], [1]]), (0, 0), (0, 1), reduction="none")
    np.testing.assert_array_equal(numbers(got), [0, np.inf])


def test_the_gradient_has_no_derivative(rng):
    """A derivative of the gradient by the log-probabilities is refused; that by the upstream gradient is there."""
    x = lucid.tensor(rng.standard_normal((4, 1, 3)), requires_grad=True)
    out = F.ctc_loss(x.log_softmax(-1), lucid.tensor([[1]]), (4,), (1,))
    upstream = lucid.tensor(2.0, dtype=x.dtype, requires_grad=True)
    (grad,) = lucid.autograd.grad(out, x, upstream, create_graph=True)
    other = lucid.tensor(rng.standard_normal((4, 1, 3)))
    (slope,) = lucid.autograd.grad(grad, upstream, other, retain_graph=True)
    np.testing.assert_allclose(slope.item(), (numbers(grad) / 2 * numbers(other)).sum(), rtol=1e-10)
    with pytest.raises(NotDifferentiableError, match="ctc_loss: its gradient has no derivative"):
        lucid.autograd.grad(grad, x, other)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"blank": 3}, LucidError, "blank must be in label range: expected 0 to 2, got 3"),
        ({"blank": -1}, LucidError, "blank"),
        ({"targets": [[1.0, 2.0]] * 2}, DtypeError, "targets of integers.*float32"),
        ({"targets": [[1, 2]]}, ShapeError, r"shape \(2, S\).*\[1, 2\]"),
        ({"targets": [[1], [2]]}, ShapeError, "S at least 2"),
        ({"targets": [[1, 2]] * 3}, ShapeError, r"shape \(2, S\).*\[3, 2\]"),
        ({"targets": [1, 2, 1]}, ShapeError, "4 labels in all, got 3"),
        ({"targets": [1, 2, 1, 2, 1]}, ShapeError, "4 labels in all, got 5"),
        ({"targets": [[1, 3], [1, 2]]}, IndexOutOfRangeError, "from 0 to 2, got labels from 1 to 3"),
        ({"input_lengths": (5, 4)}, ShapeError, "input_lengths from 0 to 4"),
        ({"input_lengths": (-1, 4)}, ShapeError, "input_lengths from 0 to 4"),
        ({"input_lengths": (4,)}, ShapeError, "input_lengths must be of size batch_size: expected 2"),
        ({"target_lengths": (1, -1)}, ShapeError, "target_lengths from 0"),
        ({"input_lengths": (4, 4, 4)}, ShapeError, "input_lengths must be of size"),
        ({"target_lengths": (1, 2, 3)}, ShapeError, "target_lengths must be of size"),
        ({"target_lengths": (1,)}, ShapeError, "target_lengths must be of size"),
        ({"reduction": "max"}, LucidError, "'max'"),
        ({"log_probs": [[0, 0, 0]] * 4}, DtypeError, "int64"),
        ({"log_probs": [0.0, 0.0, 0.0]}, ShapeError, r"\[3\]"),
    ],
)
def test_what_does_not_fit_is_refused(change, error, text):
    """Labels, lengths, shapes and dtypes that do not fit raise an error that names both sides."""
    given = {
        "log_probs": [[[0.0, 0.0, 0.0]] * 2] * 4,
        "targets": [[1, 2], [2, 1]],
        "input_lengths": (4, 4),
        "target_lengths": (2, 2),
        **change,
    }
    if "targets" in change and error is IndexOutOfRangeError and lucid.get_default_device().type == "cuda":
        lucid.cuda.set_debug(True)
    try:
        with pytest.raises(error, match=text):
            F.ctc_loss(**{key: lucid.tensor(v) if isinstance(v, list) else v for key, v in given.items()})
    finally:
        lucid.cuda.set_debug(False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_of_log_probabilities(dtype, rng):
    """How they lie in memory changes nothing: batches first, time backwards, one class in two."""
    x, *arguments = sequences(rng, dtype)
    loss, grad = both(x, lucid.tensor(arguments[0]), *arguments[1:], reduction="none")
    for lay, back in (
        (lambda a: a.swapaxes(0, 1), lambda t: t.transpose(0, 1)),
        (lambda a: a[::-1], lambda t: t.flip(0)),
    ):
        leaf = lucid.tensor(np.ascontiguousarray(lay(x)), requires_grad=True)
        # as it lies, without a softmax, whose result lies in order
        out = F.ctc_loss(back(leaf), lucid.tensor(arguments[0]), *arguments[1:], reduction="none")
        plain = lucid.tensor(x, requires_grad=True)
        expected = F.ctc_loss(plain, lucid.tensor(arguments[0]), *arguments[1:], reduction="none")
        np.testing.assert_array_equal(numbers(out), numbers(expected))
        upstream = lucid.tensor(rng.standard_normal(out.shape).astype(dtype))
        finite = ~np.isinf(numbers(out))
        lucid.autograd.backward([out, expected], [upstream, upstream])
        np.testing.assert_array_equal(numbers(back(leaf.grad))[:, finite], numbers(plain.grad)[:, finite])
    assert np.isfinite(loss).any()
    assert grad.shape == x.shape
