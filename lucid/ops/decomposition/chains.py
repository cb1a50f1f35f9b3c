"""Products under the names of `lucid.linalg`. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.casting import lower_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.base.memory import check_size
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.dims import tensors_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import array_of, only_tensors, promote
from lucid.ops.base.scalars import as_int
from lucid.ops.creation.ranges import arange, eye
from lucid.ops.decomposition.inverses import inv
from lucid.ops.decomposition.operands import check_one_dtype
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.elementwise.complex import conj
from lucid.ops.elementwise.power import pow as power_of
from lucid.ops.linalg import composed
from lucid.ops.linalg.matrices import of_dimensions
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction.sums import sum
from lucid.ops.shape import diagonal as diagonals
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.reshape import squeeze, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of all matrices in `tensors`, in the order of the fewest multiplications.

    The first and the last of them may be a vector, which stands for a row and a column.

    >>> import lucid
    >>> lucid.linalg.multi_dot([lucid.ones(2, 3), lucid.ones(3, 4), lucid.ones(4)])
    tensor([12., 12.])
    """
    name, matrices = "linalg.multi_dot", [tensor_operand(tensor) for tensor in tensors_in((tensors,))]
    if len(matrices) < 2:
        raise SettingError(f"{name}: expected at least 2 tensors, got {len(matrices)}")
    first, last = array_of(matrices[0]).ndim == 1, array_of(matrices[-1]).ndim == 1
    if first:
        matrices[0] = unsqueeze(matrices[0], 0)
    if last:
        matrices[-1] = unsqueeze(matrices[-1], 1)
    for place, tensor in enumerate(matrices):
        of_dimensions(name, (f"tensor {place}", tensor, 2))
    check_one_dtype(name, *matrices)
    sizes = [matrices[0].array.shape[0], *[tensor.array.shape[1] for tensor in matrices]]
    for place, tensor in enumerate(matrices):
        if tensor.array.shape[0] != sizes[place]:
            raise ShapeError(
                f"{name}: tensors {place - 1} and {place} cannot be multiplied: their shapes are "
                f"{list(matrices[place - 1].array.shape)} and {list(tensor.array.shape)}"
            )
    out = _product(matrices, _cuts(sizes), 0, len(matrices) - 1)
    out = squeeze(out, 1) if last else out
    return squeeze(out, 0) if first else out


def _cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return the best cut in two of each part of the chain, by the matrix before it."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            prices = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            cuts[i, j] = min(prices, key=prices.__getitem__)
            cost[i, j] = prices[cuts[i, j]]
    return cuts


def _product(tensors: list[Tensor], cuts: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return tensors[i]
    k = cuts[i, j]
    return matmul(_product(tensors, cuts, i, k), _product(tensors, cuts, k + 1, j))


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the dot products of vectors along `dim`, ``sum(conj(x) * y)``; `x` and `y` broadcast.

    >>> import lucid
    >>> lucid.linalg.vecdot(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    only_tensors(x, y)
    if unusual and casting_on():
        x, y = lower_in_autocast(x, cpu=True), lower_in_autocast(y, cpu=True)
        with without_autocast():  # a sum is widened
            return vecdot(x, y, dim=dim)
    first, second = promote(x, y)
    return sum(mul(conj(first), second), dim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross products of vectors of `input` and `other`, of size 3 along `dim`; other dimensions broadcast.

    >>> import lucid
    >>> lucid.linalg.cross(lucid.tensor([1.0, 0.0, 0.0]), lucid.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if array_of(input).ndim != array_of(other).ndim:
        raise ShapeError(
            "linalg.cross: expected as many dimensions, got shapes "
            f"{list(input.array.shape)} and {list(other.array.shape)}"
        )
    return composed.cross(input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonal `offset` of matrices with rows along `dim1` and columns along `dim2`.

    >>> import lucid
    >>> lucid.linalg.diagonal(lucid.tensor([[[1, 2], [3, 4]]]))
    tensor([[1, 4]])
    """
    return diagonals.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return matrices of the powers 0 to ``N - 1`` of the elements of vectors `x`, a row for each.

    `N` is as many as elements, unless it is given.

    >>> import lucid
    >>> lucid.linalg.vander(lucid.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    shape = array_of(x).shape
    if not shape:
        raise ShapeError("linalg.vander: expected at least 1 dimension, got a 0-dim tensor")
    columns = shape[-1] if N is None else as_int(N, "N")
    if columns < 1:
        raise ShapeError(f"linalg.vander: expected N of 1 or more, got {columns}")
    check_size("vander", (*x.array.shape, columns), 8)
    return power_of(unsqueeze(x, -1), arange(columns, device=x.device))


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the product of `n` times a square matrix, or each matrix of a stack; the identity if `n` is 0.

    A negative `n` multiplies the inverse.

    >>> import lucid
    >>> lucid.matrix_power(lucid.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    shape, count = array_of(input).shape, as_int(n, "n")
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"matrix_power: expected square matrices, got shape {list(shape)}")
    if count < 0:
        input, count = inv(input), -count
    if not count:
        return broadcast_to(eye(shape[-1], dtype=input.dtype, device=input.device), shape).clone()
    result: Any = None
    square: Any = input
    while True:
        if count & 1:
            result = square if result is None else matmul(result, square)
        count >>= 1
        if not count:
            return result.clone() if result is input else result
        square = matmul(square, square)
