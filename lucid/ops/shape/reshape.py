"""The same elements in another shape: views where memory allows it, copies where it does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.elementwise import converted
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.core import clone as _clone
from lucid.ops.base.dims import dim_in, dims_in, shape_for, sizes_in, viewable
from lucid.ops.base.promotion import array_of

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive(view=True)
def _view(xp: Any, x: Array, *, shape: tuple[int, ...]) -> Array:
    if not x.flags.c_contiguous and not viewable(x.shape, x.strides, shape):
        raise ShapeError(
            f"view size is not compatible with input tensor's size and stride: memory of shape {list(x.shape)} and "
            f"strides {[s // x.itemsize for s in x.strides]} cannot be seen as shape {list(shape)}. "
            "Use .reshape(...) instead."
        )
    return x.reshape(shape)


@_view.vjp
def _view_vjp(m: Any, grad: Any, x_shape: tuple[int, ...]) -> Any:
    return m.reshape(grad, shape=x_shape)


# Raw, it may return an alias, which rules may do; recorded, it stands only for shapes that need a copy.
@primitive
def _reshape(xp: Any, x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@_reshape.cuda
def _reshape_cuda(x: Array, *, shape: tuple[int, ...]) -> Any:
    if x.flags.c_contiguous or viewable(x.shape, x.strides, shape):
        return x.reshape(shape)
    copy = converted(x, x.dtype)
    return copy if copy is NotImplemented else copy.reshape(shape)


@_reshape.vjp
def _reshape_vjp(m: Any, grad: Any, x_shape: tuple[int, ...]) -> Any:
    return m.reshape(grad, shape=x_shape)


def _reshape_any(x: Any, *, shape: tuple[int, ...]) -> Any:
    array = x.array
    if array.flags.c_contiguous or viewable(array.shape, array.strides, shape):
        return _view(x, shape=shape)
    return _reshape(x, shape=shape)


_reshape.call = _reshape_any


@primitive(view=True)
def _squeeze(xp: Any, x: Array, *, dims: tuple[int, ...]) -> Array:
    return x.squeeze(dims)


@_squeeze.vjp
def _squeeze_vjp(m: Any, grad: Any, x_shape: tuple[int, ...]) -> Any:
    return m.reshape(grad, shape=x_shape)


@primitive(view=True)
def _unsqueeze(xp: Any, x: Array, *, dim: int) -> Array:
    return x[(*(slice(None),) * dim, None, ...)]


@_unsqueeze.vjp
def _unsqueeze_vjp(m: Any, grad: Any, dim: int) -> Any:
    return m.squeeze(grad, dims=(dim,))


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements of `input`, in order, in another shape: a view if memory allows it, else a copy.

    Parameters
    ----------
    input : Tensor
        Of any layout.
    *shape : int, or one tuple of int
        The new sizes; one of them may be -1, which is inferred.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ShapeError
        If the number of elements does not fit, or more than one size is -1.

    Examples
    --------
    >>> import lucid
    >>> lucid.reshape(lucid.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return _reshape_any(input, shape=shape_for(sizes_in(shape), array_of(input).size))


def view(input: Tensor, *shape: Any) -> Tensor:
    """Return the memory of `input` seen in another shape.

    Parameters
    ----------
    input : Tensor
        Changes of the result change it too.
    *shape : int, or one tuple of int
        The new sizes; one of them may be -1, which is inferred.

    Returns
    -------
    Tensor
        A view, of the dtype of `input`.

    Raises
    ------
    ShapeError
        If the number of elements does not fit, or the elements do not lie in memory so that they can be seen in that
        shape without a copy.
    DtypeError
        If a dtype is given: memory is not seen as another dtype.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.view(-1).shape
    (6,)
    """
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list) and not hasattr(shape[0], "__index__"):
        raise DtypeError(
            f"view: shape: expected sizes, got {shape[0]!r}; to convert the values to another dtype use .to(dtype)"
        )
    return _view(input, shape=shape_for(sizes_in(shape), input.array.size))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the memory of `input` seen in the shape of `other`.

    Parameters
    ----------
    input, other : Tensor
        Of as many elements.

    Returns
    -------
    Tensor
        A view of `input`.

    Raises
    ------
    ShapeError
        As for :func:`view`.

    Examples
    --------
    >>> import lucid
    >>> lucid.arange(4).view_as(lucid.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(input, array_of(other).shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the elements of `input` in the shape of `other`: a view if memory allows it, else a copy.

    Parameters
    ----------
    input, other : Tensor
        Of as many elements.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Examples
    --------
    >>> import lucid
    >>> lucid.arange(4).reshape_as(lucid.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, array_of(other).shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `input` with the dimensions from `start_dim` to `end_dim`, both included, joined into one.

    Parameters
    ----------
    input : Tensor
        Of any layout.
    start_dim, end_dim : int
        First and last dimension to join.

    Returns
    -------
    Tensor
        A view if memory allows it, else a copy; of one dimension if `input` has none.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    ShapeError
        If `end_dim` comes before `start_dim`.

    Examples
    --------
    >>> import lucid
    >>> lucid.flatten(lucid.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    shape = array_of(input).shape
    start, end = dim_in(start_dim, len(shape)), dim_in(end_dim, len(shape))
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim} in shape {list(shape)}")
    joined = (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])
    return input if joined == shape else _reshape_any(input, shape=joined)


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return `input` with one dimension split into several.

    Parameters
    ----------
    input : Tensor
        Of any layout.
    dim : int
        The dimension to split.
    sizes : tuple of int
        The new sizes in its place; one of them may be -1, which is inferred.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    ShapeError
        If the sizes do not multiply to that of `dim`.

    Examples
    --------
    >>> import lucid
    >>> lucid.unflatten(lucid.zeros(2, 6), 1, (3, -1)).shape
    (2, 3, 2)
    """
    shape = array_of(input).shape
    place = dim_in(dim, len(shape))
    if not sizes:
        raise ShapeError("unflatten: expected at least one size, got none")
    return _view(input, shape=(*shape[:place], *shape_for(sizes_in((sizes,)), shape[place]), *shape[place + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """Return the elements of `input` in one dimension: a view if memory allows it, else a copy.

    Parameters
    ----------
    input : Tensor
        Of any shape.

    Returns
    -------
    Tensor
        Of shape (number of elements,).

    Examples
    --------
    >>> import lucid
    >>> lucid.ravel(lucid.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return reshape(input, -1) if array_of(input).size else reshape(input, 0)


def squeeze(input: Tensor, dim: Any = None, *more: int) -> Tensor:
    """Return a view of `input` without dimensions of size 1.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int or tuple of int, optional
        The dimensions to leave out, those that are of size 1; all if None.
    *more : int
        Further ones, as in ``x.squeeze(0, 1)``.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    ShapeError
        If one is named twice.

    Examples
    --------
    >>> import lucid
    >>> lucid.squeeze(lucid.zeros(1, 2, 1)).shape, lucid.squeeze(lucid.zeros(1, 2, 1), 0).shape
    ((2,), (2, 1))
    """
    shape = array_of(input).shape
    named = range(len(shape)) if dim is None else dims_in((dim, *more) if more else dim, len(shape))
    return _squeeze(input, dims=tuple([d for d in named if d < len(shape) and shape[d] == 1]))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view of `input` with a new dimension of size 1.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The place of the new dimension in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexOutOfRangeError
        If the result has no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.unsqueeze(lucid.zeros(2), -1).shape
    (2, 1)
    """
    return _unsqueeze(input, dim=dim_in(dim, array_of(input).ndim + 1))


def contiguous(input: Tensor) -> Tensor:
    """Return `input` if its elements lie in order in memory, else a copy where they do.

    Parameters
    ----------
    input : Tensor
        Of any layout.

    Returns
    -------
    Tensor
        `input` itself, or a copy.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.contiguous() is x, x.t().contiguous() is x
    (True, False)
    """
    return input if input.array.flags.c_contiguous else _clone(input)


def clone(input: Tensor) -> Tensor:
    """Return a copy of `input` in memory of its own; gradients flow back to `input`.

    Parameters
    ----------
    input : Tensor
        Of any layout.

    Returns
    -------
    Tensor
        Of the shape, dtype and device of `input`, its elements in order in memory.

    Examples
    --------
    >>> import lucid
    >>> lucid.clone(lucid.tensor([1, 2]))
    tensor([1, 2])
    """
    array_of(input)
    return _clone(input)
