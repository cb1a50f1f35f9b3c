"""Requirements on matrices, their libraries, and helpers that their rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import Primitive
from lucid.cuda.libraries import solver
from lucid.errors import DtypeError, LinAlgError, ShapeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import tensor_dtype
from lucid.ops.decomposition import host
from lucid.ops.elementwise.complex import conj, holds_complex
from lucid.ops.linalg.products import swap_last

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def library(xp: ModuleType) -> Any:
    """Return the module that computes factors of arrays of `xp`."""
    return host if xp is np else solver


def of_library(name: str, inputs: tuple[str, ...] = ("a",), **details: Any) -> Primitive:
    """Return the primitive of a function of the libraries, by its name there; `details` are as for `Primitive`."""

    def factors(xp: ModuleType, *arrays: Array, **settings: object) -> Any:
        return getattr(library(xp), name)(*arrays, **settings)

    return Primitive(factors, cpu=getattr(host, name), name=name, inputs=inputs, **details)


def numbers_of(name: str, x: Tensor) -> Any:
    """Return a tensor of float32, float64 or complex numbers; anything else is refused."""
    tensor = wide_in_autocast(tensor_operand(x), cpu=True)
    dtype = tensor.array.dtype
    if dtype.kind == "c" or (dtype.kind == "f" and dtype.itemsize > 2):
        return tensor
    advice = ".float()" if dtype.kind in "fV" else ".to(dtype)"
    raise DtypeError(
        f"{name}: expected float32, float64, complex64 or complex128, got {tensor_dtype(tensor)}; convert it with "
        f"{advice}"
    )


def matrices_of(name: str, x: Tensor, argument: str = "A") -> Any:
    """Return a tensor of matrices of such numbers."""
    tensor = numbers_of(name, x)
    if tensor.array.ndim < 2:
        raise ShapeError(f"{name}: expected {argument} of at least 2 dimensions, got shape {list(tensor.array.shape)}")
    return tensor


def square_of(name: str, x: Tensor, argument: str = "A") -> Any:
    """Return a tensor of square matrices of such numbers."""
    tensor = matrices_of(name, x, argument)
    rows, columns = tensor.array.shape[-2:]
    if rows != columns:
        raise ShapeError(f"{name}: expected {argument} of square matrices, got shape {list(tensor.array.shape)}")
    return tensor


def check_one_dtype(name: str, first: Tensor, *others: Tensor) -> None:
    """Refuse operands of several dtypes."""
    if any(other.array.dtype != first.array.dtype for other in others):
        got = ", ".join(str(tensor_dtype(x)) for x in (first, *others))
        raise DtypeError(f"{name}: expected operands of one dtype, got {got}; convert them with .to(dtype)")


def adjoint(x: Any) -> Any:
    """Return matrices transposed and conjugated."""
    return conj(swap_last(x))


def adjoint_in(m: Namespace, x: Any) -> Any:
    """Return matrices transposed and conjugated, in a rule."""
    turned = m.swap_last(x)
    return m.conj(turned) if holds_complex(x) else turned


def diagonal_in(m: Namespace, x: Any) -> Any:
    """Return the diagonals of matrices, in a rule."""
    ndim = len(x.shape)
    return m.diagonal(x, offset=0, dim1=ndim - 2, dim2=ndim - 1)


def on_diagonal_in(m: Namespace, x: Any, rows: int, columns: int) -> Any:
    """Return matrices of zeros with `x` on their diagonals, in a rule."""
    ndim = len(x.shape)
    return m.diagonal_put(x, shape=(*x.shape[:-1], rows, columns), offset=0, dim1=ndim - 1, dim2=ndim)


def hermitian_in(m: Namespace, triangle: Any) -> Any:
    """Return matrices of a triangle and its adjoint, with the diagonal of the triangle once, in a rule."""
    n = triangle.shape[-1]
    both = m.add(triangle, adjoint_in(m, triangle))
    return m.sub(both, m.mul(on_diagonal_in(m, diagonal_in(m, both), n, n), 0.5))


def raise_where(name: str, info: Tensor, what: str) -> None:
    """Raise a LinAlgError if an `info` is not zero, with its matrix, and with its number in `what`."""
    codes: Any = info.detach().cpu().array
    if not codes.any():
        return
    place = np.unravel_index(int(np.argmax(codes != 0)), codes.shape) if codes.ndim else ()
    where = f"(batch element {', '.join(map(str, place))}): " if place else ""
    raise LinAlgError(f"{name}: {where}{what.format(codes[place])}")


SINGULAR = "the matrix is singular: element {0} of the diagonal of U, counted from 1, is zero"
NOT_POSITIVE = "the matrix is not positive-definite: its leading minor of order {0} is not positive"
