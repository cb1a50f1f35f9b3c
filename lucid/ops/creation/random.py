"""Random tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.backend.arrays import astype
from lucid.backend.dtype import as_dtype, get_default_dtype, int64
from lucid.backend.random import draws as draw
from lucid.errors import DtypeError, LucidError, ShapeError
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.creation.filling import like, shape_of
from lucid.ops.creation.generators import drawn

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.backend.random.generator import Generator
    from lucid.tensor import Tensor


class ProbabilityError(LucidError, RuntimeError, ValueError):
    """A number is no probability."""


def _real_dtype(name: str, dtype: Any) -> Any:
    """Return NumPy's dtype of floating-point draws.

    Raises
    ------
    DtypeError
        If it is not a real floating-point type.
    """
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not wanted.is_floating_point:
        raise DtypeError(f"{name}: expected a real floating-point dtype, got {wanted}")
    return wanted.numpy


def rand(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return uniform random numbers in [0, 1).

    Parameters
    ----------
    *size : int, or one tuple of int
        The shape.
    generator : Generator, optional
        Gives the numbers; by default the device's own.
    dtype : dtype, optional
        Real floating-point; the default dtype if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded.

    Returns
    -------
    Tensor
        The same numbers on every device for the same state of the generator.

    Raises
    ------
    DtypeError
        If the dtype is not a real floating-point type.
    ShapeError
        If a size is negative.
    DeviceError
        If there is no such device, or the generator belongs to another.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.rand(2, 3)
    >>> x.shape, bool((x >= 0).all()) and bool((x < 1).all())
    ((2, 3), True)
    """
    shape, wanted = shape_of(size, "rand"), _real_dtype("rand", dtype)
    return drawn(
        "rand", lambda g, xp: draw.uniform(g, shape, wanted, xp=xp), generator, device, requires_grad=requires_grad
    )


def randn(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return random numbers of the standard normal distribution: mean 0, variance 1.

    Parameters
    ----------
    *size : int, or one tuple of int
        The shape.
    generator, dtype, device, requires_grad
        As for :func:`rand`.

    Returns
    -------
    Tensor
        The same numbers on every device for the same state of the generator.

    Raises
    ------
    DtypeError, ShapeError, DeviceError
        As for :func:`rand`.

    Examples
    --------
    >>> import lucid
    >>> lucid.randn(2, 3).shape
    (2, 3)
    """
    shape, wanted = shape_of(size, "randn"), _real_dtype("randn", dtype)
    return drawn(
        "randn", lambda g, xp: draw.normal(g, shape, wanted, xp=xp), generator, device, requires_grad=requires_grad
    )


def randint(
    *bounds_and_size: Any,
    low: int | None = None,
    high: int | None = None,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random whole numbers from `low`, inclusive, to `high`, exclusive.

    Parameters
    ----------
    *bounds_and_size
        ``randint(high, size)`` or ``randint(low, high, size)``; all three can be given by name. `low` is 0 if it is
        left out.
    low, high : int
        The bounds.
    size : tuple of int
        The shape.
    generator : Generator, optional
        Gives the numbers; by default the device's own.
    dtype : dtype, optional
        int64 if None.
    device : device, optional
        The default device if None.
    requires_grad : bool
        Whether operations on the tensor are recorded; floating-point only.

    Returns
    -------
    Tensor
        The same numbers on every device for the same state of the generator.

    Raises
    ------
    ShapeError
        If the bounds or the size are missing, or a size is negative.
    ValueError
        If ``low >= high``, or the dtype does not hold the bounds.
    DeviceError
        If there is no such device, or the generator belongs to another.

    Examples
    --------
    >>> import lucid
    >>> dice = lucid.randint(1, 7, (100,))
    >>> int(dice.min()) >= 1, int(dice.max()) <= 6, dice.dtype
    (True, True, lucid.int64)
    """
    given = list(bounds_and_size)
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if low is None:
        low = given.pop() if given else 0
    if given or high is None or size is None:
        raise ShapeError(
            "randint: expected bounds_and_size as randint(high, size) or randint(low, high, size), the size as a tuple"
        )
    shape, wanted = shape_of((size,), "randint"), int64 if dtype is None else as_dtype(dtype)
    bottom, top = as_int(low, "low"), as_int(high, "high")

    def make(stream: Generator, xp: Any) -> Array:
        whole = wanted if wanted.category == 1 else int64
        return astype(draw.randint(stream, bottom, top, shape, whole.numpy, xp), wanted)

    return drawn("randint", make, generator, device, requires_grad=requires_grad)


def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return the numbers from 0 to ``n - 1`` in random order.

    Parameters
    ----------
    n : int
        How many.
    generator, device, requires_grad
        As for :func:`rand`.
    dtype : dtype, optional
        int64 if None.

    Returns
    -------
    Tensor, shape (n,)
        The same order on every device for the same state of the generator.

    Raises
    ------
    ValueError
        If `n` is negative.
    DeviceError
        If there is no such device, or the generator belongs to another.

    Examples
    --------
    >>> import lucid
    >>> sorted(lucid.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    count, wanted = as_int(n, "n"), int64 if dtype is None else as_dtype(dtype)
    return drawn(
        "randperm",
        lambda g, xp: astype(draw.permutation(g, count, xp), wanted),
        generator,
        device,
        requires_grad=requires_grad,
    )


def rand_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return uniform random numbers in [0, 1), in the shape of `input`.

    Parameters
    ----------
    input : Tensor
        Gives shape, dtype and device.
    generator, requires_grad
        As for :func:`rand`.
    dtype, device : optional
        In place of those of `input`.

    Returns
    -------
    Tensor
        As :func:`rand` returns.

    Raises
    ------
    DtypeError, DeviceError
        As for :func:`rand`.

    Examples
    --------
    >>> import lucid
    >>> lucid.rand_like(lucid.zeros(2, 3)).shape
    (2, 3)
    """
    return rand(array_of(input).shape, generator=generator, requires_grad=requires_grad, **like(input, dtype, device))


def randn_like(
    input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return random numbers of the standard normal distribution, in the shape of `input`.

    Parameters
    ----------
    input : Tensor
        Gives shape, dtype and device.
    generator, requires_grad
        As for :func:`randn`.
    dtype, device : optional
        In place of those of `input`.

    Returns
    -------
    Tensor
        As :func:`randn` returns.

    Raises
    ------
    DtypeError, DeviceError
        As for :func:`randn`.

    Examples
    --------
    >>> import lucid
    >>> lucid.randn_like(lucid.zeros(2, 3)).shape
    (2, 3)
    """
    return randn(array_of(input).shape, generator=generator, requires_grad=requires_grad, **like(input, dtype, device))


def randint_like(
    input: Tensor,
    *bounds: int,
    low: int | None = None,
    high: int | None = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random whole numbers from `low`, inclusive, to `high`, exclusive, in the shape of `input`.

    Parameters
    ----------
    input : Tensor
        Gives shape, dtype and device.
    *bounds : int
        ``randint_like(input, high)`` or ``randint_like(input, low, high)``.
    low, high, generator, requires_grad
        As for :func:`randint`.
    dtype, device : optional
        In place of those of `input`.

    Returns
    -------
    Tensor
        As :func:`randint` returns.

    Raises
    ------
    ShapeError, ValueError, DeviceError
        As for :func:`randint`.

    Examples
    --------
    >>> import lucid
    >>> lucid.randint_like(lucid.zeros(2, 3), 10).dtype
    lucid.float32
    """
    return randint(
        *bounds, low=low, high=high, size=array_of(input).shape, generator=generator, requires_grad=requires_grad,
        **like(input, dtype, device),
    )  # fmt: skip
