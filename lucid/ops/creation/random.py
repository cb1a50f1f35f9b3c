"""Random tensors of a size. Common rules: `lucid.ops.creation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base.arrays import Array, astype
from lucid.base.dtype import as_dtype, get_default_dtype, int64
from lucid.base.memory import check_size
from lucid.base.random import draws as draw
from lucid.cpu import random as compiled
from lucid.errors import CallError, DtypeError, ShapeError
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.creation.filling import like, shape_of
from lucid.ops.creation.generators import drawn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

draw.register_kernels(compiled.fill, compiled.order)


class ProbabilityError(CallError):
    """A number is no probability."""


def real_dtype(name: str, dtype: Dtype | None) -> Any:
    """Return NumPy's dtype of floating-point draws."""
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not wanted.is_floating_point:
        raise DtypeError(f"{name}: expected a real floating-point dtype, got {wanted}")
    return wanted.numpy


def rand(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform random numbers in [0, 1).

    >>> import lucid
    >>> x = lucid.rand(2, 3)
    >>> x.shape, bool((x >= 0).all()) and bool((x < 1).all())
    (lucid.Size([2, 3]), True)
    """
    wanted = real_dtype("rand", dtype)
    shape = shape_of(size, "rand", wanted)
    return drawn(
        "rand", lambda g, xp: draw.uniform(g, shape, wanted, xp=xp), generator, device, requires_grad=requires_grad
    )


def randn(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the standard normal distribution: mean 0, variance 1.

    >>> import lucid
    >>> lucid.randn(2, 3).shape
    lucid.Size([2, 3])
    """
    wanted = real_dtype("randn", dtype)
    shape = shape_of(size, "randn", wanted)
    return drawn(
        "randn", lambda g, xp: draw.normal(g, shape, wanted, xp=xp), generator, device, requires_grad=requires_grad
    )


def randint(
    *bounds_and_size: int | Sequence[int],
    low: int | None = None,
    high: int | None = None,
    size: int | Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random whole numbers from `low`, inclusive, to `high`, exclusive; int64 if `dtype` is None.

    `bounds_and_size` is ``randint(high, size)`` or ``randint(low, high, size)``; all three can be given by name. `low`
    is 0 if it is left out. A ValueError says that no number lies between the bounds, or that the dtype does not hold
    them.

    >>> import lucid
    >>> dice = lucid.randint(1, 7, (100,))
    >>> int(dice.min()) >= 1, int(dice.max()) <= 6, dice.dtype
    (True, True, lucid.int64)
    """
    bounds: list[Any] = list(bounds_and_size)
    if size is None and bounds:
        size = bounds.pop()
    if high is None and bounds:
        high = bounds.pop()
    if low is None:
        low = bounds.pop() if bounds else 0
    if bounds or high is None or size is None:
        raise ShapeError(
            "randint: expected bounds_and_size as randint(high, size) or randint(low, high, size), the size as a tuple"
        )
    wanted = int64 if dtype is None else as_dtype(dtype)
    shape = shape_of((size,), "randint", wanted.numpy)
    bottom, top = as_int(low, "low"), as_int(high, "high")

    def make(stream: Generator, xp: ModuleType) -> Array:
        whole = wanted if wanted.category == 1 else int64
        return astype(draw.randint(stream, bottom, top, shape, whole.numpy, xp), wanted)

    return drawn("randint", make, generator, device, requires_grad=requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from 0 to ``n - 1`` in random order; int64 if `dtype` is None.

    An `n` below zero raises a ValueError.

    >>> import lucid
    >>> sorted(lucid.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    count, wanted = as_int(n, "n"), int64 if dtype is None else as_dtype(dtype)
    check_size("randperm", (max(count, 0),), 8)
    return drawn(
        "randperm",
        lambda g, xp: astype(draw.permutation(g, count, xp), wanted),
        generator,
        device,
        requires_grad=requires_grad,
    )


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform random numbers in [0, 1), in the shape of `input`.

    >>> import lucid
    >>> lucid.rand_like(lucid.zeros(2, 3)).shape
    lucid.Size([2, 3])
    """
    return rand(array_of(input).shape, generator=generator, requires_grad=requires_grad, **like(input, dtype, device))


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the standard normal distribution, in the shape of `input`.

    >>> import lucid
    >>> lucid.randn_like(lucid.zeros(2, 3)).shape
    lucid.Size([2, 3])
    """
    return randn(array_of(input).shape, generator=generator, requires_grad=requires_grad, **like(input, dtype, device))


def randint_like(
    input: Tensor,
    *bounds: int,
    low: int | None = None,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random whole numbers from `low`, inclusive, to `high`, exclusive, in the shape of `input`.

    `bounds` is ``randint_like(input, high)`` or ``randint_like(input, low, high)``; errors are those of `randint`.

    >>> import lucid
    >>> lucid.randint_like(lucid.zeros(2, 3), 10).dtype
    lucid.float32
    """
    return randint(
        *bounds, low=low, high=high, size=array_of(input).shape, generator=generator, requires_grad=requires_grad,
        **like(input, dtype, device),
    )  # fmt: skip
