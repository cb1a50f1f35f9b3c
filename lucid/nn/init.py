"""Filling tensors with their first values; every function changes its tensor in place, unrecorded, and returns it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import among, checked
from lucid.autograd.base import describe, wrap
from lucid.autograd.modes.state import no_grad
from lucid.base.dtype import dtype_of
from lucid.base.random import draws
from lucid.errors import DtypeError, SettingError, ShapeError, warn
from lucid.settings.documents import document

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

LINEAR = ("linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
GAINS = {**dict.fromkeys(LINEAR, 1.0), "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 3.0 / 4.0}


def _fill(tensor: Tensor, values: object) -> Tensor:
    """Copy an array of the host into `tensor`."""
    with no_grad():
        return tensor.copy_(wrap(values))


def _generator(generator: Generator | None) -> Generator:
    # Drawn on the host and moved: a seed gives the same first weights on every device.
    return draws.default_generator_for("cpu") if generator is None else generator


def _values(draw: Callable[..., Any], tensor: Tensor, first: float, second: float, generator: Generator | None) -> Any:
    """Return values for `tensor` in its dtype; a complex one has its real and imaginary parts drawn in turn."""
    dtype = tensor.array.dtype
    if dtype.kind != "c":
        return draw(_generator(generator), tensor.shape, dtype, first, second)
    parts = draw(_generator(generator), (*tensor.shape, 2), dtype.type(0).real.dtype, first, second)
    return parts.view(dtype)[..., 0]


def _normal(tensor: Tensor, mean: float, std: float, generator: Generator | None) -> Any:
    # both parts of a complex number, as in PyTorch, have the mean, and half of the variance each
    each = std / math.sqrt(2) if tensor.array.dtype.kind == "c" else std
    return _values(draws.normal, tensor, mean, each, generator)


def _check_real(name: str, tensor: Tensor) -> None:
    """Raise `DtypeError` unless the tensor holds real floating-point numbers."""
    if not dtype_of(tensor.array).is_floating_point:
        raise DtypeError(f"{name}: expected a tensor of a real floating-point dtype, got {describe(tensor)}")


@checked
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with values uniform in [a, b).

    Parameters
    ----------
    tensor : Tensor
        Of a floating-point or complex dtype; returned. A complex one has both parts in [a, b).
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
    return _fill(tensor, _values(draws.uniform, tensor, a, b, generator))


@checked
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with values from the normal distribution of `mean` and standard deviation `std`.

    Of complex numbers both parts have the mean `mean` and the standard deviation ``std / sqrt(2)``.
    """
    return _fill(tensor, _normal(tensor, mean, std, generator))


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

    The density inside keeps its shape, however narrow the interval, and however far from the mean.

    Parameters
    ----------
    tensor : Tensor
        Of a real floating-point dtype; returned.
    mean, std : float
        Of the distribution before it is cut.
    a, b : float
        Bounds of the values, not counted in standard deviations.
    generator : Generator, optional
        Where the numbers come from; the default generator if left out.

    Raises
    ------
    ValueError
        If the interval is empty, or `std` not above 0 and finite.
    DtypeError
        If the dtype is another.

    References
    ----------
    Robert, Simulation of truncated normal variables, Statistics and Computing 5, 1995.
    """
    _check_real("trunc_normal_", tensor)
    if not a < b:
        raise SettingError(f"trunc_normal_: expected a < b, got a={a}, b={b}")
    if not 0 < std < math.inf:
        raise SettingError(f"trunc_normal_: expected a finite std > 0, got {std}")
    source = _generator(generator)
    dtype = np.dtype(np.float64) if tensor.array.dtype == np.float64 else np.dtype(np.float32)
    share = 0.5 * (math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2))))
    if share < 1e-3:
        rare = _rare_normal(source, tensor.array.size, mean, std, a, b)
        return _fill(tensor, rare.astype(dtype).reshape(tensor.shape))
    values = draws.normal(source, (tensor.array.size,), dtype, mean, std)
    while (outside := np.flatnonzero((values < a) | (values > b))).size:
        values[outside] = draws.normal(source, (outside.size,), dtype, mean, std)
    return _fill(tensor, values.reshape(tensor.shape))


def _rare_normal(source: Generator, size: int, mean: float, std: float, a: float, b: float) -> Any:
    """Return normal numbers in an interval that few fall into, float64, from some that seldom need to be refused.

    With the place m of the interval that is next to the mean, in standard deviations, exp(-z**2 / 2) is, up to a
    factor, exp(-m * (z - m)) * exp(-(z - m)**2 / 2): a draw by the first is kept with the probability of the second.
    """
    if b < mean:  # the mirror image
        return -_rare_normal(source, size, -mean, std, -b, -a)
    width, nearest = b - a, max(a, mean)
    rate = (nearest - mean) / std / std
    flat = rate * width < 2.0**-60
    steps, wanted = np.empty(size), np.arange(size)
    while wanted.size:
        drawn, kept = draws.uniform(source, (2, wanted.size), np.float64)
        # an exponential law that ends at the other end, of rate 0 an even one
        step = drawn * width if flat else np.log1p(drawn * math.expm1(-rate * width)) / -rate
        steps[wanted] = step
        wanted = wanted[kept >= np.exp(-0.5 * ((a - nearest + step) / std) ** 2)]
    return np.clip(a + steps, a, b)


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
    ValueError
        If `sparsity` is below 0 or not finite.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: only tensors with 2 dimensions are supported, got {describe(tensor)}")
    if not 0 <= sparsity < math.inf:
        raise SettingError(f"sparse_: sparsity: expected a share, from 0 to 1, got {sparsity}")
    source = _generator(generator)
    rows, columns = tensor.shape
    values = _normal(tensor, 0.0, std, source)
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
    if among(nonlinearity, GAINS):
        return GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if not isinstance(param, int | float):
            raise SettingError(f"calculate_gain: negative_slope {param!r} is not a valid number")
        return math.sqrt(2.0 / (1.0 + param**2))
    raise SettingError(f"calculate_gain: unsupported nonlinearity {nonlinearity!r}: expected one of "
                     f"{', '.join((*GAINS, 'leaky_relu'))}")  # fmt: skip


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
    DtypeError
        If `tensor` is not of a real floating-point dtype.

    References
    ----------
    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks, ICLR 2014.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: only tensors with 2 or more dimensions are supported, got {describe(tensor)}")
    _check_real("orthogonal_", tensor)
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
