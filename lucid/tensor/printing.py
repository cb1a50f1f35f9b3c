"""Tensors in words: repr, str and format, laid out as PyTorch lays them out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from lucid.arguments import checked
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import Array, to_device
from lucid.base.device import CPU, device_of
from lucid.base.dtype import bool_, dtype_of, get_default_dtype, int64
from lucid.errors import InplaceError, SettingError
from lucid.tensor.conversion import item

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


class PrintOptions(NamedTuple):
    """How tensors are shown; see `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


@checked
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: Literal["default", "short", "full"] | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are shown, in the whole process.

    Parameters
    ----------
    precision : int
        Digits after the point; 4 at first.
    threshold : int
        A tensor of more elements is shown by its edges only; 1000 at first.
    edgeitems : int
        How many elements are shown at each edge of each dimension; 3 at first.
    linewidth : int
        Characters in a line; 80 at first.
    profile : {"default", "short", "full"}
        Sets all of them at once; what is given besides comes on top.
    sci_mode : bool, optional
        Whether numbers are shown as powers of ten; None decides by their range.

    Raises
    ------
    ValueError
        If `profile` is none of the three.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_printoptions(precision=2)
    >>> lucid.tensor([1.2345])
    tensor([1.23])
    >>> lucid.set_printoptions(profile="default")
    """
    global _options
    if profile is not None and not (isinstance(profile, str) and profile in PROFILES):
        raise SettingError(f"set_printoptions: expected the profile to be one of {sorted(PROFILES)}, got {profile!r}")
    base = _options if profile is None else PROFILES[profile]
    settings = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    _options = base._replace(sci_mode=sci_mode, **changes)


def number_format(values: np.ndarray[Any, Any]) -> tuple[int, Callable[[Any], str]]:
    """Return the width of the widest of `values` and the function that writes one of them, right-justified."""
    if values.dtype.kind != "f":
        width = max((len(str(value)) for value in values.ravel().tolist()), default=1)
        return width, lambda value: str(value).rjust(width)
    sized = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    digits = _options.precision
    whole, scientific = True, False
    if sized.size:
        magnitudes = np.abs(sized)
        low, high = float(magnitudes.min()), float(magnitudes.max())
        whole = bool((sized == np.ceil(sized)).all())
        scientific = high > 1000 * low or high > 1e8 or (not whole and low < 1e-4)
    if _options.sci_mode is not None:
        scientific = _options.sci_mode

    def write(value: float) -> str:
        if scientific:
            return f"{value:.{digits}e}"
        if whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{digits}f}"

    # what is not finite does not count for the width, and is written wider where it must be
    width = max((len(write(value)) for value in sized.tolist()), default=1)
    return width, lambda value: write(value).rjust(width)


def element_format(values: np.ndarray[Any, Any]) -> tuple[int, Callable[[Any], str]]:
    """Return the width of an element of `values`, of any dtype, and the function that writes one."""
    if values.dtype.kind != "c":
        return number_format(values)
    real_width, real = number_format(values.real)
    imag_width, imag = number_format(values.imag)

    def write(value: complex) -> str:
        part = imag(value.imag).lstrip() + "j"
        return real(value.real) + (part if part[0] in "+-" else f"+{part}")

    return real_width + imag_width + 1, write


def edges_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the shown part of a summarised array: the first and last few along each dimension."""
    for axis, size in enumerate(array.shape):
        if size > 2 * _options.edgeitems:
            kept = [*range(_options.edgeitems), *range(size - _options.edgeitems, size)]
            array = array.take(kept, axis)
    return array


def layout(values: Any, sizes: tuple[int, ...], indent: int, width: int, write: Callable[[Any], str]) -> str:
    """Return nested lists of numbers as text, with dots for elements that are left out by comparison with `sizes`."""
    if not sizes:
        return write(values)
    missing = len(values) < sizes[0]
    middle = len(values) // 2
    if len(sizes) > 1:
        rows = [layout(value, sizes[1:], indent + 1, width, write) for value in values]
        if missing:
            rows.insert(middle, "...")
        return "[" + ("," + "\n" * (len(sizes) - 1) + " " * (indent + 1)).join(rows) + "]"
    words = [write(value) for value in values]
    if missing:
        words.insert(middle, " ..." if words else "...")
    in_line = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [", ".join(words[start : start + in_line]) for start in range(0, len(words), in_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def body(array: Array, indent: int) -> str:
    """Return the elements of an array as text."""
    if not array.size:
        return "[]"
    # The sizes are the whole array's, the values those that are shown.
    shown: Any = edges_of(array) if array.size > _options.threshold else array
    host: Any = to_device(shown, "cpu")
    if host.dtype.kind in "fV" and host.dtype.itemsize == 2:
        host = host.astype(np.float32)
    width, write = element_format(host)
    return layout(host.tolist(), array.shape, indent, width, write)


def describe_tensor(self: Tensor) -> str:
    """Return the tensor as PyTorch shows it: its elements, and each property that is not the usual one.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([[1.0, 2.5], [3.0, float("nan")]], dtype=lucid.float64)
    tensor([[1.0000, 2.5000],
            [3.0000,    nan]], dtype=lucid.float64)
    """
    array = self.array
    dtype = dtype_of(array)
    prefix = "tensor("
    text = prefix + body(array, len(prefix))
    default = get_default_dtype()
    expected = {default, default.to_complex(), int64, bool_} if array.size else {default}
    suffixes: list[str] = []
    if (device := device_of(array)) is not CPU:
        suffixes.append(f"device='{device}'")
    if not array.size and array.ndim != 1:
        suffixes.append(f"size={tuple(array.shape)}")
    if dtype not in expected:
        suffixes.append(f"dtype={dtype}")
    try:
        edge = live_edge(self)
    except InplaceError:
        edge = None
        suffixes.append("grad_fn=<Invalid>")
    if edge is not None:
        suffixes.append("requires_grad=True" if type(edge[0]) is AccumulateGrad else f"grad_fn=<{edge[0].name()}>")
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * len(prefix) + suffix
            used = len(prefix) + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def format_tensor(self: Tensor, specification: str) -> str:
    """Return a tensor of no dimension in the format of its number; any other takes no format.

    Examples
    --------
    >>> import lucid
    >>> f"{lucid.tensor(2.5):.3f}"
    '2.500'
    """
    if self.array.ndim == 0:
        return format(item(self), specification)
    return object.__format__(self, specification)
