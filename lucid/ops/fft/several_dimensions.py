"""Fourier transforms over several dimensions, one after the other. Common rules: `lucid.ops.fft`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.ops.elementwise.complex import conj
from lucid.ops.fft.transforms import ADJOINT, from_any, from_real, norm_of, planes, to_real

if TYPE_CHECKING:
    from lucid.ops.base.dims import Dims, Sizes
    from lucid.tensor import Tensor


def fft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform of `input`, real or complex, over two dimensions.

    >>> import lucid
    >>> lucid.fft.fft2(lucid.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return from_any("fft2", input, planes("fft2", input, s, dim), norm)


def ifft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse transform of `input`, over two dimensions.

    >>> import lucid
    >>> lucid.fft.ifft2(lucid.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return from_any("ifft2", input, planes("ifft2", input, s, dim), norm, inverse=True)


def rfft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform of real numbers, the half along the last dimension that determines it, over two dimensions.

    >>> import lucid
    >>> lucid.fft.rfft2(lucid.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return from_real("rfft2", input, planes("rfft2", input, s, dim), norm)


def irfft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the real numbers with `input` as half of their transform along the last dimension, over two dimensions.

    >>> import lucid
    >>> lucid.fft.irfft2(lucid.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return to_real("irfft2", input, planes("irfft2", input, s, dim), norm)


def hfft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the real transform of the half `input`, as `hfft` along the last dimension, over two dimensions.

    >>> import lucid
    >>> lucid.fft.hfft2(lucid.tensor([[1.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return to_real("hfft2", conj(input), planes("hfft2", input, s, dim), ADJOINT[norm_of("hfft2", norm)])


def ihfft2(input: Tensor, s: Sizes | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Return half of the inverse transform of real numbers, as `ihfft` along the last dimension, over two dimensions.

    >>> import lucid
    >>> lucid.fft.ihfft2(lucid.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.-0.j, 0.-0.j]])
    """
    return conj(from_real("ihfft2", input, planes("ihfft2", input, s, dim), ADJOINT[norm_of("ihfft2", norm)]))


def fftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the transform of `input`, real or complex, over any dimensions.

    >>> import lucid
    >>> lucid.fft.fftn(lucid.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return from_any("fftn", input, planes("fftn", input, s, dim), norm)


def ifftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the inverse transform of `input`, over any dimensions.

    >>> import lucid
    >>> lucid.fft.ifftn(lucid.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return from_any("ifftn", input, planes("ifftn", input, s, dim), norm, inverse=True)


def rfftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers, the half along the last dimension that determines it, over any dimensions.

    >>> import lucid
    >>> lucid.fft.rfftn(lucid.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return from_real("rfftn", input, planes("rfftn", input, s, dim), norm)


def irfftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the real numbers with `input` as half of their transform along the last dimension, over any dimensions.

    >>> import lucid
    >>> lucid.fft.irfftn(lucid.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return to_real("irfftn", input, planes("irfftn", input, s, dim), norm)


def hfftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return the real transform of the half `input`, as `hfft` along the last dimension, over any dimensions.

    >>> import lucid
    >>> lucid.fft.hfftn(lucid.tensor([[1.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return to_real("hfftn", conj(input), planes("hfftn", input, s, dim), ADJOINT[norm_of("hfftn", norm)])


def ihfftn(input: Tensor, s: Sizes | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Return half of the inverse transform of real numbers, as `ihfft` along the last dimension, over any dimensions.

    >>> import lucid
    >>> lucid.fft.ihfftn(lucid.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.-0.j, 0.-0.j]])
    """
    return conj(from_real("ihfftn", input, planes("ihfftn", input, s, dim), ADJOINT[norm_of("ihfftn", norm)]))
