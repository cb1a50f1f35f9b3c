"""What a tensor looks like; that it is what PyTorch shows is proved in tests/parity/tensor/test_printing.py."""

from __future__ import annotations

import numpy as np
import pytest

import lucid


@pytest.fixture(autouse=True)
def default_options():
    """Bring the options back after each test."""
    yield
    lucid.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (lucid.tensor([1.0, 2.0], requires_grad=True), "tensor([1., 2.], requires_grad=True)"),
        (lucid.tensor([[1, -20], [3, 4]]), "tensor([[  1, -20],\n        [  3,   4]])"),
        (lucid.tensor(2.5), "tensor(2.5000)"),
        (lucid.tensor([True, False]), "tensor([ True, False])"),
        (lucid.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lucid.tensor([1.5], dtype=lucid.bfloat16), "tensor([1.5000], dtype=lucid.bfloat16)"),
        (lucid.tensor([np.nan, np.inf, 1.5]), "tensor([   nan,    inf, 1.5000])"),
        (lucid.tensor([0.0, 1.5]), "tensor([0.0000, 1.5000])"),
        (lucid.tensor([np.inf, 1.5]), "tensor([   inf, 1.5000])"),
        (lucid.tensor([np.inf, 0.0, -2.0]), "tensor([inf,  0., -2.])"),
        (lucid.tensor([1 + 2j]), "tensor([1.+2.j])"),
        (lucid.tensor([1e-6, 1.0]), "tensor([1.0000e-06, 1.0000e+00])"),
        (lucid.tensor([1.01e-4, 0.1]), "tensor([0.0001, 0.1000])"),
        (lucid.tensor([0.99e-4, 0.05]), "tensor([9.9000e-05, 5.0000e-02])"),
        (lucid.tensor([1e-4, 0.05], dtype=lucid.float64), "tensor([0.0001, 0.0500], dtype=lucid.float64)"),
        (lucid.tensor([0.0625, 62.5]), "tensor([ 0.0625, 62.5000])"),
        (lucid.tensor([0.0625, 62.75]), "tensor([6.2500e-02, 6.2750e+01])"),
        (lucid.tensor([1e8, 1e6]), "tensor([100000000.,   1000000.])"),
        (lucid.tensor([1.5e8]), "tensor([1.5000e+08])"),
        (lucid.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
    ],
)
def test_repr(tensor, text):
    """Numbers in columns, then what cannot be seen from them."""
    assert repr(tensor) == str(tensor) == text


@pytest.mark.cpu("tensors on another device print it")
def test_large_tensors_are_summarised():
    """More than a thousand elements are shown by their edges, without formatting the others."""
    assert repr(lucid.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    big = lucid.zeros(1000, 1000)
    assert repr(big).count("\n") == 6


@pytest.mark.cpu("tensors on another device print it")
def test_up_to_its_bounds_a_tensor_is_shown_whole():
    """`threshold` is the most elements that are shown; where nothing lies between two edges there are no dots."""
    assert "..." not in repr(lucid.zeros(1000))
    assert "..." in repr(lucid.zeros(1001))
    lucid.set_printoptions(threshold=4, edgeitems=3)
    for sizes, dots in (((4,), 0), ((5,), 0), ((6,), 0), ((7,), 1), ((2, 2), 0), ((6, 6), 0), ((6, 7), 6), ((7, 6), 1)):
        assert repr(lucid.zeros(*sizes)).count("...") == dots, sizes
    lucid.set_printoptions(threshold=7)
    assert "..." not in repr(lucid.zeros(7))


@pytest.mark.cpu("tensors on another device print it")
def test_lines_end_before_their_width():
    """As many numbers stand in a line as fit, and what follows them begins a new one where it would not fit."""
    lucid.set_printoptions(linewidth=40)
    x = lucid.ones(24, dtype=lucid.float64)
    lines = ",\n        ".join([", ".join(["1."] * 8)] * 3)
    assert repr(x) == f"tensor([{lines}],\n       dtype=lucid.float64)"
    assert repr(x[:2]) == "tensor([1., 1.], dtype=lucid.float64)"
    rows = lucid.ones(1, 2, 12, requires_grad=True)
    line = ",\n          ".join([", ".join(["1."] * count) for count in (7, 5)])
    assert repr(rows) == f"tensor([[[{line}],\n         [{line}]]],\n       requires_grad=True)"


@pytest.mark.cpu("tensors on another device print it")
def test_the_default_dtype_needs_no_words():
    """A dtype is named where it is not what the numbers would give."""
    lucid.set_default_dtype(lucid.float64)
    try:
        assert repr(lucid.tensor([1.5])) == "tensor([1.5000])"
        assert repr(lucid.tensor([1.5], dtype=lucid.float32)) == "tensor([1.5000], dtype=lucid.float32)"
    finally:
        lucid.set_default_dtype(lucid.float32)


@pytest.mark.cpu("tensors on another device print it")
def test_format():
    """A tensor without dimensions takes its number's format; one with dimensions takes none."""
    assert f"{lucid.tensor(2.5):.2f} {lucid.tensor(7)} {lucid.tensor([1.0])}" == "2.50 7 tensor([1.])"
    with pytest.raises(TypeError):
        format(lucid.ones(1), ".2f")


def test_powers_of_ten_are_for_one_setting():
    """`sci_mode` is decided by the range of the numbers again with the next call that does not give it."""
    x = lucid.tensor([1.5, 2.5], device="cpu")
    for mode, shown in ((True, "1.5000e+00"), (None, "1.5000"), (False, "1.5000")):
        lucid.set_printoptions(sci_mode=mode)
        assert shown in repr(x)
        assert ("e+" in repr(x)) is (mode is True)
    lucid.set_printoptions(sci_mode=True)
    lucid.set_printoptions(precision=2)
    assert repr(x) == "tensor([1.50, 2.50])"


def test_a_suffix_stands_behind_the_last_line():
    """Only what does not fit beside the last line begins another one, however many lines there are before."""
    x = lucid.ones(5, 3, dtype=lucid.float64, device="cpu", requires_grad=True)
    assert repr(x).splitlines()[-1] == "        [1., 1., 1.]], dtype=lucid.float64, requires_grad=True)"


@pytest.mark.cpu("tensors on another device print it")
def test_printoptions():
    """Options stay until they are changed; an unknown profile changes nothing."""
    lucid.set_printoptions(precision=2)
    assert repr(lucid.tensor([1.23456])) == "tensor([1.23])"
    lucid.set_printoptions(sci_mode=True)
    assert repr(lucid.tensor([1.23456])) == "tensor([1.23e+00])"
    with pytest.raises(ValueError, match="'wide'"):
        lucid.set_printoptions(profile="wide")
    assert repr(lucid.tensor([1.23456])) == "tensor([1.23e+00])"


def test_printing_changes_nothing():
    """Showing a tensor neither records nor counts."""
    x = lucid.ones(2, requires_grad=True) * 2
    node = x.grad_fn
    repr(x)
    assert x.grad_fn is node
    assert x._version == 0
