"""Jacobians and Hessians, and their products with tensors."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.products import by_elements, zeros_of
from lucid.errors import DtypeError
from lucid.func.trees import refilled
from lucid.numpy.autograd.crossing import conjugated, derivatives, of_argument, run_of
from lucid.numpy.autograd.products import make_hvp
from lucid.numpy.border import called
from lucid.tensor.numpy_calls.ufuncs import is_complex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.numpy.autograd.crossing import Positions


def _jacobian(function: Callable[[Any], Any], x: object) -> Any:
    run = run_of(function, x, what="jacobian")
    graph = run.recorded()
    blocks: list[Any] = []
    for position, output in enumerate(run.outputs):
        if is_complex(output):
            raise DtypeError(
                "jacobian: expected a real result, got a complex one: take that of its real and imaginary parts, or "
                "use make_vjp"
            )

        def row(unit: object, position: int = position) -> list[Any]:
            vectors = [unit if k == position else zeros_of(each) for k, each in enumerate(run.outputs)]
            return run.pull(vectors, create_graph=graph, keep=True)

        blocks.append(derivatives(conjugated(refilled(run.primals, by_elements(output, row, run.inputs)))))
    return refilled(run.output, blocks)


def jacobian(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function that computes the Jacobian, of the shape of the result followed by that of the argument.

    Parameters
    ----------
    fun : callable
        Returns real arrays.
    argnum : int, or tuple or list of int

    Raises
    ------
    DtypeError
        If the result is complex.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import jacobian
    >>> jacobian(lambda x: np.sum(x) * x)(np.array([1.0, 2.0]))
    array([[4., 1.],
           [2., 5.]])
    """
    return of_argument("jacobian", _jacobian, fun, argnum)


def hessian(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian: the Jacobian of the Jacobian.

    Parameters
    ----------
    fun, argnum
        As in `jacobian`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import hessian
    >>> hessian(lambda x: np.prod(x) * x[0])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """

    def hessian(fun: Callable[[Any], Any], x: object) -> Any:
        return _jacobian(functools.partial(_jacobian, fun), x)

    return of_argument("hessian", hessian, fun, argnum)


def hessian_tensor_product(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function of the arguments and a last one, `v`, that computes the product of the Hessian with `v`.

    Parameters
    ----------
    fun, argnum
        As in `grad`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import hessian_tensor_product
    >>> hessian_tensor_product(lambda x: np.prod(x) * x[0])(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([4., 2.])
    """
    at = make_hvp(fun, argnum)

    def product(*args: object, **kwargs: object) -> Any:
        return at(*args[:-1], **kwargs)[0](args[-1])

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of the arguments and a last one, `v`, that computes the product of `v` with the Jacobian.

    Parameters
    ----------
    fun, argnum
        As in `jacobian`; the product is over all dimensions of `v`, the first ones of the result.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import tensor_jacobian_product
    >>> tensor_jacobian_product(lambda x: np.sum(x) * x)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([4., 1.])
    """

    def product(*args: Any, **kwargs: object) -> Any:
        *rest, vector = args

        def contracted(*inputs: object, **named: Any) -> Any:
            return called("tensordot", np.tensordot, (vector, fun(*inputs, **named), np.ndim(vector)), {})

        return jacobian(contracted, argnum)(*rest, **kwargs)

    return product


vector_jacobian_product = tensor_jacobian_product
