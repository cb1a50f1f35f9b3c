"""Versions of arrays of somebody else's: what is looked at, and what is noticed."""

from __future__ import annotations

import pytest

from lucid.autograd.borrowing import ContentsVersion, borrowed


@pytest.mark.cpu("NumPy's arrays")
def test_few_elements_are_looked_at_whatever_the_shape(rng):
    """As many as `FEW` of any array, all of one that has no more: a look takes as long, and sees that all changed."""
    few = ContentsVersion.FEW
    for shape in ((few,), (few + 1,), (2 * few - 1,), (5000,), (17, 31), (1, 400, 1), (6, 7, 8, 9), (2, 3000), (3, 1)):
        array = rng.standard_normal(shape)
        version = borrowed(array).version
        assert isinstance(version, ContentsVersion)
        assert version[0] == version[0] == 0
        looked = len(version.contents) // array.itemsize
        assert looked == array.size if array.size <= few else 16 <= looked <= few
        array += 1
        assert version[0] == 1
        array[(0,) * array.ndim] -= 1
        # each change is another version, also one back
        assert version[0] == version[0] == 2
        if array.size <= few:
            array.reshape(-1)[-1] += 1
            assert version[0] == 3
            version[0] += 1  # a change that is seen, and what was written with it
            array += 1
            assert version[0] == version[0] == 4
