"""Ranges of the numbers of each dtype."""

from __future__ import annotations

import math
from typing import Any, cast

import ml_dtypes
import numpy as np

from lucid.base.dtype import as_dtype, bfloat16, get_default_dtype, int8
from lucid.errors import DtypeError


class finfo:
    """Limits of a floating dtype, as Python floats; of a complex dtype, those of its parts.

    Parameters
    ----------
    type : dtype, optional
        Anything that `as_dtype` understands; the default dtype if left out.

    Attributes
    ----------
    dtype : str
        Name of the floating type.
    bits : int
        Bits per number.
    eps : float
        Distance from 1 to the next larger number.
    min, max : float
        Lowest and highest finite number.
    tiny, smallest_normal : float
        Smallest positive number of full precision.
    resolution : float
        ``10 ** -digits`` for the decimal digits that are always kept.

    Raises
    ------
    DtypeError
        If ``type`` is an integer type or bool; use `iinfo`.

    Examples
    --------
    >>> from lucid.base.dtype import bfloat16
    >>> from lucid.base.limits import finfo
    >>> finfo(bfloat16).eps, finfo(bfloat16).bits
    (0.0078125, 16)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: object = None) -> None:
        real = (get_default_dtype() if type is None else as_dtype(type)).to_real()
        if not real.is_floating_point:
            raise DtypeError(f"finfo: expected a floating or complex dtype, got {real}; use iinfo for integers")
        limits = cast("Any", ml_dtypes.finfo(real.numpy) if real is bfloat16 else np.finfo(real.numpy))
        self.dtype = real.name
        self.bits = 8 * real.itemsize
        self.eps = float(limits.eps)
        self.min = float(limits.min)
        self.max = float(limits.max)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        self.resolution = 10.0 ** int(math.log10(self.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype, as Python ints.

    Parameters
    ----------
    type : dtype
        Anything that `as_dtype` understands.

    Attributes
    ----------
    dtype : str
        Name of the integer type.
    bits : int
        Bits per number.
    min, max : int
        Lowest and highest number.

    Raises
    ------
    DtypeError
        If ``type`` is not an integer type (bool is not); use `finfo` for floating types.

    Examples
    --------
    >>> from lucid.base.dtype import int8
    >>> from lucid.base.limits import iinfo
    >>> iinfo(int8).min, iinfo(int8).max
    (-128, 127)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: object) -> None:
        integer = as_dtype(type)
        if integer.category != int8.category:
            raise DtypeError(
                f"iinfo: expected an integer dtype, got {integer}; use finfo for floating and complex types"
            )
        limits = np.iinfo(integer.numpy)
        self.dtype = integer.name
        self.bits = limits.bits
        self.min = int(limits.min)
        self.max = int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
