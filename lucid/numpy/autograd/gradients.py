"""Gradients of functions that return one number, and of arrays element by element."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd import checkpoint as checkpoints
from lucid.errors import DtypeError, warn
from lucid.func.trees import leaves, refilled
from lucid.numpy.autograd.crossing import as_tensors, derivatives, of_argument, ones_of, outside, pulled_back, run_of
from lucid.numpy.border import called
from lucid.tensor.numpy_calls.ufuncs import is_complex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.func.derivatives import Run
    from lucid.numpy.autograd.crossing import Positions


def one_number(run: Run, name: str) -> None:
    """Refuse outputs that are not one real number."""
    numbers = sum(output.array.size * (2 if is_complex(output) else 1) for output in run.outputs)
    if numbers != 1 or run.outputs[0].array.dtype.kind not in "fViu":
        got = ", ".join(f"{each.array.dtype} of shape {each.array.shape}" for each in run.outputs) or "nothing"
        raise DtypeError(
            f"{name} only applies to real scalar-output functions, this one returned {got}: reduce it, or use "
            "jacobian, elementwise_grad or holomorphic_grad"
        )


def gradient_of(
    function: Callable[[Any], Any], x: object, name: str = "grad", *, has_aux: bool = False
) -> tuple[Any, Run]:
    """Return the gradient of a function of one argument, and its run."""
    run = run_of(function, x, what=name, has_aux=has_aux)
    one_number(run, name)
    return derivatives(refilled(run.primals, pulled_back(run, ones_of(run.outputs), keep=False))), run


def grad(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function that computes the gradient of `fun`, of the form of the argument.

    Parameters
    ----------
    fun : callable
        Returns one real number, of any number of dimensions.
    argnum : int, or tuple or list of int

    Raises
    ------
    DtypeError
        If the result is not one real number, or the argument holds integers.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import grad
    >>> float(grad(lambda x: x**3)(2.0)), float(grad(grad(lambda x: x**3))(2.0))
    (12.0, 12.0)
    >>> grad(lambda p: np.sum(p["w"] ** 2))({"w": np.array([1.0, 2.0])})
    {'w': array([2., 4.])}
    """

    def grad(fun: Callable[[Any], Any], x: object) -> Any:
        return gradient_of(fun, x)[0]

    return of_argument("grad", grad, fun, argnum)


def value_and_grad(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes the value of `fun` and its gradient, as `scipy.optimize` takes them.

    Parameters
    ----------
    fun, argnum
        As in `grad`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import value_and_grad
    >>> value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """

    def value_and_grad(fun: Callable[[Any], Any], x: object) -> tuple[Any, Any]:
        gradient, run = gradient_of(fun, x, "value_and_grad")
        return outside(run.leave(run.output)), gradient

    return of_argument("value_and_grad", value_and_grad, fun, argnum)


def grad_and_aux(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes the gradient of the first of two results, and the second as it is.

    Parameters
    ----------
    fun : callable
        Returns ``(output, aux)``.
    argnum : int, or tuple or list of int

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import grad_and_aux
    >>> grad_and_aux(lambda x: (np.sum(x**2), x + 1))(np.array([1.0, 2.0]))
    (array([2., 4.]), array([2., 3.]))
    """

    def grad_and_aux(fun: Callable[[Any], Any], x: object) -> tuple[Any, Any]:
        gradient, run = gradient_of(fun, x, "grad_and_aux", has_aux=True)
        return gradient, outside(run.leave(run.aux))

    return of_argument("grad_and_aux", grad_and_aux, fun, argnum)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return a function that computes the gradient of `fun` by the argument of a name.

    Parameters
    ----------
    fun : callable
        As in `grad`.
    argname : str
        A parameter that may be given by position.

    Raises
    ------
    ValueError
        If it has no such parameter.

    Examples
    --------
    >>> from lucid.numpy.autograd import grad_named
    >>> float(grad_named(lambda a, b: a * b, "b")(3.0, 4.0))
    3.0
    """
    # the signature of a bound method has no `self`
    parameters = inspect.signature(fun).parameters.values()
    return grad(fun, [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD].index(argname))


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return a function that computes the gradients of `fun` by all its arguments, by their names.

    Parameters
    ----------
    fun : callable
        As in `grad`; defaults of its parameters count as arguments.

    Examples
    --------
    >>> from lucid.numpy.autograd import multigrad_dict
    >>> {name: float(g) for name, g in multigrad_dict(lambda a, b=2.0: a * b)(3.0).items()}
    {'a': 2.0, 'b': 3.0}
    """
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def gradients(*args: object, **kwargs: object) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_all(arguments: dict[str, Any]) -> Any:
            new = inspect.BoundArguments(signature, arguments)  # pyright: ignore[reportArgumentType]
            return fun(*new.args, **new.kwargs)

        return grad(of_all)(dict(bound.arguments))

    return gradients


def elementwise_grad(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function that computes the sum over each column of the Jacobian, in one pass.

    It is the derivative of each element where each element of the result depends on one of the argument.

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
    >>> from lucid.numpy.autograd import elementwise_grad
    >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def elementwise_grad(fun: Callable[[Any], Any], x: object) -> Any:
        run = run_of(fun, x, what="elementwise_grad")
        if any(is_complex(output) for output in run.outputs):
            raise DtypeError("elementwise_grad only applies to real-output functions, this one returned complex ones")
        return derivatives(refilled(run.primals, pulled_back(run, ones_of(run.outputs), keep=False)))

    return of_argument("elementwise_grad", elementwise_grad, fun, argnum)


egrad = elementwise_grad


def holomorphic_grad(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function that computes the complex derivative of a holomorphic function.

    Parameters
    ----------
    fun : callable
        Returns one complex number.
    argnum : int, or tuple or list of int

    Warns
    -----
    UserWarning
        If the argument is not complex.

    Examples
    --------
    >>> from lucid.numpy.autograd import holomorphic_grad
    >>> complex(holomorphic_grad(lambda z: z * z)(1.0 + 2.0j))
    (2+4j)
    """

    def holomorphic_grad(fun: Callable[[Any], Any], x: object) -> Any:
        if not all(is_complex(leaf) for leaf in leaves(as_tensors(x))):
            warn("Input to holomorphic_grad is not complex", UserWarning)
        return gradient_of(lambda x: called("real", np.real, (fun(x),), {}), x, "holomorphic_grad")[0]

    return of_argument("holomorphic_grad", holomorphic_grad, fun, argnum)


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun` without the memory for its derivative: it is run again for that.

    Parameters
    ----------
    fun : callable
        Must do the same each time that it is called; `lucid.utils.checkpoint.checkpoint` says more.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import checkpoint, grad
    >>> float(grad(checkpoint(lambda x: np.exp(x) ** 2))(0.0))
    2.0
    """

    @functools.wraps(fun)
    def checkpointed(*args: object, **kwargs: object) -> Any:
        # bound first: they may be named as settings of a checkpoint are
        return checkpoints.checkpoint(functools.partial(fun, **kwargs), *args, use_reentrant=False)

    return checkpointed
