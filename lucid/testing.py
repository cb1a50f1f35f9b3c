"""Helpers for tests of tensors: comparisons, and random tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import checked, shown
from lucid.autograd.base import TensorBase
from lucid.base.arrays import asarray, is_array, to_device
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype, dtype_of, result_type
from lucid.base.limits import finfo
from lucid.errors import ArgumentError, DtypeError, SettingError
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.formats import check_memory_format
from lucid.ops.base.strided import strides_of
from lucid.ops.creation.data import leaf, tensor
from lucid.ops.creation.random import rand, randint

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.ops.base.formats import memory_format
    from lucid.tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]


# Relative and absolute tolerance by dtype; values of others are to be equal.
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


@checked
def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,  # noqa: ARG001  there is one layout
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise an AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` for all elements.

    Parameters
    ----------
    actual, expected : Tensor, array, number, str, None, or a sequence or mapping of these
        Sequences are compared part by part, mappings by their keys.
    allow_subclasses : bool
        Whether tensors may be of subclasses of each other's class.
    rtol, atol : float, optional
        Tolerances, both or none; by default those of the dtype, the wider one's where there are two: 1.3e-6 and 1e-5
        for float32, 1e-7 and 1e-7 for float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for bfloat16, 0 and 0 for
        integers and bools.
    equal_nan : bool
        Whether NaN is close to NaN.
    check_device, check_dtype, check_stride : bool
        Whether devices, dtypes and strides must be the same.
    check_layout : bool
        PyTorch's: all tensors have one layout.
    msg : str or callable, optional
        The message, or what makes it of the one that there would be.

    Raises
    ------
    AssertionError
        If they are not close, with what differs and where most.
    SettingError
        If only one of the tolerances is given, or one is below 0.
    ArgumentError
        If something cannot be compared.

    Examples
    --------
    >>> import lucid
    >>> lucid.testing.assert_close(lucid.ones(2), lucid.ones(2) + 1e-7)
    >>> lucid.testing.assert_close({"a": [1, 2]}, {"a": [1, 3]})
    Traceback (most recent call last):
    AssertionError: Scalars are not equal!
    Expected 3 but got 2.
    Absolute difference: 1
    Relative difference: 0.3333333333333333
    The failure occurred for item ['a'][1]
    """
    if (rtol is None) != (atol is None):
        raise SettingError(f"assert_close: rtol and atol: expected both or none, got rtol={rtol} and atol={atol}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound is not None and not bound >= 0:
            raise SettingError(f"assert_close: {name}: expected a number of at least 0, got {bound!r}")
    if not (msg is None or isinstance(msg, str) or callable(msg)):
        raise ArgumentError(f"assert_close: msg: expected a string, a function or None, got {shown(msg)}")
    tolerance = None if rtol is None or atol is None else (rtol, atol)
    checks = {
        "device": check_device, "dtype": check_dtype, "stride": check_stride, "class": not allow_subclasses,
        "nan": not equal_nan,
    }  # fmt: skip
    difference = _difference(actual, expected, "", tolerance, checks)
    if difference is not None:
        raise AssertionError(difference if msg is None else msg(difference) if callable(msg) else msg)


@checked
def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """As `assert_close`, but devices and dtypes may differ and NaN is close to NaN; PyTorch prefers `assert_close`.

    Examples
    --------
    >>> import lucid
    >>> lucid.testing.assert_allclose(lucid.ones(2), [1.0, 1.0])
    """
    actual, expected = (x if isinstance(x, TensorBase) else tensor(x) for x in (actual, expected))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


def _difference(
    actual: Any, expected: Any, place: str, tolerance: tuple[float, float] | None, checks: dict[str, bool]
) -> str | None:
    """Return the difference in words, or None."""
    at = f"\nThe failure occurred for item {place}" if place else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        ours, theirs = cast("Mapping[Any, Any]", actual), cast("Mapping[Any, Any]", expected)
        if ours.keys() != theirs.keys():
            missing, more = [*(theirs.keys() - ours.keys())], [*(ours.keys() - theirs.keys())]
            return f"The keys of the mappings do not match:\nMissing keys: {missing}\nAdditional keys: {more}{at}"
        pairs: list[tuple[str, Any, Any]] = [(f"{place}[{key!r}]", ours[key], theirs[key]) for key in ours]
    elif _is_sequence(actual) and _is_sequence(expected):
        own, other = list(cast("Any", actual)), list(expected)
        if len(own) != len(other):
            return f"The length of the sequences mismatch: {len(own)} != {len(other)}{at}"
        pairs = [(f"{place}[{k}]", a, e) for k, (a, e) in enumerate(zip(own, other, strict=True))]
    else:
        difference = _leaf_difference(actual, expected, tolerance, checks)
        return None if difference is None else difference + at
    parts = (_difference(a, e, where, tolerance, checks) for where, a, e in pairs)
    return next((part for part in parts if part is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _leaf_difference(
    actual: Any, expected: Any, tolerance: tuple[float, float] | None, checks: dict[str, bool]
) -> str | None:
    if actual is not None and expected is not None and isinstance(actual, str) != isinstance(expected, str):
        raise SettingError(f"A string was compared with something else: got {shown(actual)} and {shown(expected)}")
    if actual is None or expected is None or isinstance(actual, str):
        return None if actual == expected else f"Expected {expected!r} but got {actual!r}."
    numbers = not (_has_array(actual) or _has_array(expected))
    arrays: list[Any] = []
    for name, value in (("actual", actual), ("expected", expected)):
        if isinstance(value, TensorBase):
            arrays.append(value.array)
        elif is_array(value):
            arrays.append(asarray(value))
        elif isinstance(value, bool | int | float | complex | np.generic):
            # as wide as Python has it
            arrays.append(np.asarray(cast("Any", value)))
        else:
            raise ArgumentError(
                f"assert_close: {name}: expected a tensor, a number, or a sequence of these, got {shown(value)}"
            )
    if not numbers and _has_array(actual) != _has_array(expected):
        raise SettingError(f"A tensor was compared with a number: got {shown(actual)} and {shown(expected)}")
    ours, theirs = arrays
    dtypes = dtype_of(ours), dtype_of(theirs)
    facts: dict[str, tuple[Any, Any]] = {
        "class": (type(actual), type(expected)),
        "shape": (tuple(ours.shape), tuple(theirs.shape)),
        "device": (device_of(ours), device_of(theirs)),
        "dtype": dtypes,
        "stride": (strides_of(ours), strides_of(theirs)),
    }
    for name, (own, other) in facts.items():
        if own != other and checks.get(name, True) and not (numbers and name == "class"):
            what = "classes" if name == "class" else f"values for attribute '{name}'"
            return f"The {what} do not match: {own} != {other}."
    tolerances = [TOLERANCES.get(dtype.name, (0.0, 0.0)) for dtype in dtypes]
    rtol, atol = tolerance or (max(each[0] for each in tolerances), max(each[1] for each in tolerances))
    common = result_type(*arrays) if dtypes[0] is not dtypes[1] else dtypes[0]
    wide = np.complex128 if common.is_complex else np.int64 if not common.is_floating_point else np.float64
    a, e = (to_device(array, "cpu").astype(wide) for array in arrays)
    return _value_difference(a, e, rtol, atol, "Tensor-like" if ours.ndim else "Scalar", equal_nan=not checks["nan"])


def _has_array(value: Any) -> bool:
    return isinstance(value, TensorBase) or is_array(value)


def _distance(a: Any, e: Any) -> Any:
    """Return the absolute difference; of integers without their sign, so that none is too large."""
    if a.dtype.kind != "i":
        return np.abs(a - e)
    return np.maximum(a, e).view(np.uint64) - np.minimum(a, e).view(np.uint64)


def _value_difference(a: Any, e: Any, rtol: float, atol: float, what: str, *, equal_nan: bool) -> str | None:
    """Return the largest difference of two arrays of one kind of numbers in words, or None if all are close."""
    with np.errstate(all="ignore"):
        differences = _distance(a, e)
        close = (a == e) | (np.isfinite(differences) & (differences <= atol + rtol * np.abs(e)))
        if equal_nan:
            close |= np.isnan(a) & np.isnan(e)
        if close.all():
            return None
        relative = np.abs(differences / np.abs(e))
    exact = rtol == atol == 0
    head = f"{what}s are not {'equal' if exact else 'close'}!"
    limits = ["" if exact else f" (up to {limit:g} allowed)" for limit in (atol, rtol)]
    if what == "Scalar":
        lines = [
            f"Expected {e.item()} but got {a.item()}.",
            f"Absolute difference: {differences.item()}{limits[0]}",
            f"Relative difference: {relative.item()}{limits[1]}",
        ]
        return "\n".join([head, *lines])
    count = int((~close).sum())
    lines = [f"Mismatched elements: {count} / {close.size} ({100 * count / close.size:.1f}%)"]
    for name, values, limit in zip(("absolute", "relative"), (differences, relative), limits, strict=True):
        worst = np.where(close, -1.0, np.where(np.isnan(values), np.inf, values))
        index = tuple(map(int, np.unravel_index(np.argmax(worst), worst.shape)))
        lines.append(f"Greatest {name} difference: {values[index]} at index {index}{limit}")
    return "\n".join([head, "", *lines])


@checked
def make_tensor(
    *shape: int | Sequence[int],
    dtype: Dtype,
    device: Device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Return uniform random numbers in [low, high) that `dtype` holds, to begin a test with.

    Parameters
    ----------
    *shape : int
        As ``f(2, 3)`` or ``f((2, 3))``.
    dtype : dtype
        Of the elements.
    device : device or str
        Where they are.
    low, high : float, optional
        The bounds, or the dtype's where they are beyond these; by default -9 and 9, of integers -9 and 10, of uint8 0
        and 10, of bools 0 and 2.
    requires_grad : bool
        Whether what is done with it is recorded.
    noncontiguous : bool
        Whether to leave gaps between the elements, where there are two.
    exclude_zero : bool
        Whether zeros become the smallest positive number; of integers and bools 1.
    memory_format : memory_format, optional
        PyTorch's: strides are NumPy's.

    Raises
    ------
    SettingError
        If `low` is not below `high`, or `dtype` has no number between them.
    DtypeError
        If integers or bools are to require grad.

    Examples
    --------
    >>> import lucid
    >>> lucid.testing.make_tensor(2, 3, dtype=lucid.int64, device="cpu", low=1, high=2)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    check_memory_format(memory_format)
    kind = as_dtype(dtype)
    sizes = sizes_in(shape)
    fraction = kind.is_floating_point or kind.is_complex
    usual = {"bool": (0, 2), "uint8": (0, 10)}.get(kind.name, (-9, 9) if fraction else (-9, 10))
    bottom, top = usual[0] if low is None else low, usual[1] if high is None else high
    if not bottom < top:
        raise SettingError(f"make_tensor: low: expected less than high, got {bottom} and {top}")
    if fraction:
        least, most = finfo(kind.to_real()).min, finfo(kind.to_real()).max
    else:
        numbers = np.iinfo(np.uint8 if kind.name == "bool" else kind.numpy)
        least, most = int(numbers.min), 2 if kind.name == "bool" else min(int(numbers.max) + 1, 2**63 - 1)
    bottom, top = (min(max(bound, least), most) for bound in (bottom, top))
    if not fraction:
        bottom, top = math.ceil(bottom), math.ceil(top)
    if not bottom < top:
        raise SettingError(f"make_tensor: expected bounds between which {kind} has a number, got {low} and {high}")
    if requires_grad and not fraction:
        raise DtypeError(f"make_tensor: requires_grad: expected a floating-point or complex dtype, got {kind}")
    gaps = noncontiguous and int(np.prod(sizes)) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    if fraction:
        parts: list[Any] = [rand(drawn, device=device, dtype=kind.to_real()) for _ in range(1 + kind.is_complex)]
        if top - bottom <= most:
            parts = [part * (top - bottom) + bottom for part in parts]
        else:
            parts = [part * top + (1 - part) * bottom for part in parts]
        made: Any = parts[0] + parts[1] * 1j if kind.is_complex else parts[0]
    else:
        made = randint(cast("int", bottom), cast("int", top), drawn, device=device)
    made = made.to(kind)
    if exclude_zero:
        made[made == 0] = finfo(kind.to_real()).tiny if fraction else 1
    return leaf((made[..., ::2] if gaps else made).array, requires_grad)
