"""Random numbers of samples."""

from __future__ import annotations

import random

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.utils.data import DataLoader, sample_seed
from lucid.utils.data.randomness import _NumpyStream, mix, number_of
from tests.utils.data import datasets

NUMPYS = np.random
"""What users draw from without a generator of their own."""


def test_mixing():
    """Each bit of each number counts: 20,000 seeds of neighbours differ, and half of their bits are ones."""
    seeds = [mix(a, b, c) for a in range(20) for b in range(100) for c in range(10)]
    assert len(set(seeds)) == len(seeds)
    assert mix(1, 2) != mix(2, 1)
    ones = np.unpackbits(np.array(seeds, np.uint64).view(np.uint8)).reshape(-1, 64).mean(0)
    # five standard deviations of the mean of 20,000 bits
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / len(seeds) ** 0.5


def test_the_mixing_of_splitmix():
    """The first numbers of SplitMix64 with seed 0, from the reference implementation of its authors."""
    state, found = 0, []
    for _ in range(3):
        found.append(mix(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_numbers_of_indices():
    """An index that is no integer has a number, too, the same in each process."""
    assert [number_of(index) for index in (3, np.int64(3), -1)] == [3, 3, -1]
    assert number_of("a") == number_of("a") != number_of("b")
    assert 0 <= number_of(("a", 1)) < 2**64


def test_the_state_of_numpys_stream_is_copied_only_after_a_draw(monkeypatch):
    """The second of a pair of normal numbers comes back after others have drawn; looking for it needs a draw before.

    A generator of another kind, of which no state can be compared, is looked at each time.
    """
    asked, own = [], NUMPYS.get_state
    monkeypatch.setattr(NUMPYS, "get_state", lambda **settings: asked.append(0) or own(**settings))

    def looks(draw):
        stream, before = _NumpyStream(), len(asked)
        for _ in range(3):
            draw()
            stream.take()
            NUMPYS.seed(7)
            NUMPYS.standard_normal()
            stream.give_back()
        return len(asked) - before

    NUMPYS.seed(1)
    expected = NUMPYS.standard_normal(6)
    NUMPYS.seed(1)
    found = []
    assert looks(lambda: found.append(NUMPYS.standard_normal())) == 3
    np.testing.assert_array_equal(found, expected[:3])
    NUMPYS.seed(1)
    assert looks(lambda: None) == 1
    np.testing.assert_array_equal(NUMPYS.standard_normal(6), expected)
    bits = NUMPYS.get_bit_generator()
    NUMPYS.set_bit_generator(np.random.PCG64(3))
    try:
        assert looks(lambda: None) == 3
        np.testing.assert_array_equal(
            NUMPYS.standard_normal(2), np.random.RandomState(np.random.PCG64(3)).standard_normal(2)
        )
    finally:
        NUMPYS.set_bit_generator(bits)


class Seeds(datasets.Seeds):
    """Twelve samples."""

    size = 12


def test_seeds_of_samples():
    """Each sample and epoch has its own; the order makes no difference."""
    loader = DataLoader(Seeds(), batch_size=5)
    first, second = ([seed for batch in loader for seed in batch.tolist()] for _ in range(2))
    assert len({*first, *second}) == 24
    seed = loader.state_dict()["passes"]["seed"]
    backwards = DataLoader(Seeds(), batch_size=3, sampler=range(11, -1, -1))
    state = backwards.state_dict()
    backwards.load_state_dict({**state, "passes": {**state["passes"], "seed": seed}})
    assert [seed for batch in backwards for seed in batch.tolist()] == first[::-1]


class Drawing(Seeds):
    """Draws from each generator, and restarts one."""

    def __getitem__(self, index):
        lucid.manual_seed(index)
        return random.random(), np.random.random(), lucid.rand(2, device="cpu")  # noqa: NPY002


def test_the_streams_of_the_loop():
    """Also where reading fails or seeds generators, those of the loop are as before; sample_seed works outside."""
    loader = DataLoader([1, 2, None])
    lucid.manual_seed(3)
    iter(loader)
    before = lucid.get_rng_state().tolist(), random.getstate()
    list(DataLoader(Drawing(), generator=lucid.Generator().manual_seed(1)))
    with pytest.raises(TypeError):
        list(loader)
    assert (lucid.get_rng_state().tolist(), random.getstate()) == before
    lucid.manual_seed(3)
    one = sample_seed(), sample_seed()
    lucid.manual_seed(3)
    assert (sample_seed(), sample_seed()) == one
    assert one[0] != one[1]


def test_drawing_again():
    """Two loaders of one seed draw the same."""
    got = [list(DataLoader(Drawing(), generator=lucid.Generator().manual_seed(1))) for _ in range(2)]
    for one, other in zip(*got, strict=True):
        assert [part.tolist() for part in one] == [part.tolist() for part in other]


class Initialising(Seeds):
    """Makes a layer of each sample, whose weights it draws anew."""

    def __getitem__(self, index):
        layer = nn.Linear(2, 2, device="cpu")
        first = layer.weight.detach().clone()
        lucid.manual_seed(7)
        nn.init.orthogonal_(layer.weight)
        return first, layer.weight.detach()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_weights_made_of_samples(workers):
    """First weights come from the sample's stream, which `manual_seed` restarts, and the loop's stays as it is."""
    alone = [
        list(DataLoader(Initialising(), None, generator=lucid.Generator().manual_seed(1)))[index] for index in (3, 8)
    ]
    before = lucid.get_rng_state().tolist()
    loader = DataLoader(Initialising(), None, num_workers=workers, generator=lucid.Generator().manual_seed(1))
    got = list(loader)
    assert lucid.get_rng_state().tolist() == before
    assert len({first.numpy().tobytes() for first, _ in got}) == 12
    assert len({seeded.numpy().tobytes() for _, seeded in got}) == 1
    for index, (first, _) in zip((3, 8), alone, strict=True):
        np.testing.assert_array_equal(got[index][0].numpy(), first.numpy())


class Counted(Seeds):
    """Counts how often each sample was read, and draws or not."""

    def __init__(self, draw):
        self.draw = draw
        self.counts = [0] * 12

    def __getitem__(self, index):
        self.counts[index] += 1
        if index == 7:
            self.draw()
        return index


@pytest.mark.parametrize(
    ("draw", "counts"),
    [
        (int, [1] * 12),
        (lambda: lucid.rand(1, device="cpu"), [1] * 12),
        (random.random, [1] * 4 + [2] * 4 + [1] * 4),
        (lambda: random.gauss(0, 1), [1] * 4 + [2] * 4 + [1] * 4),
        (np.random.standard_normal, [1] * 4 + [2] * 4 + [1] * 4),
        (lambda: np.random.seed(1), [1] * 4 + [2] * 4 + [1] * 4),  # noqa: NPY002
    ],
)
def test_how_often_samples_are_read(draw, counts):
    """The first batch that draws from the generators of Python or NumPy is read twice, all others once."""
    dataset = Counted(draw)
    loader = DataLoader(dataset, batch_size=4)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert dataset.counts == counts


class Late(Seeds):
    """Draws in some samples, and fails in one."""

    def __init__(self, fails=False):
        self.fails = fails

    def __getitem__(self, index):
        drawn = random.random() if index % 5 == 3 else 0.0
        if self.fails and index == 8 and drawn:
            raise ValueError(str(drawn))
        return drawn


def test_samples_that_seldom_draw():
    """Their numbers are those that another order and other batches give them, and so are their errors."""
    seed = [lucid.Generator().manual_seed(6) for _ in range(3)]
    one = [value for batch in DataLoader(Late(), batch_size=4, generator=seed[0]) for value in batch.tolist()]
    other = [value for batch in DataLoader(Late(), batch_size=12, generator=seed[1]) for value in batch.tolist()]
    assert one == other
    assert len(set(one)) == 3
    # after a batch that has drawn, and in the first that does
    for size in (3, 12):
        with pytest.raises(ValueError, match=str(one[8])):
            list(DataLoader(Late(fails=True), batch_size=size, generator=seed[2].manual_seed(6)))


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.Philox])
def test_a_generator_that_the_user_has_chosen(kind):
    """The bit generator below ``numpy.random`` is there again, with its stream and what is kept of it."""
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(kind(4))
        np.random.standard_normal(3)  # noqa: NPY002  the second of a pair is kept
        expected = np.random.RandomState(kind(4)).standard_normal(6)
        for number in range(3, 6):
            list(DataLoader(Drawing()))
            assert np.random.standard_normal() == expected[number]  # noqa: NPY002
        assert type(np.random.get_bit_generator()) is kind
    finally:
        np.random.set_bit_generator(before)
