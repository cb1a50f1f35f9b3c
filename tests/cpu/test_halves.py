"""Half types by loops in C++, beside those of NumPy and ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.cpu import halves
from lucid.cpu.functions import BUILD, address

HALVES = [lucid.float16, lucid.bfloat16]
SIZES = [0, 1, 7, 8, 15, 16, 17, 255, 256, 257, 1000, 70_000]
UFUNCS = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.less, np.less_equal, np.greater,
          np.greater_equal, np.equal, np.not_equal]  # fmt: skip
NUMBERS = [0.0, -0.0, 0.1, -3.0, 1e-7, 7e4, float("inf"), float("nan")]


@pytest.fixture(autouse=True)
def _loaded(_compiler):
    """Have the library compiled, which few numbers would not be worth."""
    assert halves._WIDEN(BUILD, "__half") is not None


def every(dtype):
    """Return all numbers of a half type, NaN of each kind too."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)


def drawn(dtype, *shape, seed=0):
    """Return bits at random as numbers of a half type, NaN as one of them."""
    numbers = np.random.default_rng(seed).integers(0, 1 << 16, shape, np.uint16).view(dtype.numpy)
    return quiet(numbers)


def quiet(numbers):
    """Return numbers with each NaN in the form that NumPy makes: of two others it depends on compilers which stays."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)


def both(compute):
    """Return results by loops and by NumPy's own."""
    results = []
    for compiled in (True, False):
        before, cpu.compiled = cpu.compiled, compiled
        try:
            results.append(compute())
        finally:
            cpu.compiled = before
    return results


def same(loop, numpy):
    """Assert that two arrays are of the same bits, dtype and layout."""
    assert (loop.dtype, loop.shape, loop.strides) == (numpy.dtype, numpy.shape, numpy.strides)
    assert loop.tobytes() == numpy.tobytes()


def layouts(array):
    """Return views of an array of two dimensions, and of parts of it, with strides of many kinds."""
    bytewise = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    bytewise[...] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    return {
        "dense": array, "transposed": array.T, "every second": array[:, ::2], "rows": array[::3],
        "backwards": array[::-1], "all backwards": array[::-1, ::-1],
        "one row repeated": np.broadcast_to(array[0], array.shape),
        "one column repeated": np.broadcast_to(array[:, :1], array.shape),
        "one number repeated": np.broadcast_to(array[3, 4], array.shape), "no address of its own": bytewise,
        "three dimensions": array.reshape(4, -1, array.shape[1]).transpose(1, 2, 0), "read only": read_only,
        "windows": np.lib.stride_tricks.sliding_window_view(array[0], 40),
    }  # fmt: skip


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_half_is_widened(dtype):
    """All of the 65,536 become the float32 that NumPy makes of them."""
    same(halves.converted(every(dtype), np.dtype(np.float32)), every(dtype).astype(np.float32))


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_floats_are_rounded(dtype):
    """Floats at random, in the middle between two halves, and beside it, become the halves that NumPy makes of them."""
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 32, 1 << 20, np.uint32)
    ties = every(dtype).astype(np.float32).view(np.uint32)
    near = [ties + np.uint32(step) for step in (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFFFFFF)]
    small = random.integers(0x33000000 - 99, 0x39000000, 1 << 18, np.uint32)
    for each in (bits, *near, small, small | np.uint32(1 << 31)):
        floats = each.view(np.float32)
        with np.errstate(all="ignore"):
            same(halves.converted(floats, dtype.numpy), floats.astype(dtype.numpy))


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_conversions_of_any_size(size, dtype):
    """Casts of tensors are those of NumPy whatever the size."""
    x = lucid.tensor(drawn(dtype, size), device="cpu")
    same(*both(lambda: x.float().array))
    wide = x.float() * 1.001
    same(*both(lambda: wide.to(dtype).array))


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_conversions_of_any_layout(dtype):
    """The layout of the result is NumPy's, too."""
    for name, array in layouts(drawn(dtype, 80, 90)).items():
        for target in (lucid.float32, lucid.float64, lucid.int32):
            with np.errstate(all="ignore"):
                loop, numpy = both(lambda array=array, target=target: halves.converted(array, target.numpy))
            assert loop.strides == numpy.strides, name
            assert loop.tobytes() == numpy.tobytes(), name
        wide = array.astype(np.float32)
        same(*both(lambda wide=wide: halves.converted(wide, dtype.numpy)))
    swapped = drawn(lucid.float16, 1000).astype(">f2")
    same(halves.converted(swapped, np.dtype(np.float32)), swapped.astype(np.float32))


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_every_half_meets_others(ufunc, dtype):
    """Each half beside another one at random, beside itself and beside its opposite gives what NumPy says."""
    first = quiet(every(dtype))
    function = halves.of_halves(ufunc)
    assert function is not ufunc
    second = drawn(dtype, 1 << 16)
    for other in (second, second[::-1], first, (first.view(np.uint16) ^ 0x8000).view(dtype.numpy)):
        with np.errstate(all="ignore"):
            loop, numpy = function(first, other), ufunc(first, other)
        unclear = np.isnan(first) & np.isnan(other)
        assert np.isnan(loop[unclear].astype(np.float32)).all() or loop.dtype == bool
        same(np.where(unclear, loop.dtype.type(0), loop), np.where(unclear, loop.dtype.type(0), numpy))


OPS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
CHOICES = {"maximum": lucid.maximum, "minimum": lucid.minimum}


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", [*OPS, *CHOICES])
def test_ops_of_any_size(name, dtype):
    """Tensors of all sizes beside each other, and beside numbers on either side."""
    op = {**OPS, **CHOICES}[name]
    for size in SIZES:
        a, b = [lucid.tensor(drawn(dtype, size, seed=seed), device="cpu") for seed in (1, 2)]
        same(*both(lambda a=a, b=b: op(a, b).array))
        same(*both(lambda a=a: a.relu().array))
        if name in OPS:
            for number in NUMBERS:
                same(*both(lambda a=a, number=number: op(a, number).array))
                same(*both(lambda a=a, number=number: op(number, a).array))


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["sub", "lt", "maximum"])
def test_ops_of_any_layout(name, dtype):
    """Operands of all layouts, and such as are broadcast against each other."""
    op = {**OPS, **CHOICES}[name]
    first, second = layouts(drawn(dtype, 80, 90, seed=1)), layouts(drawn(dtype, 80, 90, seed=2))
    pairs = [(a, b) for a in first.values() for b in second.values() if a.shape == b.shape]
    a, b = drawn(dtype, 80, 90, seed=3), drawn(dtype, 90, seed=4)
    pairs += [(a, b), (b, a), (a, b[:1]), (a, b[3:4].reshape(())), (a, a[:, 5:6]), (a[:, :1], b)]
    pairs += [(a[None], b[:, None, None][:3])]
    pairs += [(a, a[-1:]), (a.reshape(8, 10, 90), a[:10]), (a.reshape(8, 10, 90), a.reshape(8, 10, 90)[:, :1])]
    pairs += [(a[:, :1], a[::-1, :1]), (a.T[::-1], a.T[:1]), (a[:0], b), (b[:, None], b)]
    for one, two in pairs:
        tensors = [lucid.tensor(one, device="cpu"), lucid.tensor(two, device="cpu")]
        for given, each in zip(tensors, (one, two), strict=True):
            given.array = each
        loop, numpy = both(lambda tensors=tensors: op(*tensors).array)
        assert (loop.shape, loop.dtype, loop.tobytes()) == (numpy.shape, numpy.dtype, numpy.tobytes())


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients(dtype):
    """What is differentiated by loops has the gradients of NumPy's, for broadcast operands as well."""
    random = np.random.default_rng(7)
    numbers = [random.standard_normal(shape).astype(dtype.numpy) for shape in ((80, 90), (90,), (80, 90))]

    def gradients():
        x, bias, upstream = [lucid.tensor(each, device="cpu") for each in numbers]
        leaves = [x.requires_grad_(), bias.requires_grad_()]
        ((x * 0.5 + bias) * x / 3.0 - lucid.maximum(x, bias) + x.relu()).backward(upstream)
        return np.concatenate([leaf.grad.array.reshape(-1) for leaf in leaves])

    same(*both(gradients))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 511, 513, 1000])
def test_nothing_is_written_beside_the_result(count):
    """A loop fills what it is asked for, and no element beside it."""
    halves_ = np.ones(count, np.float16)
    floats = np.ones(count, np.float32)
    for run, kind, operands in (
        (halves._WIDEN(BUILD, "__half"), np.float32, (halves_, count)),
        (halves._NARROW(BUILD, "__half"), np.float16, (floats, count)),
        (halves._CHOICES["maximum"](BUILD, "__half"), np.float16, (halves_, halves_, 1, count, 0, True, 0, False)),
        (halves._ARITHMETIC["add"](BUILD, *["__half"] * 3), np.float16, (halves_, halves_, 1, count, 0, True, 0, True)),
        (halves._COMPARISONS["equal"](BUILD, "__half"), np.uint8, (halves_, halves_, 1, count, 0, True, 0, False)),
    ):
        memory = np.full(count + 64, 7, kind)
        run(memory[32:].ctypes.data, *[address(each) if isinstance(each, np.ndarray) else each for each in operands])
        np.testing.assert_array_equal(memory[:32], 7)
        np.testing.assert_array_equal(memory[32 + count :], 7)
        assert (memory[32 : 32 + count] != 7).all()
