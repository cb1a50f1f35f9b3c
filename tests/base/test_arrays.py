"""Arrays on the CPU: made from any data, converted, moved."""

from __future__ import annotations

import array
import subprocess
import sys
from collections import UserList, deque

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.base import arrays
from lucid.base.arrays import asarray, astype, infer_dtype, is_array, namespace, to_device
from lucid.base.dtype import (
    DTYPES,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from lucid.errors import CudaUnavailableError, DeviceError, DtypeError, ShapeError

pytestmark = pytest.mark.cpu("about arrays on the CPU")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (True, bool_),
        (3, int64),
        (3.0, float32),
        (3j, complex64),
        ([], float32),
        ([[], []], float32),
        ([1, 2], int64),
        ((1, 2.5), float32),
        ([True, 2], int64),
        ([1, 2.5, 1j], complex64),
        (range(4), int64),
        (deque([1, 2.5]), float32),
        ([UserList([1, 2]), deque([3, 4])], int64),
        ([[1, 2], [3, 4.5]], float32),
        ([np.float64(1), 2], float64),
        ([np.int8(1), True], int8),
        ([np.int8(1), 2], int64),
        ([np.zeros(2, np.float16), np.zeros(2, np.int64)], float16),
        (np.float16(2), float16),
        (np.zeros(2, np.uint8), uint8),
    ],
    ids=repr,
)
def test_dtype_is_pytorchs_choice(data, expected):
    """Python numbers take PyTorch's types, NumPy's keep theirs, and mixtures are promoted."""
    made = asarray(data)
    assert isinstance(made, np.ndarray)
    assert made.dtype == expected.numpy
    assert made.shape == np.shape(data)
    np.testing.assert_array_equal(made, np.asarray(data).astype(expected.numpy))


@pytest.mark.parametrize("nested", [False, True])
def test_tensors_in_a_list_are_looked_at_by_dtype(nested, monkeypatch):
    """However many there are, the dtypes among them are promoted; what is no single number is refused."""
    asked, promote = [], arrays.promote_types
    monkeypatch.setattr(arrays, "promote_types", lambda *pair: asked.append(pair) or promote(*pair))
    numbers = [1.5, True, 3, 2.25, 7, False] * 20
    dtypes = [lucid.float16, lucid.bool, lucid.int64, lucid.bfloat16, lucid.uint8, lucid.bool] * 20
    tensors = [
        lucid.tensor([[n]] if k % 2 else n, dtype=d) for k, (n, d) in enumerate(zip(numbers, dtypes, strict=True))
    ]
    made = asarray([tensors, numbers] if nested else tensors)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [numbers, numbers] if nested else numbers)
    assert len(asked) <= 10
    assert asarray(tensors[2::6]).dtype == np.int64
    assert asarray([*tensors[2::6], 0.5]).dtype == np.float32
    with pytest.raises(ShapeError, match=r"one of shape \(2,\): join tensors with lucid.stack"):
        asarray([lucid.tensor([1, 2]), tensors[0]])


def test_python_floats_follow_the_default_dtype(default_dtype):
    """Under a default of float64 Python floats and complex numbers keep all their digits."""
    default_dtype(float64)
    assert asarray([0.1, 1])[0] == 0.1
    assert asarray(0.1).dtype == np.float64
    assert asarray([0.1j]).dtype == np.complex128
    assert infer_dtype([np.float32(1), 2.0]) is float64


@pytest.mark.parametrize("d", DTYPES.values(), ids=repr)
def test_asked_dtype_is_given(d):
    """``dtype`` decides for numbers, sequences and arrays alike, bfloat16 included."""
    for data in (1, [[1, 0], [1, 1]], np.array([1, 0, 1], np.int64), np.float32(1)):
        made = asarray(data, dtype=d)
        assert made.dtype == d.numpy
        np.testing.assert_array_equal(made.astype(np.complex128), np.asarray(data).astype(np.complex128))


def test_arrays_are_shared_unless_a_copy_is_asked_for(rng):
    """`asarray` and `astype` return the array itself where nothing changes; ``copy=True`` never does."""
    x = rng.standard_normal(4)
    assert asarray(x) is x
    assert asarray(x, float64, "cpu") is x
    assert astype(x, float64) is x
    assert to_device(x, "cpu") is x
    for fresh in (asarray(x, copy=True), astype(x, float64, copy=True), asarray(x, float32, copy=True)):
        assert not np.shares_memory(fresh, x)
        np.testing.assert_array_equal(fresh, x.astype(fresh.dtype))


def test_buffers_are_arrays():
    """What lends its buffer is taken without a detour over Python numbers."""
    numbers = array.array("f", [1.5, 2.5])
    made = asarray(numbers)
    assert made.dtype == np.float32
    numbers[0] = 9.0
    assert made[0] == 9.0
    assert asarray(memoryview(b"\x01\x02")).tolist() == [1, 2]

    class Lends:
        def __array__(self, dtype=None, copy=None):
            return np.array([3, 4], np.int32)

    assert asarray(Lends()).dtype == np.int32


def test_a_copy_of_what_lends_its_memory_shares_none():
    """Without ``copy=True`` tensors, buffers and what has `__array__` lend theirs."""
    kept = np.array([3.0, 4.0])

    class Lends:
        def __array__(self, dtype=None, copy=None):
            return kept

    for source in (kept, Lends(), memoryview(kept), lucid.from_numpy(kept)):
        assert np.shares_memory(asarray(source), kept)
        for copied in (asarray(source, copy=True), asarray(source, float64, "cpu", copy=True)):
            assert not np.shares_memory(copied, kept)
            assert copied.tolist() == [3.0, 4.0]


def test_subclasses_of_arrays_become_plain_arrays():
    """A matrix multiplies where an array does not; only plain arrays may enter."""
    assert type(asarray(np.zeros((2, 2)).view(np.recarray))) is np.ndarray


@pytest.mark.parametrize(
    ("data", "dtype", "error", "message"),
    [
        ([[1, 2], [3]], None, ShapeError, "must nest evenly"),
        ([[1, 2], 3], None, ShapeError, "must nest evenly"),
        ([[1.0, 2], [3]], int32, ShapeError, "must nest evenly"),
        (["a"], None, DtypeError, "got str 'a'"),
        ("12", int32, DtypeError, "got str '12'"),
        (None, None, DtypeError, "got NoneType"),
        ([1, None], float32, DtypeError, "got NoneType"),
        ({1: 2}, None, DtypeError, "got dict"),
        ({1, 2}, None, DtypeError, "got set"),
        ([b"ab"], None, DtypeError, "got bytes"),
        ([300], uint8, DtypeError, "lucid.uint8"),
        ([300.0], uint8, DtypeError, "300 out of bounds for uint8"),
        ([1e10], int32, DtypeError, "out of bounds for int32"),
        ([float("nan")], int64, DtypeError, "NaN"),
        ([float("inf")], int64, DtypeError, "infinity"),
        (2**63, None, DtypeError, "lucid.int64"),
        (1j, float32, DtypeError, "complex numbers do not fit lucid.float32"),
        (1j, int32, DtypeError, "complex numbers do not fit lucid.int32"),
        (np.array(["1"]), None, DtypeError, "convert the array with astype"),
        (np.array(["1"]), float32, DtypeError, "expected an array of numbers"),
        (np.array([None]), float32, DtypeError, "expected an array of numbers"),
        (np.zeros(2, np.uint16), None, DtypeError, "uint16"),
        ([np.uint16(1)], None, DtypeError, "uint16"),
        ([1], "float99", DtypeError, "expected a dtype of lucid"),
    ],
    ids=repr,
)
def test_what_cannot_become_an_array_is_refused(data, dtype, error, message):
    """Uneven nesting is a mistake of shape; what is no number, or does not fit, is a mistake of dtype."""
    with pytest.raises(error, match=message):
        asarray(data, dtype)


def test_edges_of_integer_types_fit():
    """Every number that the type holds fits, and fractions are cut off towards zero."""
    assert asarray([255.0, 0.0, -0.5, 255.5], uint8).tolist() == [255, 0, 0, 255]
    assert asarray([-(2.0**63)], int64).tolist() == [-(2**63)]
    assert asarray([-128.9, 127.9], int8).tolist() == [-128, 127]
    with pytest.raises(DtypeError):
        asarray([2.0**63], int64)


def test_other_numeric_arrays_come_in_by_an_asked_dtype():
    """An unsigned or byte-swapped array is no tensor, but may be converted on the way in."""
    assert asarray(np.array([1, 2], np.uint16), int32).tolist() == [1, 2]
    assert asarray(np.array([1, 2], ">f4"), float32).tolist() == [1, 2]


@pytest.mark.parametrize("source", DTYPES.values(), ids=repr)
@pytest.mark.parametrize("target", DTYPES.values(), ids=repr)
def test_conversions_keep_what_the_target_can_hold(source, target, rng):
    """Small integers survive every conversion but that to bool, silently, in every pair of dtypes and every layout."""
    values = rng.integers(0, 100, (3, 4)) if source is not bool_ else rng.integers(0, 2, (3, 4))
    x = values.astype(source.numpy)[::-1, ::2].T
    made = astype(x, target)
    assert made.dtype == target.numpy
    expected = values[::-1, ::2].T
    expected = expected != 0 if target is bool_ else expected
    np.testing.assert_array_equal(made.astype(np.complex128), expected.astype(np.complex128))


def test_conversions_out_of_range_are_silent():
    """Overflow becomes infinity, the imaginary part is dropped, and neither warns."""
    assert astype(np.array([1e300, -1e300]), float32).tolist() == [np.inf, -np.inf]
    assert astype(np.array([100_000]), float16).tolist() == [np.inf]
    assert astype(np.array([1e300]), bfloat16).astype(np.float64).tolist() == [np.inf]
    assert astype(np.array([1.5 + 2j]), float64).tolist() == [1.5]
    assert astype(np.array([1.5 + 2j]), bfloat16).astype(np.float64).tolist() == [1.5]
    assert astype(np.array([2j, 0j]), bool_).tolist() == [True, False]
    assert astype(np.array([1e300 + 1e300j]), complex64).tolist() == [complex(np.inf, np.inf)]
    assert astype(np.array([np.nan, np.inf]), int32).shape == (2,)
    assert asarray([1e300, 1e5], float16).tolist() == [np.inf, np.inf]
    assert asarray([1e300]).tolist() == [np.inf]


def test_rounding_to_bfloat16_is_to_nearest_even():
    """bfloat16 keeps 8 bits: 1 + 2**-8 lies halfway and goes to the even neighbour, 1 + 3 * 2**-8 to the next."""
    made = astype(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-7], np.float32), bfloat16)
    assert made.dtype == np.dtype(ml_dtypes.bfloat16)
    assert made.astype(np.float64).tolist() == [1.0, 1 + 2.0**-6, 1 + 2.0**-7]


def test_numpy_arrays_belong_to_numpy():
    """Arrays and NumPy scalars are arrays of NumPy's namespace; Python numbers and lists are none."""
    for x in (np.zeros(2), np.float32(1), np.bool_(True), np.zeros(0, ml_dtypes.bfloat16), ml_dtypes.bfloat16(1)):
        assert is_array(x)
        assert namespace(x) is np
    for x in (1.0, [1], None, "a"):
        assert not is_array(x)
        with pytest.raises(DeviceError, match="expected a NumPy or CuPy array"):
            namespace(x)
        with pytest.raises(DeviceError, match="expected a NumPy or CuPy array"):
            to_device(x, "cpu")


@pytest.mark.skipif(lucid.cuda.is_available(), reason="says what happens without a CUDA device")
def test_cuda_without_cuda_says_what_to_do(monkeypatch):
    """Asking for a CUDA array where CuPy cannot be imported names the package to install."""
    from lucid.base import gpu

    monkeypatch.setattr(gpu, "_module", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(CudaUnavailableError, match=r"pip install 'lucid-cupy\[cuda12\]'"):
        asarray([1.0], device="cuda")
    with pytest.raises(CudaUnavailableError, match=r"pip install 'lucid-cupy\[cuda12\]'"):
        to_device(np.zeros(2), "cuda:0")


def test_importing_the_backend_imports_only_numpy_and_ml_dtypes():
    """Import time is part of the interface: no CuPy, no optional package, even where they are installed."""
    code = (
        "import sys; import numpy, ml_dtypes; before = set(sys.modules); "
        "import lucid.base.arrays, lucid.base.limits; "
        "print(sorted({m.partition('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = out.stdout.strip()
    for heavy in ("cupy", "torch", "rich", "safetensors", "opt_einsum", "matplotlib", "scipy"):
        assert heavy not in loaded
