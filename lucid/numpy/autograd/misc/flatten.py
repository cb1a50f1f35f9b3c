"""Nested containers as one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import lucid.numpy as np
from lucid.autograd.hooks.structure import rebuilt
from lucid.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["flatten", "flatten_func"]


def flatten(value: object) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of nested tuples, lists and dictionaries in one array, and a function that brings them back.

    Parameters
    ----------
    value : object
        Its leaves are arrays and numbers; those of dictionaries come in the order of their keys. They come to one
        dtype, and get back real numbers where they were real.

    Returns
    -------
    flat, unflatten
        An array of one dimension, and the function of such that returns what has the form of `value`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd.misc.flatten import flatten
    >>> flat, unflatten = flatten({"b": [1.0, 2.0], "a": np.zeros((1, 2))})
    >>> flat, unflatten(flat + 1)
    (array([0., 0., 1., 2.]), {'a': array([[1., 1.]]), 'b': [np.float64(2.0), np.float64(3.0)]})
    """
    parts: list[Any] = []
    bring_back = _collected(value, parts)
    total = sum(len(part) for part in parts)

    def unflatten(flat: object) -> Any:
        """Return the numbers of `flat` in the form of the flattened value."""
        if np.shape(flat) != (total,):
            raise ShapeError(f"unflatten: expected an array of shape {(total,)}, got {np.shape(flat)}")
        return bring_back(flat)

    return np.concatenate(parts) if parts else np.array([]), unflatten


def _collected(value: object, parts: list[Any]) -> Callable[[Any], Any]:
    """Append the leaves of `value` to `parts`, and return a function that takes them out of a flat array again."""
    if isinstance(value, dict):
        dictionary = cast("dict[Any, Any]", value)
        entries = [(key, _collected(dictionary[key], parts)) for key in sorted(dictionary)]
        return lambda flat: {key: take(flat) for key, take in entries}
    if isinstance(value, tuple | list):
        sequence = cast("list[Any]", value)
        takes = [_collected(each, parts) for each in sequence]
        return lambda flat: rebuilt(sequence, [take(flat) for take in takes])
    begin = sum(len(part) for part in parts)
    parts.append(np.ravel(value))
    end, shape, real = begin + len(parts[-1]), np.shape(value), not np.iscomplexobj(value)

    def take(flat: Any) -> Any:
        part = np.reshape(flat[begin:end], shape)
        part = np.real(part) if real and np.iscomplexobj(part) else part
        return part if shape else part[()]

    return take


def flatten_func(func: Callable[..., Any], example: object) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Return a function of flat vectors that gives such, for one of nested containers; and `flatten` of the example.

    Parameters
    ----------
    func : callable
        Of what has the form of `example`, and further arguments.
    example : object

    Returns
    -------
    func, unflatten, flat

    Examples
    --------
    >>> from lucid.numpy.autograd.misc.flatten import flatten_func
    >>> double, unflatten, flat = flatten_func(lambda p: [2 * p[0], p[1]], [1.0, 2.0])
    >>> double(flat)
    array([2., 2.])
    """
    flat, unflatten = flatten(example)

    def flattened(x: object, *args: object) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return flattened, unflatten, flat
