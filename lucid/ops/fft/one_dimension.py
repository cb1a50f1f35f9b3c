"""Fourier transforms along one dimension. Common rules: `lucid.ops.fft`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.ops.elementwise.complex import conj
from lucid.ops.fft.transforms import ADJOINT, from_any, from_real, line, norm_of, to_real

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the transform of `input`, real or complex, along a dimension.

    >>> import lucid
    >>> lucid.fft.fft(lucid.tensor([1.0, 0.0, -1.0, 0.0]))
    tensor([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j])
    """
    return from_any("fft", input, line("fft", input, n, dim), norm)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse transform of `input` along a dimension.

    >>> import lucid
    >>> lucid.fft.ifft(lucid.tensor([0.0, 2.0, 0.0, 2.0]))
    tensor([ 1.+0.j,  0.+0.j, -1.+0.j,  0.+0.j])
    """
    return from_any("ifft", input, line("ifft", input, n, dim), norm, inverse=True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers along a dimension, the half that determines it.

    >>> import lucid
    >>> lucid.fft.rfft(lucid.tensor([1.0, 0.0, -1.0, 0.0]))
    tensor([0.+0.j, 2.+0.j, 0.+0.j])
    """
    return from_real("rfft", input, line("rfft", input, n, dim), norm)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real numbers that have `input` as half of their transform along a dimension.

    There are `n` of them, an even number, twice the size of `input` less two, if it is None.

    >>> import lucid
    >>> lucid.fft.irfft(lucid.tensor([0.0, 2.0, 0.0]))
    tensor([ 1.,  0., -1.,  0.])
    """
    return to_real("irfft", input, line("irfft", input, n, dim), norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real transform of a signal with `input` as one half, its own conjugate when read backwards.

    It has `n` numbers, twice the size of `input` less two if that is None.

    >>> import lucid
    >>> lucid.fft.hfft(lucid.tensor([0.0, 2.0, 0.0]))
    tensor([ 4.,  0., -4.,  0.])
    """
    return to_real("hfft", conj(input), line("hfft", input, n, dim), ADJOINT[norm_of("hfft", norm)])


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return half of the inverse transform of real numbers; the whole is its own conjugate when read backwards.

    >>> import lucid
    >>> lucid.fft.ihfft(lucid.tensor([4.0, 0.0, -4.0, 0.0]))
    tensor([0.-0.j, 2.-0.j, 0.-0.j])
    """
    return conj(from_real("ihfft", input, line("ihfft", input, n, dim), ADJOINT[norm_of("ihfft", norm)]))
