"""What rows cannot say of windows as columns: what is refused."""

from __future__ import annotations

import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.resampling.folding import fold, unfold


def ones(*sizes):
    return lucid.ones(*sizes)


REFUSED = {
    "dimensions": (lambda: unfold(ones(3, 4), 2), ShapeError, "unfold: expected input .*channels, height, width"),
    "no channels": (lambda: unfold(ones(1, 0, 3, 4), 2), ShapeError, "none of them 0"),
    "window": (lambda: unfold(ones(1, 3, 4), 3, dilation=2), ShapeError, "fits nowhere"),
    "kernel": (lambda: unfold(ones(1, 3, 4), 0), ShapeError, "kernel_size to be .* at least 1"),
    "padding": (lambda: unfold(ones(1, 3, 4), 2, padding=-1), ShapeError, "padding to be .* at least 0"),
    "stride": (lambda: unfold(ones(1, 3, 4), 2, stride=(1, 0)), ShapeError, "stride to be .* at least 1"),
    "integers": (lambda: unfold(ones(1, 3, 4).to(lucid.int64), 2), DtypeError, "floating-point input, got int64"),
    "rows": (lambda: fold(ones(5, 6), (3, 4), 2), ShapeError, "multiple of 4 rows and 6 columns"),
    "columns": (lambda: fold(ones(4, 5), (3, 4), 2), ShapeError, "multiple of 4 rows and 6 columns"),
    "images": (lambda: fold(ones(1, 1, 4, 6), (3, 4), 2), ShapeError, "fold: expected input .*windows"),
    "size": (lambda: fold(ones(4, 6), (1, 1), 2), ShapeError, "fits nowhere"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """What does not fit raises an error that says what was expected, and what came."""
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call()


def test_the_gradient_of_a_sum_counts_windows():
    """Each element gets one for each window that has it, also of a gradient that is one number in memory."""
    x = lucid.ones(1, 1, 3, 4, requires_grad=True)
    unfold(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[1.0, 2.0, 2.0, 1.0], [2.0, 4.0, 4.0, 2.0], [1.0, 2.0, 2.0, 1.0]]]]
