"""An activation function of an input plus a bias: one pass over memory each way instead of two.

What holds for all elementwise ops says `lucid.ops.base.declaration`; this one takes one floating-point dtype alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.recording.primitive import primitive
from lucid.errors import CallError, DtypeError, ShapeError
from lucid.ops.activation.gelu import GELU, GELU_GRAD, GELU_TANH, GELU_TANH_GRAD, gelu_grad_x, gelu_tanh_grad_x
from lucid.ops.activation.relu import relu_grad
from lucid.ops.activation.sigmoid import SIGMOID, SILU, SILU_GRAD, silu_grad_x
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.declaration import Formula, adjoint, of_formula
from lucid.ops.base.operands import floating, tensor_operand
from lucid.ops.base.promotion import tensor_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


class ActivationError(CallError):
    """An activation function is unknown."""


class Activation:
    """An activation function of the sum.

    Attributes
    ----------
    formula, slope : Formula
        Of `x`, and of `g` and `x`: `g` times the slope at `x`.
    bend : callable
        ``bend(m, grad, g, x)`` gives ``grad * g`` times the second derivative at `x`.
    kernel, slope_kernel : Elementwise
        Both functions, on CUDA arrays, of an input and a bias.
    """

    def __init__(self, name: str, formula: Formula, slope: Formula, bend: Callable[..., Any]) -> None:
        self.formula, self.slope, self.bend = formula, slope, bend
        of: Any = formula.function
        of_slope: Any = slope.function
        self.kernel = of_formula(lambda m, x, bias: of(m, x + bias), f"OfSum{name}")
        self.slope_kernel = of_formula(lambda m, g, x, bias: of_slope(m, g, x + bias), f"SumGrad{name}")


def _relu_bend(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    return m.zeros_like(grad)


def _tanh_bend(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    t = m.tanh(x)
    return m.mul(m.tanh_grad(m.mul(grad, g), t), m.mul(t, -2))


def _sigmoid_bend(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    s = m.sigmoid(x)
    return m.mul(m.sigmoid_grad(m.mul(grad, g), s), m.sub(1, m.mul(s, 2)))


_RELU, _RELU_GRAD = Formula(lambda m, x: m.maximum(x, 0)), Formula(relu_grad)
_TANH, _TANH_GRAD = Formula(lambda m, x: m.tanh(x)), Formula(lambda m, g, x: m.tanh_grad(g, m.tanh(x)))
_SIGMOID_GRAD = Formula(lambda m, g, x: m.sigmoid_grad(g, m.sigmoid(x)))

ACTIVATIONS = {
    "relu": Activation("Relu", _RELU, _RELU_GRAD, _relu_bend),
    "gelu": Activation("Gelu", GELU, GELU_GRAD, gelu_grad_x),
    "gelu_tanh": Activation("GeluTanh", GELU_TANH, GELU_TANH_GRAD, gelu_tanh_grad_x),
    "silu": Activation("Silu", SILU, SILU_GRAD, silu_grad_x),
    "tanh": Activation("Tanh", _TANH, _TANH_GRAD, _tanh_bend),
    "sigmoid": Activation("Sigmoid", SIGMOID, _SIGMOID_GRAD, _sigmoid_bend),
}


def _of_sum_into(
    xp: ModuleType, out: Array, bias: Array, x: Array, total: Array, *spare: Array, activation: str
) -> None:
    xp.add(x, bias, out=total)
    ACTIVATIONS[activation].formula.chain[0](xp, out, total, *spare)


@primitive(saved_as={"x": "input"})
def _bias_activation(xp: ModuleType, x: Array, bias: Array, *, activation: str) -> Array:
    _, scratch = ACTIVATIONS[activation].formula.chain
    return in_blocks(xp, _of_sum_into, scratch + 1, bias, x, activation=activation)


@_bias_activation.cuda
def _bias_activation_cuda(x: Array, bias: Array, *, activation: str) -> Any:
    return ACTIVATIONS[activation].kernel(x, bias)


def _sum_grad_into(
    xp: ModuleType, out: Array, g: Array, bias: Array, x: Array, total: Array, *spare: Array, activation: str
) -> None:
    xp.add(x, bias, out=total)
    ACTIVATIONS[activation].slope.chain[0](xp, out, g, total, *spare)


@primitive
def _bias_activation_grad(xp: ModuleType, g: Array, x: Array, bias: Array, *, activation: str) -> Array:
    """Return the gradient of the sum, also that of the input."""
    _, scratch = ACTIVATIONS[activation].slope.chain
    return in_blocks(xp, _sum_grad_into, scratch + 1, g, bias, x, activation=activation)


@_bias_activation_grad.cuda
def _bias_activation_grad_cuda(g: Array, x: Array, bias: Array, *, activation: str) -> Any:
    return ACTIVATIONS[activation].slope_kernel(g, x, bias)


def _to_terms(m: Namespace, grad: Array, bias: Array, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the gradients of input and bias, given that of their sum."""
    return grad if needs[0] else None, m.sum_to(grad, shape=bias.shape) if needs[1] else None


@_bias_activation.vjp
def _bias_activation_vjp(
    m: Namespace, grad: Array, x: Array, bias: Array, activation: str, needs: tuple[bool, bool]
) -> Any:
    return _to_terms(m, m.bias_activation_grad(grad, x, bias, activation=activation), bias, needs)


adjoint(_bias_activation_grad)


@_bias_activation_grad.vjp("x", "bias")
def _bias_activation_grad_terms(
    m: Namespace, grad: Array, g: Array, x: Array, bias: Array, activation: str, needs: tuple[bool, bool]
) -> Any:
    return _to_terms(m, ACTIVATIONS[activation].bend(m, grad, g, m.add(x, bias)), bias, needs)


def bias_activation(input: Tensor, bias: Tensor, activation: str) -> Tensor:
    """Return an activation function of ``input + bias``, in one pass over memory, with `bias` along the last dimension.

    `activation` is "relu", "gelu", "gelu_tanh", "silu", "tanh" or "sigmoid"; "gelu_tanh" is gelu with
    ``approximate="tanh"``; else an ActivationError is raised. Half types are added and activated in float32 and rounded
    once, not twice as by two ops. `input` and `bias` are kept for backward, not their sum.

    >>> import lucid
    >>> x, bias = lucid.tensor([[1.0, 2.0], [-3.0, 4.0]]), lucid.tensor([0.5, -3.0])
    >>> lucid.nn.functional.bias_activation(x, bias, "relu")
    tensor([[1.5000, 0.0000],
            [0.0000, 1.0000]])
    """
    if not among(activation, ACTIVATIONS):
        raise ActivationError(
            f"bias_activation: expected activation to be one of {', '.join(map(repr, ACTIVATIONS))}, got {activation!r}"
        )
    x, offset = floating("bias_activation", input), tensor_operand(bias)
    shape = x.array.shape
    if not shape:
        raise ShapeError(
            "bias_activation: expected an input of at least 1 dimension, (..., C), got shape []; unsqueeze(0) gives it "
            "one"
        )
    if offset.array.shape != shape[-1:]:
        raise ShapeError(
            f"bias_activation: expected bias of shape [{shape[-1]}], one number for each element of the last dimension "
            f"of the input of shape {list(shape)}, got shape {list(offset.array.shape)}"
        )
    if offset.array.dtype != x.array.dtype:
        wanted = tensor_dtype(x)
        raise DtypeError(
            f"bias_activation: expected bias of the dtype of the input, {wanted}, got {tensor_dtype(offset)}; "
            f"bias.to({wanted}) converts it"
        )
    return _bias_activation(x, offset, activation=activation)
