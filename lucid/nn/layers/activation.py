"""Activations as layers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.module.module import Module
from lucid.nn.module.parameters import empty_parameter

if TYPE_CHECKING:
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class MaybeInPlace(Module):
    """The base of layers that may write their output over their input.

    Parameters
    ----------
    inplace : bool
        Whether to change the input and return it.
    """

    inplace: bool

    @checked
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def settings(self) -> str:
        """Return the settings beside `inplace`."""
        return ""

    def extra_repr(self) -> str:
        """Return the settings."""
        return ", ".join(part for part in (self.settings(), "inplace=True" if self.inplace else "") if part)


class ReLU(MaybeInPlace):
    """Returns ``max(x, 0)``.

    Parameters
    ----------
    inplace : bool
        Whether to change the input and return it.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReLU()(lucid.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the positive part of `input`."""
        return F.relu(input, inplace=self.inplace)


class LeakyReLU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``negative_slope * x`` elsewhere.

    Parameters
    ----------
    negative_slope : float
        The slope below zero.
    inplace : bool
        Whether to change the input and return it.
    """

    @checked
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.leaky_relu(input, self.negative_slope, inplace=self.inplace)

    def settings(self) -> str:
        """Return the slope."""
        return f"negative_slope={self.negative_slope}"


class ELU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``alpha * (exp(x) - 1)`` elsewhere.

    Parameters
    ----------
    alpha : float
        Minus the limit at minus infinity.
    inplace : bool
        Whether to change the input and return it.
    """

    @checked
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.elu(input, self.alpha, inplace=self.inplace)

    def settings(self) -> str:
        """Return alpha."""
        return f"alpha={self.alpha}"


class SiLU(MaybeInPlace):
    """Returns ``x * sigmoid(x)``.

    Parameters
    ----------
    inplace : bool
        Whether to change the input and return it.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.silu(input, inplace=self.inplace)


class Mish(MaybeInPlace):
    """Returns ``x * tanh(softplus(x))``.

    Parameters
    ----------
    inplace : bool
        Whether to change the input and return it.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.mish(input, inplace=self.inplace)


class ReLU6(MaybeInPlace):
    """Returns ``min(max(x, 0), 6)``.

    Parameters
    ----------
    inplace : bool
        Whether to change the input and return it.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.relu6(input, inplace=self.inplace)


class Hardtanh(MaybeInPlace):
    """Returns ``min(max(x, min_val), max_val)``.

    Parameters
    ----------
    min_val, max_val : float
        The bounds.
    inplace : bool
        Whether to change the input and return it.

    Raises
    ------
    ValueError
        If they are not in order.
    """

    @checked
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if not min_val < max_val:
            raise SettingError(f"expected min_val < max_val, got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` within the bounds."""
        return F.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)

    def settings(self) -> str:
        """Return the bounds."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class GELU(Module):
    """Returns ``x * Phi(x)``, Phi the distribution function of the normal distribution.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        Whether to approximate Phi by a hyperbolic tangent.
    """

    @checked
    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Return the form."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """Returns ``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x > threshold``.

    Parameters
    ----------
    beta : float
        The sharpness of the bend.
    threshold : float
        From where on the line is taken.
    """

    @checked
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Sigmoid(Module):
    """Returns ``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.sigmoid(input)


class Tanh(Module):
    """Returns ``tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.tanh(input)


class LogSigmoid(Module):
    """Returns ``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.logsigmoid(input)


class PReLU(Module):
    """Returns ``x`` where it is positive and ``weight * x`` elsewhere, the slope a parameter.

    Parameters
    ----------
    num_parameters : int
        1 for one slope, or the number of channels, which are dimension 1 of the input.
    init : float
        The slope at first.
    device, dtype : optional
        Of the parameter.
    """

    weight: Parameter

    @checked
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), device, dtype, init)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        slope: Any = self.weight
        if input.ndim > 1:
            slope = slope.reshape((-1,) + (1,) * (input.ndim - 2))
        return F.relu(input) - slope * F.relu(-input)

    def extra_repr(self) -> str:
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"


class AlongDim(Module):
    """The base of layers that work along one dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension; None picks 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a warning.
    """

    dim: int | None

    @checked
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def chosen(self, input: Tensor) -> int:
        """Return the dimension for `input`."""
        if self.dim is not None:
            return self.dim
        warnings.warn(
            f"implicit dimension choice for {type(self).__name__}: pass dim= to say which dimension is meant",
            UserWarning,
            stacklevel=3,
        )
        return 0 if input.ndim in {0, 1, 3} else 1

    def extra_repr(self) -> str:
        """Return the dimension."""
        return f"dim={self.dim}"


class Softmax(AlongDim):
    """Returns ``exp(x) / sum(exp(x))`` along a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension; see `AlongDim`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.softmax(input, self.chosen(input))


class LogSoftmax(AlongDim):
    """Returns ``x - log(sum(exp(x)))`` along a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension; see `AlongDim`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.log_softmax(input, self.chosen(input))


class Softmin(AlongDim):
    """Returns the softmax of ``-x`` along a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension; see `AlongDim`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of `input`."""
        return F.softmin(input, self.chosen(input))
