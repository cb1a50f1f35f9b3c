"""Derivatives of functions as functions: gradients, and products with Jacobians from either side.

A derivative is on the graph as far as it depends on tensors that require grad outside of it, and where grad mode is on
there; so it can be differentiated again, by these functions or by `backward`. Arguments and results may be nested in
tuples, lists, dictionaries and dataclasses, of which those to differentiate by hold tensors alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec

from lucid.arguments import checked, unfit
from lucid.autograd.base import wrap
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import enable_grad, inference_mode, is_grad_enabled
from lucid.autograd.products import Level, Running, pulled, zeros_of
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import ones_beside
from lucid.errors import ArgumentError, DtypeError, GraphError, SettingError, ShapeError
from lucid.func.trees import chosen, leaves, matching, refilled, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor


P = ParamSpec("P")


class Run:
    """One run of a function, recorded from those of its arguments that it is differentiated by.

    Parameters
    ----------
    func : callable
    args, kwargs : tuple, dict
        What it is called with.
    argnums : int or tuple of int
        Which of `args`.
    has_aux : bool
        Whether it returns beside its output what is not differentiated.
    what : str
        Who asks, for messages.

    Attributes
    ----------
    primals : object
        What it is differentiated by: the argument, or a tuple of them.
    inputs : list of Tensor
        Their leaves, as the function got them.
    output, aux : object
        What it has returned.
    outputs : list of Tensor
        The leaves of `output`.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...],
        *,
        has_aux: bool,
        what: str,
    ) -> None:
        positions = chosen(args, argnums, what)
        self.what = what
        self.primals: Any = tuple([args[k] for k in positions]) if isinstance(argnums, tuple) else args[positions[0]]
        role = f"{what}: primals, what is differentiated by"
        for leaf in tensors(self.primals, role):
            check_dtype(leaf, role)
        self.level = Level(recording=is_grad_enabled())
        arguments = [*args]
        self.inputs: list[Any] = []
        with inference_mode(False), enable_grad():
            for position in positions:
                arguments[position] = map_leaves(args[position], self._enter)
            try:
                with Running(self.level):
                    result = func(*arguments, **kwargs)
            except BaseException:
                self.level.put_back()
                raise
            result = refilled(result, self.level.put_back(leaves(result)))
        self.aux: Any = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
                raise SettingError(f"{what}: has_aux=True: expected the function to return a tuple: (output, aux)")
            result, self.aux = result  # pyright: ignore[reportUnknownVariableType]
        self.output: Any = result
        self.outputs = tensors(result, f"{what}: what the function returned")

    def _enter(self, leaf: Tensor) -> Tensor:
        entered = self.level.enter(leaf)
        self.inputs.append(entered)
        return entered

    def recorded(self, vectors: Sequence[Any] = ()) -> bool:
        """Return whether a derivative is to be on the graph: something that it may depend on is, outside."""
        if not is_grad_enabled():
            return False
        beside = [leaf for leaf in leaves(self.aux) if hasattr(leaf, "edge")]
        return any(live_edge(v) is not None for v in vectors) or self.level.reaches_outside([*self.outputs, *beside])

    def pull(self, vectors: Sequence[Any], *, create_graph: bool, keep: bool) -> list[Any]:
        """Return the product of `vectors`, one for each output, with the Jacobian, for each input."""
        grads = pulled(self.outputs, self.inputs, vectors, create_graph=create_graph, keep=keep)
        return self._outside(grads, self.inputs)

    def transposed(self) -> Callable[[Sequence[Any], bool, bool], list[Any]]:
        """Return a function for the product of the Jacobian with vectors, one for each input; for each output.

        The product of vectors with the Jacobian is linear in these; so the result is its derivative by them.
        """
        with inference_mode(False), enable_grad(), self.level.opened():
            cotangents = [self.level.enter(zeros_of(output)) for output in self.outputs]
            grads = pulled(self.outputs, self.inputs, cotangents, create_graph=True)

        def push(vectors: Sequence[Any], create_graph: bool, strict: bool) -> list[Any]:
            products = pulled(grads, cotangents, vectors, create_graph=create_graph, keep=True)
            if strict and None in products:
                raise GraphError(
                    f"{self.what}: strict=True: output {[*products].index(None)} of the function is independent of the "
                    "inputs, which is not allowed with strict=True"
                )
            return self._outside(products, self.outputs)

        return push

    def _outside(self, values: Sequence[Any], like: Sequence[Any]) -> list[Any]:
        """Return derivatives as they are outside, zeros for None."""
        return [
            zeros_of(x) if value is None else self.level.leave(value) for value, x in zip(values, like, strict=True)
        ]

    def leave(self, tree: Any) -> Any:
        """Return the function's result as seen outside of this level."""
        return map_leaves(tree, lambda leaf: self.level.leave(leaf) if hasattr(leaf, "edge") else leaf)


def check_real(values: Sequence[Any], what: str) -> None:
    """Refuse complex tensors, as their Jacobian has no single meaning, and dtypes without derivatives."""
    for tensor in values:
        if tensor.array.dtype.kind == "c":
            raise DtypeError(f"{what}: expected real tensors, got {tensor.dtype}: use vjp or jvp")
        check_dtype(tensor, what)


def check_dtype(tensor: Any, what: str) -> None:
    """Refuse a tensor that has no derivatives."""
    if tensor.array.dtype.kind not in "fcV":
        raise DtypeError(
            f"{what}: only Tensors of floating point and complex dtype can require gradients, got {tensor.dtype}"
        )


def check_function(func: object) -> None:
    """Raise unless `func` is callable."""
    if not callable(func):
        raise unfit(func, "a callable", "func")


@checked
def grad(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Return a function that computes the gradient of `func`.

    Parameters
    ----------
    func : callable
        Returns a tensor of no dimension.
    argnums : int or tuple of int
        By which arguments to differentiate; a tuple gives a tuple of gradients.
    has_aux : bool
        Whether `func` returns ``(output, aux)``; what is returned is ``(gradient, aux)`` then.

    Raises
    ------
    GraphError
        If the output is no real tensor of no dimension.
    SettingError
        If `argnums` does not fit the arguments.
    DtypeError
        If an argument that is differentiated by has no derivatives.

    Examples
    --------
    >>> import lucid
    >>> from lucid.func import grad
    >>> grad(lambda x: x**3)(lucid.tensor(2.0)), grad(grad(lambda x: x**3))(lucid.tensor(2.0))
    (tensor(12.), tensor(12.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: P.args, **kwargs: P.kwargs) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


@checked
def grad_and_value(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes the gradient of `func` and its value.

    Parameters
    ----------
    func, argnums, has_aux
        As in `grad`; with `has_aux` what is returned is ``(gradient, (output, aux))``.

    Examples
    --------
    >>> import lucid
    >>> lucid.func.grad_and_value(lambda x, y: x * y, argnums=(0, 1))(lucid.tensor(2.0), lucid.tensor(5.0))
    ((tensor(5.), tensor(2.)), tensor(10.))
    """
    check_function(func)

    @functools.wraps(func)
    def both(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, Any]:
        run = Run(func, args, kwargs, argnums, has_aux=has_aux, what="grad")
        output = run.output
        if not hasattr(output, "edge") or output.array.ndim or output.array.dtype.kind not in "fV":
            got = f"{output.dtype} of shape {tuple(output.shape)}" if hasattr(output, "edge") else type(output).__name__
            raise GraphError(
                f"grad: expected func to return a scalar tensor, real and of no dimension, got {got}: reduce it, or "
                "use vjp or jacrev"
            )
        create_graph = run.recorded()
        grads = run.pull([wrap(ones_beside(output.array))], create_graph=create_graph, keep=create_graph)
        value = run.leave(output)
        return refilled(run.primals, grads), (value, run.leave(run.aux)) if has_aux else value

    return both


@checked
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and a function that gives products of vectors with its Jacobian.

    Parameters
    ----------
    func : callable
        Returns tensors.
    *primals
        Its arguments, all of which it is differentiated by.
    has_aux : bool
        Whether `func` returns ``(output, aux)``; `aux` then comes third.

    Returns
    -------
    output, vjp_fn[, aux]
        ``vjp_fn(cotangents)`` takes what has the structure and shapes of the output, any number of times, and returns
        a tuple with an entry for each of `primals`. With ``retain_graph=False`` it is the last time; `create_graph`
        says whether the result is on the graph where it depends on what is, by default as grad mode does.

    Examples
    --------
    >>> import lucid
    >>> y, vjp_fn = lucid.func.vjp(lambda x: x**2, lucid.tensor([1.0, 2.0]))
    >>> y, vjp_fn(lucid.tensor([1.0, 10.0]))
    (tensor([1., 4.]), (tensor([ 2., 40.]),))
    """
    check_function(func)
    run = Run(func, primals, {}, (*range(len(primals)),), has_aux=has_aux, what="vjp")
    for output in run.outputs:
        check_dtype(output, "vjp: what the function returned")

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple[Any, ...]:
        """Return the product of `cotangents` with the Jacobian, for each of the arguments."""
        vectors = matching(cotangents, run.output, "vjp_fn: cotangents")
        graph = run.recorded(vectors) if create_graph is None else create_graph
        return refilled(run.primals, run.pull(vectors, create_graph=graph, keep=retain_graph))

    output = run.leave(run.output)
    return (output, vjp_fn, run.leave(run.aux)) if has_aux else (output, vjp_fn)


@checked
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and the product of its Jacobian with `tangents`.

    Parameters
    ----------
    func : callable
        Returns tensors.
    primals : tuple
        Its arguments, all of which it is differentiated by.
    tangents : tuple
        Of the structure and shapes of `primals`.
    strict : bool
        Whether an output that does not depend on the arguments raises, rather than give zeros.
    has_aux : bool
        Whether `func` returns ``(output, aux)``; `aux` then comes third.

    Notes
    -----
    There is no forward mode: two backward passes are run, and every op must be differentiable twice.

    Raises
    ------
    GraphError
        Under `strict`.
    ShapeError
        If `tangents` do not fit `primals`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.func.jvp(lambda x: x.sum() * x, (x,), (lucid.tensor([1.0, 0.0]),))
    (tensor([3., 6.]), tensor([4., 2.]))
    """
    check_function(func)
    if not isinstance(primals, tuple):
        raise unfit(primals, "a tuple, so that func(*primals) is right", "primals")
    inputs: tuple[Any, ...] = primals  # pyright: ignore[reportUnknownVariableType]
    tensors(inputs, "jvp: primals")
    if not leaves(inputs):
        raise ArgumentError("jvp: primals: expected at least one Tensor, got none")
    vectors = matching(tangents, inputs, "jvp: tangents")
    run = Run(func, inputs, {}, tuple(range(len(inputs))), has_aux=has_aux, what="jvp")
    products = run.transposed()(vectors, run.recorded(vectors), strict)
    output = run.leave(run.output)
    pushed = refilled(run.output, products)
    return (output, pushed, run.leave(run.aux)) if has_aux else (output, pushed)


@checked
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)``, and a function that gives products of its Jacobian with vectors.

    Parameters
    ----------
    func : callable
        Returns tensors.
    *primals
        Its arguments, all of which it is differentiated by.

    Returns
    -------
    output, jvp_fn
        ``jvp_fn(*tangents)`` takes what has the structure and shapes of `primals`, any number of times, without
        running `func` again.

    Examples
    --------
    >>> import lucid
    >>> y, jvp_fn = lucid.func.linearize(lambda x: x.sum() * x, lucid.tensor([1.0, 2.0]))
    >>> jvp_fn(lucid.tensor([1.0, 0.0])), jvp_fn(lucid.tensor([0.0, 1.0]))
    (tensor([4., 2.]), tensor([1., 5.]))
    """
    check_function(func)
    run = Run(func, primals, {}, tuple(range(len(primals))), has_aux=False, what="linearize")
    push = run.transposed()

    def jvp_fn(*tangents: Any) -> Any:
        """Return the product of the Jacobian with `tangents`."""
        if len(tangents) != len(primals):
            raise ShapeError(f"jvp_fn: expected {len(primals)} tangents, one for each primal, got {len(tangents)}")
        vectors = matching(tangents, primals, "jvp_fn: tangents")
        return refilled(run.output, push(vectors, run.recorded(vectors), False))

    return run.leave(run.output), jvp_fn
