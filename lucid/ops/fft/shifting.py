"""Spectra with the frequency zero in the middle, and back. Common rules: `lucid.ops.fft`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import ShapeError
from lucid.ops.base.dims import Dims, dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.shape.axes import roll

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def _shifted(name: str, input: Tensor, dim: Dims, *, back: bool) -> Tensor:
    shape = array_of(input).shape
    named = range(len(shape)) if dim is None else dim if isinstance(dim, tuple | list) else (dim,)
    dims = [dim_in(d, len(shape)) for d in named]
    if not shape or not dims:
        raise ShapeError(f"{name}: expected dimensions to shift, got dim={dim} for a tensor of shape {list(shape)}")
    halves = [(shape[d] + 1) // 2 if back else shape[d] // 2 for d in dims]
    return roll(input, halves, dims)


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Return `input`, of any dtype, rolled along `dim` so that the first element comes to the middle.

    >>> import lucid
    >>> lucid.fft.fftshift(lucid.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, back=False)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Return `input` with `fftshift` undone.

    >>> import lucid
    >>> lucid.fft.ifftshift(lucid.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _shifted("ifftshift", input, dim, back=True)
