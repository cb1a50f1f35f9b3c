"""Batch normalisation in evaluation as part of the layer before it."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.errors import SettingError, ShapeError
from lucid.nn.parameter import Parameter

if TYPE_CHECKING:
    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


@checked
def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Return a convolution equal to `conv` followed by `bn`, both in evaluation.

    Parameters
    ----------
    conv, bn : Module
        A convolution and a batch normalisation with running statistics. They stay as they are.
    transpose : bool
        Whether it is a transposed convolution.

    Raises
    ------
    SettingError
        If one of them is in training, or there are no running statistics.

    Examples
    --------
    >>> from lucid import nn
    >>> nn.utils.fuse_conv_bn_eval(nn.Conv1d(2, 3, 1, bias=False).eval(), nn.BatchNorm1d(3).eval())
    Conv1d(2, 3, kernel_size=(1,), stride=(1,))
    """
    return _fused(conv, bn, functools.partial(fuse_conv_bn_weights, transpose=transpose))


@checked
def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Return a linear layer equal to `linear` followed by `bn`, both in evaluation.

    Parameters
    ----------
    linear, bn : Module
        A linear layer and a batch normalisation with running statistics. They stay as they are.

    Raises
    ------
    SettingError
        If one of them is in training, or there are no running statistics.
    ShapeError
        If there are neither as many features as outputs, nor one.
    """
    features, outputs = getattr(bn, "num_features", None), getattr(linear, "out_features", None)
    if features not in {outputs, 1}:
        raise ShapeError(
            f"fuse_linear_bn_eval: expected num_features to be out_features or 1, got num_features={features}, "
            f"out_features={outputs}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def _fused(layer: Module, bn: Any, fuse: Any) -> Module:
    if layer.training or bn.training:
        raise SettingError("expected both modules in evaluation, as training changes the statistics: call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise SettingError(
            f"{type(bn).__name__}: expected running statistics, got none: in evaluation too it takes the batch's"
        )
    made: Any = copy.deepcopy(layer)
    made.weight, made.bias = fuse(made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return made


@checked
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution that is followed by a batch normalisation, as those of one layer.

    Parameters
    ----------
    conv_w, conv_b : Tensor
        Those of the convolution.
    bn_rm, bn_rv : Tensor
        The running mean and variance.
    bn_eps : float
        What is added to the variance.
    bn_w, bn_b : Tensor, optional
        Scale and shift.
    transpose : bool
        Whether it is a transposed convolution, whose outputs are numbered by dimension 1.
    """
    scale = (bn_rv + bn_eps).rsqrt()
    scale = scale if bn_w is None else scale * bn_w
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    shift = -bn_rm * scale if conv_b is None else (conv_b - bn_rm) * scale
    shift = shift if bn_b is None else shift + bn_b
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    return (
        Parameter((conv_w * scale.reshape(shape)).to(conv_w.dtype), conv_w.requires_grad),
        Parameter(shift.to(bias_dtype), conv_b is not None and conv_b.requires_grad),
    )


@checked
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer that is followed by a batch normalisation, as those of one layer.

    The parameters are those of `fuse_conv_bn_weights`.
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
