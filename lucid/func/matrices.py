"""Jacobians and Hessians of functions as functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec

from lucid.arguments import checked
from lucid.autograd.products import by_elements, zeros_of
from lucid.func.batching import check_chunk_size, check_randomness, drawing
from lucid.func.derivatives import Run, check_function, check_real
from lucid.func.trees import refilled
from lucid.ops.shape.axes import permute

if TYPE_CHECKING:
    from collections.abc import Callable


P = ParamSpec("P")


@checked
def jacrev(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `func` by a backward pass for each element of its outputs.

    Parameters
    ----------
    func : callable
        Returns tensors.
    argnums : int or tuple of int
        By which arguments to differentiate.
    has_aux : bool
        Whether `func` returns ``(output, aux)``; what is returned is ``(jacobian, aux)`` then.
    chunk_size : int, optional
        Makes no difference: passes are run one after the other.

    Returns
    -------
    callable
        For each tensor of the output it gives what has the structure of the argument, or of a tuple of arguments, with
        derivatives of the shape of the output followed by that of the argument.

    Examples
    --------
    >>> import lucid
    >>> lucid.func.jacrev(lambda x: x.sum() * x)(lucid.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    check_function(func)
    check_chunk_size("jacrev", chunk_size)

    @functools.wraps(func)
    def jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        run = Run(func, args, kwargs, argnums, has_aux=has_aux, what="jacrev")
        check_real([*run.inputs, *run.outputs], "jacrev")
        create_graph = run.recorded()
        blocks: list[Any] = []
        for position, output in enumerate(run.outputs):

            def row(unit: Any, position: int = position) -> list[Any]:
                vectors = [unit if k == position else zeros_of(other) for k, other in enumerate(run.outputs)]
                return run.pull(vectors, create_graph=create_graph, keep=True)

            blocks.append(refilled(run.primals, by_elements(output, row, run.inputs)))
        result = refilled(run.output, blocks)
        return (result, run.leave(run.aux)) if has_aux else result

    return jacobian


@checked
def jacfwd(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `func` by a backward pass for each element of its arguments.

    It is the faster one where the outputs have more elements than the arguments; as in `jvp`, every op must be
    differentiable twice.

    Parameters
    ----------
    func, argnums, has_aux
        As in `jacrev`.
    randomness : str
        "error" if `func` must not draw random numbers. With "same" and "different" it may: it runs once, so that all
        columns are derivatives of one function.

    Examples
    --------
    >>> import lucid
    >>> lucid.func.jacfwd(lambda x: x.sum() * x)(lucid.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    check_function(func)
    check_randomness("jacfwd", randomness)

    @functools.wraps(func)
    def jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        with drawing("jacfwd", randomness, {}):
            run = Run(func, args, kwargs, argnums, has_aux=has_aux, what="jacfwd")
        check_real([*run.inputs, *run.outputs], "jacfwd")
        push, create_graph = run.transposed(), run.recorded()
        columns: list[list[Any]] = []
        for position, x in enumerate(run.inputs):

            def column(unit: Any, position: int = position) -> list[Any]:
                vectors = [unit if k == position else zeros_of(other) for k, other in enumerate(run.inputs)]
                return push(vectors, create_graph, False)

            inner = x.array.ndim
            columns.append(
                [
                    # the argument's dimensions came first
                    permute(block, (*range(inner, block.array.ndim), *range(inner)))
                    for block in by_elements(x, column, run.outputs)
                ]
            )
        blocks = [refilled(run.primals, [column[k] for column in columns]) for k in range(len(run.outputs))]
        result = refilled(run.output, blocks)
        return (result, run.leave(run.aux)) if has_aux else result

    return jacobian


@checked
def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """Return a function that computes the Hessian of `func`: the Jacobian of its Jacobian, by backward passes.

    Parameters
    ----------
    func, argnums
        As in `jacrev`.

    Examples
    --------
    >>> import lucid
    >>> lucid.func.hessian(lambda x: x.prod() * x[0])(lucid.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
