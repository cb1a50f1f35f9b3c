"""Random draws on a CUDA device are bit for bit those of the CPU, and so is dropout."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.base.random import draws as draw
from lucid.base.random.draws import Generator
from lucid.nn import functional

pytestmark = pytest.mark.gpu

FLOATS = ("float16", "bfloat16", "float32", "float64")
# as far as 20 words: from the first word, across the carry of the counter's low half, and around its end
OFFSETS = (0, 2**32 - 2, 2**64 - 2)
SIZES = (0, 1, 2, 3, 4, 5, 31, 33, 1023, 1025)
every_float = pytest.mark.parametrize("dtype", FLOATS)
every_offset = pytest.mark.parametrize("offset", OFFSETS)


def bits(array):
    return np.atleast_1d(array).view(f"u{array.itemsize}")


def check_bits(name, offset, *arguments, **settings):
    """Draw the same on both devices and compare every bit, and where the generators then stand."""
    results = []
    for xp in (np, gpu.cupy()):
        generator = Generator("cpu", seed=0x123456789ABCDEF0)
        generator.reserve(offset)
        values = getattr(draw, name)(generator, *arguments, xp=xp, **settings)
        results.append((values if xp is np else values.get(), generator.get_state()))
    (cpu, cpu_state), (cuda, cuda_state) = results
    assert cuda.dtype == cpu.dtype
    assert cuda.shape == cpu.shape
    np.testing.assert_array_equal(bits(cuda), bits(cpu))
    np.testing.assert_array_equal(cuda_state, cpu_state)


@every_float
@every_offset
def test_uniform(dtype, offset):
    """Any size, bounds and place in the stream."""
    for size in SIZES:
        check_bits("uniform", offset, (size,), getattr(lucid, dtype).numpy)
    for low, high in ((-3.0, 2.5), (1.0, 1.0), (1e-4, 1.1e-4), (-1e4, 1e4), (0.0, 3e-33)):
        check_bits("uniform", offset, (7, 6), getattr(lucid, dtype).numpy, low, high)


@every_float
@every_offset
def test_normal(dtype, offset):
    """Any size, mean and deviation, in the middle of the distribution and in its tails."""
    for size in SIZES:
        check_bits("normal", offset, (size,), getattr(lucid, dtype).numpy)
    check_bits("normal", offset, (7, 6), getattr(lucid, dtype).numpy, -1.5, 0.02)
    check_bits("normal", offset, (), getattr(lucid, dtype).numpy, 3.0, 0.0)


@every_float
@every_offset
def test_exponential(dtype, offset):
    """Any size and rate."""
    for size in SIZES:
        check_bits("exponential", offset, (size,), getattr(lucid, dtype).numpy)
    check_bits("exponential", offset, (7, 6), getattr(lucid, dtype).numpy, 0.3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@every_offset
def test_integers(dtype, offset):
    """Any integer dtype, up to all of its range."""
    limits = np.iinfo(dtype)
    for size in SIZES:
        check_bits("randint", offset, 0, 10, (size,), dtype)
    for low, high in ((limits.min, int(limits.max) + 1), (3, 4), (int(limits.max) - 5, int(limits.max) + 1)):
        check_bits("randint", offset, low, high, (7, 6), dtype)


@pytest.mark.parametrize("p", [0.0, 1.0, 0.5, 0.1, 2.0**-33, 1 - 2.0**-32])
@every_offset
def test_bernoulli(p, offset):
    """Any probability, exactly never for 0 and always for 1."""
    for size in SIZES:
        check_bits("bernoulli", offset, p, (size,))


@every_offset
def test_permutation(offset):
    """The same order on both devices."""
    for size in SIZES:
        check_bits("permutation", offset, size)


def test_many_values_do_not_depend_on_the_launch():
    """A draw that takes many blocks of threads."""
    check_bits("normal", 5, (20_001,), np.float32)
    check_bits("uniform", 5, (10_001,), np.float64)


@pytest.mark.parametrize("function", ["rand", "randn"])
@every_float
def test_a_seed_gives_the_same_tensors(function, dtype):
    """The public functions, in turn, on the default generators of both devices."""
    drawn = []
    for device in ("cpu", "cuda"):
        lucid.manual_seed(11)
        makers = [getattr(lucid, function)(3, 5, dtype=getattr(lucid, dtype), device=device) for _ in range(2)]
        makers.append(lucid.randperm(9, device=device))
        drawn.append([tensor.cpu().numpy() for tensor in makers])
    for cpu, cuda in zip(*drawn, strict=True):
        np.testing.assert_array_equal(bits(cuda), bits(cpu))


@every_float
@pytest.mark.parametrize("p", [0.5, 0.1, 1.0])
def test_dropout_and_its_gradient(rng, dtype, p):
    """Output and gradient have the same bits on both devices, and are zero in the same places."""
    kind = getattr(lucid, dtype)
    for size in (0, 1, 3, 4, 5, 33, 1025):
        values, upstream = rng.standard_normal((2, size)) + 3
        results = []
        for device in ("cpu", "cuda"):
            lucid.manual_seed(5)
            x = lucid.tensor(values, dtype=kind, device=device, requires_grad=True)
            y = functional.dropout(x, p)
            y.backward(lucid.tensor(upstream, dtype=kind, device=device))
            results.append([part.detach().cpu().numpy() for part in (y, x.grad)])
        for cpu, cuda in zip(*results, strict=True):
            np.testing.assert_array_equal(bits(cuda), bits(cpu))
        assert ((results[1][0] == 0) == (results[1][1] == 0)).all()


@pytest.mark.parametrize("layout", ["transposed", "every other", "backwards", "broadcast", "shifted"])
def test_dropout_of_strided_tensors(rng, layout):
    """Input and upstream gradient may have any strides: words go by the place in the tensor, not in memory."""
    form = {
        "transposed": lambda t: t.transpose(0, 1),
        "every other": lambda t: t[:, ::2],
        "backwards": lambda t: t.flip(0),
        "broadcast": lambda t: t[:1].expand(6, 8),
        "shifted": lambda t: t.reshape(-1)[1:],
    }[layout]
    values, upstream = rng.standard_normal((2, 6, 8)) + 3
    results = []
    for device in ("cpu", "cuda"):
        lucid.manual_seed(6)
        x = lucid.tensor(values, dtype=lucid.float32, device=device, requires_grad=True)
        y = functional.dropout(form(x), 0.4)
        y.backward(form(lucid.tensor(upstream, dtype=lucid.float32, device=device)))
        results.append([part.detach().cpu().numpy() for part in (y, x.grad)])
    np.testing.assert_array_equal(results[1][0], results[0][0])
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-6)


def test_dropout_keeps_neither_infinity_nor_nan_where_it_drops():
    """What is dropped is 0, whatever it was."""
    y = functional.dropout(lucid.tensor([np.inf, np.nan] * 50, device="cuda"), 0.5).cpu().numpy()
    assert (y == 0).any()
    assert (~np.isfinite(y)).any()


def test_dropout_has_every_derivative(rng):
    """The derivative of the derivative goes through the same mask."""
    lucid.manual_seed(3)
    x = lucid.tensor(rng.standard_normal(40), dtype=lucid.float32, device="cuda", requires_grad=True)
    y = functional.dropout(x, 0.5)
    (first,) = lucid.autograd.grad((y**3).sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(first.sum(), x)
    kept = y.detach().cpu().numpy() != 0
    values = x.detach().cpu().numpy().astype(np.float64)
    np.testing.assert_allclose(first.detach().cpu().numpy(), np.where(kept, 24 * values**2, 0), rtol=1e-5)
    np.testing.assert_allclose(second.cpu().numpy(), np.where(kept, 48 * values, 0), rtol=1e-5)
