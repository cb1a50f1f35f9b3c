"""Matrix products of CUDA arrays: whatever the layout, one call of cuBLAS gives what float64 gives, without copies."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.cuda.launch import product
from lucid.cuda.libraries import blas
from lucid.cuda.simulator import counters

pytestmark = pytest.mark.gpu

DTYPES = [np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Half a unit in the last place for the rounding of the result, and what sums over 40 products lose in float32.
ERROR = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 1e-6, "float64": 1e-14}

LAYOUTS = {
    "rows": lambda a: a.copy(),
    "columns": lambda a: a.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "wider rows": lambda a: inside(a, (0, 3)),
    "wider columns": lambda a: inside(a.swapaxes(-1, -2), (2, 1)).swapaxes(-1, -2),
    "steps": lambda a: inside(np.repeat(a, 2, -1), (0, 2))[..., ::2],
    "backwards": lambda a: a[..., ::-1].copy()[..., ::-1],
    "stack last": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
}
# Those that cuBLAS reads where they are.
READ_IN_PLACE = ["rows", "columns", "wider rows", "wider columns"]


def inside(a, more):
    """Return a view with the values of `a` in a wider array of other values."""
    wide = np.full((*a.shape[:-1], a.shape[-1] + sum(more)), 77, a.dtype)
    view = wide[..., more[0] : more[0] + a.shape[-1]]
    view[...] = a
    return view


def on_device(a):
    """Return a device array with the values and the layout of a NumPy array, in memory of its own."""
    base = a
    while base.base is not None and isinstance(base.base, np.ndarray):
        base = base.base
    cupy = gpu.cupy()
    moved = cupy.asarray(base.reshape(-1))
    start = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    pointer = cupy.cuda.MemoryPointer(moved.data.mem, start)
    return cupy.ndarray(a.shape, a.dtype, pointer, a.strides)


def check(got, a, b, *, alpha=1.0, beta=0.0, old=None):
    """Fail unless a product is near the one in float64 of the same factors."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    expected = alpha * np.matmul(a, b)
    scale = abs(alpha) * np.matmul(np.abs(a), np.abs(b))
    if beta:
        expected = expected + beta * old.astype(np.float64)
        scale = scale + abs(beta) * np.abs(old.astype(np.float64))
    assert got.shape == expected.shape
    assert got.flags.c_contiguous
    error = np.abs(got.get().astype(np.float64) - expected)
    allowed = ERROR[str(got.dtype)] * np.abs(expected) + 2.0**-22 * scale * (got.dtype.itemsize < 8) + 1e-14 * scale
    assert (error <= allowed + (2.0**-24 if got.dtype == np.float16 else 0)).all()


@pytest.fixture
def calls(monkeypatch):
    """Note the calls of cuBLAS, with what they multiply, and the copies made; no product is too small for them."""
    seen = []
    monkeypatch.setattr(product, "MOST_WORK", 0)
    # plans were made without that
    for name in ("matmul", "added_product"):
        monkeypatch.setattr(blas, name, getattr(blas, name).__wrapped__)
    library = gpu.part("cupy_backends.cuda.libs.cublas")
    call = library.gemmStridedBatchedEx

    def noted(*args):
        seen.append(
            {
                "ops": args[1:3], "m": args[3], "n": args[4], "k": args[5], "count": args[20], "compute": args[21],
                "mode": library.getMathMode(args[0]),
            }
        )  # fmt: skip
        return call(*args)

    monkeypatch.setattr(library, "gemmStridedBatchedEx", noted)
    cupy = gpu.cupy()
    copy = cupy.ascontiguousarray

    def copied(array, *args):
        seen.append("copy")
        return copy(array, *args)

    monkeypatch.setattr(cupy, "ascontiguousarray", copied)
    return seen


@every_dtype
@pytest.mark.parametrize(("first", "second"), [*itertools.product(LAYOUTS, LAYOUTS)])
def test_two_matrices_in_every_layout(first, second, dtype, rng, calls):
    """One call multiplies two matrices; only those of which neither rows nor columns lie densely are copied."""
    m, k, n = rng.integers(2, 40, 3)
    a = LAYOUTS[first](rng.standard_normal((m, k)).astype(dtype))
    b = LAYOUTS[second](rng.standard_normal((k, n)).astype(dtype))
    got = blas.matmul(on_device(a), on_device(b))
    assert got.dtype == dtype
    check(got, a, b)
    dense = [*READ_IN_PLACE, "stack last"]
    assert [call for call in calls if call == "copy"] == ["copy"] * ((first not in dense) + (second not in dense))
    assert len([call for call in calls if call != "copy"]) == 1


@every_dtype
@pytest.mark.parametrize(("first", "second"), [*itertools.product(READ_IN_PLACE, READ_IN_PLACE)])
def test_stacks_are_one_call_without_copies(first, second, dtype, rng, calls):
    """Stacks with one step from matrix to matrix are one call whatever is transposed, and nothing is copied."""
    m, k, n = rng.integers(2, 12, 3)
    a = LAYOUTS[first](rng.standard_normal((2, 3, m, k)).astype(dtype))
    b = LAYOUTS[second](rng.standard_normal((2, 3, k, n)).astype(dtype))
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    assert [call["count"] for call in calls] == [6]
    transposed = ["columns" in second, "columns" in first]
    assert [bool(op) for op in calls[0]["ops"]] == transposed


# Shape of the factor, and its steps in elements.
OVERLAPPING = {
    "rows": ((6, 4), (2, 1)),
    "columns": ((6, 4), (1, 3)),
    "rows of a stack": ((5, 6, 4), (24, 2, 1)),
    "a stack of rows": ((6, 1, 4), (2, 4, 1)),
    "everything": ((5, 6, 4), (1, 1, 1)),
}


@pytest.mark.parametrize("form", OVERLAPPING)
@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
def test_lines_closer_than_they_are_long(form, second, rng, calls):
    """Sliding windows, whose rows or columns share elements, multiply as their values do, on either side."""
    shape, steps = OVERLAPPING[form]
    flat = rng.standard_normal(200)
    windows = [
        xp.lib.stride_tricks.as_strided(array, shape, [8 * step for step in steps])
        for xp, array in ((np, flat), (gpu.cupy(), on_device(flat)))
    ]
    if second:
        other = rng.standard_normal((3, shape[-2]))
        check(blas.matmul(on_device(other), windows[1]), other, windows[0])
    else:
        other = rng.standard_normal((4, 3))
        check(blas.matmul(windows[1], on_device(other)), windows[0], other)


@pytest.mark.parametrize(
    ("left", "right", "made"),
    [
        ((5,), (), [5]),
        ((), (5,), [5]),
        ((1,), (5,), [5]),
        ((4, 5), (1, 1), [1]),
        ((1, 1), (4, 5), [20]),
        ((4, 5), (5,), ["copy", "copy", 5, 5, 5, 5]),
        ((4, 1), (1, 5), ["copy", "copy", 5, 5, 5, 5]),
        ((2, 3, 1), (2, 1, 4), ["copy", "copy", 4, 4, 4, 4, 4, 4]),
    ],
)
def test_broadcast_stacks(left, right, made, rng, calls):
    """A repeated matrix has a step of 0 or makes a stack one tall matrix; two-way broadcasts take several calls."""
    a = rng.standard_normal((*left, 4, 6))
    b = rng.standard_normal((*right, 6, 3))
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    if left == (5,):
        made = [1]
    assert [call if call == "copy" else call["count"] for call in calls] == made


@every_dtype
def test_heads_are_copied_once_and_multiplied_in_one_call(dtype, rng, calls):
    """Stacks of two steps, as heads of a (batch, time, heads, size) tensor, are copied and take one call."""
    q, k = rng.standard_normal((2, 2, 7, 3, 5)).astype(dtype)
    a, b = q.swapaxes(1, 2), k.transpose(0, 2, 3, 1)
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    assert [call if call == "copy" else call["count"] for call in calls] == ["copy", "copy", 6]


@every_dtype
@pytest.mark.parametrize(
    ("left", "right"), [((6,), (6,)), ((6,), (6, 3)), ((4, 6), (6,)), ((6,), (5, 6, 3)), ((5, 4, 6), (6,))]
)
def test_vectors(left, right, dtype, rng):
    """A vector is a row on the left and a column on the right, and leaves no dimension."""
    a, b = rng.standard_normal(left).astype(dtype), rng.standard_normal(right).astype(dtype)
    got = blas.matmul(on_device(a), on_device(b))
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    check(got.reshape(expected.shape), a, b)
    assert got.shape == expected.shape


@every_dtype
def test_random_layouts(dtype, rng):
    """Random stacks, sizes of 1 among them, with random axes swapped and random slices taken, give what NumPy gives."""
    for _ in range(60):
        depth = rng.integers(0, 4)
        stack = rng.integers(1, 4, depth)
        m, k, n = rng.integers(1, 6, 3)
        arrays = []
        for rows, columns in ((m, k), (k, n)):
            keep = rng.integers(0, 2, depth)
            shape = [*(stack * keep + 1 - keep)[rng.integers(0, depth + 1) :], rows, columns]
            order = rng.permutation(len(shape))
            wide = rng.standard_normal([shape[i] * 2 for i in order]).astype(dtype)
            steps = [slice(None, None, 2) if rng.integers(3) == 0 else slice(0, shape[i]) for i in order]
            arrays.append(wide[tuple(steps)].transpose(np.argsort(order)))
        a, b = arrays
        assert a.shape[-1] == b.shape[-2]
        check(blas.matmul(on_device(a), on_device(b)), a, b)


@every_dtype
@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_factors(alpha, beta, dtype, rng):
    """``alpha * a @ b + beta * out`` is added in the accumulator's precision; with a beta of 0 `out` is not read."""
    a, b, old = (rng.standard_normal(s).astype(dtype) for s in ((3, 4, 5), (5, 6), (3, 4, 6)))
    out = on_device(old if beta else np.full_like(old, np.nan))
    got = blas.matmul(on_device(a), on_device(b), out, alpha=alpha, beta=beta)
    assert got is out
    check(got, a, b, alpha=alpha, beta=beta, old=old)


@every_dtype
def test_empty_sizes(dtype, rng, calls):
    """Products over nothing are zeros, or what is added; empty results are empty, and neither calls cuBLAS."""
    cupy = gpu.cupy()

    def made(*shape):
        return cupy.ones(shape, dtype)

    np.testing.assert_array_equal(blas.matmul(made(2, 3, 0), made(0, 4)).get(), np.zeros((2, 3, 4), dtype))
    np.testing.assert_array_equal(blas.matmul(made(0), made(0)).get(), np.zeros((), dtype))
    kept = blas.matmul(made(3, 0), made(0, 4), made(3, 4), beta=2.0)
    np.testing.assert_array_equal(kept.get(), np.full((3, 4), 2, dtype))
    assert blas.matmul(made(0, 3, 5), made(5, 4)).shape == (0, 3, 4)
    assert blas.matmul(made(2, 0, 5), made(2, 5, 4)).shape == (2, 0, 4)
    assert blas.matmul(made(5), made(5, 0)).shape == (0,)
    assert calls == []


def test_integers_and_complex_numbers_are_left_to_cupy(rng, calls):
    """Dtypes without a cuBLAS form give NumPy's product too."""
    for dtype in (np.int32, np.int64, np.complex64, np.complex128):
        a = rng.integers(-9, 9, (2, 4, 5)).astype(dtype)
        b = rng.integers(-9, 9, (5, 3)).astype(dtype)
        got = blas.matmul(on_device(a), on_device(b))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.get(), np.matmul(a, b))
    assert calls == []


def test_sums_of_half_types_do_not_stagnate():
    """4096 ones sum to 4096 in bfloat16 and 4097 products in float16 are rounded once: sums are taken in float32."""
    cupy = gpu.cupy()
    for dtype, length in ((ml_dtypes.bfloat16, 4096), (np.float16, 4096)):
        row, column = cupy.ones((1, length), dtype), cupy.ones((length, 1), dtype)
        assert float(blas.matmul(row, column).get().item()) == length


@pytest.mark.parametrize("before", [0, 1, 16])
def test_parts_of_sums_are_not_rounded(before, calls):
    """For products of half types cuBLAS is told to add parts of a sum in float32; its mode is CuPy's own afterwards."""
    library, handle = gpu.part("cupy_backends.cuda.libs.cublas"), gpu.cupy().cuda.device.get_cublas_handle()
    found = library.getMathMode(handle)
    library.setMathMode(handle, before)
    try:
        for dtype in DTYPES:
            blas.matmul(gpu.cupy().ones((2, 3), dtype), gpu.cupy().ones((3, 2), dtype))
            assert library.getMathMode(handle) == before
    finally:
        library.setMathMode(handle, found)
    assert [call["mode"] for call in calls] == [before | 16, before | 16, before, before]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_into_float32(dtype, rng):
    """Into an array of float32 products of half types are not rounded, whichever matrices of a stack are repeated."""
    a, b = rng.standard_normal((2, 1, 3, 40)).astype(dtype), rng.standard_normal((5, 40, 6)).astype(dtype)
    out = gpu.cupy().ones((2, 5, 3, 6), np.float32)
    got = blas.matmul(on_device(a), on_device(b), out, beta=1.0)
    assert got is out
    wanted = 1 + a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(got.get(), wanted, rtol=1e-5, atol=1e-5)


def test_tf32_is_asked_for(calls, monkeypatch):
    """float32 is multiplied in full unless `allow_tf32` says otherwise, which changes no other dtype."""
    switch = lucid.backends.cuda.matmul
    cupy = gpu.cupy()

    def compute(dtype):
        calls.clear()
        blas.matmul(cupy.ones((2, 2), dtype), cupy.ones((2, 2), dtype))
        return calls[0]["compute"]

    assert [compute(dtype) for dtype in DTYPES] == [68, 68, 68, 70]
    monkeypatch.setattr(switch, "allow_tf32", True)
    assert [compute(dtype) for dtype in DTYPES] == [68, 68, 77, 70]


def test_shapes_that_do_not_fit():
    """Inner sizes and stacks that differ raise before cuBLAS is called."""
    cupy = gpu.cupy()
    with pytest.raises(ValueError, match=r"inner sizes differ: shapes \(2, 3\) and \(4, 5\)"):
        blas.matmul(cupy.ones((2, 3)), cupy.ones((4, 5)))
    with pytest.raises(ValueError, match="broadcast"):
        blas.matmul(cupy.ones((2, 3, 4)), cupy.ones((3, 4, 5)))


@every_dtype
@pytest.mark.parametrize("shape", [(), (6,), (4, 1), (3, 4, 6)])
def test_what_is_added_is_broadcast(shape, dtype, rng, calls):
    """``beta * x + alpha * a @ b`` with a smaller `x`, which stays as it is, is one call, rounded once."""
    x, a, b = (rng.standard_normal(s).astype(dtype) for s in (shape, (3, 4, 5), (5, 6)))
    kept = on_device(x.copy()) if shape else gpu.cupy().asarray(x)
    got = blas.added_product(kept, on_device(a), on_device(b), alpha=2.0, beta=-0.5)
    check(got, a, b, alpha=2.0, beta=-0.5, old=np.broadcast_to(x, (3, 4, 6)))
    np.testing.assert_array_equal(kept.get(), x)
    assert len(calls) == 1
    calls.clear()
    nan = gpu.cupy().full(shape, np.nan, dtype)
    check(blas.added_product(nan, on_device(a), on_device(b), beta=0.0), a, b)
    assert blas.added_product(nan, on_device(a), on_device(b.astype(np.int32))) is NotImplemented


@pytest.mark.skipif(not gpu.is_simulated(), reason="counts of the simulated device")
@pytest.mark.parametrize(("beta", "old"), [(0.0, 0), (1.0, 10 * 8 * 8)])
def test_bytes_of_products_are_counted(beta, old):
    """Both operands are loaded, a repeated one once, and the product is stored; it is loaded if it is added to."""
    cupy = gpu.cupy()
    a, b, out = cupy.ones((10, 2, 3)), cupy.ones((3, 4)).T.copy().T, cupy.ones((10, 2, 4))
    counters.reset()
    blas.matmul(a, cupy.broadcast_to(b, (10, 3, 4)), out, beta=beta)
    assert (counters.library, counters.bytes_stored) == (1, 10 * 8 * 8)
    assert counters.bytes_loaded == (10 * 6 + 12) * 8 + old


def test_linear_and_addmm_are_one_call(rng, calls):
    """The op with a bias, and the product that is added to something, do not cast and do not add apart."""
    x, weight, bias = (
        lucid.tensor(rng.standard_normal(s), dtype=lucid.float16, device="cuda") for s in ((7, 5), (3, 5), (3,))
    )
    for made in (
        lambda: lucid.nn.functional.linear(x, weight, bias),
        lambda: lucid.nn.functional.linear(x, weight),
        lambda: lucid.addmm(bias, x, weight.T),
    ):
        calls.clear()
        got = made()
        assert (got.dtype, [call["compute"] for call in calls]) == (lucid.float16, [68])
