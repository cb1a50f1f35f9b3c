"""Magnitude, sign and phase, elementwise; complex tensors and their parts; see `lucid.ops.base.declaration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.elementwise import ALL, NUMBERS
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base import core
from lucid.ops.base.declaration import REAL, Fused, elementwise, flat
from lucid.ops.base.operands import of_one, refuse, tensor_operand
from lucid.ops.base.promotion import tensor_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


def holds_complex(x: Any) -> bool:
    """Return whether an operand of a rule, array or tensor, is complex."""
    return getattr(x, "array", x).dtype.kind == "c"


@elementwise(
    np.abs,
    Fused(lambda m, grad, x: m.mul(grad, m.sgn(x))),
    kernel="elementwise.Abs",
    refused=("b", "convert to integers first"),
    dtypes=NUMBERS,
    holomorphic=False,
)
def abs(input: Tensor) -> Tensor:
    """Return the absolute value, of complex numbers the magnitude, elementwise, not of bools.

    The result is real; the gradient at zero is zero.

    >>> import lucid
    >>> lucid.abs(lucid.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return GRAPH.abs(input)


def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1 with the sign of `input`, elementwise, of real numbers; 0 for NaN. The gradient is zero.

    >>> import lucid
    >>> lucid.sign(lucid.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    refuse("sign", "c", input, instead="use sgn")
    return GRAPH.sgn(input)


def by_parts(function: Callable[[Array, Any], Array], xp: ModuleType, x: Array, other: Any) -> Array:
    """Return a function of each part alone of complex numbers, and of a real operand: no infinity meets a zero."""
    made = xp.empty(x.shape, x.dtype)
    made.real, made.imag = function(x.real, other), function(x.imag, other)
    return made


def _sgn(xp: ModuleType, x: Array) -> Array:
    if x.dtype.kind == "c":
        # each part alone, as the reciprocal of a subnormal size overflows
        size = xp.abs(x)
        return xp.where(xp.equal(size, 0), x.dtype.type(0), by_parts(xp.divide, xp, x, size))
    if x.dtype.kind == "b":
        return xp.array(x)
    # a difference of masks, by which the sign of NaN is zero
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _sgn_vjp(m: Namespace, grad: Array, x: Array, out: Array) -> Any:
    if not holds_complex(x):
        return m.zeros_like(grad)
    along = m.mul(m.real(m.mul(grad, m.conj(out))), out)
    size = m.abs(x)
    return m.where(m.eq(size, 0), 0, m.div(m.sub(grad, along), size))


@elementwise(_sgn, _sgn_vjp, dtypes=ALL, holomorphic=False)
def sgn(input: Tensor) -> Tensor:
    """Return ``input / abs(input)``, elementwise, and 0 at zero: the sign, or the direction of a complex number.

    >>> import lucid
    >>> lucid.sgn(lucid.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    return GRAPH.sgn(input)


@elementwise(lambda xp, x: xp.where(xp.isnan(x), x, _sgn(xp, x)), flat, refused=REAL)
def sign_or_nan(input: Tensor) -> Tensor:
    """Return ``numpy.sign`` of floating-point numbers, elementwise: as `sign`, but NaN of NaN.

    >>> import lucid
    >>> lucid.ops.elementwise.complex.sign_or_nan(lucid.tensor([-3.0, float("nan")]))
    tensor([-1., nan])
    """
    return GRAPH.sign_or_nan(input)


@primitive(view=True, holomorphic=False)
def _real(xp: ModuleType, x: Array) -> Array:
    return x.real if x.dtype.kind == "c" else x


@_real.vjp
def _real_vjp(m: Namespace, grad: Array, x_dtype: Any) -> Any:
    return m.cast(grad, dtype=x_dtype)


def real(input: Tensor) -> Tensor:
    """Return the real part as a view; a real tensor itself.

    >>> import lucid
    >>> lucid.real(lucid.tensor([1 + 2j]))
    tensor([1.])
    """
    x = tensor_operand(input)
    return _real(x) if x.array.dtype.kind == "c" else x


@primitive(view=True, holomorphic=False)
def _imag(xp: ModuleType, x: Array) -> Array:
    return x.imag


@_imag.vjp
def _imag_vjp(m: Namespace, grad: Array, x_dtype: Any) -> Any:
    return m.mul(m.cast(grad, dtype=x_dtype), 1j)


def imag(input: Tensor) -> Tensor:
    """Return the imaginary part as a view; a real tensor raises a DtypeError.

    >>> import lucid
    >>> lucid.imag(lucid.tensor([1 + 2j]))
    tensor([2.])
    """
    x = tensor_operand(input)
    refuse("imag", "biufV", x, instead="the imaginary part of a real tensor is zero: use zeros_like")
    return _imag(x)


def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate, elementwise; a real tensor itself.

    >>> import lucid
    >>> lucid.conj(lucid.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = tensor_operand(input)
    return core.conj(x) if x.array.dtype.kind == "c" else x


def resolve_conj(input: Tensor) -> Tensor:
    """Return `input` itself: `conj` has computed its result.

    >>> import lucid
    >>> lucid.resolve_conj(lucid.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return tensor_operand(input)


def resolve_neg(input: Tensor) -> Tensor:
    """Return `input` itself: no tensor is negated only when it is read.

    >>> import lucid
    >>> lucid.resolve_neg(lucid.tensor([1 + 2j]).conj().imag)
    tensor([-2.])
    """
    return tensor_operand(input)


@primitive(holomorphic=False)
def _angle(xp: ModuleType, x: Array) -> Array:
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    return xp.where(xp.isnan(x), x, xp.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


@_angle.vjp
def _angle_vjp(m: Namespace, grad: Array, x: Array) -> Any:
    if not holds_complex(x):
        return m.zeros_like(grad)
    size = m.square(m.abs(x))
    return m.where(m.eq(size, 0), 0, m.mul(m.div(m.mul(x, 1j), size), grad))


of_one(_angle)


def angle(input: Tensor) -> Tensor:
    """Return the phase in [-pi, pi], elementwise; of a real number 0 or, below zero, pi.

    >>> import lucid
    >>> lucid.angle(lucid.tensor([1j, -1]))
    tensor([1.5708, 3.1416])
    """
    return _angle.call(input)


@primitive(holomorphic=False)
def _complex(xp: ModuleType, real: Array, imag: Array) -> Array:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    out = xp.empty(shape, np.complex128 if real.dtype == np.float64 else np.complex64)
    out.real = real
    out.imag = imag
    return out


@_complex.vjp("real")
def _complex_real(m: Namespace, grad: Array, real_shape: Ints) -> Any:
    return m.sum_to(m.real(grad), shape=real_shape)


@_complex.vjp("imag")
def _complex_imag(m: Namespace, grad: Array, imag_shape: Ints) -> Any:
    return m.sum_to(m.imag(grad), shape=imag_shape)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return ``real + 1j * imag``, elementwise.

    `real` and `imag` are both float32 or both float64, or a DtypeError is raised.

    >>> import lucid
    >>> lucid.complex(lucid.tensor([1.0]), lucid.tensor([2.0]))
    tensor([1.+2.j])
    """
    return _complex(*_of_one_real_dtype("complex", real, imag))


def _of_one_real_dtype(name: str, first: Any, second: Any) -> tuple[Any, Any]:
    """Return two tensors fit for the parts of a complex one."""
    a, b = tensor_operand(first), tensor_operand(second)
    if a.array.dtype != b.array.dtype or a.array.dtype not in (np.float32, np.float64):
        raise DtypeError(
            f"{name}: expected two tensors of float32 or two of float64, got {tensor_dtype(a)} and {tensor_dtype(b)}"
        )
    return a, b


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return ``abs * exp(1j * angle)``, elementwise: the complex numbers of that magnitude and phase.

    `abs` and `angle` are both float32 or both float64, or a DtypeError is raised.

    >>> import lucid
    >>> lucid.polar(lucid.tensor([2.0]), lucid.tensor([0.0]))
    tensor([2.+0.j])
    """
    size, phase = _of_one_real_dtype("polar", *[wide_in_autocast(x, cpu=True, cuda=False) for x in (abs, angle)])
    return _complex(GRAPH.mul(size, GRAPH.cos(phase)), GRAPH.mul(size, GRAPH.sin(phase)))


@primitive(view=True, holomorphic=False)
def _view_as_real(xp: ModuleType, x: Array) -> Array:
    # the new dimension of one number is what is split: the others may lie anyhow
    return x[..., None].view(x.real.dtype)


@_view_as_real.vjp
def _view_as_real_vjp(m: Namespace, grad: Array) -> Any:
    return m.complex(m.getitem(grad, index=(Ellipsis, 0)), m.getitem(grad, index=(Ellipsis, 1)))


@primitive(view=True, holomorphic=False)
def _view_as_complex(xp: ModuleType, x: Array) -> Array:
    return x.view(np.complex128 if x.dtype == np.float64 else np.complex64)[..., 0]


@_view_as_complex.vjp
def _view_as_complex_vjp(m: Namespace, grad: Array) -> Any:
    return m.view_as_real(grad)


def view_as_real(input: Tensor) -> Tensor:
    """Return a view of complex numbers as real ones: their parts along a new last dimension of size 2.

    A real tensor raises a DtypeError.

    >>> import lucid
    >>> lucid.view_as_real(lucid.tensor([1 + 2j, 3 - 1j]))
    tensor([[ 1.,  2.],
            [ 3., -1.]])
    """
    x = tensor_operand(input)
    refuse("view_as_real", "biufV", x, instead="expected a complex tensor")
    return _view_as_real(x)


def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of pairs of real numbers, the last dimension, as complex ones.

    Dtypes other than float32 and float64 raise a DtypeError; a last dimension whose size is not 2, or memory that does
    not hold each pair in order, at an even distance from the next, a ShapeError.

    >>> import lucid
    >>> lucid.view_as_complex(lucid.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])
    """
    x = tensor_operand(wide_in_autocast(input, cpu=True, cuda=False))
    array = x.array
    if array.dtype not in (np.float32, np.float64):
        raise DtypeError(f"view_as_complex: expected a tensor of float32 or float64, got {tensor_dtype(x)}")
    if not array.ndim or array.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: expected a last dimension of size 2, got shape {list(array.shape)}")
    *others, last = array.strides
    pair = 2 * array.itemsize
    if array.size and (last != array.itemsize or any(step % pair for step in others)):
        raise ShapeError(
            f"view_as_complex: expected pairs that lie in order, an even number of elements apart, got strides "
            f"{[step // array.itemsize for step in array.strides]}: use .contiguous() first"
        )
    return _view_as_complex(x)
