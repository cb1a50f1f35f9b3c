"""What ops give on a CUDA device where no kernel of lucid's covers a case: CuPy's functions, in lucid's dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import CUDA
from lucid.autograd.recording.primitive import Primitive
from lucid.base import gpu
from lucid.base.arrays import namespace
from lucid.base.functions import cupy_functions, with_weak_numbers
from tests.gradients import drawing, flat, is_floating, numbers, outputs_and_gradients, tensors_of
from tests.samples import all_samples

pytestmark = pytest.mark.gpu

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SAMPLES = [
    sample
    for sample in all_samples()
    if "bfloat16" in sample.dtypes and any(is_floating(a) for a in sample.inputs(np.random.default_rng(0)))
]
# Half a unit in the last place of bfloat16 is 2**-8 of a number; formulas and gradients round some times on both sides.
ERROR = 0.06


@pytest.fixture
def no_kernels(monkeypatch):
    """Leave ops and rules to their references, on CuPy's arrays too."""
    plan = Primitive.plan

    def reference(primitive):
        return with_weak_numbers(lambda *arrays, **settings: primitive.reference(cupy_functions(), *arrays, **settings))

    def without_plan(primitive):
        return lambda arrays, settings: (primitive.gpu(*arrays, **settings), None)

    def without_cuda(primitive, needed, *, cuda=False, **settings):
        return plan(primitive, needed, **settings)

    monkeypatch.setattr(Primitive, "gpu", property(reference))
    monkeypatch.setattr(Primitive, "gpu_with_plan", property(without_plan))
    monkeypatch.setattr(Primitive, "on_device", None)
    monkeypatch.setattr(Primitive, "plan", without_cuda)
    found = dict(vars(CUDA))
    own = {name: value for name, value in found.items() if name.startswith("_")}
    for kept in (own, found):
        vars(CUDA).clear()
        vars(CUDA).update(kept)
        if kept is own:
            yield


@pytest.mark.parametrize("sample", [pytest.param(sample, id=sample.name) for sample in SAMPLES])
def test_references_keep_bfloat16(sample, rng, no_kernels):
    """Values and gradients of bfloat16 tensors have the dtype and, to the rounding, the numbers of the CPU's."""
    arrays, draw, results = sample.inputs(rng), drawing(rng), []
    for device in ("cpu", "cuda"):
        tensors = tensors_of(
            arrays, sample.constants, dtype="bfloat16", device=device, requires_grad=sample.differentiable
        )
        values, grads = flat(sample.op(*tensors)), []
        if sample.differentiable:
            values, grads = outputs_and_gradients(sample.op, tensors, draw)
        results.append([None if t is None else numbers(t) for t in (*values, *grads)])
    for expected, got in zip(*results, strict=True):
        assert (got is None) == (expected is None)
        if got is None:
            continue
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if is_floating(expected):
            wide = np.complex128 if expected.dtype.kind == "c" else np.float64
            expected, got = expected.astype(wide), got.astype(wide)
            largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
            np.testing.assert_allclose(got, expected, rtol=0, atol=ERROR * largest, equal_nan=True)
        else:
            np.testing.assert_array_equal(got, expected)


SHAPE = (2, 1, 2, 1, 2, 1, 2, 1, 2)
NUMBERS = {
    "add": lambda x: x + 0.5,
    "radd": lambda x: 0.5 + x,
    "sub": lambda x: x - 0.5,
    "rsub": lambda x: 0.5 - x,
    "mul": lambda x: x * 0.5,
    "rmul": lambda x: 0.5 * x,
    "div": lambda x: x / 0.5,
    "rdiv": lambda x: 0.5 / x,
    "pow": lambda x: x**2.5,
    "rpow": lambda x: 2.5**x,
    "maximum": lambda x: lucid.maximum(x, lucid.tensor(0.5, device=x.device)),
    "clamp": lambda x: lucid.clamp(x, 0.5, 1.5),
    "where": lambda x: lucid.where(x > 1, x, 0.5),
    "where of nothing": lambda x: lucid.where(x > 1, x, 0),
    "nan_to_num": lambda x: lucid.nan_to_num(x / (x > 1)),
    "angle": lucid.angle,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside_more_dimensions_than_kernels_have(name, rng):
    """A Python number is weak beside bfloat16 also where an array has dimensions that no kernel goes through."""
    array = rng.uniform(0.75, 2, SHAPE).astype(BFLOAT16)
    results = []
    for device in ("cpu", "cuda"):
        x = lucid.tensor(array, device=device).expand((2,) * len(SHAPE)).requires_grad_()
        y = NUMBERS[name](x)
        (grad,) = lucid.autograd.grad(y, x, lucid.ones_like(y))
        assert (y.dtype, grad.dtype) == (lucid.bfloat16, lucid.bfloat16)
        results.append([numbers(t).astype(np.float64) for t in (y, grad)])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2**-7)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_median(dtype, keepdim, rng):
    """The median of a CUDA tensor in any floating dtype is NumPy's lower one, and its gradient goes to that element."""
    array = rng.permutation(21).reshape(3, 7).astype(np.float64)
    x = lucid.tensor(array, dtype=getattr(lucid, dtype), device="cuda", requires_grad=True)
    values, indices = lucid.median(x, 1, keepdim)
    expected = np.sort(array, 1)[:, 3]
    assert values.dtype == x.dtype
    assert values.flatten().tolist() == expected.tolist()
    assert array[range(3), indices.flatten().tolist()].tolist() == expected.tolist()
    upstream = rng.standard_normal(3).astype(np.float16).astype(np.float64)
    (grad,) = lucid.autograd.grad(values, x, lucid.tensor(upstream.reshape(values.shape), dtype=x.dtype, device="cuda"))
    assert grad.dtype == x.dtype
    rounded = lucid.tensor(upstream, dtype=x.dtype).tolist()
    np.testing.assert_array_equal(np.array(grad.tolist()), (array == expected[:, None]) * np.array(rounded)[:, None])
    assert lucid.median(x).item() == 10


def test_functions_of_a_cuda_array_keep_bfloat16():
    """`where` and its kin keep bfloat16 where no wider array stands beside it, and widen it where one does."""
    with gpu.use_device(0):
        x = gpu.cupy().asarray(np.array([[1.5, -2.0]], BFLOAT16))
        xp = namespace(x)
        for out in (xp.where(x > 0, x, x), xp.where(x > 0, x, 0), xp.tril(x), xp.triu(x), xp.clip(x, -1, 1)):
            assert out.dtype == BFLOAT16
        assert xp.where(x > 0, BFLOAT16.type(1), BFLOAT16.type(2)).dtype == BFLOAT16
        assert xp.where(x > 0, x, x.astype(np.float32)).dtype == np.float32
        assert xp.where(x > 0, 1, 0).dtype.kind == "i"
        assert namespace(x) is xp
