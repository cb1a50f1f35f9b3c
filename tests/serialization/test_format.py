"""Checksums of arrays that are copied, piece by piece."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from lucid.serialization.format import PIECE, copied_with_checksum, in_pieces


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
@pytest.mark.parametrize("layout", ["in order", "with gaps", "backwards", "transposed"])
def test_checksums_of_copies(size, layout, rng):
    """A copy holds the same elements in order, in memory of its own; the checksum is that of all its bytes."""
    values = rng.integers(0, 256, 2 * size, np.uint8)
    array = {
        "in order": values[:size], "with gaps": values[::2], "backwards": values[:size][::-1],
        "transposed": values.reshape(2, size).T,
    }[layout]  # fmt: skip
    copy, checksum = copied_with_checksum(array)
    assert copy.flags.c_contiguous
    assert not np.may_share_memory(copy, values)
    np.testing.assert_array_equal(copy, array)
    assert checksum == zlib.crc32(array.tobytes())


def test_pieces_are_all_of_an_array_in_order(rng):
    """Each but the last is as long as the others, and written to they change the array."""
    array = rng.standard_normal((300, 500))
    pieces = list(in_pieces(array))
    assert {piece.nbytes for piece in pieces[:-1]} == {PIECE}
    assert b"".join(pieces) == array.tobytes()
    pieces[-1][-8:] = 0
    assert array[-1, -1] == 0
