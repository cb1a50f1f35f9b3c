"""Dtypes: their constants, their names, their limits, and how operands combine."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from lucid.base import dtype as dtypes
from lucid.base.dtype import (
    ALIASES,
    DTYPES,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_of,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    result_type,
    set_default_dtype,
    uint8,
)
from lucid.base.limits import finfo, iinfo
from lucid.errors import DtypeError, LucidError

ALL = list(DTYPES.values())


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_copies_and_unpickled_dtypes_are_the_constant(d):
    """A dtype is compared with ``is``, so every way of duplicating one must give the constant back."""
    assert copy.copy(d) is d
    assert copy.deepcopy({"key": [d]})["key"][0] is d
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(d, protocol)) is d


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_every_spelling_names_the_same_dtype(d):
    """Name, repr, NumPy dtype, NumPy scalar type and the dtype itself are one thing to `as_dtype`."""
    for spelling in (d, d.name, repr(d), d.numpy, d.numpy.type):
        assert as_dtype(spelling) is d
    assert dtype_of(np.zeros((2, 0), d.numpy)) is d
    assert dtype_of(np.zeros((), d.numpy)[()]) is d


def test_second_names_are_pytorchs():
    """PyTorch's float is float32 and its int is int32, whatever Python's are."""
    assert dict(ALIASES) == {
        "half": float16,
        "float": float32,
        "double": float64,
        "short": int16,
        "int": int32,
        "long": int64,
        "cfloat": complex64,
        "cdouble": complex128,
    }
    assert as_dtype("half") is float16
    assert (as_dtype(bool), as_dtype(int), as_dtype(float), as_dtype(complex)) == (bool_, int64, float64, complex128)


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_attributes_tell_what_a_dtype_holds(d):
    """bfloat16 is floating although NumPy's kind of it is 'V'; the other answers agree with NumPy's kind."""
    kind = "f" if d is bfloat16 else d.numpy.kind
    assert d.is_floating_point == (kind == "f")
    assert d.is_complex == (kind == "c")
    assert d.is_signed == (kind in "ifc")
    assert d.itemsize == np.zeros(1, d.numpy).nbytes
    assert repr(d) == f"lucid.{d.name}"


@pytest.mark.parametrize("d", ALL, ids=repr)
def test_dtypes_cannot_be_changed(d):
    """A dtype is shared by the whole process, so nobody may change one."""
    with pytest.raises(AttributeError):
        d.itemsize = 1


@pytest.mark.parametrize(
    ("real", "complex_"), [(float16, complex64), (bfloat16, complex64), (float32, complex64), (float64, complex128)]
)
def test_complex_types_hold_pairs_of_reals(real, complex_):
    """float64 goes with complex128, every smaller floating type with complex64, and a complex type is its own."""
    assert real.to_complex() is complex_
    assert complex_.to_complex() is complex_
    assert complex_.to_real() is (float64 if real is float64 else float32)
    assert real.to_real() is real


@pytest.mark.parametrize("d", [bool_, uint8, int64])
def test_integers_have_no_complex_type(d):
    """Which complex type an integer should have is the caller's decision, as in PyTorch."""
    with pytest.raises(DtypeError, match="expected a floating or complex dtype, got lucid"):
        d.to_complex()


@pytest.mark.parametrize(
    "bad", ["float8", "uint16", np.uint16, np.dtype("U3"), np.dtype(">f4"), str, 3, None, object()]
)
def test_what_is_no_dtype_is_refused_with_the_list(bad):
    """The message shows what was given and names every dtype that exists; the error is a TypeError too."""
    with pytest.raises(DtypeError, match=r"expected a dtype of lucid \(bool, uint8, .*complex128\), got") as info:
        as_dtype(bad)
    assert isinstance(info.value, (TypeError, RuntimeError, LucidError))
    assert isinstance(info.value, TypeError)
    assert isinstance(info.value, RuntimeError)


@pytest.mark.parametrize("numpy_dtype", ["uint16", "uint64", "longdouble", "U3", "O", ">f4", "M8[s]"])
def test_arrays_of_other_types_are_refused(numpy_dtype):
    """Nothing outside of the table is silently taken for its neighbour."""
    with pytest.raises(DtypeError, match="convert the array with astype"):
        dtype_of(np.zeros(2, numpy_dtype))


@pytest.mark.parametrize("d", [float16, bfloat16, float32, float64])
def test_default_dtype_decides_what_python_floats_become(d, default_dtype):
    """A Python float takes the default dtype and a Python complex number the complex type that goes with it."""
    default_dtype(d)
    assert get_default_dtype() is d
    integers = np.zeros(2, np.int8)
    assert result_type(integers, 1.5) is d
    assert result_type(integers, 1j) is (complex128 if d is float64 else complex64)
    assert finfo().dtype == d.name


def test_refused_default_dtype_changes_nothing(default_dtype):
    """The default must be floating, and a refused one leaves the old one in force."""
    default_dtype(float64)
    for bad in (int32, bool_, complex64):
        with pytest.raises(DtypeError, match="expected a floating dtype"):
            set_default_dtype(bad)
    with pytest.raises(DtypeError, match="expected a dtype of lucid"):
        set_default_dtype("float99")
    assert get_default_dtype() is float64


@pytest.mark.parametrize("a", ALL, ids=repr)
def test_promotion_is_a_join(a):
    """Promotion is idempotent and commutative, and bool is its neutral element."""
    assert promote_types(a, a) is a
    assert promote_types(a, bool_) is a
    for b in ALL:
        assert promote_types(a, b) is promote_types(b, a)


def test_promotion_holds_the_values_of_both_or_gives_up_only_range_and_precision():
    """Within a category the result holds every value of both; the one exception to size is a higher category."""
    for a in ALL:
        for b in ALL:
            joined = promote_types(a, b)
            if a.is_floating_point and b.is_floating_point:
                assert finfo(joined).max >= max(finfo(a).max, finfo(b).max)
                assert finfo(joined).eps <= min(finfo(a).eps, finfo(b).eps)
            assert joined.is_complex == (a.is_complex or b.is_complex)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((np.zeros(2, np.float16), np.zeros((), np.float64), 2.0), float16),
        ((np.zeros(2, np.int8), np.zeros((), np.int64), 7), int8),
        ((np.zeros(2, np.int8), np.zeros((), np.float64), 2.0), float64),
        ((np.zeros(2, np.int8), np.float64(1), np.float16(1)), float64),
        ((np.zeros(2, np.uint8), np.zeros(1, np.int8), np.zeros(3, ml_dtypes.bfloat16)), bfloat16),
        ((np.zeros(2, np.float32), np.zeros((), np.complex128)), complex64),
        ((np.zeros(2, np.float64), 1j), complex128),
        ((True, 2), int64),
        ((True, 2.0), float32),
        ((np.bool_(True), 2), int64),
        ((np.zeros(2, np.bool_), 1), int64),
        ((np.zeros((), np.int16), 1), int16),
    ],
)
def test_stronger_operands_decide_unless_a_weaker_one_has_a_higher_category(operands, expected):
    """Arrays with dimensions beat 0-dim arrays and NumPy scalars, and those beat Python numbers."""
    assert result_type(*operands) is expected
    assert result_type(*reversed(operands)) is expected


def test_result_type_asks_tensors_for_their_lucid_dtype():
    """An operand whose dtype is lucid's own, as a Tensor's is, counts like an array."""

    class Tensor:
        dtype = bfloat16
        ndim = 1

    assert result_type(Tensor(), 2.5, np.float64(1)) is bfloat16


@pytest.mark.parametrize(("operands", "message"), [((), "at least one operand"), (("2",), "got str '2'")])
def test_result_type_refuses_what_is_no_operand(operands, message):
    """No operand, or a string, has no dtype."""
    with pytest.raises(DtypeError, match=message):
        result_type(*operands)


def test_limits_of_bfloat16_are_those_of_its_format():
    """bfloat16 has 8 bits of significand and float32's exponent: eps 2**-7, tiny 2**-126, max (2 - 2**-7) * 2**127."""
    limits = finfo(bfloat16)
    assert limits.eps == 2.0**-7
    assert limits.tiny == limits.smallest_normal == 2.0**-126
    assert limits.max == -limits.min == (2 - 2.0**-7) * 2.0**127
    assert limits.bits == 16
    assert repr(limits).startswith("finfo(resolution=0.01, ")


@pytest.mark.parametrize("d", [uint8, int8, int16, int32, int64])
def test_integer_limits_wrap_around(d):
    """The largest number and one more, added in that type, make the smallest."""
    limits = iinfo(d)
    one_more = np.array([limits.max], d.numpy) + np.array([1], d.numpy)
    assert int(one_more[0]) == limits.min
    assert limits.bits == 8 * d.itemsize
    assert repr(limits) == f"iinfo(min={limits.min}, max={limits.max}, dtype={d.name})"


def test_limits_refuse_the_other_kind_of_type():
    """Each function of limits sends the other kind of type to the other; bool has neither."""
    with pytest.raises(DtypeError, match="use iinfo"):
        finfo(int8)
    with pytest.raises(DtypeError, match="use finfo"):
        iinfo(float32)
    with pytest.raises(DtypeError, match=r"got lucid\.bool"):
        iinfo(bool_)


def test_module_exports_what_it_names():
    """Every name of ``__all__`` exists and every dtype constant is in the table under its name."""
    for name in dtypes.__all__:
        assert hasattr(dtypes, name)
    assert all(DTYPES[d.name] is d for d in ALL)
    assert len(ALL) == 12
