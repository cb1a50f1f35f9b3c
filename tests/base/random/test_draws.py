"""The random generator: published vectors, layout, distributions, state, and equality with the CUDA source."""

from __future__ import annotations

import ctypes
import math
import statistics
import subprocess
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from lucid.base.random import draws as lr
from lucid.base.random import generator as streams
from lucid.base.random.generator import Generator
from lucid.base.random.inverse_normal import inverse_normal, minus_log
from lucid.base.random.philox import philox4x32_10, word_chunks
from tests.pieces import in_threads

HEADER = Path(__file__).parents[3] / "kernels" / "random" / "philox.cuh"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64)]
MASK = 0xFFFFFFFF

# NumPy under another name: takes the branches that a device takes.
DEVICE_XP = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if not name.startswith("_")})


def reference_block(counter: tuple[int, int, int, int], seed: int) -> list[int]:
    """Philox4x32-10 word by word on Python integers, from the paper's definition."""
    c0, c1, c2, c3 = counter
    k0, k1 = seed & MASK, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return [c0, c1, c2, c3]


def reference_word(seed: int, offset: int, i: int) -> int:
    c = (offset + i // 4) % 2**64
    return reference_block((c & MASK, c >> 32, 0, 0), seed)[i % 4]


def random_bits(xp, n: int, seed: int, offset: int):
    """Return the first `n` words of the stream of `seed` at `offset`."""
    words = xp.empty(n, np.uint32)
    for first, chunk in word_chunks(xp, -(-n // 4), seed, offset):
        words[first : first + chunk.size] = chunk[: n - first]
    return words


def kolmogorov(values: np.ndarray, cdf) -> float:
    """Kolmogorov's statistic sqrt(n) * sup |F_n - F|; above 1.95 once in a thousand fair samples."""
    ordered = np.sort(values.astype(np.float64).ravel())
    n = ordered.size
    expected = np.array([cdf(x) for x in ordered])
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))


# ---- bits ----


@pytest.mark.parametrize(
    ("counter", "seed", "expected"),
    [
        ((0, 0, 0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((MASK,) * 4, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0A4093822,
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers(counter, seed, expected):
    """The vectors published with Random123 for philox4x32-10 come out, alone and in the middle of a batch."""
    batch = np.random.default_rng(0).integers(0, 2**32, (4, 5), np.uint64)
    batch[:, 3] = counter
    words = philox4x32_10(np, batch, seed).reshape(5, 4)
    assert [f"{word:08x}" for word in words[3]] == expected.split()
    assert reference_block(counter, seed) == words[3].tolist()


@pytest.mark.parametrize("offset", [0, 2**32 - 3, 2**64 - 3])
def test_words_in_pieces(offset, monkeypatch):
    """A long draw is made piece by piece, each of which begins where the one before has ended, beyond the wrap too."""
    whole = random_bits(np, 40, 7, offset)
    monkeypatch.setattr("lucid.base.random.philox._CPU_CHUNK", 2)
    np.testing.assert_array_equal(random_bits(np, 40, 7, offset), whole)


@pytest.mark.parametrize("offset", [0, 1, 2**32 - 3, 2**32, 2**63, 2**64 - 3])
def test_stream_layout(offset):
    """Word i is lane i % 4 of the block at offset + i // 4, across the carry at 2**32 and the wrap at 2**64."""
    seed = 0x9E2D_0000_FFFF_1234
    words = random_bits(np, 23, seed, offset)
    assert words.dtype == np.uint32
    assert words.tolist() == [reference_word(seed, offset, i) for i in range(23)]


def test_chunking_and_device_branches_change_nothing(monkeypatch):
    """Chunk size, and the branches taken for a device, do not change a bit of any draw."""

    def draws(xp):
        g = Generator("cpu", 11)
        made = [xp.asarray(random_bits(xp, 1001, 5, 7))]
        for dtype in FLOATS:
            made += [
                lr.uniform(g, (7, 143), dtype, -1.0, 2.0, xp),
                lr.normal(g, (1001,), dtype, 0.5, 2.0, xp),
                lr.exponential(g, (1001,), dtype, 0.5, xp),
            ]
        made += [
            lr.randint(g, -5, 99, (1001,), np.int16, xp),
            lr.bernoulli(g, 0.3, (1001,), xp),
            lr.permutation(g, 1001, xp),
        ]
        return [(array.dtype, array.shape, array.tobytes()) for array in made]

    whole = draws(np)
    monkeypatch.setattr("lucid.base.random.philox._CPU_CHUNK", 17)
    assert draws(np) == whole
    assert draws(DEVICE_XP) == whole
    monkeypatch.setattr("lucid.base.random.philox._DEVICE_CHUNK", 64)
    assert draws(DEVICE_XP) == whole


@pytest.mark.parametrize(
    ("draw", "words_each"),
    [
        (lambda g, n: lr.uniform(g, (n,), np.float32), 1),
        (lambda g, n: lr.uniform(g, (n,), np.float64), 2),
        (lambda g, n: lr.normal(g, (n,), BFLOAT16), 1),
        (lambda g, n: lr.normal(g, (n,), np.float64), 2),
        (lambda g, n: lr.exponential(g, (n,), np.float32), 1),
        (lambda g, n: lr.bernoulli(g, 0.5, (n,)), 1),
        (lambda g, n: lr.bernoulli(g, 0.0, (n,)), 1),
        (lambda g, n: lr.randint(g, 0, 2, (n,)), 2),
        (lambda g, n: lr.permutation(g, n), 2),
    ],
)
def test_consumption_and_prefix(draw, words_each):
    """A draw of n values advances the offset by ceil(words * n / 4), and is a prefix of a longer one's words."""
    for n in (0, 1, 2, 3, 4, 5, 1000):
        g = Generator("cpu", 3)
        made = draw(g, n)
        assert made.shape == (n,)
        assert g.reserve(0) == (3, -(-words_each * n // 4))
    if draw(Generator("cpu", 3), 3).dtype != np.int64:  # a permutation of fewer numbers is no prefix
        assert np.array_equal(draw(Generator("cpu", 3), 1000)[:37], draw(Generator("cpu", 3), 37))


# ---- distributions ----


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_value_for_value(dtype):
    """Every value is k / 2**b with k the upper b bits of its word, exactly."""
    bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    values = lr.uniform(Generator("cpu", 21), (50,), dtype)
    assert values.dtype == dtype
    for i, value in enumerate(values):
        if bits == 53:
            word, width = reference_word(21, 0, 2 * i) | reference_word(21, 0, 2 * i + 1) << 32, 64
        else:
            word, width = reference_word(21, 0, i), 32
        assert float(value) == (word >> (width - bits)) / 2**bits


@pytest.mark.parametrize(
    ("dtype", "span"), [(BFLOAT16, 1e-38), (np.float32, 1e-38), (np.float32, 3e-33), (np.float64, 1e-308)]
)
def test_uniform_over_a_tiny_interval(dtype, span):
    """Each value is its bits' share of the span, rounded once or twice, also where one step is no normal number."""
    dtype = np.dtype(dtype)
    bits = {"bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    values = lr.uniform(Generator("cpu", 21), (50,), dtype, 0.0, span)
    high, spacing = Fraction(float(dtype.type(span))), Fraction(float(np.nextafter(dtype.type(0), dtype.type(1))))
    for i, value in enumerate(values):
        if bits == 53:
            k = (reference_word(21, 0, 2 * i) | reference_word(21, 0, 2 * i + 1) << 32) >> 11
        else:
            k = reference_word(21, 0, i) >> (32 - bits)
        exact = k * high / 2**bits
        assert abs(Fraction(float(value)) - exact) <= max(spacing, exact / 2 ** (bits - 1)) * Fraction(51, 100)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 1.5), (-3.0, 5.0), (1000.0, 1001.0), (-0.1, 0.1)])
def test_uniform_excludes_high(dtype, low, high):
    """Values lie in [low, high) also where low + u * (high - low) rounds to high, and both ends are approached."""
    values = lr.uniform(Generator("cpu", 1), (40_000,), dtype, low, high)
    start, stop = dtype.type(low), dtype.type(high)
    if start == stop:
        assert (values == start).all()
        return
    assert (values >= start).all()
    assert (values < stop).all()
    spacing = float(stop) - float(np.nextafter(stop, start))
    reach = (high - low) * 1e-2 + 2 * spacing
    assert float(values.min()) - low < reach
    assert high - float(values.max()) < reach


def test_uniform_distribution():
    """Mean, variance and Kolmogorov's statistic are those of the uniform distribution."""
    for dtype in (np.float32, np.float64):
        values = lr.uniform(Generator("cpu", 8), (200_000,), dtype, -2.0, 3.0).astype(np.float64)
        assert abs(values.mean() - 0.5) < 4 * math.sqrt(25 / 12 / 200_000)
        assert abs(values.var() / (25 / 12) - 1) < 0.01
        assert kolmogorov(values[:20_000], lambda x: (x + 2) / 5) < 1.95


def test_minus_log_against_decimal():
    """-log(x) has a relative error below 4e-16 over all magnitudes that are used and close to 1."""
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [2.0 ** rng.uniform(-53, 0, 1500), 1 - 2.0 ** rng.uniform(-52, -1, 500), [2.0**-53, 0.5, math.sqrt(0.5), 0.75]]
    )
    got = minus_log(np, x.copy())
    with localcontext() as context:
        context.prec = 40
        exact = [-Decimal(float(value)).ln() for value in x]
        error = max(abs((Decimal(float(a)) - b) / b) for a, b in zip(got, exact, strict=True))
    assert error < 4e-16


def test_inverse_normal_against_erfc():
    """One Newton step on the exact distribution function moves no value by more than 1e-15 of itself."""
    rng = np.random.default_rng(4)
    tails = 2.0 ** rng.uniform(-53, -1, 4000)
    tails = np.round(tails * 2.0**53) / 2.0**53  # 1/2 - tail is then exact
    edges = np.array([2.0**-53, 2.0**-33, 0.075, 0.0749, 0.25, 1.388e-11, 1.3888e-11])
    edges = np.round(edges * 2.0**53) / 2.0**53
    q = np.concatenate([tails - 0.5, 0.5 - tails, edges - 0.5, 2.0 ** rng.uniform(-33, -2, 500)])
    q = q[q != 0]
    z = inverse_normal(np, q.copy())
    assert (np.sign(z) == np.sign(q)).all()
    for each_q, each_z in zip(np.abs(q), np.abs(z), strict=True):
        density = math.exp(-each_z * each_z / 2) / math.sqrt(2 * math.pi)
        if each_q < 0.25:
            excess = math.erf(each_z / math.sqrt(2)) / 2 - each_q
        else:
            excess = (0.5 - each_q) - math.erfc(each_z / math.sqrt(2)) / 2
        assert abs(excess / density) < 1e-15 * each_z


def test_normal_is_the_inverse_of_its_word():
    """Value i is the normal quantile of (word + 1/2) / 2**32, or for float64 of 52 bits of two words."""
    inverse = statistics.NormalDist(1.0, 0.5).inv_cdf
    single = lr.normal(Generator("cpu", 5), (200,), np.float32, 1.0, 0.5)
    double = lr.normal(Generator("cpu", 5), (200,), np.float64, 1.0, 0.5)
    for i in range(200):
        assert single[i] == pytest.approx(inverse((reference_word(5, 0, i) + 0.5) / 2**32), rel=1e-7)
        word = reference_word(5, 0, 2 * i) | reference_word(5, 0, 2 * i + 1) << 32
        assert double[i] == pytest.approx(inverse(((word >> 12) + 0.5) / 2**52), rel=2e-15, abs=2e-15)


def test_half_types_are_rounded_from_float32():
    """Normal and exponential half values are the float32 ones rounded, not the float64 ones: the same on a device."""
    for draw in (lr.normal, lr.exponential):
        single = draw(Generator("cpu", 5), (100_000,), np.float32)
        for dtype in (BFLOAT16, np.dtype(np.float16)):
            assert np.array_equal(draw(Generator("cpu", 5), (100_000,), dtype), single.astype(dtype))


def test_normal_reaches_beyond_five_deviations():
    """The outermost words give 6.2 (float32) and 8.2 (float64) standard deviations, symmetric and finite."""
    q = np.array([0.5 * 2.0**-32 - 0.5, 0.5 - 0.5 * 2.0**-32, 2.0**-53 - 0.5, 0.5 - 2.0**-53])
    z = inverse_normal(np, q)
    assert z[0] == -z[1]
    assert z[2] == -z[3]
    assert 6.2 < z[1] < 6.4
    assert 8.2 < z[3] < 8.3


def test_normal_distribution():
    """Moments up to the fourth and Kolmogorov's statistic are those of the normal distribution."""
    n = 400_000
    for dtype in (np.float32, np.float64):
        z = lr.normal(Generator("cpu", 99), (n,), dtype).astype(np.float64)
        assert abs(z.mean()) < 4 / math.sqrt(n)
        assert abs((z**2).mean() - 1) < 4 * math.sqrt(2 / n)
        assert abs((z**3).mean()) < 4 * math.sqrt(15 / n)
        assert abs((z**4).mean() - 3) < 4 * math.sqrt(96 / n)
        assert abs((z[1:] * z[:-1]).mean()) < 4 / math.sqrt(n)
        assert kolmogorov(z[:20_000], statistics.NormalDist().cdf) < 1.95


def test_exponential_distribution():
    """Mean, variance and Kolmogorov's statistic are those of the exponential distribution, and no value is 0."""
    values = lr.exponential(Generator("cpu", 2), (200_000,), np.float32, 2.5).astype(np.float64)
    assert (values > 0).all()
    assert abs(values.mean() * 2.5 - 1) < 4 / math.sqrt(200_000)
    assert abs(values.var() * 6.25 - 1) < 4 * math.sqrt(8 / 200_000)
    assert kolmogorov(values[:20_000], lambda x: 1 - math.exp(-2.5 * x)) < 1.95


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 1, np.int64),
        (-5, 6, np.int8),
        (0, 256, np.uint8),
        (-(2**63), 2**63, np.int64),
        (0, 2**64, np.uint64),
        (-3, 2**62 + 12345, np.int64),
        (2**63, 2**64, np.uint64),
        (7, 2**33 + 8, np.int64),
    ],
)
def test_randint_value_for_value(low, high, dtype):
    """Every value is low + floor(x * (high - low) / 2**64) for its 64-bit word x, over the full range of a dtype."""
    values = lr.randint(Generator("cpu", 17), low, high, (300,), dtype)
    assert values.dtype == dtype
    for i, value in enumerate(values):
        word = reference_word(17, 0, 2 * i) | reference_word(17, 0, 2 * i + 1) << 32
        assert int(value) == low + (word * (high - low) >> 64)


def test_randint_counts():
    """All values of a small range are equally frequent: chi-square within 4 deviations of its mean."""
    counts = np.bincount(lr.randint(Generator("cpu", 6), 0, 13, (130_000,)), minlength=13)
    chi_square = ((counts - 10_000) ** 2 / 10_000).sum()
    assert abs(chi_square - 12) < 4 * math.sqrt(24)


def test_bernoulli():
    """A mask is word < round(p * 2**32): never for 0, always for 1, and with frequency p."""
    assert not lr.bernoulli(Generator("cpu", 1), 0.0, (10_000,)).any()
    assert lr.bernoulli(Generator("cpu", 1), 1.0, (10_000,)).all()
    mask = lr.bernoulli(Generator("cpu", 1), 0.3, (100, 2000))
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - 0.3) < 4 * math.sqrt(0.21 / 200_000)
    words = random_bits(np, 200_000, 1, 0)
    assert np.array_equal(mask.ravel(), words < round(0.3 * 2**32))
    edge = int(words[0])
    assert not lr.bernoulli(Generator("cpu", 1), edge / 2**32, (1,))[0]
    assert lr.bernoulli(Generator("cpu", 1), (edge + 1) / 2**32, (1,))[0]


def test_permutation():
    """A permutation holds every index once, is ordered by the 64-bit keys, and all orders of three are as frequent."""
    order = lr.permutation(Generator("cpu", 4), 1000)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(1000))
    keys = random_bits(np, 2000, 4, 0).view(np.uint64)
    assert order.tolist() == sorted(range(1000), key=lambda i: (int(keys[i]), i))
    g = Generator("cpu", 5)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(1200):
        drawn = tuple(lr.permutation(g, 3).tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 6
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 5 + 4 * math.sqrt(10)


@pytest.mark.parametrize(
    ("draw", "error", "text"),
    [
        (lambda g: lr.uniform(g, (2,), np.int32), TypeError, "expected a floating dtype.*got int32"),
        (lambda g: lr.uniform(g, (2,), np.float32, 2.0, 1.0), ValueError, "low <= high.*low=2.0, high=1.0"),
        (lambda g: lr.uniform(g, (2,), np.float32, 0.0, math.inf), ValueError, "finite in float32"),
        (lambda g: lr.uniform(g, (2,), np.float32, -3e38, 3e38), ValueError, "difference finite in float32"),
        (lambda g: lr.uniform(g, (2,), np.float16, 0.0, 1e6), ValueError, "finite in float16"),
        (lambda g: lr.uniform(g, (2,), np.float32, math.nan, 1.0), ValueError, "low=nan"),
        (lambda g: lr.uniform(g, (-2,), np.float32), ValueError, "negative dimensions"),
        (lambda g: lr.normal(g, (2,), np.complex64), TypeError, "normal: expected a floating dtype"),
        (lambda g: lr.normal(g, (2,), np.float32, 0.0, -1.0), ValueError, "deviation >= 0, got -1.0"),
        (lambda g: lr.normal(g, (2,), np.float32, 0.0, math.nan), ValueError, "got nan"),
        (lambda g: lr.exponential(g, (2,), np.float32, 0.0), ValueError, "rate > 0, got 0.0"),
        (lambda g: lr.bernoulli(g, 1.5, (2,)), ValueError, r"probability in \[0, 1\], got 1.5"),
        (lambda g: lr.bernoulli(g, math.nan, (2,)), ValueError, "got nan"),
        (lambda g: lr.randint(g, 3, 3, (2,)), ValueError, "low < high, got low=3, high=3"),
        (lambda g: lr.randint(g, 0, 300, (2,), np.int8), ValueError, "int8 holds -128 to 127, got low=0, high=300"),
        (lambda g: lr.randint(g, 0, 3, (2,), np.float32), TypeError, "integer dtype, got float32"),
        (lambda g: lr.randint(g, 0.5, 3, (2,)), TypeError, "integer"),
        (lambda g: lr.permutation(g, -1), ValueError, "n >= 0, got -1"),
        (lambda g: g.reserve(-1), ValueError, "got -1"),
        (lambda g: g.manual_seed(1.5), TypeError, "integer, got float: 1.5"),
        (lambda g: g.manual_seed(2**64), ValueError, "seed in"),
    ],
)
def test_bad_arguments_change_nothing(draw, error, text):
    """A refused draw says what was expected and got, and takes nothing from the stream."""
    g = Generator("cpu", 3)
    g.reserve(5)
    before = g.get_state()
    with pytest.raises(error, match=text):
        draw(g)
    assert np.array_equal(g.get_state(), before)


# ---- state ----


def test_state_round_trip():
    """A state restores the stream in this or another generator, and is not tied to later draws."""
    g = Generator("cuda:1", 2**64 - 1)
    lr.normal(g, (123,), np.float64)
    state = g.get_state()
    assert (state.dtype, state.shape) == (np.uint8, (24,))
    kept = state.copy()
    first = lr.uniform(g, (50,), np.float32)
    assert np.array_equal(state, kept)
    other = Generator("cpu", 0)
    other.set_state(state)
    assert other.device == "cpu"
    assert other.initial_seed() == 2**64 - 1
    assert np.array_equal(lr.uniform(other, (50,), np.float32), first)


def test_offset_wraps():
    """A draw over the end of the 64-bit offset goes on at block 0 of the same stream."""
    g = Generator("cpu", 9)
    g.reserve(2**64 - 2)
    values = lr.uniform(g, (20,), np.float32)
    assert g.reserve(0) == (9, 3)
    assert np.array_equal(values[8:], lr.uniform(Generator("cpu", 9), (12,), np.float32))
    state = g.get_state()
    g.set_state(state)
    assert g.reserve(0) == (9, 3)


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (b"x" * 24, TypeError, "uint8 array.*got bytes"),
        (np.zeros(24, np.int64), TypeError, "got dtype int64"),
        (np.zeros(16, np.uint8), ValueError, r"shape \(24,\), got \(16,\)"),
        (np.zeros((24, 1), np.uint8), ValueError, r"got \(24, 1\)"),
        (np.zeros(24, np.uint8), ValueError, "begins with the tag"),
    ],
)
def test_malformed_state_changes_nothing(state, error, text):
    """A state of another type, length or origin is refused with what was expected, and the generator goes on."""
    g = Generator("cpu", 77)
    g.reserve(3)
    with pytest.raises(error, match=text):
        g.set_state(state)
    assert g.reserve(0) == (77, 3)


def test_seeds():
    """Seeds reach from -2**63 to 2**64 - 1, negative ones count from 2**64; seed() gives fresh ones."""
    g = Generator("cpu", 5)
    assert g.manual_seed(-1) is g
    assert g.initial_seed() == 2**64 - 1
    assert g.manual_seed(np.int64(9)).initial_seed() == 9
    g.reserve(4)
    fresh = g.seed()
    assert g.reserve(0) == (fresh, 0)
    assert len({Generator("cpu").initial_seed() for _ in range(5)} | {g.seed() for _ in range(5)}) == 10


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu:0", ""])
def test_device_names(device):
    """A generator's device is cpu or cuda:N; other words are refused."""
    assert Generator("cuda").device == "cuda:0"
    with pytest.raises(ValueError, match="expected a device 'cpu', 'cuda' or 'cuda:N'"):
        Generator(device)


def test_reservations_from_threads_do_not_overlap():
    """Concurrent reservations are disjoint and leave no gap."""
    g = Generator("cpu", 1)
    starts: list[list[int]] = [[] for _ in range(8)]

    def work(mine):
        mine.extend(g.reserve(3)[1] for _ in range(500))

    in_threads(*[partial(work, mine) for mine in starts])
    assert sorted(start for mine in starts for start in mine) == list(range(0, 3 * 4000, 3))


@pytest.fixture
def _kept_defaults(monkeypatch):
    """Leave the process's generators as they were found."""
    cpu = streams.get_rng_state()
    monkeypatch.setattr("lucid.base.random.generator._generators", {"cpu": streams.default_generator})
    monkeypatch.setattr("lucid.base.random.generator._process_seed", 0)
    yield
    streams.set_rng_state(cpu)


@pytest.mark.usefixtures("_kept_defaults")
def test_one_seed_gives_equal_streams_on_all_devices():
    """manual_seed restarts every device's generator, also one first used later, with the same numbers."""
    early = streams.default_generator_for("cuda:0")
    assert streams.default_generator_for("cuda") is early
    assert streams.manual_seed(1234) is streams.default_generator
    late = streams.default_generator_for("cuda:1")
    draws = [lr.normal(g, (100,), np.float32) for g in (streams.default_generator, early, late)]
    assert np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[0], draws[2])


@pytest.mark.usefixtures("_kept_defaults")
def test_states_of_all_devices_restore():
    """A checkpoint's states restore all devices; one that had drawn nothing by then starts afresh."""
    streams.manual_seed(55)
    lr.uniform(streams.default_generator_for("cuda:0"), (999,), np.float32)
    lr.uniform(streams.default_generator, (10,), np.float32)
    states = streams.get_rng_states()
    assert sorted(states) == ["cpu", "cuda:0"]
    expected = [lr.uniform(streams.default_generator_for(d), (20,), np.float32) for d in ("cpu", "cuda:0", "cuda:1")]
    streams.manual_seed(7)
    streams.set_rng_states(states)
    again = [lr.uniform(streams.default_generator_for(d), (20,), np.float32) for d in ("cpu", "cuda:0", "cuda:1")]
    assert all(np.array_equal(a, b) for a, b in zip(expected, again, strict=True))


@pytest.mark.usefixtures("_kept_defaults")
def test_malformed_states_change_nothing():
    """One bad entry, or a missing one for the CPU, leaves all generators as they were."""
    streams.manual_seed(55)
    before = streams.get_rng_states()
    good = Generator("cpu", 1).get_state()
    with pytest.raises(ValueError, match="shape"):
        streams.set_rng_states({"cpu": good, "cuda:0": good[:3]})
    with pytest.raises(ValueError, match=r"hold the device 'cpu', got \['cuda:0'\]"):
        streams.set_rng_states({"cuda:0": good})
    after = streams.get_rng_states()
    assert sorted(after) == sorted(before)
    assert np.array_equal(after["cpu"], before["cpu"])


# ---- the CUDA source ----

SHIM = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#define __device__
#define __forceinline__ inline
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return std::sqrt(a); }
static inline long long __double_as_longlong(double a) { long long b; std::memcpy(&b, &a, 8); return b; }
static inline double __longlong_as_double(long long a) { double b; std::memcpy(&b, &a, 8); return b; }
"""

LOOPS = r"""
using namespace lucid;
typedef unsigned long long u64;
#define EACH(name, type, value, ...) \
    extern "C" void name(type* out, long long n, u64 seed, u64 offset, ##__VA_ARGS__) { \
        for (long long i = 0; i < n; ++i) out[i] = value; }
#define W word_at(seed, offset, i)
#define W64 word64_at(seed, offset, i)
EACH(bits, unsigned, W)
EACH(blocks, unsigned, philox_block(seed, offset + i / 4).lane_l[i % 4])
EACH(bits64, u64, W64)
EACH(uniform_f, float, uniform_float(W, b, start, span, last), int b, float start, float span, float last)
EACH(uniform_d, double, uniform_double(W64, start, span, last), double start, double span, double last)
EACH(normal_f, float, (float)normal(W, mean, std), double mean, double std)
EACH(normal_d, double, normal(W64, mean, std), double mean, double std)
EACH(exponential_f, float, (float)exponential(W, rate), double rate)
EACH(exponential_d, double, exponential(W64, rate), double rate)
EACH(mask, unsigned char, bernoulli(W, threshold), u64 threshold)
EACH(integers, long long, random_integer(W64, low, count), long long low, u64 count)
extern "C" void general(unsigned* out, const unsigned* c, u64 seed) {
    const PhiloxBlock block = philox4x32_10(PhiloxBlock{{c[0], c[1], c[2], c[3]}}, seed);
    for (int l = 0; l < 4; ++l) out[l] = block.lane_l[l];
}
extern "C" void quantile(double* out, const double* q, long long n) {
    for (long long i = 0; i < n; ++i) out[i] = inverse_normal(q[i]);
}
"""


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """kernels/random/philox.cuh compiled for the host, its intrinsics defined as the operations that they are."""
    folder = tmp_path_factory.mktemp("philox")
    source, library = folder / "philox.cpp", folder / "philox.so"
    source.write_text(f'{SHIM}#line 1 "{HEADER}"\n{HEADER.read_text()}{LOOPS}')
    command = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    built = subprocess.run(
        [*command, "-ffp-contract=off", "-shared", "-fPIC", str(source), "-o", str(library)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return ctypes.CDLL(str(library))


SEED, OFFSET, COUNT = 0xFEDC_BA98_7654_3210, 2**32 - 700, 20_003


def run(twin, name, dtype, *arguments):
    """Values 0 .. COUNT-1 of a draw, one at a time, from the compiled header."""
    out = np.empty(COUNT, dtype)
    getattr(twin, name)(
        out.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_longlong(COUNT),
        ctypes.c_uint64(SEED),
        ctypes.c_uint64(OFFSET),
        *arguments,
    )
    return out


def drawn(draw, *arguments):
    """Draw the same values with the array code."""
    g = Generator("cpu", SEED)
    g.reserve(OFFSET)
    return draw(g, *arguments)


def test_cuda_source_bits(twin):
    """The header's words are the array code's, one by one, by block and as 64-bit words; and the published ones."""
    words = random_bits(np, 2 * COUNT, SEED, OFFSET)
    assert np.array_equal(run(twin, "bits", np.uint32), words[:COUNT])
    assert np.array_equal(run(twin, "blocks", np.uint32), words[:COUNT])
    assert np.array_equal(run(twin, "bits64", np.uint64), words.view(np.uint64))
    counter = np.array([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], np.uint32)
    out = np.empty(4, np.uint32)
    pointer = ctypes.c_void_p
    twin.general(out.ctypes.data_as(pointer), counter.ctypes.data_as(pointer), ctypes.c_uint64(0x299F31D0A4093822))
    assert [f"{word:08x}" for word in out] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.3, 0.7), (1000.0, 1001.0), (0.0, 1e-38)])
def test_cuda_source_uniform(twin, low, high):
    """Uniform values agree bitwise, in all four dtypes."""
    for dtype in FLOATS:
        expected = drawn(lr.uniform, (COUNT,), dtype, low, high)
        start, stop = dtype.type(low), dtype.type(high)
        last = float(np.nextafter(stop, start)) if start != stop else float(start)
        bits = lr._UNIFORM_BITS[dtype.name]
        if dtype == np.float64:
            constants = [ctypes.c_double(x) for x in (low, high - low, last)]
            got = run(twin, "uniform_d", np.float64, *constants)
        else:
            constants = [ctypes.c_float(float(x)) for x in (start, np.float32(float(stop) - float(start)), last)]
            got = run(twin, "uniform_f", np.float32, ctypes.c_int(bits), *constants).astype(dtype)
        assert got.tobytes() == expected.tobytes()


def test_cuda_source_normal_and_exponential(twin):
    """Normal and exponential values agree bitwise, in float32 and float64."""
    constants = [ctypes.c_double(0.25), ctypes.c_double(1.7)]
    for suffix, dtype in (("f", np.float32), ("d", np.float64)):
        got = run(twin, f"normal_{suffix}", dtype, *constants)
        assert got.tobytes() == drawn(lr.normal, (COUNT,), dtype, 0.25, 1.7).tobytes()
        got = run(twin, f"exponential_{suffix}", dtype, constants[1])
        assert got.tobytes() == drawn(lr.exponential, (COUNT,), dtype, 1.7).tobytes()


def test_cuda_source_quantiles_in_all_regions(twin):
    """The inverse normal agrees bitwise in the centre, the tails and the far tails, and at their borders."""
    rng = np.random.default_rng(12)
    tails = np.round(2.0 ** rng.uniform(-53, -1, 5000) * 2.0**53) / 2.0**53
    borders = np.array([0.425, np.nextafter(0.425, 1), np.nextafter(0.425, 0), 0.5 - math.exp(-25), 2.0**-53])
    q = np.concatenate([tails - 0.5, 0.5 - tails, borders, -borders])
    q = q[q != 0]
    out = np.empty_like(q)
    pointer = ctypes.c_void_p
    twin.quantile(out.ctypes.data_as(pointer), q.ctypes.data_as(pointer), ctypes.c_longlong(q.size))
    assert out.tobytes() == inverse_normal(np, q.copy()).tobytes()


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_cuda_source_bernoulli(twin, p):
    """Masks agree, at the ends too."""
    got = run(twin, "mask", np.bool_, ctypes.c_uint64(round(p * 2**32)))
    assert np.array_equal(got, drawn(lr.bernoulli, p, (COUNT,)))


@pytest.mark.parametrize(("low", "high"), [(-5, 12), (0, 2**40 + 1), (-(2**63), 2**63)])
def test_cuda_source_integers(twin, low, high):
    """Integers agree, over the full range of int64 too."""
    got = run(twin, "integers", np.int64, ctypes.c_longlong(low), ctypes.c_uint64((high - low) % 2**64))
    assert np.array_equal(got, drawn(lr.randint, low, high, (COUNT,)))
