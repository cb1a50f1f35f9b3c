"""`lucid.testing`: what is close, what the message says where it is not, and tensors to begin with."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DtypeError, SettingError
from lucid.testing import assert_allclose, assert_close, make_tensor
from tests.device import DEVICE

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [
        (lucid.float64, 1e-7, 1e-7),
        (lucid.float32, 1.3e-6, 1e-5),
        (lucid.float16, 1e-3, 1e-5),
        (lucid.bfloat16, 1.6e-2, 1e-5),
        (lucid.complex64, 1.3e-6, 1e-5),
        (lucid.complex128, 1e-7, 1e-7),
    ],
)
def test_tolerances(dtype, rtol, atol):
    """By default they are those of the dtype, relative to what is expected, and of two dtypes the wider ones."""
    wide = lucid.complex128 if dtype.is_complex else lucid.float64
    for base in (0.0, 64.0):
        expected = lucid.full((2,), base, dtype=dtype)
        for factor in (0.9, 1.1):
            actual = lucid.full((2,), base + factor * (atol + rtol * base), dtype=wide)
            for pair in ((actual, expected), (expected, actual))[: 1 + (base == 0)]:
                if factor < 1:
                    assert_close(*pair, check_dtype=False)
                else:
                    with pytest.raises(AssertionError, match="Tensor-likes are not close!"):
                        assert_close(*pair, check_dtype=False)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (1, 2, r"Scalars are not equal!\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
        (
            1.0,
            2.0,
            r"Scalars are not close!\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 \(up to 1e-07 allowed\)",
        ),
        (NAN, NAN, "Scalars are not close"),
        (INF, -INF, "Scalars are not close"),
        (INF, 1.0, "Scalars are not close"),
        (1, 1.0, r"The values for attribute 'dtype' do not match: lucid.int64 != lucid.float64"),
        ([1, 2], [1], r"The length of the sequences mismatch: 2 != 1"),
        ([1, [2, 3]], [1, [2, 4]], r"The failure occurred for item \[1\]\[1\]"),
        ({"a": 1}, {"b": 1}, r"Missing keys: \['b'\]\nAdditional keys: \['a'\]"),
        ({"a": (1, 2)}, {"a": (1, 3)}, r"The failure occurred for item \['a'\]\[1\]"),
        ("a", "b", "Expected 'b' but got 'a'"),
        (None, 1, "Expected 1 but got None"),
        (True, False, "Scalars are not equal"),
    ],
)
def test_what_differs(actual, expected, message):
    """The message says what, by how much, and where."""
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_what_is_close():
    """Equal things of each kind are; infinities of one sign, and NaN where that is asked for."""
    for value in (1, 2.5, 1j, True, None, "a", INF, [1, (2.0, None)], {"a": [lucid.ones(2)]}, [], np.arange(3)):
        assert_close(value, value)
    assert_close(NAN, NAN, equal_nan=True)
    assert_close(lucid.tensor([NAN, INF]), lucid.tensor([NAN, INF]), equal_nan=True)
    assert_close(lucid.ones(0, 3), lucid.ones(0, 3))
    assert_close(2**62, 2**62)
    with pytest.raises(AssertionError):
        assert_close(2**62, 2**62 + 1)


def test_what_is_expected_sets_the_bound():
    """The relative tolerance is of the expected value, not of the actual one."""
    big, small = lucid.tensor([2.0]), lucid.tensor([1.0])
    assert_close(small, big, rtol=0.6, atol=0.0)
    with pytest.raises(AssertionError, match="not close"):
        assert_close(big, small, rtol=0.6, atol=0.0)


def test_the_greatest_differences():
    """They are named with their place, and how many elements of how many differ."""
    expected = lucid.tensor([[1.0, 100.0], [2.0, 4.0]])
    actual = lucid.tensor([[1.0, 103.0], [3.0, 4.0]])
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert str(error.value).splitlines() == [
        "Tensor-likes are not close!",
        "",
        "Mismatched elements: 2 / 4 (50.0%)",
        "Greatest absolute difference: 3.0 at index (0, 1) (up to 1e-05 allowed)",
        "Greatest relative difference: 0.5 at index (1, 0) (up to 1.3e-06 allowed)",
    ]


def test_facts():
    """Shape, dtype, device, strides and class are compared where that is asked for."""
    x = lucid.ones(2, 3)
    with pytest.raises(AssertionError, match=r"'shape' do not match: \(2, 3\) != \(3, 2\)"):
        assert_close(x, lucid.ones(3, 2))
    with pytest.raises(AssertionError, match=r"'dtype' do not match: lucid.float32 != lucid.float64"):
        assert_close(x, x.double())
    assert_close(x, x.double(), check_dtype=False)
    turned = lucid.ones(3, 2).t()
    assert_close(x, turned)
    with pytest.raises(AssertionError, match=r"'stride' do not match: \(3, 1\) != \(1, 2\)"):
        assert_close(x, turned, check_stride=True)
    parameter = lucid.nn.Parameter(lucid.ones(2, 3))
    assert_close(x, parameter)
    with pytest.raises(AssertionError, match="classes do not match"):
        assert_close(x, parameter, allow_subclasses=False)
    with pytest.raises(AssertionError, match="A tensor was compared with a number"):
        assert_close(lucid.tensor(1.0), 1.0)
    assert_allclose(lucid.tensor([1.0, NAN], dtype=lucid.float64), [1.0, NAN])
    with pytest.raises(AssertionError, match="not close"):
        assert_allclose([1.0], [1.1])


@pytest.mark.gpu
def test_devices():
    """They are compared unless that is not asked for."""
    a, b = lucid.ones(2, device="cpu"), lucid.ones(2, device="cuda")
    with pytest.raises(AssertionError, match="'device' do not match: cpu != cuda:0"):
        assert_close(a, b)
    assert_close(a, b, check_device=False)
    assert_allclose(a, b)


def test_messages_and_settings():
    """A message of one's own, and settings that make no sense."""
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"(?s)^mine: Scalars.*"):
        assert_close(1, 2, msg=lambda text: f"mine: {text}")
    with pytest.raises(SettingError, match=r"rtol and atol: expected both or none, got rtol=0.1 and atol=None"):
        assert_close(1, 1, rtol=0.1)
    with pytest.raises(SettingError, match="atol: expected a number of at least 0, got nan"):
        assert_close(1, 1, rtol=0.1, atol=NAN)
    with pytest.raises(ArgumentError, match="actual: expected a tensor, a number, or a sequence of these, got set"):
        assert_close({1}, {1})


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_numbers_to_begin_with(dtype):
    """They lie in the bounds and are of the dtype; default bounds are PyTorch's."""
    kind = getattr(lucid, dtype)
    x = make_tensor(40, 50, dtype=kind, device=DEVICE)
    assert (x.dtype, x.shape, x.device.type, x.is_contiguous()) == (kind, (40, 50), DEVICE, True)
    values = x.to(lucid.complex128).numpy(force=True)
    low, high = {"bool": (0, 1), "uint8": (0, 9)}.get(dtype, (-9, 9))
    parts = [values.real, values.imag] if kind.is_complex else [values.real]
    for part in parts:
        assert low <= part.min() < low + 1
        assert high - 1 < part.max() <= high
    narrow = make_tensor((200,), dtype=kind, device=DEVICE, low=0, high=2, exclude_zero=True)
    assert bool((narrow != 0).all())
    assert narrow.to(lucid.complex128).numpy(force=True).real.max() <= 2


def test_forms_of_tensors():
    """Gaps lie between elements where that is asked for and there are two; gradients too."""
    x = make_tensor(3, 4, dtype=lucid.float32, device=DEVICE, noncontiguous=True, requires_grad=True)
    assert x.stride() == (8, 2)
    assert x.is_leaf
    assert x.requires_grad
    assert make_tensor(1, dtype=lucid.float32, device=DEVICE, noncontiguous=True).is_contiguous()
    assert make_tensor((), dtype=lucid.int32, device=DEVICE).shape == ()
    assert make_tensor(0, 3, dtype=lucid.int32, device=DEVICE, noncontiguous=True).shape == (0, 3)
    with pytest.raises(SettingError, match="low: expected less than high, got 3 and 3"):
        make_tensor(2, dtype=lucid.float32, device=DEVICE, low=3, high=3)
    with pytest.raises(DtypeError, match="requires_grad: expected a floating-point or complex dtype"):
        make_tensor(2, dtype=lucid.int64, device=DEVICE, requires_grad=True)


@pytest.mark.parametrize("other", [1.0, 1j, "a"])
def test_what_cannot_be_compared_is_a_mistake_in_the_call_too(other):
    """It is a failure of the comparison, and a TypeError as well."""
    for pair in ((lucid.ones(2), other), (other, lucid.ones(2))):
        for kind in (AssertionError, TypeError):
            with pytest.raises(kind, match="was compared with"):
                assert_close(*pair)
    with pytest.raises(AssertionError, match="Expected 'b' but got 'a'"):
        assert_close("a", "b")


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_differences_larger_than_the_dtype(dtype):
    """Integers at both ends of their range are apart, alone and in tensors, and the difference is told whole."""
    ends = np.iinfo(dtype)
    a, e = (lucid.tensor([bound], dtype=getattr(lucid, dtype)) for bound in (ends.min, ends.max))
    whole = int(ends.max) - int(ends.min)
    for given in ((a, e), (e, a), (int(ends.min), int(ends.max))):
        for settings in ({}, {"rtol": 1e-3, "atol": 1.0}):
            with pytest.raises(AssertionError, match=f"bsolute difference: {whole}"):
                lucid.testing.assert_close(*given, **settings)
    near = lucid.tensor([ends.max - 1], dtype=getattr(lucid, dtype))
    lucid.testing.assert_close(near, e, rtol=0, atol=1)
    with pytest.raises(AssertionError, match="difference: 1 "):
        lucid.testing.assert_close(near, e)


@pytest.mark.parametrize(
    ("dtype", "low", "high", "least", "most"),
    [
        ("int64", 0.5, 2.5, 1, 2), ("int8", -200, 0, -128, -1), ("uint8", -5, 3, 0, 2), ("bool", -3, 9, 0, 1),
        ("int64", -(2**70), -(2**63) + 3, -(2**63), -(2**63) + 2), ("int16", 32766, 1e9, 32766, 32767),
    ],
)  # fmt: skip
def test_whole_numbers_of_make_tensor(dtype, low, high, least, most):
    """They are those of [low, high) that the dtype has, the lowest and the highest among many."""
    kind = getattr(lucid, dtype)
    made = lucid.testing.make_tensor(3000, dtype=kind, device="cpu", low=low, high=high)
    assert (made.dtype, int(made.min()), int(made.max())) == (kind, least, most)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_all_numbers_of_make_tensor(dtype):
    """Bounds of the whole range, and beyond it, give finite numbers of either sign."""
    made = lucid.testing.make_tensor(500, dtype=getattr(lucid, dtype), device="cpu", low=-1e308, high=1.7e308)
    assert made.isfinite().all()
    assert (made.real < 0).any()
    assert (made.real > 0).any()
    with pytest.raises(ValueError, match=r"expected bounds between which lucid\.uint8 has a number, got 300 and 400"):
        lucid.testing.make_tensor(3, dtype=lucid.uint8, device="cpu", low=300, high=400)
