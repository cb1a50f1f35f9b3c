"""Elements put into a tensor, or added to it, by an index of its own rank.

What holds for all of them says `lucid.ops.index`. `index` has as many dimensions as `input`, and is no longer than it
but along `dim`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.base import TensorBase
from lucid.autograd.recording.primitive import primitive
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.core import clone_vjp
from lucid.ops.base.promotion import accumulation_dtype, array_of, tensor_dtype
from lucid.ops.base.scalars import as_element
from lucid.ops.index import select_cuda as kernels
from lucid.ops.index.accumulation import add_at
from lucid.ops.index.gather import flat_indices, gathered, prepared, shaped
from lucid.ops.index.select import view_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


@primitive
def _scatter(xp: ModuleType, x: Array, index: Array, src: Array, *, dim: int) -> Array:
    out = xp.array(x, order="C")
    out.reshape(-1)[flat_indices(xp, index, x.shape, dim)] = src
    return out


@_scatter.vjp("x")
def _scatter_x(m: Namespace, grad: Array, index: Array, dim: int) -> Any:
    return m.scatter(grad, index, 0.0, dim=dim)


@_scatter.vjp("src")
def _scatter_src(m: Namespace, grad: Array, index: Array, src_shape: Ints, dim: int) -> Any:
    return m.sum_to(m.gather(grad, index, dim=dim), shape=src_shape)


@primitive
def _scatter_add(xp: ModuleType, x: Array, index: Array, src: Array, *, dim: int) -> Array:
    out = xp.array(x, accumulation_dtype(x.dtype), order="C")
    add_at(xp, out.reshape(-1), (0,), (flat_indices(xp, index, x.shape, dim),), src)
    return out.astype(x.dtype, copy=False)


_scatter_add.vjp("x")(clone_vjp)
_scatter_add.vjp("src")(gathered)
_scatter.cuda(kernels.scatter)
_scatter_add.cuda(kernels.scatter_add)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Return a copy of `input` with ``out[index[i][j]][j] = src[i][j]`` for `dim` 0, and likewise for others.

    `src` is a tensor at least as long as `index` in each dimension, or a number, as `value` is: one of them is given,
    or a ValueError is raised. With `reduce` ``"add"`` it is added to what is there.

    >>> import lucid
    >>> lucid.scatter(lucid.zeros(2, 3), 1, lucid.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if (src is None) == (value is None):
        raise SettingError("scatter: expected either src or value")
    if not among(reduce, {None, "add"}):
        raise SettingError(f"scatter: expected reduce to be None or 'add', got {reduce!r}")
    new: Any = value if src is None else src
    x, axis, indices = prepared(input, dim, index, "scatter")
    if isinstance(new, TensorBase):
        new = source_for(input, new, indices, "scatter")
    else:
        new = as_element(new, tensor_dtype(input), "value")
    op = _scatter_add if reduce == "add" else _scatter
    return shaped(op(x, indices, new, dim=axis), input.array.shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of `input` with ``out[index[i][j]][j] += src[i][j]`` for `dim` 0, and likewise for others.

    `src` is at least as long as `index` in each dimension.

    >>> import lucid
    >>> lucid.scatter_add(lucid.zeros(3), 0, lucid.tensor([1, 1]), lucid.tensor([2.0, 3.0]))
    tensor([0., 5., 0.])
    """
    x, axis, indices = prepared(input, dim, index, "scatter_add")
    return shaped(_scatter_add(x, indices, source_for(input, src, indices, "scatter_add"), dim=axis), input.array.shape)


def source_for(input: Tensor, src: Any, index: Tensor, name: str) -> Any:
    """Return the part of `src` that `index` covers."""
    if array_of(src).dtype != array_of(input).dtype:
        raise DtypeError(
            f"{name}: expected src of {input.array.dtype.name} like input, got {src.array.dtype.name}; cast it first"
        )
    wanted = index.array.shape
    have = src.array.shape or (1,)
    if len(have) != len(wanted) or (index.array.size and any(a < b for a, b in zip(have, wanted, strict=True))):
        raise ShapeError(
            f"{name}: expected src at least as long as index in each dimension, got shapes {list(have)} and "
            f"{list(wanted)}"
        )
    source = shaped(src, have)
    if have == wanted:
        return source
    part = view_at(source, index=(*[slice(size) for size in wanted], ...))
    # an index without elements may be longer than src, too
    return part if index.array.size else reshape(part, wanted)
