"""Contiguous copies of transposed arrays on a CUDA device: through tiles, bit for bit those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.cuda.launch import copying
from lucid.cuda.launch.copying import transposed
from tests.kernels.near import assert_same, device

pytestmark = pytest.mark.gpu
# Items of 1, 2, 4, 8 and 16 bytes.
every_size = pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "complex64", "complex128"])


def drawn(rng, shape, dtype):
    """Return a NumPy array, and the same on the device."""
    array = rng.integers(0, 200, shape).astype(dtype)
    return array, device(array)


@every_size
@pytest.mark.parametrize("shape", [(16, 16), (31, 33), (32, 64), (65, 17), (16, 129)])
def test_matrices(shape, dtype, rng):
    """Whole tiles and parts of tiles are copied, and nothing beside them."""
    array, raw = drawn(rng, shape, dtype)
    assert_same(transposed(raw.T), array.T)


@every_size
@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_batches(axes, dtype, rng):
    """A third dimension lies anywhere in front of the innermost one."""
    array, raw = drawn(rng, (18, 17, 33), dtype)
    assert_same(transposed(raw.transpose(axes)), array.transpose(axes))


@every_size
def test_blocks_of_several_tiles(dtype, rng, monkeypatch):
    """Where tiles outnumber the blocks, each block is done with a tile before it fills the next."""
    monkeypatch.setattr(copying, "MAX_BLOCKS", 2)
    copying._transposition_of.cache_clear()
    array, raw = drawn(rng, (3, 70, 100), dtype)
    try:
        assert_same(transposed(raw.swapaxes(1, 2)), array.swapaxes(1, 2))
    finally:
        copying._transposition_of.cache_clear()


@pytest.mark.parametrize("axes", [(0, 3, 1, 2), (3, 0, 1, 2), (2, 3, 0, 1), (1, 2, 3, 0)])
def test_dimensions_that_count_as_one(axes, rng):
    """Dimensions that stay together are one, as those of an image that changes its format."""
    array, raw = drawn(rng, (3, 6, 7, 19), "float32")
    if axes[-1] == 0:
        array, raw = drawn(rng, (19, 6, 7, 3), "float32")
    assert_same(transposed(raw.transpose(axes)), array.transpose(axes))


def test_parts_of_larger_arrays(rng):
    """Other strides than those of a whole array, backwards and repeated ones too, are followed."""
    array, raw = drawn(rng, (3, 40, 50), "int16")
    for part in (
        lambda a: a[:, 1:35, 2:31].swapaxes(1, 2),
        lambda a: a[::-1, ::2].swapaxes(1, 2),
        lambda a: a[:, ::-1].swapaxes(1, 2),
        lambda a: (np if a is array else gpu.cupy()).broadcast_to(a[:1, :20], (3, 20, 50)).swapaxes(1, 2),
    ):
        assert_same(transposed(part(raw)), part(array))


def test_what_is_left_to_the_general_copy(rng):
    """Arrays that are contiguous, step over elements, or are too short for tiles or of too many dimensions."""
    _, raw = drawn(rng, (2, 20, 3, 20), "float32")
    for array in (raw, raw[..., ::2], raw[0, :, 0].T[:, ::-1][::2], raw.transpose(1, 3, 2, 0), raw[0, :3, 0].T):
        assert transposed(array) is NotImplemented
    assert transposed(gpu.cupy().empty((0, 20), np.float32).T) is NotImplemented


def test_contiguous_takes_one_launch(rng, launched):
    """`contiguous` and `clone` of a transposed tensor are one launch each, and gradients come back through them."""
    x = lucid.tensor(rng.standard_normal((33, 40)), device="cuda", requires_grad=True)
    launched.clear()
    copy = x.t().contiguous()
    assert launched == ["lucid::transpose<unsigned long long>"]
    assert (copy.detach().cpu().numpy() == x.detach().cpu().numpy().T).all()
    grad = lucid.tensor(rng.standard_normal((40, 33)), device="cuda")
    copy.backward(grad)
    assert (x.grad.cpu().numpy() == grad.cpu().numpy().T).all()
