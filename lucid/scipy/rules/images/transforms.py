"""Arrays read at other places by `scipy.ndimage`: at coordinates, by a matrix, shifted, zoomed, turned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.images.filters import for_each
from lucid.scipy.rules.images.places import along_axes, at_places
from lucid.scipy.rules.images.splines import of_parts, prefiltered
from lucid.scipy.rules.rule import Array, arrays, as_array, host, host_library, in_dtype, put, real_or_complex, rule
from lucid.tensor.numpy_calls.operands import axis_in, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def read(
    x: Array,
    places: list[Any],
    reading: Callable[..., Any],
    order: int = 3,
    mode: str = "constant",
    cval: Array = 0.0,
    prefilter: bool = True,
) -> Any:
    """Return an array read at places along its first axes, by `at_places` or `along_axes`, in its dtype."""
    check(x, order)
    shape = x.shape[: len(places)]
    if 0 in shape and all(place.size for place in places):
        raise ValueError(f"an array of shape {x.shape} has no element that could be read at {places[0].shape} places")

    def of_reals(x: Array, cval: Array) -> Any:
        c, around = prefiltered(x, order, len(places), mode, cval, prefilter=prefilter)
        moved = [in_dtype(place, np.float64) + float(around) for place in places]
        return reading(c, moved, order, mode, cval)

    return in_dtype(of_parts(of_reals, x, cval), x.dtype)


def check(x: Array, order: int) -> None:
    """Refuse orders and arrays that no function of SciPy's accepts."""
    if not 0 <= order <= 5:
        raise RuntimeError(f"spline order not supported: expected 0 to 5, got {order}")
    if not x.ndim:
        raise RuntimeError("input and output rank must be > 0: an array without dimensions has no other places")


@rule("ndimage.map_coordinates", "input coordinates order mode cval prefilter")
def map_coordinates(input: Array, coordinates: Array, **settings: Array) -> Any:
    """Return ``scipy.ndimage.map_coordinates``, with gradients by the array and by the coordinates."""
    x, places = real_or_complex("ndimage.map_coordinates", input, coordinates)
    if places.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if places.ndim < 1 or x.ndim < 1 or places.shape[0] != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    return read(x, [places[k] for k in range(x.ndim)], at_places, **settings)


@rule("ndimage.affine_transform", "input matrix offset output_shape order mode cval prefilter")
def affine_transform(
    input: Array, matrix: Array, offset: Array = 0.0, output_shape: Sequence[int] | None = None, **settings: Array
) -> Any:
    """Return ``scipy.ndimage.affine_transform``, with gradients by the array, the matrix and the offset."""
    x, m = real_or_complex("ndimage.affine_transform", input, matrix)
    shape = x.shape if output_shape is None else tuple(output_shape)
    n = x.ndim
    if m.ndim not in {1, 2} or m.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if m.ndim == 2 and m.shape[1] == n + 1 and m.shape[0] in {n, n + 1}:
        if m.shape[0] == n + 1 and host(m)[n].tolist() != [0.0] * n + [1.0]:
            raise ValueError(
                f"Expected homogeneous transformation matrix with shape {m.shape} for image shape {x.shape}, but "
                f"bottom row was not equal to {[0] * n + [1]}"
            )
        m, offset = m[:n, :n], m[:n, n]
    if m.shape[0] != n:
        raise RuntimeError("affine matrix has wrong number of rows")
    if m.ndim == 2 and m.shape[1] != len(shape):
        raise RuntimeError("affine matrix has wrong number of columns")
    shifts = arrays(offset, m)[0] if lnp.ndim(offset) else offset
    shifts = for_each(shifts, n)
    if m.ndim == 1:
        places = [counting(size, x) * m[k] + shifts[k] for k, size in enumerate(shape)]
        return read(x, places, along_axes, **settings)
    return read(x, planes(m, shifts, shape, x), at_places, **settings)


def counting(size: int, like: Array) -> Any:
    """Return the whole numbers below a size, beside an array."""
    return put(np.arange(float(size)), like)


def planes(matrix: Array, offset: Array, shape: Sequence[int], like: Array) -> list[Any]:
    """Return the coordinates ``matrix @ index + offset`` of all indices of a shape."""
    places: list[Any] = []
    for k in range(matrix.shape[0]):
        total = offset[k]
        for j, size in enumerate(shape):
            line = counting(size, like) * matrix[k, j]
            total = total + lnp.reshape(line, [-1 if i == j else 1 for i in range(len(shape))])
        places.append(total)
    return places


@rule("ndimage.shift", "input shift order mode cval prefilter")
def shift(input: Array, shift: Array, **settings: Array) -> Any:
    """Return ``scipy.ndimage.shift``, with gradients by the array and by the shift."""
    (x,) = real_or_complex("ndimage.shift", input)
    steps = for_each(shift, x.ndim)
    places = [counting(size, x) - s for size, s in zip(x.shape, steps, strict=True)]
    return read(x, places, along_axes, **settings)


@rule("ndimage.zoom", "input zoom order mode cval prefilter grid_mode")
def zoom(
    input: Array, zoom: Array, order: int = 3, prefilter: bool = True, grid_mode: bool = False, **settings: Array
) -> Any:
    """Return ``scipy.ndimage.zoom``; the zoom says a shape alone, and has no gradient."""
    (x,) = real_or_complex("ndimage.zoom", input)
    check(x, order)
    factors = [float(host(z)) for z in for_each(zoom, x.ndim)]
    if prefilter and all(z == 1 for z in factors):
        return x * 1
    less = 0 if grid_mode else 1
    places: list[Any] = []
    for n, z in zip(x.shape, factors, strict=True):
        if (size := round(n * z)) < 0:
            raise ValueError(
                f"scipy.ndimage.zoom: expected factors of 0 or more, got {z}: np.flip(x) turns an axis round"
            )
        scale = (n - less) / (size - less) if size != less else 1.0
        middle = 0.5 if grid_mode else 0.0
        places.append((counting(size, x) + middle) * scale - middle)
    return read(x, places, along_axes, order, prefilter=prefilter, **settings)


@rule("ndimage.rotate", "input angle axes reshape order mode cval prefilter")
def rotate(input: Array, angle: Array, axes: Sequence[int] = (1, 0), reshape: bool = True, **settings: Array) -> Any:
    """Return ``scipy.ndimage.rotate``, with gradients by the array and by the angle, of a fixed shape."""
    (x,) = real_or_complex("ndimage.rotate", input)
    if x.ndim < 2:
        raise ValueError("input array should be at least 2D")
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    first, second = sorted(axis_in(axis, x.ndim) for axis in axes)
    # exact at multiples of 90 degrees, as SciPy's are; a recorded angle adds its derivatives
    degrees, special = float(host(angle)), host_library("special")
    c, s = special.cosdg(degrees), special.sindg(degrees)
    turned = np.array([[c, s], [-s, c]])
    sizes = np.array([x.shape[first], x.shape[second]])
    shape = sizes
    if reshape:
        bounds = turned @ [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]]
        shape = (np.ptp(bounds, axis=1) + 0.5).astype(int)
    matrix: Array = put(turned, x)
    if is_tensor(angle):
        way = as_array(angle) * (math.pi / 180)
        cosine, sine = lnp.cos(way), lnp.sin(way)
        turn = lnp.stack([lnp.stack([cosine, sine]), lnp.stack([-sine, cosine])])
        matrix = matrix + (turn - plain(turn))
    offset = put((sizes - 1) / 2, x) - matrix @ put((shape - 1) / 2, x)
    places = planes(matrix, offset, shape.tolist(), x)
    result = read(lnp.moveaxis(x, (first, second), (0, 1)), places, at_places, **settings)
    return lnp.moveaxis(result, (0, 1), (first, second))


@rule(
    "ndimage.geometric_transform", "input mapping output_shape order mode cval prefilter extra_arguments extra_keywords"
)
def geometric_transform(
    input: Array,
    mapping: Callable[..., Any],
    output_shape: Sequence[int] | None = None,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    **settings: Array,
) -> Any:
    """Return ``scipy.ndimage.geometric_transform``: the ops recorded in the mapping are differentiated too."""
    (x,) = real_or_complex("ndimage.geometric_transform", input)
    shape = x.shape if output_shape is None else tuple(output_shape)
    rows = [list(mapping(index, *extra_arguments, **(extra_keywords or {}))) for index in np.ndindex(*shape)]
    (places,) = arrays(rows)
    places = lnp.reshape(put(places, x), (-1, x.ndim))
    return read(x, [lnp.reshape(places[:, k], shape) for k in range(x.ndim)], at_places, **settings)
