"""Values and dense operands of sparse matrices: recorded or plain, of one dtype and on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.borrowing import borrowed
from lucid.base import gpu
from lucid.base.arrays import asarray, on, zeros_beside
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype
from lucid.errors import DeviceError, DtypeError, ShapeError
from lucid.numpy.border import array_on_device, plain
from lucid.numpy.promotion import is_array
from lucid.numpy.results import settled
from lucid.ops.base.promotion import cast_to
from lucid.ops.index.index_select import index_add, index_select
from lucid.scipy.sparse.pattern import Product
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_recorded, tensors_in

if TYPE_CHECKING:
    from lucid.base.arrays import Array

Dense = Any
"""An array of NumPy's or CuPy's, a Tensor, or nested lists of numbers."""


class MatrixSizeError(ShapeError, ValueError):
    """Sizes of a sparse matrix and of the other operand do not fit."""


class SparseCallError(NumpyCallError, AttributeError):
    """An operation on a sparse matrix has no rule and a value requires grad, or would change its constant pattern."""


ELEMENTS = (
    "collect rows, columns and values in lists, and make the matrix of them at the end, "
    "coo_matrix((np.stack(values), (rows, columns)), shape=(m, n)): values of one place are added"
)
DIAGONALS = "use diags([x, y], [0, 1]), whose diagonals have the lengths that the matrix has room for"
SOLVED = "use spsolve(A, b), for all columns of b at once"
REMEDIES = {
    "[...] = value": ELEMENTS,
    **dict.fromkeys(("lil_matrix", "lil_array", "dok_matrix", "dok_array"), ELEMENTS),
    **dict.fromkeys(("spdiags", "dia_matrix", "dia_array"), DIAGONALS),
    **dict.fromkeys(("bsr_matrix", "bsr_array"), "use csr_matrix or csr_array"),
    **dict.fromkeys(("splu", "spilu", "factorized", "spsolve_triangular"), SOLVED),
    **dict.fromkeys(("gmres", "lgmres", "bicg", "bicgstab", "cgs", "minres", "gcrotmk", "qmr", "tfqmr"), SOLVED),
    "setdiag": "add what is to change, A + diags(x - A.diagonal())",
    "eliminate_zeros": "leave it out: zeros are elements like others, and have gradients",
}
"""Remedies, by the ends of the names of operations, where it is not a dense matrix."""


def no_rule(name: str) -> SparseCallError:
    """Return the error of an operation that is not recorded, with the remedy."""
    dense = "compute it of A.toarray(), or of values without a gradient, x.detach()"
    remedy = next((text for end, text in REMEDIES.items() if name.endswith(end)), dense)
    return SparseCallError(
        f"scipy.sparse: {name} has no rule, so it would leave the graph, and a value requires grad: {remedy}"
    )


def tensor_of(value: Dense) -> Any:
    """Return an operand as a tensor."""
    return value if isinstance(value, TensorBase) else borrowed(value)


def array_like(value: Dense, like: Array | None) -> Dense:
    """Return an array or a tensor as it is, and lists and numbers as an array on the device of another.

    Lists with recorded elements are recorded; what is of a class of its own, as ``np.matrix`` is, becomes an array.
    """
    if is_array(value) and not isinstance(value, np.ndarray):
        return value
    operand = cast("Any", value)
    # what has none of a device is of the host, whatever the default device is
    lies = next(tensors_in((operand,)), None) is not None or array_on_device((operand,)) is not None
    array: Any = lnp.asarray(operand) if lies else np.asarray(operand)
    if isinstance(operand, np.ndarray) or isinstance(array, TensorBase) or not gpu.is_gpu_array(like):
        return array
    return asarray(array, device=device_of(like))


def on_one_device(values: Dense, dense: Dense) -> None:
    """Refuse a matrix and an operand on two devices."""
    one, other = device_of(plain(values)), device_of(plain(dense))
    if one != other:
        raise DeviceError(
            f"the sparse matrix is on {one}, the other operand on {other}: move one, A.to({str(other)!r})"
        )


def beside(values: Dense, dense: Dense) -> Dense:
    """Return a dense operand as an array or a tensor, on the device of the values of a matrix."""
    dense = array_like(dense, plain(values))
    on_one_device(values, dense)
    return dense


def in_one_dtype(what: str, *operands: Dense) -> list[Any]:
    """Return operands as tensors of the dtype of NumPy's promotion.

    Raises
    ------
    DtypeError
        If SciPy multiplies no sparse matrices of it.
    """
    dtype = np.result_type(*[plain(operand).dtype for operand in operands])
    if dtype.char not in "fdFD":
        raise DtypeError(
            f"{what} of {dtype} is not recorded: expected float32, float64, complex64 or complex128; cast with astype"
        )
    return [cast_to(tensor_of(operand), as_dtype(dtype)) for operand in operands]


def taken(values: Dense, index: Array) -> Dense:
    """Return the values at some places."""
    return settled(index_select(tensor_of(values), 0, wrap(index)), ())


def in_places(matrix: Any, dense: Dense) -> Dense:
    """Return the values of a dense operand, broadcast to the shape of a matrix, in the places of its elements."""
    rows, columns = matrix.pattern.places
    height, width = plain(dense).shape
    with on(rows):
        index = rows.astype(np.int64) * (width if height > 1 else 0) + columns * (width > 1)
    return taken(dense.reshape(-1), index)


def sums_at(values: Dense, index: Array, size: int) -> Dense:
    """Return an array of so many elements, each the sum of the values at its index."""
    values = tensor_of(values)
    zeros = wrap(zeros_beside(values.array, (size,)))
    with on(values.array):
        return settled(index_add(zeros, 0, wrap(index.astype(np.int64)), values), ())


def product(matrix: Any, dense: Dense) -> Any:
    """Return a sparse matrix times a vector or a matrix, recorded if one of them is."""
    dense = beside(matrix.data, dense)
    sizes = tuple(plain(dense).shape)
    if len(sizes) not in {1, 2} or sizes[0] != matrix.shape[1]:
        raise MatrixSizeError(
            f"matmul: dimension mismatch: expected {matrix.shape[1]} rows for a sparse matrix of shape {matrix.shape}, "
            f"got shape {sizes}"
        )
    if is_recorded(matrix.data) or is_recorded(dense):
        return settled(Product.apply(*in_one_dtype("a sparse product", matrix.data, dense), matrix.pattern), ())
    values, right = plain(matrix.data), plain(dense)
    if gpu.is_gpu_array(right):
        dtype = np.result_type(values, right)
        values, right = values.astype(dtype, copy=False), right.astype(dtype, copy=False)
    return matrix.pattern.product(values, right)
