"""Functions of all parameters of a model at once: clipping gradients, and parameters as one vector."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked, unfit
from lucid.autograd.base import TensorBase, versions_of, with_grads, wrap
from lucid.autograd.modes.state import no_grad
from lucid.autograd.recording.mutation import keep_saved
from lucid.base import gpu
from lucid.base.dtype import as_dtype, float32, promote_types
from lucid.cuda.launch.multi_tensor import Arrays
from lucid.errors import CaptureError, SettingError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.creation.filling import zeros
from lucid.ops.elementwise.nonfinite import isfinite
from lucid.ops.elementwise.selection import clamp
from lucid.ops.reduction.norms import norm, norm_of
from lucid.ops.shape.joining import cat, stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.tensor import Tensor

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector",
    "vector_to_parameters",
]  # fmt: skip

# The kinds of version counters of a gradient with memory of its own; made late, and not that of inference tensors.
COUNTED = {list, type(None)}
# The kinds of arrays of which many are looked at without an op for each.
HOSTS = ({(np.ndarray, "f")}, {(np.ndarray, "d")})


def _tensors(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    tensors = [parameters] if isinstance(parameters, TensorBase) else list(parameters)
    only_tensors(*tensors)
    return tensors


def _check_bound(bound: float, name: str) -> None:
    if not bound >= 0:
        raise SettingError(f"{name}: expected a number of at least 0, which gradients are limited to, got {bound}")


def _order(norm_type: float | str) -> float:
    if norm_type == "inf":
        return math.inf
    if isinstance(norm_type, str):
        raise unfit(norm_type, "a number or 'inf'", "norm_type")
    return norm_type


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    return [parameter.stored_grad for parameter in with_grads(_tensors(parameters))]


def arrays_of(grads: list[Any]) -> Arrays | None:
    """Return the arrays of gradients that are all on CUDA devices, looked at once; None of others, and of none."""
    arrays = [grad.array for grad in grads]
    return Arrays(arrays) if arrays and np.ndarray not in set(map(type, arrays)) else None


def changed_on_device(
    grads: list[Any], change: Callable[[Arrays], list[int]], looked_at: Arrays | None = None
) -> list[Any]:
    """Return the gradients that are still to be changed, after kernels have changed those on CUDA devices.

    Parameters
    ----------
    grads : list of Tensor
    change : callable
        Changes arrays in place, and returns the positions of those that it cannot take.
    looked_at : Arrays, optional
        The arrays of all, if they are on CUDA devices.
    """
    # what is in a graph, a view, or shares its memory, as a gradient in a hook, is left to ops that look after that
    plain = [
        grad
        for grad in grads
        if grad.edge is None
        and grad.origin is None
        and type(grad.array) is not np.ndarray
        and type(getattr(grad, "version", None)) in COUNTED
    ]
    whole = len(plain) == len(grads)
    on_device = set(map(id, plain))
    others = [] if whole else [grad for grad in grads if id(grad) not in on_device]
    arrays = looked_at if whole and looked_at is not None else arrays_of(plain)
    if arrays is None:
        return grads
    if again := arrays.repetitions():
        others += [plain[position] for position in again]
        plain = [grad for position, grad in enumerate(plain) if position not in again]
        arrays = Arrays([grad.array for grad in plain])
    versions = versions_of(plain)
    keep_saved(*versions)
    remaining = change(arrays)
    for position, version in enumerate(versions):
        if position not in remaining:
            version[0] += 1
    return others + [plain[position] for position in remaining]


def multiply(grad: Any, factor: Any) -> None:
    """Multiply a gradient in place by a tensor without dimensions, one of half precision as float32."""
    grad.copy_((grad.float() if grad.element_size() == 2 else grad) * factor)


def multiply_on_host(grads: list[Any], factor: Any) -> list[Any]:
    """Return the gradients that are still to be multiplied by a number, after those that NumPy can do at once."""
    plain = [
        grad
        for grad in grads
        if grad.edge is None
        and grad.origin is None
        and type(grad.array) is np.ndarray
        and type(getattr(grad, "version", None)) in COUNTED  # as above
        and grad.array.dtype.char in "fd"
        and grad.array.flags.writeable
    ]
    versions = versions_of(plain)
    keep_saved(*versions)
    with np.errstate(all="ignore"):
        for grad, version in zip(plain, versions, strict=True):
            np.multiply(grad.array, grad.array.dtype.type(factor), out=grad.array)
            version[0] += 1
    done = set(map(id, plain))
    return [grad for grad in grads if id(grad) not in done]


def multiplied(grads: list[Any], factor: float) -> bool:
    """Return whether an element is infinite or NaN, after multiplying all by `factor`; one question to each device."""
    flags: list[Any] = []
    for device in {grad.device: None for grad in grads if grad.is_cuda}:
        overflow: Any = zeros((), dtype=float32, device=device)
        grads = changed_on_device(grads, lambda arrays, overflow=overflow: arrays.unscale(factor, overflow.array))
        flags.append(overflow)
    for grad in grads:
        grad.mul_(factor)
        flags.append(~isfinite(grad).all())
    return any(flag.item() for flag in flags)


@checked
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> Tensor:
    """Return the norm of all tensors seen as one vector, of their common dtype: the norm of their norms.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        Where they lie on several devices, their norms are brought to that of the first one.
    norm_type : float or "inf"
        The p of the norm; ``inf`` gives the largest magnitude.
    error_if_nonfinite : bool
        Whether a norm that is infinite or NaN is an error.

    Raises
    ------
    RuntimeError
        If it is not finite, and that is an error. It asks the device for the value, and so waits for it.
    CaptureError
        If that is to be an error in a capture of a CUDA graph, which cannot wait.
    """
    tensors = _tensors(tensors)
    return _total_norm(tensors, arrays_of(tensors), norm_type, error_if_nonfinite=error_if_nonfinite)


def _total_norm(
    tensors: list[Any], arrays: Arrays | None, norm_type: float | str, *, error_if_nonfinite: bool
) -> Tensor:
    if error_if_nonfinite and gpu.is_capturing():
        raise CaptureError(
            "error_if_nonfinite=True in a capture of a CUDA graph: the host would wait for the norm: pass "
            "error_if_nonfinite=False, and look at the norm that is returned after a replay"
        )
    order = _order(norm_type)
    with no_grad():
        total = _norm_on_device(arrays, order) if tensors else wrap(np.zeros((), np.float32))
        if total is None:
            norms = _norms_on_host(tensors) if order == 2 else None
            total = norm(stack(_norms(tensors, order)) if norms is None else norms, order)
        if error_if_nonfinite and not math.isfinite(float(total)):
            raise RuntimeError(
                f"the total norm of order {norm_type} for gradients from `parameters` is non-finite ({float(total)}), "
                "so it cannot be clipped: pass error_if_nonfinite=False to scale by it anyway"
            )
    return total


def _norm_on_device(arrays: Arrays | None, order: float) -> Any:
    """Return the norm of arrays on one CUDA device as a tensor; None if no kernel makes it, or without arrays."""
    if arrays is None or len(arrays.devices) != 1:
        return None
    total = arrays.total_norm(order, functools.reduce(promote_types, map(as_dtype, arrays.dtypes)).numpy)
    return None if total is NotImplemented else wrap(total)


def _norms_on_host(tensors: list[Any]) -> Any:
    """Return the lengths of tensors on the CPU that are all float32, or all float64, as a vector; None of others."""
    arrays = [tensor.array for tensor in tensors]
    if {(type(array), array.dtype.char) for array in arrays} not in HOSTS:
        return None
    with np.errstate(all="ignore"):
        return wrap(np.array([norm_of(np, array, 2, None, keepdim=False) for array in arrays]))


def _by_device(tensors: list[Any]) -> list[list[Any]]:
    """Return tensors in lists of those that are on one device."""
    groups: dict[int, list[Any]] = {}
    for tensor in tensors:
        index = -1 if type(tensor.array) is np.ndarray else gpu.device_index(tensor.array)
        groups.setdefault(index, []).append(tensor)
    return list(groups.values())


def _norms(tensors: list[Any], order: float) -> list[Any]:
    """Return norms on one device, of each tensor or of those of each device; their norm is that of all tensors."""
    groups = _by_device(tensors)
    if len(groups) == 1:
        return [norm(tensor, order) for tensor in tensors]
    norms: list[Any] = []
    for group in groups:
        together = _norm_on_device(arrays_of(group), order)
        norms += [norm(tensor, order) for tensor in group] if together is None else [together]
    return [each.to(norms[0].device) for each in norms]


@checked
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> None:
    """Scale the gradients by ``max_norm / (total_norm + 1e-6)`` if that is below 1.

    Raises
    ------
    SettingError
        If `max_norm` is below 0.
    ShapeError
        If `total_norm` has a dimension.
    """
    _check_bound(max_norm, "max_norm")
    if total_norm.array.ndim:
        raise ShapeError(
            f"total_norm: expected a tensor of no dimension, got shape {tuple(total_norm.array.shape)}; take its item"
        )
    _scale_down(_grads(parameters), None, max_norm, total_norm)


def _scale_down(grads: list[Any], looked_at: Arrays | None, max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        if total_norm.is_cuda:
            grads = changed_on_device(grads, lambda arrays: arrays.clip_by_norm(total_norm.array, max_norm), looked_at)
        if grads:
            scale = clamp(max_norm / (total_norm + 1e-6), max=1.0)
            for group in _by_device(grads):
                factor = scale.to(group[0].device)
                rest = group if factor.is_cuda else multiply_on_host(group, factor.array)
                for grad in rest:
                    multiply(grad, factor)


@checked
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> Tensor:
    """Return the norm of all gradients together, after scaling them in place to at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient count nothing.
    max_norm : float
        The largest norm that is left.
    norm_type : float or "inf"
        The p of the norm; ``inf`` takes the largest magnitude.
    error_if_nonfinite : bool
        Whether a norm that is infinite or NaN is an error.
    foreach : bool, optional
        Accepted for PyTorch's sake.

    Returns
    -------
    Tensor
        The norm before scaling, of no dimension, on the device of the first gradient.

    Raises
    ------
    SettingError
        If `max_norm` is below 0.
    RuntimeError
        If the norm is not finite, and that is an error. The gradients are not changed then.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> weight = nn.Parameter(lucid.zeros(2))
    >>> weight.grad = lucid.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([weight], 1.0)
    tensor(5.)
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    _check_bound(max_norm, "max_norm")
    grads = _grads(parameters)
    arrays = arrays_of(grads)
    total = _total_norm(grads, arrays, norm_type, error_if_nonfinite=error_if_nonfinite)
    _scale_down(grads, arrays, max_norm, total)
    return total


@checked
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor],
    clip_value: float,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> None:
    """Limit each element of each gradient to [-clip_value, clip_value], in place.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient are left out.
    clip_value : float
        The largest magnitude that is left.
    foreach : bool, optional
        Accepted for PyTorch's sake.

    Raises
    ------
    SettingError
        If `clip_value` is below 0.
    """
    _check_bound(clip_value, "clip_value")
    with no_grad():
        for grad in changed_on_device(_grads(parameters), lambda arrays: arrays.clip_by_value(clip_value)):
            grad.copy_(clamp(grad, -clip_value, clip_value))


@checked
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one vector, joined to them in the graph."""
    return cat([parameter.reshape(-1) for parameter in _tensors(parameters)])


@checked
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the elements of all parameters from one vector, as `parameters_to_vector` gives it.

    Each parameter stays on its device, wherever the vector is, so that its gradient and an optimizer's state are beside
    it still.

    Raises
    ------
    TypeError
        If `vec` is no tensor.
    ShapeError
        If it has another number of elements. Nothing is changed then.
    """
    targets = _tensors(parameters)
    wanted = sum(target.array.size for target in targets)
    if vec.array.size != wanted:
        raise ShapeError(
            f"expected a vector of {wanted} elements, one for each of the parameters, got {vec.array.size}"
        )
    start = 0
    with no_grad():
        for target in targets:
            stop = start + target.array.size
            target.data = vec.detach()[start:stop].reshape(target.shape).to(target.device, target.dtype)
            start = stop
