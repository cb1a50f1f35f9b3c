"""Random numbers whose distributions are given by tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.backend.arrays import astype
from lucid.backend.device import device_of
from lucid.backend.dtype import as_dtype, dtype_of, get_default_dtype
from lucid.backend.random import draws as draw
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.dims import common_shape
from lucid.ops.base.elementwise import tensor_operand
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.creation.filling import shape_of
from lucid.ops.creation.generators import drawn
from lucid.ops.creation.random import ProbabilityError

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.backend.random.generator import Generator
    from lucid.tensor import Tensor


def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Return 1 with the probability that `input` holds, or with probability `p`, and 0 otherwise.

    Parameters
    ----------
    input : Tensor
        Probabilities, 0 to 1, floating-point; with `p` only its shape, dtype and device count.
    p : float, optional
        One probability for all.
    generator : Generator, optional
        Gives the numbers; by default the device's own.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`; it does not require grad.

    Raises
    ------
    ProbabilityError
        If `p`, or an element of `input` on the CPU, is not between 0 and 1.
    DtypeError
        If `input` holds probabilities and is not of a real floating-point type.
    DeviceError
        If the generator belongs to another device.

    Examples
    --------
    >>> import lucid
    >>> lucid.bernoulli(lucid.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = tensor_operand(input)
    array, wanted = x.array, dtype_of(x.array)
    if p is not None:
        chance: float = as_number(p, "p")
        if not 0 <= chance <= 1:
            raise ProbabilityError(f"bernoulli: expects p to be in [0, 1], but got p={chance}")
        return drawn(
            "bernoulli",
            lambda g, xp: astype(draw.bernoulli(g, chance, array.shape, xp), wanted),
            generator,
            device_of(array),
        )
    if not wanted.is_floating_point:
        raise DtypeError(f"bernoulli: expected probabilities of a real floating-point dtype, got {wanted}")
    if type(array) is np.ndarray and array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ProbabilityError(f"bernoulli: expected probabilities between 0 and 1, got {array.min()} to {array.max()}")
    fine = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)

    def make(stream: Generator, xp: Any) -> Array:
        return astype(draw.uniform(stream, array.shape, fine, xp=xp) < array.astype(fine, copy=False), wanted)

    return drawn("bernoulli", make, generator, device_of(array))


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of normal distributions: ``mean + std * z`` with z standard normal.

    Parameters
    ----------
    mean, std : float or Tensor
        Mean and standard deviation, 0 or more; tensors give one for each result and broadcast against each other.
    size : tuple of int, optional
        The shape, if both are numbers.
    generator : Generator, optional
        Gives the numbers; by default the device's own.
    dtype, device : optional
        If both are numbers: the default ones if None.
    requires_grad : bool
        Whether operations on the result are recorded. Its own making is not.

    Returns
    -------
    Tensor
        Of `size`, or of the broadcast shape of the tensors and the dtype of the first of them.

    Raises
    ------
    ProbabilityError
        If a standard deviation, of a tensor on the CPU, is negative.
    ShapeError
        If `size` is missing, or given beside tensors; or the shapes cannot be broadcast.
    DtypeError
        If the dtype is not a real floating-point type.
    DeviceError
        If there is no such device, or the generator belongs to another.

    Examples
    --------
    >>> import lucid
    >>> lucid.normal(0.0, 1.0, (2, 3)).shape, lucid.normal(lucid.zeros(4), 0.1).shape
    ((2, 3), (4,))
    """
    mean, std = (x if isinstance(x, TensorBase) else as_number(x, "mean") for x in (mean, std))
    tensors = [x for x in (mean, std) if isinstance(x, TensorBase)]
    if bool(tensors) == (size is not None):
        raise ShapeError("normal: expected either tensors, whose shape is taken, or numbers and a size")
    if tensors:
        shape = common_shape(*[t.array.shape for t in tensors])
        wanted, where = dtype_of(tensors[0].array), device_of(tensors[0].array)
    else:
        shape = shape_of((size,), "normal")
        wanted, where = get_default_dtype() if dtype is None else as_dtype(dtype), device
    if not wanted.is_floating_point:
        raise DtypeError(f"normal: expected a real floating-point dtype, got {wanted}")
    middle: Any = mean.array if isinstance(mean, TensorBase) else mean
    width: Any = std.array if isinstance(std, TensorBase) else std
    on_cpu = not isinstance(std, TensorBase) or type(std.array) is np.ndarray
    if on_cpu and not np.all(np.greater_equal(width, 0)):
        raise ProbabilityError(f"normal: expects std >= 0.0, but found std {std}")

    def make(stream: Generator, xp: Any) -> Array:
        if not tensors:
            return draw.normal(stream, shape, wanted.numpy, middle, width, xp)
        return astype(draw.normal(stream, shape, wanted.numpy, xp=xp) * width + middle, wanted)

    return drawn("normal", make, generator, where, requires_grad=requires_grad)


@on_one_device
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Return the places of elements drawn with the probabilities that `input` is proportional to.

    Parameters
    ----------
    input : Tensor, shape (C,) or (N, C)
        Weights, 0 or more, of which at least one is not 0; floating-point.
    num_samples : int
        How many are drawn from each row.
    replacement : bool
        Whether an element can be drawn more than once.
    generator : Generator, optional
        Gives the numbers; by default the device's own.

    Returns
    -------
    Tensor, shape (num_samples,) or (N, num_samples)
        Of dtype int64.

    Raises
    ------
    ShapeError
        If `input` has another number of dimensions, or no elements; `num_samples` is not positive; or more are asked
        for without replacement than there are elements that are not 0 (on CUDA: than there are elements).
    ProbabilityError
        If, on the CPU, a weight is negative, infinite or NaN, or all weights of a row are 0.
    DtypeError
        If `input` is not of a real floating-point type.
    DeviceError
        If the generator belongs to another device.

    Notes
    -----
    Without replacement the places of the largest values of weight / exponential variate are taken (Efraimidis and
    Spirakis, 2006); with replacement, where uniform numbers fall among the running sums of the weights.

    Examples
    --------
    >>> import lucid
    >>> lucid.multinomial(lucid.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    replacement = as_bool(replacement, "replacement")
    x = tensor_operand(input)
    array = x.array
    if not dtype_of(array).is_floating_point:
        raise DtypeError(f"multinomial: expected weights of a real floating-point dtype, got {dtype_of(array)}")
    if array.ndim not in {1, 2} or not array.size:
        raise ShapeError(f"multinomial: expected weights of shape (C,) or (N, C), got {list(array.shape)}")
    num_samples = as_int(num_samples, "num_samples")
    if num_samples < 1:
        raise ShapeError(f"multinomial: cannot sample n_sample <= 0 samples, got {num_samples}")
    possible = array.shape[-1]
    if type(array) is np.ndarray:
        if not (np.isfinite(array).all() and (array >= 0).all()):
            raise ProbabilityError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
        possible = int((array > 0).sum(-1).min())
        if not possible:
            raise ProbabilityError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > possible:
        raise ShapeError(
            f"multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} "
            f"asked for, {possible} that can be drawn"
        )
    weights = array.astype(np.float64).reshape(-1, array.shape[-1])

    def make(stream: Generator, xp: Any) -> Array:
        if replacement:
            sums = xp.cumsum(weights, 1)
            places = draw.uniform(stream, (len(weights), num_samples), np.float64, xp=xp) * sums[:, -1:]
            found = [xp.searchsorted(row, at, side="right") for row, at in zip(sums, places, strict=True)]
            # rounding can put a place on the total itself; the last element that can be drawn is where it is reached
            last = xp.argmax(sums, 1)[:, None]
            indices = xp.minimum(xp.stack(found), last)
        else:
            keys = weights / draw.exponential(stream, weights.shape, np.float64, xp=xp)
            indices = xp.argsort(-keys, 1, kind="stable")[:, :num_samples]
        return indices.astype(np.int64, copy=False).reshape(*array.shape[:-1], num_samples)

    return drawn("multinomial", make, generator, device_of(array))
