"""What is done with all parameters of a model at once: clipping gradients, and parameters as one vector."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked, unfit
from lucid.autograd.base import TensorBase, grad_of, version_of, wrap
from lucid.autograd.modes.state import no_grad
from lucid.backend import gpu
from lucid.backend.dtype import promote_types
from lucid.cuda.launch import multi_tensor
from lucid.errors import CaptureError, SettingError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.elementwise.selection import clamp
from lucid.ops.reduction.norms import norm
from lucid.ops.shape.joining import cat, stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.tensor import Tensor

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector",
    "vector_to_parameters",
]  # fmt: skip


def _tensors(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    given = [parameters] if isinstance(parameters, TensorBase) else list(parameters)
    only_tensors(*given)
    return given


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
    return [grad for parameter in _tensors(parameters) if (grad := grad_of(parameter)) is not None]


def changed_on_device(grads: list[Any], kernel: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return the gradients that are still to be changed, after a kernel has changed those on CUDA devices.

    The kernel gets arrays, and returns those that it cannot take.
    """
    plain: dict[int, Any] = {}
    others: list[Any] = []
    for grad in grads:
        # what is in a graph, or a view, is left to operations that keep its history; so is what comes a second time
        key = id(grad.array)
        if grad.edge is None and grad.origin is None and grad.is_cuda and key not in plain:
            plain[key] = grad
        else:
            others.append(grad)
    if plain:
        left = [plain.pop(id(array)) for array in kernel([grad.array for grad in plain.values()])]
        others += left
        for grad in plain.values():
            version_of(grad)[0] += 1
    return others


@checked
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> Tensor:
    """Return the norm of all tensors seen as one vector, of the dtype to which theirs promote: the norm of their norms.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        On one device.
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
    if error_if_nonfinite and gpu.is_capturing():
        raise CaptureError(
            "error_if_nonfinite=True in a capture of a CUDA graph: the host would wait for the norm: pass "
            "error_if_nonfinite=False, and look at the norm that is returned after a replay"
        )
    order = _order(norm_type)
    with no_grad():
        given = _tensors(tensors)
        total: Any = NotImplemented
        if not given:
            total = wrap(np.zeros((), np.float32))
        elif all(tensor.is_cuda for tensor in given):
            dtype = functools.reduce(promote_types, {tensor.dtype for tensor in given})
            total = multi_tensor.total_norm([tensor.array for tensor in given], order, dtype.numpy)
            total = total if total is NotImplemented else wrap(total)
        if total is NotImplemented:
            norms = [norm(tensor, order) for tensor in given]
            total = norm(stack(norms), order)
        if error_if_nonfinite and not math.isfinite(float(total)):
            raise RuntimeError(
                f"the total norm of order {norm_type} for gradients from `parameters` is non-finite ({float(total)}), "
                "so it cannot be clipped: pass error_if_nonfinite=False to scale by it anyway"
            )
    return total


@checked
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,  # noqa: ARG001  PyTorch's signature
) -> None:
    """Scale the gradients by ``max_norm / (total_norm + 1e-6)`` where that is below 1.

    Raises
    ------
    SettingError
        If `max_norm` is below 0.
    """
    _check_bound(max_norm, "max_norm")
    _scale_down(_grads(parameters), max_norm, total_norm)


def _scale_down(grads: list[Any], max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        if total_norm.is_cuda:
            grads = changed_on_device(
                grads, lambda arrays: multi_tensor.clip_by_norm(arrays, total_norm.array, max_norm)
            )
        if grads:
            scale = clamp(max_norm / (total_norm + 1e-6), max=1.0)
            for grad in grads:
                grad.mul_(scale.to(grad.device))


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
        The norm before scaling, of no dimension, on the device of the gradients.

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
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _scale_down(grads, max_norm, total)
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
        for grad in changed_on_device(
            _grads(parameters), lambda arrays: multi_tensor.clip_by_value(arrays, clip_value)
        ):
            grad.copy_(clamp(grad, -clip_value, clip_value))


@checked
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one vector, joined to them in the graph."""
    return cat([parameter.reshape(-1) for parameter in _tensors(parameters)])


@checked
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the elements of all parameters from one vector, as `parameters_to_vector` gives it.

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
            target.data = vec.detach()[start:stop].reshape(target.shape).to(target.dtype)
            start = stop
