"""Products of matrices and vectors that are composed of others. Common rules: `lucid.ops.linalg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.memory import check_size
from lucid.errors import ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import array_of, only_tensors, promote
from lucid.ops.base.scalars import as_bool, as_int
from lucid.ops.creation.ranges import arange
from lucid.ops.elementwise.arithmetic import mul, sub
from lucid.ops.elementwise.complex import conj
from lucid.ops.elementwise.power import pow as power_of
from lucid.ops.linalg.addmm import added_product
from lucid.ops.linalg.matrices import of_dimensions, stacks_of_one_length
from lucid.ops.linalg.products import dot, lowered_on_cuda_alone
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.axes import flip, movedim, permute, roll
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.ops.shape.diagonal import diagonal
from lucid.ops.shape.reshape import reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``, of a matrix `mat` of shape (n, k) and a vector `vec`.

    `input` broadcasts to (n,); `beta` and `alpha` are as in `addmm`.

    >>> import lucid
    >>> lucid.addmv(lucid.tensor([1.0]), lucid.tensor([[1.0, 2.0]]), lucid.tensor([3.0, 4.0]))
    tensor([12.])
    """
    of_dimensions("addmv", ("mat", mat, 2), ("vec", vec, 1))
    if array_of(input).ndim > 1:
        raise ShapeError(f"addmv: expected input of at most 1 dimension, got shape {list(input.array.shape)}")
    column = unsqueeze(input, 1) if input.array.ndim else input
    with lowered_on_cuda_alone(mat):
        return squeeze(added_product("addmv", column, mat, unsqueeze(vec, 1), beta, alpha), 1)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * outer(vec1, vec2)``, of vectors `vec1` and `vec2`.

    `input` broadcasts to (n, m); `beta` and `alpha` are as in `addmm`.

    >>> import lucid
    >>> lucid.addr(lucid.zeros(1, 2), lucid.tensor([2.0]), lucid.tensor([3.0, 4.0]))
    tensor([[6., 8.]])
    """
    of_dimensions("addr", ("vec1", vec1, 1), ("vec2", vec2, 1))
    with lowered_on_cuda_alone(vec1):
        return added_product("addr", input, unsqueeze(vec1, 1), unsqueeze(vec2, 0), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * sum_b batch1[b] @ batch2[b]``, of as many matrices.

    `input` broadcasts to the shape of one product of `batch1` and `batch2`; `beta` and `alpha` are as in `addmm`.

    >>> import lucid
    >>> lucid.addbmm(lucid.zeros(1, 1), lucid.ones(5, 1, 3), lucid.ones(5, 3, 1))
    tensor([[15.]])
    """
    stacks_of_one_length("addbmm", ("batch1", "batch2"), batch1, batch2)
    count, rows, inner = batch1.array.shape
    others, columns = batch2.array.shape[1:]
    if inner != others:
        raise ShapeError(
            f"addbmm: inner sizes differ: batch1 has shape {batch1.array.shape}, batch2 has shape {batch2.array.shape}"
        )
    wide = reshape(permute(batch1, 1, 0, 2), (rows, count * inner))
    return added_product("addbmm", input, wide, reshape(batch2, (count * inner, columns)), beta, alpha)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the dot product of two vectors, ``sum_k conj(input[k]) * other[k]``.

    >>> import lucid
    >>> lucid.vdot(lucid.tensor([1j, 2.0]), lucid.tensor([1j, 1.0]))
    tensor(3.+0.j)
    """
    of_dimensions("vdot", ("input", input, 1), ("other", other, 1))
    return dot(conj(input), other)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return Kronecker's product: a block ``input[i, j] * other`` for each element of `input`, in any dimensions.

    The tensor of fewer dimensions gets more in front, of size 1.

    >>> import lucid
    >>> lucid.kron(lucid.tensor([1, 10]), lucid.tensor([1, 2, 3]))
    tensor([ 1,  2,  3, 10, 20, 30])
    """
    only_tensors(input, other)
    first, second = promote(input, other)
    ndim = max(first.array.ndim, second.array.ndim)
    a = (*(1,) * (ndim - first.array.ndim), *first.array.shape)
    b = (*(1,) * (ndim - second.array.ndim), *second.array.shape)
    outer = [size for size in a for size in (size, 1)]
    inner = [size for size in b for size in (1, size)]
    blocks = mul(reshape(first, outer), reshape(second, inner))
    return reshape(blocks, tuple([i * j for i, j in zip(a, b, strict=True)]))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross products of vectors of size 3 along `dim`; None is the first one of that size.

    `input` and `other` broadcast against each other, in the other dimensions.

    >>> import lucid
    >>> lucid.cross(lucid.tensor([1.0, 0.0, 0.0]), lucid.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    operands = promote(input, other)
    a, b = broadcast_tensors(*operands)
    shape = a.array.shape
    if dim is None:
        if 3 not in shape:
            raise ShapeError(f"cross: no dimension of size 3 in input: got shape {list(shape)}")
        axis = shape.index(3)
    else:
        axis = dim_in(dim, len(shape))
    for each in operands:
        # a vector of one component is none of three equal ones
        if len(shape) - axis > each.array.ndim or each.array.shape[axis - len(shape) :][:1] != (3,):
            raise ShapeError(f"cross: expected size 3 at dimension {axis}, got shape {list(each.array.shape)}")
    return sub(mul(roll(a, -1, axis), roll(b, -2, axis)), mul(roll(a, -2, axis), roll(b, -1, axis)))


def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    >>> import lucid
    >>> lucid.trace(lucid.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    of_dimensions("trace", ("input", input, 2))
    return sum(diagonal(wide_in_autocast(input, cpu=True, cuda=False)))


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return a matrix of the powers of the elements of a vector `x`, a row for each.

    There are `N` of them, or as many as elements. Exponents fall from ``N - 1`` to 0, or with `increasing` rise from 0.

    >>> import lucid
    >>> lucid.vander(lucid.tensor([2, 3, 4]))
    tensor([[ 4,  2,  1],
            [ 9,  3,  1],
            [16,  4,  1]])
    """
    of_dimensions("vander", ("x", x, 1))
    columns = x.array.size if N is None else as_int(N, "N")
    if columns < 0:
        raise ShapeError(f"vander: expected N of zero or more, got {columns}")
    check_size("vander", (*x.array.shape, columns), 8)
    rising = as_bool(increasing, "increasing")
    powers = power_of(unsqueeze(x, 1), arange(columns, device=x.device))
    return powers if rising else flip(powers, 1)


def adjoint(input: Tensor) -> Tensor:
    """Return the conjugates of the matrices in the last two dimensions of `input`, transposed.

    >>> import lucid
    >>> lucid.adjoint(lucid.tensor([[1j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if array_of(input).ndim < 2:
        raise ShapeError(f"adjoint: expected at least 2 dimensions, got shape {list(input.array.shape)}")
    turned = movedim(input, -1, -2)
    return conj(turned) if turned.array.dtype.kind == "c" else turned
