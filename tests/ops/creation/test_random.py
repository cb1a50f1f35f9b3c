"""Random tensors, dropout, draws from given distributions, and the state of generators."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base.random import philox
from lucid.errors import DeviceError, DtypeError, InplaceError, ShapeError
from lucid.ops.creation import rejection, sampling
from lucid.ops.creation.generators import (
    Generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from lucid.ops.creation.random import (
    ProbabilityError,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from lucid.ops.creation.rejection import standard_gamma, von_mises
from lucid.ops.creation.sampling import bernoulli, binomial, multinomial, normal, poisson
from lucid.ops.layers.dropout import dropout
from tests.device import DEVICE
from tests.gradients import numbers

MANY = 40_000 if DEVICE == "cpu" else 8_000  # a simulated device takes its time
CREATORS = [
    lambda **settings: rand(3, 4, **settings),
    lambda **settings: randn((3, 4), **settings),
    lambda **settings: randint(10, (3, 4), **settings),
    lambda **settings: randperm(12, **settings),
    lambda **settings: normal(0.0, 1.0, (3, 4), **settings),
    lambda **settings: bernoulli(lucid.full((3, 4), 0.5), **settings),
    lambda **settings: multinomial(lucid.ones(20), 12, **settings),
    lambda **settings: multinomial(lucid.ones(20), 12, True, **settings),
    lambda **settings: rand_like(lucid.ones(12), **settings),
    lambda **settings: randn_like(lucid.ones(12), **settings),
    lambda **settings: randint_like(lucid.ones(12), 10, **settings),
    lambda **settings: normal(lucid.zeros(12), 1.0, **settings),
    lambda **settings: bernoulli(lucid.ones(12), 0.5, **settings),
]


@pytest.mark.parametrize("create", CREATORS)
def test_a_generator_repeats(create):
    """The same state gives the same numbers, from a generator of one's own or from the default one."""
    own = Generator(DEVICE, 3)
    state = own.get_state()
    first = create(generator=own)
    other = create(generator=own)
    own.set_state(state)
    assert create(generator=own).tolist() == first.tolist()
    assert first.tolist() != other.tolist()
    manual_seed(3)
    assert create().tolist() == first.tolist()


@pytest.mark.cpu("the state is that of the CPU's own generator")
def test_state_is_a_tensor_of_bytes():
    """States are uint8 tensors that continue a stream; anything else is refused."""
    before = get_rng_state()
    assert (before.dtype, before.shape) == (lucid.uint8, (24,))
    first = rand(3)
    set_rng_state(before)
    assert rand(3).tolist() == first.tolist()
    with pytest.raises(DtypeError, match=r"uint8, got lucid\.float32"):
        set_rng_state(lucid.zeros(24))
    with pytest.raises(ValueError, match="shape"):
        Generator().set_state(lucid.zeros(3, dtype=lucid.uint8))


def test_seeds():
    """A manual seed is the initial one; a fresh one differs each time."""
    manual_seed(11)
    assert initial_seed() == 11
    assert seed() != seed()
    manual_seed(0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_moments(dtype):
    """Uniform and normal numbers have the mean and variance of their distributions, in every dtype."""
    generator = Generator(DEVICE, 5)
    for make, mean, variance in ((rand, 0.5, 1 / 12), (randn, 0.0, 1.0)):
        x = make(MANY, generator=generator, dtype=getattr(lucid, dtype))
        assert x.dtype == getattr(lucid, dtype)
        values = numbers(x).astype(np.float64)
        # five standard errors, and the rounding of the half types
        assert abs(values.mean() - mean) < 5 * np.sqrt(variance / MANY) + 2**-9
        assert abs(values.var() - variance) < 5 * np.sqrt(2 / MANY) + 2**-9


def test_bounds_of_integers():
    """The lower bound is drawn, the upper never; floating-point dtypes get whole numbers."""
    x = randint(2, 5, (1000,), generator=Generator(DEVICE, 0))
    assert (x.dtype, set(x.tolist())) == (lucid.int64, {2, 3, 4})
    assert set(randint(3, (1000,), dtype=lucid.float32, generator=Generator(DEVICE, 0)).tolist()) == {0.0, 1.0, 2.0}
    assert randint(low=4, high=5, size=(2,)).tolist() == [4, 4]
    for given in ((5,), (0, 5, 3, (2,)), (5, 1, 2, 3)):
        with pytest.raises(ShapeError, match="the size as a tuple"):
            randint(*given)
    with pytest.raises(ValueError, match="low < high"):
        randint(5, 5, (2,))


def test_a_permutation_holds_everything_once():
    """All numbers below n, each once, and not in order."""
    x = randperm(500, generator=Generator(DEVICE, 0)).tolist()
    assert sorted(x) == list(range(500))
    assert x != sorted(x)


def test_like_another():
    """Shape, dtype and device are those of the other, unless they are given."""
    x = lucid.zeros(2, 3, dtype=lucid.float64)
    for made in (rand_like(x), randn_like(x), randint_like(x, 5)):
        assert (made.shape, made.dtype) == (x.shape, x.dtype)
    assert rand_like(x, dtype=lucid.float16).dtype == lucid.float16
    assert randint_like(x, 2, 3, dtype=lucid.int8).tolist() == [[2, 2, 2]] * 2


def test_leaves():
    """What is created can require grad, if it is floating-point."""
    assert rand(2, requires_grad=True).is_leaf
    with pytest.raises(DtypeError, match="require gradients"):
        randint(3, (2,), requires_grad=True)


def test_mistakes():
    """Integer dtypes, negative sizes and generators of another device are refused."""
    with pytest.raises(DtypeError, match=r"rand: expected a real floating-point dtype, got lucid\.int64"):
        rand(2, dtype=lucid.int64)
    with pytest.raises(DtypeError, match="randn"):
        randn(2, dtype=lucid.complex64)
    with pytest.raises(ShapeError, match="negative"):
        rand(-1)
    with pytest.raises(DeviceError, match="'cpu' device type for generator but found 'cuda:0'"):
        rand(2, generator=Generator("cuda"), device="cpu")


def test_dropout_keeps_the_mean(rng):
    """A share p of zeros, the rest divided by 1 - p, and the same for the gradient."""
    x = lucid.tensor(rng.uniform(1, 2, (200, 200)), requires_grad=True)
    upstream = rng.standard_normal(x.shape)
    manual_seed(2)
    out = dropout(x, 0.3)
    out.backward(lucid.tensor(upstream))
    kept = numbers(out) != 0
    assert abs(kept.mean() - 0.7) < 5 * np.sqrt(0.21 / kept.size)
    np.testing.assert_allclose(numbers(out), numbers(x) * kept / 0.7, rtol=1e-15)
    np.testing.assert_allclose(numbers(x.grad), upstream * kept / 0.7, rtol=1e-15)
    manual_seed(2)
    assert (numbers(dropout(lucid.ones(200, 200, dtype=lucid.float16), 0.3)) != 0).tolist() == kept.tolist()


def test_dropout_at_its_ends(rng):
    """Probability 0 and evaluation return the input, without drawing; probability 1 leaves zeros, and no gradient."""
    x = lucid.tensor(rng.standard_normal(5), requires_grad=True)
    before = get_rng_state().tolist()
    assert dropout(x, 0.0) is x
    assert dropout(x, 0.5, training=False) is x
    assert get_rng_state().tolist() == before
    out = dropout(x, 1.0)
    out.backward(lucid.tensor(rng.standard_normal(5)))
    assert not numbers(out).any()
    assert not numbers(x.grad).any()


def test_dropout_in_place(rng):
    """In place the input is changed and returned, with the gradient of the change; a leaf refuses."""
    x = lucid.tensor(rng.standard_normal(50), requires_grad=True)
    y = x * 1.0
    out = dropout(y, 0.5, inplace=True)
    assert out is y
    upstream = rng.standard_normal(50)
    out.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(numbers(x.grad), upstream * 2 * (numbers(y) != 0), rtol=1e-15)
    with pytest.raises(InplaceError, match="leaf"):
        dropout(x, 0.5, inplace=True)


def test_dropout_mistakes():
    """Probabilities outside of 0 to 1 and integers are refused."""
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ProbabilityError, match="between 0 and 1"):
            dropout(lucid.ones(2), p)
    with pytest.raises(DtypeError, match="floating-point"):
        dropout(lucid.tensor([1, 2]))


def test_bernoulli(rng):
    """Each element is 1 with its probability, or with one for all."""
    chance = rng.uniform(0, 1, 5)
    generator = Generator(DEVICE, 1)
    draws = numbers(bernoulli(lucid.tensor(np.broadcast_to(chance, (MANY, 5))), generator=generator))
    assert set(np.unique(draws)) == {0.0, 1.0}
    assert (abs(draws.mean(0) - chance) < 5 * np.sqrt(0.25 / MANY)).all()
    assert bernoulli(lucid.zeros(3, dtype=lucid.int64), 1.0).tolist() == [1, 1, 1]
    with pytest.raises(ProbabilityError, match="p=2"):
        bernoulli(lucid.ones(2), 2)
    with pytest.raises(DtypeError, match="int64"):
        bernoulli(lucid.tensor([1, 0]))


def test_normal():
    """Means and deviations are numbers with a size, or tensors that broadcast."""
    generator = Generator(DEVICE, 1)
    mean, std = lucid.tensor([[1.0], [-2.0]]), lucid.full((1, MANY), 3.0)
    draws = numbers(normal(mean, std, generator=generator))
    assert draws.shape == (2, MANY)
    assert (abs(draws.mean(1) - numbers(mean)[:, 0]) < 5 * 3 / np.sqrt(MANY)).all()
    assert (abs(draws.std(1) - 3) < 5 * 3 / np.sqrt(MANY)).all()
    assert normal(5.0, lucid.zeros(2)).tolist() == [5.0, 5.0]
    for first, second in ((lucid.float16, lucid.float64), (lucid.float64, lucid.float16)):
        assert normal(lucid.zeros(2, dtype=first), lucid.ones(2, dtype=second)).dtype is first
    assert normal(lucid.ones(2, requires_grad=True), 1.0).requires_grad is False
    for args in ((0.0, 1.0), (lucid.zeros(2), 1.0, (2,))):
        with pytest.raises(ShapeError, match="either tensors"):
            normal(*args)
    with pytest.raises(ProbabilityError, match=r"std >= 0\.0, but found std -1"):
        normal(0.0, -1, (2,))


def test_multinomial():
    """Shares of draws follow the weights; impossible elements are never drawn, and none twice without replacement."""
    weights = lucid.tensor([[1.0, 0.0, 3.0, 4.0], [2.0, 2.0, 0.0, 0.0]])
    generator = Generator(DEVICE, 4)
    draws = numbers(multinomial(weights, MANY, True, generator=generator))
    assert draws.dtype == np.int64
    shares = np.stack([np.bincount(row, minlength=4) / MANY for row in draws])
    expected = numbers(weights) / numbers(weights).sum(1, keepdims=True)
    assert (abs(shares - expected) < 5 * np.sqrt(0.25 / MANY)).all()
    assert (shares[expected == 0] == 0).all()
    rows = numbers(multinomial(weights.expand(2, 4), 2, generator=generator))
    assert all(len(set(row)) == 2 for row in rows.tolist())
    assert sorted(rows[1].tolist()) == [0, 1]
    first = numbers(multinomial(lucid.tensor([[1.0, 3.0]] * MANY), 1, generator=generator))
    assert abs(first.mean() - 0.75) < 5 * np.sqrt(0.1875 / MANY)


def test_places_of_all_rows_at_once(rng):
    """They are those that a search of each row gives, where sums stand still and where a number is one of them too."""
    for length in (1, 2, 3, 7, 8, 9, 100):
        sums = np.cumsum(rng.integers(0, 3, (5, length)).astype(float), 1)
        drawn = rng.integers(0, 2 * length + 2, (5, 40)).astype(float)
        expected = [np.searchsorted(*pair, side="right") for pair in zip(sums, drawn, strict=True)]
        assert sampling._reached(np, sums, drawn).tolist() == np.stack(expected).tolist()


def test_poisson():
    """Counts have the mean and the variance of their rates, and a gradient of zeros."""
    rates = lucid.tensor([0.0, 0.5, 3.0, 40.0], dtype=lucid.float64, requires_grad=True)
    counts = poisson(rates.expand(MANY, 4), Generator(DEVICE, 1))
    draws = numbers(counts.detach())
    assert (draws == np.floor(draws)).all()
    assert (draws >= 0).all()
    expected = numbers(rates.detach())
    assert (abs(draws.mean(0) - expected) <= 5 * np.sqrt(expected / MANY)).all()
    # the variance of a variance of n counts: (rate + 2 * rate ** 2) / n
    assert (abs(draws.var(0) - expected) <= 5 * np.sqrt((expected + 2 * expected**2) / MANY)).all()
    assert type(counts.grad_fn).__name__ == "PoissonBackward0"
    counts.sum().backward()
    assert rates.grad.tolist() == [0.0] * 4
    assert poisson(lucid.ones(2, dtype=lucid.float16)).dtype is lucid.float16
    with pytest.raises(DtypeError, match=r"floating-point dtype, got lucid\.int64"):
        poisson(lucid.tensor([1]))


def test_binomial():
    """Counts have the mean and the variance of their trials and chances, which broadcast; nothing is recorded."""
    trials, chances = np.array([[3.0], [50.0]]), np.array([0.0, 0.2, 0.7, 1.0])
    given = [lucid.tensor(np.broadcast_to(each, (MANY, 2, 4))) for each in (trials, chances)]
    draws = numbers(binomial(*given, Generator(DEVICE, 1)))
    assert (draws == np.floor(draws)).all()
    assert ((draws >= 0) & (draws <= trials)).all()
    spread = trials * chances * (1 - chances)
    assert (abs(draws.mean(0) - trials * chances) <= 5 * np.sqrt(spread / MANY)).all()
    # the fourth moment is at most 3 * spread ** 2 + spread
    assert (abs(draws.var(0) - spread) <= 5 * np.sqrt((2 * spread**2 + spread) / MANY)).all()
    assert binomial(lucid.tensor([4.0], requires_grad=True), lucid.tensor([0.0, 1.0])).tolist() == [0.0, 4.0]
    odd = binomial(lucid.tensor([4.0, 4.0, 4.0, -4.0]), lucid.tensor([1.5, -0.5, float("nan"), 0.5]))
    np.testing.assert_array_equal(numbers(odd), [4, 0, np.nan, 0])
    for count in (lucid.tensor([4]), lucid.tensor([4.0], dtype=lucid.float64)):
        with pytest.raises(DtypeError, match="count and prob of one floating-point dtype"):
            binomial(count, lucid.tensor([0.5]))


def test_multinomial_mistakes():
    """No draws, and weights of too many dimensions, are refused."""
    with pytest.raises(ShapeError, match="n_sample <= 0"):
        multinomial(lucid.ones(3), 0)
    with pytest.raises(ShapeError, match=r"\(C,\) or \(N, C\)"):
        multinomial(lucid.ones(2, 2, 2), 1)


@pytest.mark.cpu("a CUDA device does not look at the values of probabilities")
def test_values_that_are_no_probabilities():
    """Tensors that hold no chances, no weights or no deviations are refused, and too few weights for the draws."""
    for wrong in (1.5, -0.5, float("nan")):
        with pytest.raises(ProbabilityError, match="between 0 and 1"):
            bernoulli(lucid.tensor([0.5, wrong]))
        with pytest.raises(ProbabilityError, match="p="):
            bernoulli(lucid.ones(2), wrong)
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ProbabilityError, match="std"):
            normal(0.0, lucid.tensor([1.0, wrong]))
        with pytest.raises(ProbabilityError, match="invalid Poisson rate"):
            poisson(lucid.tensor([1.0, wrong]))


@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_none(replacement):
    """On both devices: a row without weight, a weight that is none, and fewer weights than draws."""
    for wrong in ([1.0, -1.0], [1.0, float("inf")], [float("nan"), 1.0]):
        with pytest.raises(ProbabilityError, match="`inf`, `nan` or element < 0"):
            multinomial(lucid.tensor(wrong), 1, replacement)
        with pytest.raises(ProbabilityError, match="`inf`, `nan` or element < 0"):
            multinomial(lucid.tensor([[1.0, 1.0], wrong]), 1, replacement)
    with pytest.raises(ProbabilityError, match="sum of probabilities <= 0"):
        multinomial(lucid.zeros(3), 1, replacement)
    weights = lucid.tensor([1.0, 0.0, 1.0])
    if replacement:
        assert 1 not in multinomial(weights, 100, replacement).tolist()
        return
    with pytest.raises(ShapeError, match="without replacement: 3 asked for, 2 that can be drawn"):
        multinomial(weights, 3)
    for order in (slice(None), slice(None, None, -1)):
        rows = lucid.tensor(np.array([[1.0, 2.0, 3.0], [0.0, 5.0, 0.0]])[order].copy())
        with pytest.raises(ShapeError, match="2 asked for, 1 that can be drawn"):
            multinomial(rows, 2)
        assert multinomial(rows, 2, True).shape == (2, 2)


@pytest.mark.parametrize("count", [1, 7, 49, 50, 99])
def test_draws_of_many_weights(count):
    """None comes twice, none of weight 0 comes, and of more draws the first ones are the same."""
    weights = lucid.arange(100) % 2 * 1.0
    weights[0] = 1e6
    drawn = [
        multinomial(weights, number, generator=lucid.Generator(DEVICE).manual_seed(5)).tolist()
        for number in (count % 50 + 1, 50)
    ]
    assert drawn[1][: len(drawn[0])] == drawn[0]
    assert len(set(drawn[1])) == 50
    assert drawn[1][0] == 0
    assert all(index % 2 for index in drawn[1][1:])


@pytest.mark.parametrize("name", ["normal_", "cauchy_", "log_normal_"])
def test_numbers_beyond_the_dtype_are_infinite_without_a_word(name):
    """As in PyTorch, whatever the user made of NumPy's warnings."""
    with np.errstate(all="raise"):
        drawn = getattr(lucid.empty(1000), name)(0, 1e39 if name != "log_normal_" else 200)
    assert np.isinf(numbers(drawn)).any()


# More elements than are worked on at a time.
SEVERAL = rejection.CPU_CHUNK + 100
# Draws whose numbers are tried, or take several of the stream: of a generator, as many as stand in the tensors.
STREAMS = {
    "poisson": lambda g: poisson(rates(g), g),
    "binomial": lambda g: binomial(rates(g) + 20, lucid.full((SEVERAL,), 0.4), g),
    "gamma": lambda g: standard_gamma(rates(g), g),
    "von_mises": lambda g: von_mises(rates(g), g),
    "rand": lambda g: rand(SEVERAL, generator=g),
    "rand of float64": lambda g: rand(SEVERAL, dtype=lucid.float64, generator=g),
    "randn": lambda g: randn(SEVERAL, generator=g),
    "randint": lambda g: randint(3, (SEVERAL,), generator=g),
    "randperm": lambda g: randperm(SEVERAL, generator=g),
    "normal": lambda g: normal(rates(g), rates(g), generator=g),
    "bernoulli": lambda g: bernoulli(rates(g) / 60, generator=g),
    "multinomial": lambda g: multinomial(lucid.ones(3, 50), 20, generator=g),
    "multinomial, replacement": lambda g: multinomial(lucid.ones(3, 50), 20, True, generator=g),
}


def rates(generator):
    """Return parameters of which the first are no model of the others."""
    return lucid.linspace(0.5, 60.0, SEVERAL, device=generator.device)


@pytest.mark.cpu("of a device the kernels draw")
@pytest.mark.parametrize("name", STREAMS)
def test_no_number_of_the_stream_is_used_twice(name, monkeypatch):
    """Each attempt of each element has a block of its own, within what the generator has reserved."""
    seen = []

    def watched(xp, counter, seed):
        seen.append(counter[0].astype(np.uint64) | counter[1].astype(np.uint64) << np.uint64(32))
        return block_cipher(xp, counter, seed)

    monkeypatch.setattr("lucid.backends.cpu.compiled", False)  # whose words are the same
    block_cipher = philox.philox4x32_10
    for module in (philox, rejection):
        monkeypatch.setattr(module, "philox4x32_10", watched)
    generator = Generator("cpu", 3)
    for _ in range(2):
        STREAMS[name](generator)
    blocks = np.concatenate(seen)
    assert len(np.unique(blocks)) == len(blocks)
    assert blocks.max() < generator._offset


def test_default_generators_are_of_the_public_class():
    """What `manual_seed` returns is a `Generator`, on the CPU, in a dataset, and where it restarts a device's."""
    generator = lucid.manual_seed(3)
    assert type(generator) is lucid.Generator
    assert isinstance(generator.get_state(), lucid.Tensor)
    before = lucid.get_rng_state()
    first = lucid.rand(3, device="cpu")
    generator.set_state(before)
    assert lucid.equal(lucid.rand(3, generator=generator, device="cpu"), first)

    class Seeds(lucid.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return type(lucid.manual_seed(3)) is lucid.Generator

    begun = []
    thread = {"worker": "thread", "worker_init_fn": lambda _: begun.append(type(lucid.manual_seed(3)))}
    for settings in ({}, {"num_workers": 1, **thread}):
        assert [bool(batch) for batch in lucid.utils.data.DataLoader(Seeds(), **settings)] == [True]
    assert begun == [lucid.Generator]
