"""Optimizers of nested parameters, as functions: they take a gradient and a start, and return the last point.

All take ``grad(x, i)``, the gradient in step `i`, what has the form of the start `x0`, and a ``callback(x, i, g)`` that
is called before each step. They are made of differentiated functions, so that what they return has derivatives too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lucid.numpy as np
from lucid.numpy.autograd.misc.flatten import flatten

if TYPE_CHECKING:
    from collections.abc import Callable

    # of the vector, its gradient and the number of the step: the next vector
    Step = Callable[[Any, Any, int], Any]

__all__ = ["adam", "rmsprop", "sgd"]


def _steps(grad: Callable[..., Any], x0: object, callback: Callable[..., Any] | None, count: int, step: Step) -> Any:
    """Return the point after `count` steps, each on flat vectors."""
    x, unflatten = flatten(x0)
    for i in range(count):
        g = grad(unflatten(x), i)
        if callback:
            callback(unflatten(x), i, g)
        x = step(x, flatten(g)[0], i)
    return unflatten(x)


def sgd(
    grad: Callable[..., Any],
    x0: object,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Return the last point of gradient descent with momentum: each velocity keeps the share `mass` of the one before.

    Parameters
    ----------
    grad, x0, callback
        As the module says.
    num_iters : int
    step_size, mass : float

    Examples
    --------
    >>> from lucid.numpy.autograd.misc.optimizers import sgd
    >>> abs(float(sgd(lambda x, i: 2 * x, 1.0))) < 1e-3
    True
    """
    velocity: Any = 0.0

    def step(x: Any, g: Any, _: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1 - mass) * g
        return x + step_size * velocity

    return _steps(grad, x0, callback, num_iters, step)


def rmsprop(
    grad: Callable[..., Any],
    x0: object,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return the last point of RMSprop: gradients over the root of the average of their squares, first set to one.

    Parameters
    ----------
    grad, x0, callback
        As the module says.
    num_iters : int
    step_size, gamma, eps : float

    Examples
    --------
    >>> from lucid.numpy.autograd.misc.optimizers import rmsprop
    >>> abs(float(rmsprop(lambda x, i: 2 * x, 1.0))) < 0.1
    True
    """
    squares: Any = 1.0

    def step(x: Any, g: Any, _: int) -> Any:
        nonlocal squares
        squares = gamma * squares + (1 - gamma) * g**2
        return x - step_size * g / (np.sqrt(squares) + eps)

    return _steps(grad, x0, callback, num_iters, step)


def adam(
    grad: Callable[..., Any],
    x0: object,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return the last point of Adam: averaged gradients over the root of averaged squares, both free of their start.

    Parameters
    ----------
    grad, x0, callback
        As the module says.
    num_iters : int
    step_size, b1, b2, eps : float

    Examples
    --------
    >>> from lucid.numpy.autograd.misc.optimizers import adam
    >>> abs(float(adam(lambda x, i: 2 * x, 1.0, step_size=0.1))) < 0.1
    True
    """
    first: Any = 0.0
    second: Any = 0.0

    def step(x: Any, g: Any, i: int) -> Any:
        nonlocal first, second
        first = b1 * first + (1 - b1) * g
        second = b2 * second + (1 - b2) * g**2
        mean, square = first / (1 - b1 ** (i + 1)), second / (1 - b2 ** (i + 1))
        return x - step_size * mean / (np.sqrt(square) + eps)

    return _steps(grad, x0, callback, num_iters, step)
