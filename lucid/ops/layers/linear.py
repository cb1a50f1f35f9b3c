"""Linear: the product with the weights of a layer, and its bias. Common rules of products: `lucid.ops.linalg`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import primitive
from lucid.base.dtype import dtype_of
from lucid.cuda.launch.plans import planned
from lucid.cuda.libraries import blas
from lucid.errors import ShapeError
from lucid.ops.base.promotion import accumulation_dtype, cast_to, only_tensors, promote
from lucid.ops.elementwise.arithmetic import add
from lucid.ops.linalg.matrices import broadcast_to_shape, product, same_dtype
from lucid.ops.linalg.products import matmul
from lucid.ops.shape.axes import permute
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive(saved_as={"x": "input"})
def _linear(xp: ModuleType, bias: Array | None, x: Array, weight: Array) -> Array:
    # the bias first, so that the hooks of a layer's parameters fire in PyTorch's order
    wide = accumulation_dtype(x.dtype)
    out = product(xp, x.astype(wide, copy=False), weight.T.astype(wide, copy=False))
    if bias is not None:
        out += bias
    return out.astype(x.dtype, copy=False)


@_linear.cuda
@planned
def _linear_cuda(bias: Array | None, x: Array, weight: Array) -> Any:
    return blas.added_product(bias, x, weight.T)


@_linear.vjp("x", planned=True)
def _linear_x(m: Namespace, grad: Array, weight: Array) -> Any:
    return m.matmul(grad, weight)


@_linear.vjp("weight", planned=True)
def _linear_weight(m: Namespace, grad: Array, x: Array, weight_shape: Ints) -> Any:
    rows = math.prod(x.shape[:-1])
    grad = m.reshape(grad, shape=(rows, weight_shape[0]))
    return m.matmul(m.swap_last(grad), m.reshape(x, shape=(rows, weight_shape[1])))


@_linear.vjp("bias", planned=True)
def _linear_bias(m: Namespace, grad: Array, bias_shape: Ints) -> Any:
    return m.sum_to(grad, shape=bias_shape)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``, ``out[..., o] = sum_i input[..., i] * weight[o, i] + bias[o]``.

    `weight` has the shape (out, in), or (in,) for one output, whose dimension is left out then. `bias` has the shape
    (out,); half types are rounded after it is added.

    >>> import lucid
    >>> weight = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> lucid.nn.functional.linear(lucid.tensor([1.0, 1.0]), weight, lucid.tensor([0.5, -0.5]))
    tensor([3.5000, 6.5000])
    """
    try:
        x, w = input.array, weight.array
        other = bias is not None and bias.array.dtype is not x.dtype
    except AttributeError:
        only_tensors(input, weight, *(() if bias is None else (bias,)))
        raise
    if other or x.dtype is not w.dtype or x.dtype.kind == "b":
        same_dtype("linear", input, weight, bias=bias)
    shape, sizes = x.shape, w.shape
    if len(sizes) not in {1, 2}:
        raise ShapeError(f"linear: expected weight of shape (out, in) or (in,), got shape {sizes}")
    if not shape or shape[-1] != sizes[-1]:
        raise ShapeError(
            f"linear: expected input with last dimension {sizes[-1]} (weight has shape {sizes}), "
            f"got input of shape {shape}"
        )
    if len(sizes) == 1:
        out = matmul(input, weight)
        return out if bias is None else add(out, cast_to(bias, dtype_of(out.array)))
    if bias is not None and bias.array.shape != sizes[:1]:
        broadcast_to_shape("linear", "bias", bias.array.shape, (*shape[:-1], sizes[0]))
    return _linear(bias, input, weight)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``out[..., o] = sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]``.

    `input1` and `input2` have the shapes (*, in1) and (*, in2), `weight` (out, in1, in2), `bias` (out,); else a
    ShapeError is raised.

    >>> import lucid
    >>> lucid.bilinear(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0]), lucid.ones(1, 2, 1))
    tensor([9.])
    """
    only_tensors(input1, input2, weight, *(() if bias is None else (bias,)))
    if unusual and casting_on():
        with without_autocast():
            return bilinear(*promote(input1, input2, weight, *(() if bias is None else (bias,))))
    same_dtype("bilinear", input1, input2, weight, bias=bias)
    shape, other, sizes = input1.array.shape, input2.array.shape, weight.array.shape
    if len(sizes) != 3:
        raise ShapeError(f"bilinear: expected weight of shape (out, in1, in2), got shape {list(sizes)}")
    if not shape or not other or (*shape, other[-1]) != (*other[:-1], *sizes[1:]):
        raise ShapeError(
            f"bilinear: expected inputs of shapes (*, {sizes[1]}) and (*, {sizes[2]}) for weight of shape "
            f"{list(sizes)}, got {list(shape)} and {list(other)}"
        )
    if bias is not None and bias.array.shape != sizes[:1]:
        raise ShapeError(f"bilinear: expected bias of shape {[sizes[0]]}, got {list(bias.array.shape)}")
    rows, (outs, first, second) = math.prod(shape[:-1]), sizes
    factors = reshape(permute(weight, (1, 0, 2)), (first, outs * second))
    partial = reshape(matmul(reshape(input1, (rows, first)), factors), (rows, outs, second))
    out = reshape(matmul(partial, reshape(input2, (rows, second, 1))), (*shape[:-1], outs))
    return out if bias is None else add(out, bias)
