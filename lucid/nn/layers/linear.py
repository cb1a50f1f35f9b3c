"""Linear layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.nn import init
from lucid.nn.module.module import Module
from lucid.nn.module.parameters import empty_parameter
from lucid.ops.linalg.products import linear

if TYPE_CHECKING:
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Identity(Module):
    """Returns its input.

    Parameters
    ----------
    *args, **kwargs : object
        Ignored, so that it can stand in for any layer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return `input`."""
        return input


class Linear(Module):
    """Returns ``y = x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of input and output.
    bias : bool
        Whether there is a bias.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
        Uniform in [-k, k), k = 1 / sqrt(in_features), at first.
    bias : Parameter, shape (out_features,), or None
        The same.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.Linear(2, 3)(lucid.ones(5, 2)).shape
    (5, 3)
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    @checked
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), device, dtype)
        self.register_parameter("bias", empty_parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the affine image of the last dimension of `input`."""
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
