"""Filling tensors with their first values; every function changes its tensor in place, unrecorded, and returns it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import among, checked
from lucid.autograd.base import describe, wrap
from lucid.autograd.modes.state import no_grad
from lucid.base.random import draws
from lucid.errors import SettingError, ShapeError, warn
from lucid.settings.documents import document

if TYPE_CHECKING:
    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

GAINS = {"tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 3.0 / 4.0}
LINEAR = ("linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def _fill(tensor: Tensor, values: object) -> Tensor:
    """Copy an array of the host into `tensor`."""
    with no_grad():
        return tensor.copy_(wrap(values))


def _generator(generator: Generator | None) -> Generator:
    # Drawn on the host and moved: a seed gives the same first weights on every device.
    return draws.default_generator if generator is None else generator


def _working(tensor: Tensor) -> Any:
    """Return the NumPy dtype of the values drawn for `tensor`."""
    return tensor.array.dtype


@checked
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with values uniform in [a, b).

    Parameters
    ----------
    tensor : Tensor
        Of a floating-point dtype; returned.
    a, b : float
        Bounds.
    generator : Generator, optional
        Where the numbers come from; the default generator if left out.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> bool((nn.init.uniform_(lucid.zeros(100), 2.0, 3.0) >= 2.0).all())
    True
    """
    return _fill(tensor, draws.uniform(_generator(generator), tensor.shape, _working(tensor), a, b))


@checked
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with values from the normal distribution of `mean` and standard deviation `std`."""
    return _fill(tensor, draws.normal(_generator(generator), tensor.shape, _working(tensor), mean, std))


@checked
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` with values from the normal distribution of `mean` and `std`, cut off below `a` and above `b`.

    Values outside are drawn again, so that the density inside keeps its shape.

    Parameters
    ----------
    tensor : Tensor
        Of a floating-point dtype; returned.
    mean, std : float
        Of the distribution before it is cut.
    a, b : float
        Bounds of the values, not counted in standard deviations.
    generator : Generator, optional
        Where the numbers come from; the default generator if left out.

    Raises
    ------
    ValueError
        If the interval is empty, or so far out that almost nothing falls into it.
    """
    if not a < b:
        raise SettingError(f"trunc_normal_: expected a < b, got a={a}, b={b}")
    share = 0.5 * (math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2))))
    if share < 1e-3:
        raise SettingError(
            f"trunc_normal_: of the normal distribution with mean {mean} and std {std} a share of {share:.1e} lies in "
            f"[{a}, {b}]: expected at least 1e-3; choose an interval nearer to the mean"
        )
    source = _generator(generator)
    dtype = np.dtype(np.float64) if tensor.array.dtype == np.float64 else np.dtype(np.float32)
    values = draws.normal(source, (tensor.array.size,), dtype, mean, std)
    while True:
        outside = np.flatnonzero((values < a) | (values > b))
        if not outside.size:
            break
        values[outside] = draws.normal(source, (outside.size,), dtype, mean, std)
    return _fill(tensor, values.reshape(tensor.shape))


@checked
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with the value `val`."""
    with no_grad():
        return tensor.fill_(val)


@checked
def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return constant_(tensor, 1.0)


@checked
def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    return constant_(tensor, 0.0)


@checked
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Raises
    ------
    ShapeError
        If `tensor` has not two dimensions.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: only tensors with 2 dimensions are supported, got {describe(tensor)}")
    return _fill(tensor, np.eye(*tensor.shape, dtype=np.float32))


@checked
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight such that each group passes its input channels on unchanged.

    Parameters
    ----------
    tensor : Tensor, shape (out, in / groups, ...)
        Of 3 to 5 dimensions; returned.
    groups : int
        Divides `out`.

    Raises
    ------
    ShapeError
        If the dimensions do not fit.
    """
    if tensor.ndim not in {3, 4, 5}:
        raise ShapeError(f"dirac_: only tensors with 3, 4, or 5 dimensions are supported, got {describe(tensor)}")
    if tensor.shape[0] % groups:
        raise ShapeError(f"dirac_: dim 0, of size {tensor.shape[0]}, must be divisible by groups={groups}")
    values = np.zeros(tensor.shape, np.float32)
    each = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            values[(group * each + channel, channel, *centre)] = 1
    return _fill(tensor, values)


@checked
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal values of standard deviation `std`, a share `sparsity` of each column with zeros.

    Raises
    ------
    ShapeError
        If `tensor` has not two dimensions.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: only tensors with 2 dimensions are supported, got {describe(tensor)}")
    if not math.isfinite(sparsity):
        raise SettingError(f"sparse_: sparsity: expected a share, from 0 to 1, got {sparsity}")
    source = _generator(generator)
    rows, columns = tensor.shape
    values = draws.normal(source, tensor.shape, np.float32, 0.0, std)
    zeros = math.ceil(sparsity * rows)
    for column in range(columns):
        values[draws.permutation(source, rows)[:zeros], column] = 0
    return _fill(tensor, values)


@checked
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of a nonlinearity: a factor of the spread of the weights before it.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"sigmoid"``, ``"conv1d"`` and so on: 1; ``"tanh"``: 5/3; ``"relu"``: sqrt(2);
        ``"leaky_relu"``: sqrt(2 / (1 + slope**2)); ``"selu"``: 3/4.
    param : float, optional
        The slope of leaky_relu, 0.01 if left out.

    Raises
    ------
    ValueError
        If the nonlinearity is unknown, or `param` no number.

    Examples
    --------
    >>> from lucid import nn
    >>> round(nn.init.calculate_gain("leaky_relu", 0.2), 4)
    1.3868
    """
    if among(nonlinearity, LINEAR):
        return 1.0
    if among(nonlinearity, GAINS):
        return GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if isinstance(param, bool) or not isinstance(param, int | float):
            raise SettingError(f"calculate_gain: negative_slope {param!r} is not a valid number")
        return math.sqrt(2.0 / (1.0 + param**2))
    raise SettingError(f"calculate_gain: unsupported nonlinearity {nonlinearity!r}: expected one of "
                     f"{', '.join((*LINEAR, *GAINS, 'leaky_relu'))}")  # fmt: skip


@checked
def fans(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs each output of a weight sums, and how many outputs each input reaches.

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ShapeError(
            f"fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got {describe(tensor)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@checked
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight with values uniform in [-a, a), a = gain * sqrt(6 / (fan_in + fan_out)).

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.

    References
    ----------
    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@checked
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight with normal values of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if not among(mode, {"fan_in", "fan_out"}):
        raise SettingError(f"mode {mode!r} not supported: expected 'fan_in' or 'fan_out'")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans(tensor)[mode == "fan_out"])


@checked
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight with values uniform in [-bound, bound), bound = gain * sqrt(3 / fan).

    Parameters
    ----------
    tensor : Tensor
        Of two dimensions or more; returned.
    a : float
        The slope of leaky_relu.
    mode : {"fan_in", "fan_out"}
        Whether the size of activations or that of gradients is kept.
    nonlinearity : str
        What follows; see `calculate_gain`.
    generator : Generator, optional
        Where the numbers come from; the default generator if left out.

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.
    ValueError
        If `mode` or `nonlinearity` is unknown.

    References
    ----------
    He et al., Delving deep into rectifiers, ICCV 2015.
    """
    if 0 in tensor.shape:
        warn("initializing zero-element tensors is a no-op", UserWarning)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@checked
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight with normal values of standard deviation gain / sqrt(fan); see `kaiming_uniform_`.

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.
    ValueError
        If `mode` or `nonlinearity` is unknown.
    """
    if 0 in tensor.shape:
        warn("initializing zero-element tensors is a no-op", UserWarning)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


@checked
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill a weight, seen as a matrix of shape[0] rows, with a random (semi-)orthogonal matrix times `gain`.

    Raises
    ------
    ShapeError
        If `tensor` has fewer than two dimensions.

    References
    ----------
    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks, ICLR 2014.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: only tensors with 2 or more dimensions are supported, got {describe(tensor)}")
    if 0 in tensor.shape:
        return tensor
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    values = draws.normal(_generator(generator), (rows, columns), np.float64)
    q, r = np.linalg.qr(values.T if rows < columns else values)
    # the signs of a decomposition are the library's choice: this one makes the distribution uniform
    q = q * np.sign(np.diag(r))
    if rows < columns:
        q = q.T
    return _fill(
        tensor, (gain * q).reshape(tensor.shape).astype(np.float32 if tensor.array.dtype != np.float64 else np.float64)
    )


document([name for name, value in globals().items() if getattr(value, "__module__", "") == __name__], globals())
