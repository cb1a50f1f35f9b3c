"""Covariances and correlations of variables, and distances. Common rules: `lucid.ops.reduction.sums`."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.one_device import check_one_device
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, array_of, float_operand
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.elementwise.arithmetic import add, mul, sub
from lucid.ops.elementwise.complex import complex as complex_of
from lucid.ops.elementwise.complex import conj, imag, real
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.power import sqrt
from lucid.ops.elementwise.selection import clamp, where
from lucid.ops.index.select import narrow
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction.norms import norm
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.axes import movedim
from lucid.ops.shape.diagonal import diagonal
from lucid.ops.shape.reshape import reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from lucid.tensor import Tensor

PART = 2**13
"""As many observations BLAS adds up for `cov` at once."""


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariances of variables: the rows of `input`, with observations as its columns.

    A vector is one variable; of one variable the result has no dimension. Each observation counts `fweights` times,
    which are integers, and weighs `aweights`; `correction` is taken from the sum of the weights that divides.

    >>> import lucid
    >>> lucid.cov(lucid.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x: Any = tensor_operand(input)
    if x.array.ndim > 2:
        raise ShapeError(f"cov: expected input of at most 2 dimensions, got shape {list(x.array.shape)}")
    if x.array.dtype.kind == "b":
        raise DtypeError("cov: bool dtype is not supported for input: convert it first")
    check_one_device("cov", x, *[tensor_operand(each) for each in (fweights, aweights) if each is not None])
    x = float_operand(x)
    if (wide := accumulation_dtype(x.array.dtype)) is not x.array.dtype:
        # sums of products are larger than the half types' numbers
        return cov(x.to(wide), correction=correction, fweights=fweights, aweights=aweights).to(x.dtype)
    rows = reshape(x, 1, -1) if x.array.ndim < 2 else x
    count, weights = rows.array.shape[1], None
    for name, factors, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "fV")):
        if factors is None:
            continue
        shape = array_of(factors).shape
        if len(shape) > 1 or prod(shape) != count or factors.array.dtype.kind not in kinds:
            what = "integers" if kinds == "iu" else "floating-point numbers"
            raise ShapeError(
                f"cov: expected {name} to be {count} {what}, one for each observation, got shape "
                f"{list(factors.array.shape)} of {factors.array.dtype.name}"
            )
        if looked_at(factors.array) and bool((factors.array < 0).any()):
            raise SettingError(f"cov: {name} cannot be negative")
        each: Any = reshape(factors, -1)
        weights = each if weights is None else mul(weights, each)
    less = as_int(correction, "correction")
    total: Any = count if weights is None else sum(weights)
    weighed = rows if weights is None else mul(rows, weights)
    centred = sub(rows, div(sum(weighed, 1, True), total))
    # what the rounding of the mean left over
    centred = sub(centred, div(sum(centred if weights is None else mul(centred, weights), 1, True), total))
    if weights is None or aweights is None:
        rest: Any = total - less
    else:
        rest = total - less * div(sum(mul(weights, aweights)), total)
    rest = max(rest, 0) if isinstance(rest, int) else clamp(rest, min=0)
    left = centred if weights is None else mul(centred, weights)
    right = conj(movedim(centred, 0, 1))
    return squeeze(div(_products(left.to(right.dtype), right), rest))


def _products(left: Tensor, right: Tensor) -> Any:
    """Return the product of two matrices; of many columns and rows that of parts of them, summed.

    BLAS adds up a long row in few sums, so that single numbers are lost beside them.
    """
    count, parts = left.array.shape[1], left.array.shape[1] // PART
    if parts < 2:
        return matmul(left, right)
    whole = parts * PART
    columns = movedim(reshape(narrow(left, 1, 0, whole), -1, parts, PART), 1, 0)
    total = sum(matmul(columns, reshape(narrow(right, 0, 0, whole), parts, PART, -1)), 0)
    rest = count - whole
    return add(total, matmul(narrow(left, 1, whole, rest), narrow(right, 0, whole, rest))) if rest else total


def corrcoef(input: Tensor) -> Tensor:
    """Return the correlations of variables, the rows of `input`: covariances over the roots of variances, in [-1, 1].

    >>> import lucid
    >>> lucid.corrcoef(lucid.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    covariances = cov(input)
    if not covariances.array.ndim:
        return div(covariances, covariances)
    spread = sqrt(diagonal(real(covariances)))
    shares = div(div(covariances, unsqueeze(spread, 1)), spread)
    if shares.array.dtype.kind == "c":
        return complex_of(clamp(real(shares), min=-1, max=1), clamp(imag(shares), min=-1, max=1))
    return clamp(shares, min=-1, max=1)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return `input` with each slice at an index of a dimension shortened so that its norm of order `p` is `maxnorm`.

    What is no longer than that stays. `input` has two dimensions or more.

    >>> import lucid
    >>> lucid.renorm(lucid.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    shape = array_of(input).shape
    if len(shape) < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got shape {list(shape)}")
    axis, most, order = dim_in(dim, len(shape)), as_number(maxnorm, "maxnorm"), as_number(p, "p")
    if not order > 0:
        raise ShapeError(f"renorm: expected an order p above 0, got {order}")
    if not most >= 0:
        raise ShapeError(f"renorm: expected maxnorm to be >= 0 but got {most}")
    others = [d for d in range(len(shape)) if d != axis]
    long = norm(input.detach(), order, others, True) > most
    # the length of a slice that stays has no gradient, which may be NaN
    lengths = norm(where(long, input, 0), order, others, True)
    # as in PyTorch a little more than the length divides
    return mul(input, where(long, most / where(long, lengths + 1e-7, 1), 1.0))
