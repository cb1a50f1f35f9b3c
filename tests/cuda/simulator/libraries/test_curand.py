"""CuPy's random numbers on simulated devices: of the right distributions, again from the same seed, in their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")

COUNT = 20_000


@pytest.fixture
def random():
    """Return CuPy's random numbers, from a known seed."""
    found = gpu.cupy().random
    found.seed(5)
    return found


# Mean, variance and fourth central moment in units of the squared variance, by which the means' errors are known.
@pytest.mark.parametrize(
    ("draw", "mean", "variance", "fourth"),
    [
        (lambda r: r.random_sample(COUNT), 0.5, 1 / 12, 1.8),
        (lambda r: r.random_sample(COUNT, dtype="float32"), 0.5, 1 / 12, 1.8),
        (lambda r: r.normal(3, 2, COUNT), 3, 4, 3),
        (lambda r: r.normal(3, 2, COUNT + 1, dtype="float32"), 3, 4, 3),
        (lambda r: np.log(r.lognormal(1, 0.5, COUNT).get()), 1, 0.25, 3),
        (lambda r: np.log(r.lognormal(1, 0.5, COUNT, dtype="float32").get()), 1, 0.25, 3),
        (lambda r: r.poisson(4.0, COUNT), 4, 4, 3 + 1 / 4),
        (lambda r: r.randint(0, 10, COUNT), 4.5, 8.25, 1.78),
        (lambda r: r.binomial(100, 0.5, COUNT), 50, 25, 2.98),
        (lambda r: r.gamma(2.0, 3.0, COUNT), 6, 18, 6),
    ],
)
def test_distributions(random, draw, mean, variance, fourth):
    """Mean and variance of many numbers lie within five standard errors of those of the distribution."""
    drawn = np.asarray(gpu.cupy().asnumpy(draw(random)), np.float64)
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(variance / drawn.size)
    assert abs(drawn.var() - variance) < 5 * variance * np.sqrt((fourth - 1) / drawn.size)


def test_seeds(random):
    """The same seed gives the same numbers, and another call others."""
    first, second = random.random_sample(10).get(), random.random_sample(10).get()
    random.seed(5)
    assert random.random_sample(10).get().tolist() == first.tolist()
    assert not set(first) & set(second)
    random.seed(6)
    assert not set(first) & set(random.random_sample(10).get())


def test_uniform_numbers_are_below_one(random):
    """CuPy makes numbers from 0 to below 1 of cuRAND's, which are above 0 and up to 1."""
    for dtype in ("float32", "float64"):
        drawn = random.random_sample(100_000, dtype=dtype)
        assert 0 <= float(drawn.min()) < 1e-3
        assert 1 - 1e-3 < float(drawn.max()) < 1


def test_permutations(random):
    """Shuffles keep every element once."""
    order = random.permutation(50).get()
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50))


def test_faults():
    """Memory beyond an array, a negative mean, a quasi-random and a destroyed generator are refused."""
    cupy = gpu.cupy()
    curand = cupy.cuda.curand
    generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_DEFAULT)
    out = cupy.full(4, -1.0)
    with pytest.raises(curand.CURANDError, match="LAUNCH_FAILURE"):
        curand.generateUniformDouble(generator, out.data.ptr, 5)
    with pytest.raises(curand.CURANDError, match="OUT_OF_RANGE"):
        curand.generatePoisson(generator, out.data.ptr, 4, -1.0)
    with pytest.raises(curand.CURANDError, match="TYPE_ERROR"):
        curand.createGenerator(curand.CURAND_RNG_QUASI_DEFAULT)
    assert out.get().tolist() == [-1.0] * 4
    curand.destroyGenerator(generator)
    with pytest.raises(curand.CURANDError, match="NOT_INITIALIZED"):
        curand.generateUniformDouble(generator, out.data.ptr, 4)
