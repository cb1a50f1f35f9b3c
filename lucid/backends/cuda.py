"""Switches of CUDA computation."""

from __future__ import annotations

from lucid.arguments import among
from lucid.errors import ArgumentError
from lucid.public import publish as _publish

__all__ = ["MatmulSettings", "get_float32_matmul_precision", "matmul", "set_float32_matmul_precision"]


class MatmulSettings:
    """How matrix products of float32 are computed; `lucid.backends.cuda.matmul` is the one of the process.

    Attributes
    ----------
    allow_tf32 : bool
        Whether factors may be rounded to TF32, which has 10 bits behind the point instead of 23, so that tensor cores
        multiply them. False at first. Products of other dtypes are not touched.

    Examples
    --------
    >>> import lucid
    >>> lucid.backends.cuda.matmul.allow_tf32
    False
    >>> lucid.backends.cuda.matmul.allow_tf32 = True
    >>> lucid.backends.cuda.matmul.allow_tf32 = False
    """

    # an attribute, not a property: every planned launch reads it
    __slots__ = ("allow_tf32",)
    allow_tf32: bool

    def __init__(self) -> None:
        self.allow_tf32 = False

    def __setattr__(self, name: str, value: object) -> None:
        """Set the switch; an ArgumentError for anything but a bool."""
        if name == "allow_tf32" and not isinstance(value, bool):
            raise ArgumentError(f"allow_tf32: expected True or False, got {value!r}")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"lucid.backends.cuda.matmul(allow_tf32={self.allow_tf32})"


matmul = MatmulSettings()

PRECISIONS = ("highest", "high", "medium")


def set_float32_matmul_precision(precision: str) -> None:
    """Choose how matrix products of float32 are computed on CUDA devices, by `lucid.backends.cuda.matmul`.

    Parameters
    ----------
    precision : str
        ``"highest"`` is float32, ``"high"`` and ``"medium"`` round the factors to TF32.

    Raises
    ------
    ArgumentError
        If it is none of these.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_float32_matmul_precision("high")
    >>> lucid.backends.cuda.matmul.allow_tf32
    True
    >>> lucid.set_float32_matmul_precision("highest")
    """
    if not among(precision, PRECISIONS):
        raise ArgumentError(f"set_float32_matmul_precision: precision: expected one of {PRECISIONS}, got {precision!r}")
    matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """Return how matrix products of float32 are computed on CUDA devices: ``"highest"``, or ``"high"`` for TF32.

    Examples
    --------
    >>> import lucid
    >>> lucid.get_float32_matmul_precision()
    'highest'
    """
    return "high" if matmul.allow_tf32 else "highest"


_publish(globals())
