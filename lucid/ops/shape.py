"""The same elements in another shape: views where memory allows it, copies where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.primitive import primitive
from lucid.errors import DtypeError, ShapeError
from lucid.ops.core import clone as _clone
from lucid.ops.dims import dim_in, dims_in, shape_for, sizes_in, viewable

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
def _permute(xp: Any, x: Array, *, dims: tuple[int, ...]) -> Array:
    return x.transpose(dims)


@_permute.vjp
def _permute_vjp(m: Any, grad: Any, dims: tuple[int, ...]) -> Any:
    inverse = [0] * len(dims)
    for place, dim in enumerate(dims):
        inverse[dim] = place
    return m.permute(grad, dims=tuple(inverse))


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
