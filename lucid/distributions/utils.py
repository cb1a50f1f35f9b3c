"""Tools of distributions: parameters of one shape, probabilities and logits, triangles as vectors."""

from __future__ import annotations

import functools
import math
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import shown
from lucid.autograd.base import INFERENCE, registered, version_of
from lucid.autograd.modes.state import enable_grad, is_inference_mode_enabled
from lucid.base.dtype import get_default_dtype, promote_types, result_type
from lucid.base.gpu import is_gpu_array
from lucid.base.limits import finfo
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.ops.activation.sigmoid import sigmoid
from lucid.ops.activation.softmax import softmax
from lucid.ops.base.promotion import cast_to, promote_to_tensors
from lucid.ops.creation.data import tensor
from lucid.ops.creation.random import randn
from lucid.ops.creation.ranges import tril_indices
from lucid.ops.elementwise.selection import where
from lucid.ops.index.indexing import getitem
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def tensor_or_number(value: Any, device: Any = None) -> Tensor | float | None:
    """Return a tensor or a number, and an array, also one of `lucid.numpy`, as a tensor; None for anything else."""
    if isinstance(value, Tensor) and isinstance(value, registered.arrays):
        # its methods, attributes and operators are those of NumPy's arrays
        return getitem(value, ...)
    if isinstance(value, Tensor | int | float):
        return value
    if is_gpu_array(value) or isinstance(value, np.ndarray):
        return tensor(value, device=device)
    # beside tensors NumPy's numbers count as Python's do
    scalar: Any = np.generic
    number = value.item() if isinstance(value, scalar) else None
    return number if isinstance(number, int | float) else None


def value_beside(title: str, value: object, like: Tensor | None = None) -> Tensor:
    """Return a value in the dtype that it has beside a parameter; numbers and arrays are on the device of that."""
    device = None if like is None else like.device
    made = tensor_or_number(value, device)
    if made is None:
        raise ArgumentError(f"{title}: value: expected a Tensor, an array or a number, got {shown(value)}")
    if not isinstance(made, Tensor):
        return tensor(float(made), dtype=None if like is None else like.dtype, device=device)
    # counts too: functions of integers have the default dtype, and sums of narrow integers wrap around
    return made if like is None else cast_to(made, result_type(made.array, like.array))


def _read_all(title: str, named: dict[str, Any]) -> list[Tensor | float]:
    """Return parameters as tensors and numbers, arrays on the device of the first tensor."""
    device = next((value.device for value in named.values() if isinstance(value, Tensor)), None)
    operands: list[Tensor | float] = []
    for name, value in named.items():
        made = tensor_or_number(value, device)
        if made is None:
            raise ArgumentError(f"{title}: {name}: expected a tensor or a number, got {type(value).__name__}")
        operands.append(made)
    return operands


def parameters_of(title: str, named: dict[str, Any]) -> list[Tensor]:
    """Return parameters as tensors of one dtype, the widest floating-point one, numbers on the device of the others."""
    values = _read_all(title, named)
    tensors = [value for value in values if isinstance(value, Tensor)]
    device = tensors[0].device if tensors else None
    kinds = [value.dtype for value in tensors if not is_whole(value)]
    dtype = functools.reduce(promote_types, kinds) if kinds else get_default_dtype()
    return [
        cast_to(value, dtype) if isinstance(value, Tensor) else tensor(float(value), dtype=dtype, device=device)
        for value in values
    ]


def reading(path: str, doc: str | None = None) -> Any:
    """Return the property that is an attribute of another attribute, at a path of names with dots."""
    member = property(attrgetter(path))
    # not that of the function; `help` does not find that of the base's property
    member.__doc__ = doc
    return member


def count_of(name: str, value: object) -> int:
    """Return a number of dimensions; raise if it is none."""
    if not isinstance(value, Integral) or value < 0:
        raise SettingError(f"{name}: expected a whole number from 0 on, got {value!r}")
    return int(value)


def is_whole(value: Tensor) -> bool:
    """Tell whether a tensor is one of integers or bools."""
    return not (value.is_floating_point() or value.is_complex())


def _of_one_shape(tensors: Sequence[Tensor]) -> list[Tensor]:
    # one that has the shape is kept itself, and with it its `grad`
    return [
        own if own.shape == wide.shape else wide for own, wide in zip(tensors, broadcast_tensors(*tensors), strict=True)
    ]


def named_tensors(title: str, named: dict[str, Any]) -> list[Tensor]:
    """Return parameters as tensors of one dtype, as `parameters_of` does, and of one shape."""
    return _of_one_shape(parameters_of(title, named))


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Return tensors and numbers as tensors of one shape; numbers get dtype and device of the first tensor.

    Beside integers a float stays one: it has the default dtype.

    >>> import lucid
    >>> from lucid.distributions.utils import broadcast_all
    >>> broadcast_all(1.0, lucid.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    operands = _read_all("broadcast_all", {f"values[{i}]": value for i, value in enumerate(values)})
    like = next((value for value in operands if isinstance(value, Tensor)), tensor(0.0))
    tensors = [value if isinstance(value, Tensor) else promote_to_tensors(like, value)[1] for value in operands]
    return tuple(_of_one_shape(tensors))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return ``softmax(logits)`` of the last dimension, or ``sigmoid(logits)``.

    >>> import lucid
    >>> lucid.distributions.utils.logits_to_probs(lucid.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities moved so far from 0 and 1 as the dtype can tell.

    >>> import lucid
    >>> lucid.distributions.utils.clamp_probs(lucid.tensor([0.0, 0.5])).log().isfinite().all()
    tensor(True)
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithms of probabilities, or of odds; of the smallest numbers in place of 0.

    >>> import lucid
    >>> lucid.distributions.utils.probs_to_logits(lucid.tensor([0.5, 0.75]), is_binary=True)
    tensor([0.0000, 1.0986])
    """
    if not is_binary:
        return probs.clamp(min=finfo(probs.dtype).tiny).log()
    log, rest = log_chances(probs)
    return log - rest


def log_chances(probs: Tensor, wide: bool = False) -> tuple[Tensor, Tensor]:
    """Return the logarithms of probabilities p and of ``1 - p``, in float64 if `wide`.

    That of 0 is the one of the smallest number, with a slope of 1: that of the limit is infinite.
    """
    tiny = finfo(probs.dtype).tiny
    probs = probs.double() if wide else probs
    never, sure = probs < tiny, probs >= 1
    won = where(never, probs + math.log(tiny), where(never, 0.5, probs).log())
    return won, where(sure, 1 - probs + math.log(tiny), (-where(sure, 0.5, probs)).log1p())


def steady(ends: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
    """Return parameters, without slopes at the elements of a mask.

    A formula that is 0 times infinity by its chain rule there has the slope 0.
    """
    return tuple(where(ends, each.detach(), each) if each.requires_grad else each for each in parameters)


def where_above(
    parameter: Tensor, bound: float, formula: Callable[[Tensor], Tensor], otherwise: float = math.inf
) -> Tensor:
    """Return the value of a formula for parameters above a bound, and a constant, without slopes, for others."""
    met = parameter > bound
    return where(met, formula(where(met, parameter, bound + 1.0)), otherwise)


def log1p_square(x: Tensor) -> Tensor:
    """Return ``log(1 + x**2)``, without an overflow of the square."""
    # from the largest on whose square does not the logarithm grows as that of the square does
    most = 0.5 * math.sqrt(finfo(x.dtype).max)
    return x.clamp(-most, most).square().log1p() + 2 * (x.abs() / most).clamp(min=1.0).log()


def version(tensor: object) -> int | None:
    """Return the number of changes in place of a tensor; None of an inference tensor, as it counts none."""
    if not isinstance(tensor, Tensor):
        return None
    counter = version_of(tensor)
    return None if counter is INFERENCE else counter[0]


class lazy_property:
    """A value that is computed, with gradients, when it is asked for, and kept by the instance.

    It is computed anew after a change in place of what the instance was given, or of the value itself, and what was
    computed in inference mode is not for use outside. A value that is set stays.
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, instance: Any, value: Any) -> None:
        values = cast("dict[str, Any]", vars(instance))
        made = cast("dict[str, Any]", values.get("_made", {}))
        values[self.name] = value
        values["_made"] = {name: state for name, state in made.items() if name != self.name}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        values = cast("dict[str, Any]", vars(instance))
        name, made = self.name, cast("dict[str, Any]", values.get("_made", {}))
        if name in values and name not in made:
            return values[name]
        state = [
            (version(value), value.requires_grad)
            for key, value in values.items()
            if isinstance(value, Tensor) and key not in made
        ]
        inference = is_inference_mode_enabled()
        if name in values:
            before, was_inference, kept = made[name]
            if before == state and kept == version(values[name]) and (inference or not was_inference):
                return values[name]
        with enable_grad():
            value = self.wrapped(instance)
        # what it called may have made others
        values["_made"] = {**values.get("_made", {}), name: (state, inference, version(value))}
        values[name] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of a lower triangle, row by row, as vectors.

    >>> import lucid
    >>> lucid.distributions.utils.tril_matrix_to_vec(lucid.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    if mat.dim() < 2 or mat.shape[-2] != mat.shape[-1]:
        raise ShapeError(f"tril_matrix_to_vec: expected square matrices, got shape {tuple(mat.shape)}")
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ShapeError(f"tril_matrix_to_vec: expected diag from {-size} to {size - 1}, got {diag}")
    rows, columns = tril_indices(size, size, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices with the elements of vectors in the lower triangle, row by row, and 0 elsewhere.

    >>> import lucid
    >>> lucid.distributions.utils.vec_to_tril_matrix(lucid.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    if vec.dim() < 1:
        raise ShapeError("vec_to_tril_matrix: expected one dimension or more, got a number")
    count = vec.shape[-1]
    # of no elements the largest, as a triangle below the diagonal has none in a matrix of one row
    size = math.isqrt(count)
    while _held(size + 1, diag) <= count:
        size += 1
    if _held(size, diag) != count:
        raise ShapeError(f"vec_to_tril_matrix: expected as many elements as a triangle has, got {count}")
    rows, columns = tril_indices(size, size, diag, device=vec.device)
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    place = (rows * size + columns).expand(vec.shape)
    return flat.scatter(-1, place, vec).reshape(*vec.shape[:-1], size, size)


def _held(size: int, diag: int) -> int:
    """Return how many elements a triangle holds."""
    if diag < 0:
        rows = max(size + diag, 0)
        return rows * (rows + 1) // 2
    above = max(size - 1 - diag, 0)
    return size * size - above * (above + 1) // 2


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:  # pyright: ignore[reportUnusedFunction]
    """Return the sum over the last dimensions, `dim` of them."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def _standard_normal(shape: Sequence[int], dtype: Dtype, device: Device) -> Tensor:  # pyright: ignore[reportUnusedFunction]
    """Return standard normal numbers."""
    return randn(*shape, dtype=dtype, device=device)


sum_rightmost = _sum_rightmost
