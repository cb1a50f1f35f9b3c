"""Gradients checked against finite differences: `gradcheck`, and `gradgradcheck` for second derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked, unfit
from lucid.autograd.base import TensorBase, describe, wrap
from lucid.autograd.differences import GradcheckError, Point, differentiable, like, random, sequence
from lucid.autograd.engine.node import as_leaf
from lucid.autograd.entry import grad
from lucid.autograd.modes.state import enable_grad
from lucid.errors import SettingError, ShapeError, warn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

# Jacobians of up to this many elements are compared element by element unless the caller decides.
SMALL_JACOBIAN = 10_000


@checked
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool | None = None,
) -> bool:
    """Return whether backward of `func` gives its Jacobian, as (f(x + eps) - f(x - eps)) / (2 eps) finds it.

    Parameters
    ----------
    func : callable
        Takes `inputs`, returns a tensor or a sequence of values of which the tensors that require grad are checked.
    inputs : Tensor or sequence
        The arguments. Those tensors that require grad are checked, and moved in place by `eps` meanwhile; they should
        be float64 or complex128, since differences of lower precisions are mostly rounding.
    eps : float
        How far an element is moved, in both directions; a complex one also along the imaginary axis.
    atol, rtol : float
        An element passes if ``|backward - difference| <= atol + rtol * |difference|``.
    raise_exception : bool
        Whether a failure raises instead of giving False.
    nondet_tol : float
        The largest difference between two backward passes that is still called deterministic.
    check_undefined_grad : bool
        Whether to check that an output without a gradient, whose hooks and backward get None, counts as one with a
        gradient of zeros.
    fast_mode : bool, optional
        False compares the Jacobian element by element; True compares the slope along one random direction, weighted
        by random gradients of the outputs. By default the first for small Jacobians, the second for large ones.

    Returns
    -------
    bool
        True if all gradients pass.

    Raises
    ------
    GradcheckError
        If one does not, naming output, input, the worst element and both its values.
    OutputsChangedError
        If the outputs change their shapes or dtypes when the inputs are moved; an AssertionError too.
    ValueError
        If no input requires grad, or one lies in overlapping or read-only memory and so cannot be moved.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradcheck(lambda x: x * x, x)
    True
    >>> lucid.autograd.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
    False
    """
    arguments = sequence(inputs)
    moved = _checked_inputs(func, arguments)
    try:
        with enable_grad():
            check = Point(func, arguments, moved, eps, atol, rtol)
            check.deterministic(nondet_tol)
            if check_undefined_grad:
                check.undefined_gradients()
            size = sum(x.array.size for _, x in moved) * sum(out.array.size for _, out in check.outputs)
            if fast_mode or (fast_mode is None and size > SMALL_JACOBIAN):
                check.slopes()
            else:
                check.jacobians()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@checked
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool | None = None,
) -> bool:
    """Return whether the gradients of `func` have the gradients that finite differences of them give.

    Parameters
    ----------
    func : callable
        As for :func:`gradcheck`; its derivatives must be differentiable.
    inputs : Tensor or sequence
        As for :func:`gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        The gradients of the outputs that require grad; random if left out. Those that require grad are checked as
        inputs too, as random ones are; the others are constants.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, fast_mode
        As for :func:`gradcheck`.

    Returns
    -------
    bool
        True if all second derivatives pass.

    Raises
    ------
    GradcheckError
        If one does not.
    ValueError
        As for :func:`gradcheck`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradgradcheck(lambda x: x * x * x, x)
    True
    """
    arguments = sequence(inputs)
    moved = _checked_inputs(func, arguments)
    with enable_grad():
        outputs = differentiable(func(*arguments))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        upstream = tuple(as_leaf(wrap(like(random(rng, out.array), out.array))) for _, out in outputs)
    else:
        upstream = sequence(grad_outputs)
    count = len(arguments)
    wanted = [number for number, _ in moved]

    def gradients(*values: Any) -> tuple[Any, ...]:
        roots = [out for _, out in differentiable(func(*values[:count]))]
        grads = grad(roots, [values[number] for number in wanted], values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        (*arguments, *upstream),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        fast_mode=fast_mode,
    )


def _checked_inputs(func: object, arguments: tuple[Any, ...]) -> list[tuple[int, TensorBase]]:
    """Return the inputs that require grad, each with its number; raise unless `func` can be called."""
    if not callable(func):
        raise unfit(func, "a callable", "func")
    moved = differentiable(arguments)
    if not moved:
        raise SettingError("inputs: gradcheck expects at least one input that requires grad, and got none")
    for number, x in moved:
        array = x.array
        if array.dtype not in (np.float64, np.complex128):
            warn(
                f"gradcheck: input {number} has {describe(x)}; finite differences need float64 or complex128, and will "
                "likely fail in lower precision"
            )
        repeated = any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))
        if repeated or not getattr(array.flags, "writeable", True):
            raise ShapeError(
                f"gradcheck: input {number} ({describe(x)}) lies in overlapping or read-only memory (expand), so that "
                "its elements cannot be moved one by one: pass a contiguous copy, made by clone()"
            )
    return moved
