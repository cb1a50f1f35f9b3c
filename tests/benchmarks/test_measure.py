"""The harness must report what it measured, and say so where it measured nothing."""

from __future__ import annotations

import itertools
import statistics

import pytest

from benchmarks.measure import Peer, Row, looped, measure

PEERS = Peer("lucid"), Peer("torch")


def scripted(times):
    """Return a row's `build` whose samplers hand out the given times, and the list of who was asked when."""
    asked = []

    def build(peer):
        remaining = iter(times[peer.name])

        def sample():
            asked.append(peer.name)
            return next(remaining)

        return sample

    return build, asked


def test_the_ratio_is_the_median_of_the_ratios_per_round():
    """A slow second of the machine that meets both peers in one round does not move the ratio."""
    build, _ = scripted({"lucid": [1.0, 50.0, 2.0], "torch": [2.0, 100.0, 2.0]})
    result = measure(Row("row", 0.6, build), PEERS, rounds=3)
    assert (result.ratio, result.lucid_min, result.torch_min, result.rounds) == (0.5, 1.0, 2.0, 3)
    assert result.reached is True


def test_a_difference_takes_the_ratio_of_the_medians():
    """Rounds whose small difference comes out near zero or below do not make the ratio explode."""
    times = {"lucid": [0.5, 0.4, 0.6], "torch": [2.0, -0.001, 2.2]}
    build, _ = scripted(times)
    result = measure(Row("row", 0.2, build, difference=True), PEERS, rounds=3)
    assert result.ratio == pytest.approx(statistics.median(times["lucid"]) / 2.0)
    assert result.reached is False


def test_the_peers_take_turns_in_going_first():
    """The order swaps from round to round, so that neither always runs on the other's warm machine."""
    build, asked = scripted({"lucid": [1.0] * 3, "torch": [1.0] * 3})
    measure(Row("row", 1.0, build), PEERS, rounds=3)
    assert asked == ["lucid", "torch", "torch", "lucid", "lucid", "torch"]


def test_a_row_that_cannot_run_says_why():
    """A missing feature is a reason in the row, with the exception's type, and no number."""

    def build(_):
        message = "no such op"
        raise AttributeError(message)

    result = measure(Row("row", 1.0, build), PEERS, rounds=3)
    assert (result.not_run, result.ratio, result.reached) == ("AttributeError: no such op", None, None)


def test_a_sample_is_told_by_the_clock_that_is_given():
    """Of a clock that goes on by a second at each look, a call of four items takes a quarter of a second for each."""
    calls = []
    sample = looped(Peer("lucid"), lambda: calls.append(1), per=4, clock=itertools.count().__next__)
    calls.clear()
    assert sample() == 0.25e6
    assert len(calls) == 2, "one to warm up, one in the time"
