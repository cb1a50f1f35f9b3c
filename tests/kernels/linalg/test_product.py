"""Products of stacks that cuBLAS could not read are one launch: no copies, the values of float64, any steps."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks import models
from lucid.base import gpu
from lucid.cuda.launch import kernels, product
from lucid.cuda.libraries import blas
from tests.cuda.libraries.test_blas import LAYOUTS, READ_IN_PLACE, check, every_dtype, on_device

pytestmark = pytest.mark.gpu


@pytest.fixture
def calls(monkeypatch):
    """Note whether products are launched, given to cuBLAS, or made of copies."""
    seen = []

    def note(owner, name, what):
        function = getattr(owner, name)

        def noted(*arguments):
            seen.append(what)
            return function(*arguments)

        monkeypatch.setattr(owner, name, noted)

    note(gpu.part("cupy_backends.cuda.libs.cublas"), "gemmStridedBatchedEx", "cublas")
    note(gpu.cupy(), "ascontiguousarray", "copy")
    note(kernels.driver(), "launch", "kernel")
    return seen


KERNEL = ["kernel"]


@every_dtype
@pytest.mark.parametrize("sizes", [(1, 1, 2), (2, 33, 3), (33, 1, 31), (31, 65, 32), (64, 32, 65), (5, 8, 40)])
def test_heads_take_one_launch(sizes, dtype, rng, calls):
    """Stacks of two steps, as heads of a (batch, time, heads, size) tensor, are read where they are, for any tile."""
    m, k, n = sizes
    a = rng.standard_normal((2, m, 3, k)).astype(dtype).swapaxes(1, 2)
    b = rng.standard_normal((2, n, 3, k)).astype(dtype).transpose(0, 2, 3, 1)
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    assert calls == KERNEL


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_layouts_of_matrices(first, second, dtype, rng, calls):
    """Steps of rows and columns may be of any size and sign; cuBLAS keeps what it can read itself."""
    a = LAYOUTS[first](rng.standard_normal((35, 34)).astype(dtype))
    b = LAYOUTS[second](rng.standard_normal((34, 37)).astype(dtype))
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    dense = [*READ_IN_PLACE, "stack last"]
    assert calls == (["cublas"] if first in dense and second in dense else KERNEL)


@pytest.mark.parametrize(
    ("left", "right"), [((4, 5), (5,)), ((4, 1), (1, 5)), ((2, 3, 1), (2, 1, 4)), ((2, 1, 3), (1, 4, 3))]
)
def test_stacks_that_are_broadcast_both_ways(left, right, rng, calls):
    """A matrix that is repeated along one of two loops is read again; three loops are cuBLAS's."""
    a, b = rng.standard_normal((*left, 4, 6)), rng.standard_normal((*right, 6, 3))
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    assert (calls == KERNEL) == (left[:1] == (4,))


@every_dtype
@pytest.mark.parametrize(("alpha", "beta"), [(2.5, 0.0), (1.0, 1.0), (-0.5, 2.0)])
def test_factors(alpha, beta, dtype, rng, calls):
    """``alpha * a @ b + beta * out`` is rounded once, with every wanted dtype; with a beta of 0 `out` is not read."""
    a, b = (rng.standard_normal(s).astype(dtype).swapaxes(1, 2) for s in ((2, 4, 3, 35), (2, 35, 3, 5)))
    for made in {dtype, np.dtype(np.float32) if dtype.itemsize == 2 else dtype}:
        old = rng.standard_normal((2, 3, 4, 5)).astype(made)
        out = on_device(old if beta else np.full_like(old, np.nan))
        assert blas.matmul(on_device(a), on_device(b), out, alpha=alpha, beta=beta) is out
        check(out, a, b, alpha=alpha, beta=beta, old=old)
    assert "cublas" not in calls


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_summed_in_float32(dtype, calls):
    """512 times 1.25 are 640, which sums in either half type miss."""
    a = np.full((2, 2, 3, 512), 1.25, dtype).swapaxes(1, 2)
    b = np.ones((2, 2, 3, 512), dtype).transpose(0, 2, 3, 1)
    got = blas.matmul(on_device(a), on_device(b))
    np.testing.assert_array_equal(got.get().astype(np.float64), np.full((2, 3, 2, 2), 640.0))
    assert calls == KERNEL


@pytest.mark.parametrize("sizes", [(2, product.LONGEST_SUM + 1, 2), (520, 260, 260)])
def test_large_products_are_cublas_s(sizes, rng, calls):
    """Long sums, and what would take long, are copied and given to cuBLAS."""
    m, k, n = sizes
    a, b = rng.standard_normal((m, 2 * k), np.float32)[:, ::2], rng.standard_normal((k, n), np.float32)
    check(blas.matmul(on_device(a), on_device(b)), a, b)
    assert calls == ["copy", "cublas"]


def test_the_benchmark_s_heads_are_small():
    """In the small GPT of the benchmarks, whose launches are counted at other sizes, heads take this path too."""
    work = 8 * models.CONTEXT**2 * models.WIDTH
    assert work <= product.MOST_WORK
    assert max(models.CONTEXT, models.WIDTH // models.HEADS) <= product.LONGEST_SUM
