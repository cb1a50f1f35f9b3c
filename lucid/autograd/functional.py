"""Derivatives of whole functions: products with Jacobian and Hessian from either side, and both as matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among, checked, unfit
from lucid.autograd.base import TensorBase, describe, is_tuple, wrap
from lucid.autograd.engine.node import as_leaf
from lucid.autograd.modes.state import enable_grad, thread
from lucid.autograd.modes.state import set_grad_enabled as grad_mode
from lucid.autograd.products import by_elements, pulled, zeros_of
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.views import detached, live_edge
from lucid.base.arrays import ones_beside
from lucid.errors import GraphError, HookTypeError, NotDifferentiableError, SettingError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors = tuple[Any, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, what: str) -> tuple[bool, Tensors]:
    """Return whether `value` is a tuple, and it as a tuple of tensors.

    Raises
    ------
    HookTypeError
        If it is neither a tensor nor a tuple of tensors.
    """
    several = is_tuple(value)
    entries: Tensors = value if several else (value,)
    for entry in entries:
        if not isinstance(entry, TensorBase):
            raise HookTypeError(f"{what}: expected a Tensor or a tuple of Tensors, got {type(entry).__name__}")
    return several, entries


def _joined(inputs: Tensors, *, create_graph: bool) -> Tensors:
    """Return inputs for the function: new tensors that require grad, on the graph under `create_graph`."""
    # a node of its own on the graph, so that the gradient is that of this use
    return tuple(
        GRAPH.view(x, shape=x.array.shape) if create_graph and live_edge(x) is not None else as_leaf(detached(x))
        for x in inputs
    )


def _filled(grads: Tensors, like: Tensors, what: str, *, strict: bool, create_graph: bool) -> Tensors:
    """Return `grads` with zeros for None; under `strict` an output independent of the inputs raises."""
    filled: list[Any] = []
    for index, (entry, tensor) in enumerate(zip(grads, like, strict=True)):
        if strict and (entry is None or (create_graph and live_edge(entry) is None)):
            order = "the function" if entry is None else "its derivative"
            raise GraphError(f"{what}: {order} is independent of number {index}, which strict=True does not allow")
        filled.append(zeros_of(tensor) if entry is None else entry)
    return tuple(filled)


def _outputs(func: Callable[..., Any], inputs: Tensors, what: str, *, strict: bool) -> tuple[bool, Tensors]:
    """Return ``func(*inputs)``."""
    if not callable(func):
        raise unfit(func, "a callable", "func")
    several, outputs = _as_tuple(func(*inputs), f"{what}: what func returned")
    for index, output in enumerate(outputs):
        if strict and live_edge(output) is None:
            raise GraphError(
                f"{what}: output {index} of func does not require gradients: it must be computed from the inputs in a "
                "differentiable way under strict=True"
            )
    return several, outputs


def _vector(v: Any, like: Tensors, several: bool, what: str) -> Tensors:
    """Return `v` as a tuple that fits `like`; ones if it is None and `like` is one element.

    Raises
    ------
    GraphError
        If it is needed and not given.
    ShapeError
        If it does not fit.
    """
    if v is None:
        if several or like[0].array.size != 1:
            raise GraphError(f"{what}: the vector v can only be None for a single Tensor with a single element")
        return (wrap(ones_beside(like[0].array)),)
    _, vectors = _as_tuple(v, f"{what}: v")
    if len(vectors) != len(like):
        raise ShapeError(f"{what}: v: expected {len(like)} tensors, got {len(vectors)}")
    for index, (vector, tensor) in enumerate(zip(vectors, like, strict=True)):
        if vector.array.shape != tensor.array.shape:
            raise ShapeError(
                f"{what}: entry {index} of v: expected shape {tuple(tensor.array.shape)}, got "
                f"{tuple(vector.array.shape)}"
            )
    return vectors


def _final(values: Tensors, several: bool, *, create_graph: bool) -> Any:
    """Return the results as the caller wants them."""
    results = values if create_graph else tuple(detached(value) for value in values)
    return results if several else results[0]


def _recorded(create_graph: bool) -> Any:
    return grad_mode(create_graph or thread.state.grad_mode.enabled)


@checked
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of `v` with its Jacobian.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of them.
    inputs : Tensor or tuple of Tensor
        Its arguments.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the outputs; may be left out for a single output of one element, and is 1 then.
    create_graph : bool
        Whether the results can be differentiated.
    strict : bool
        Whether an output that does not depend on an input raises, rather than give zeros.

    Raises
    ------
    GraphError
        If `v` is missing, or an input unused under `strict`.
    ShapeError
        If `v` does not fit the outputs.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.vjp(lambda x: x**2, x, lucid.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_inputs, tensors = _as_tuple(inputs, "vjp: inputs")
        at = _joined(tensors, create_graph=create_graph)
        several, outputs = _outputs(func, at, "vjp", strict=strict)
        vectors = _vector(v, outputs, several, "vjp")
    with _recorded(create_graph):
        grads = pulled(outputs, at, vectors, create_graph=create_graph)
        grads = _filled(grads, at, "vjp", strict=strict, create_graph=create_graph)
    return _final(outputs, several, create_graph=create_graph), _final(grads, several_inputs, create_graph=create_graph)


@checked
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of its Jacobian with `v`.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of them.
    inputs : Tensor or tuple of Tensor
        Its arguments.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for a single input of one element, and is 1 then.
    create_graph, strict : bool
        As in `vjp`.

    Notes
    -----
    The product of a vector u with the Jacobian is linear in u; its own derivative by u, times `v`, is the result. So
    two backward passes are run, and every op must be differentiable twice.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.jvp(lambda x: x.sum() * x, x, lucid.tensor([1.0, 0.0]))
    (tensor([3., 6.]), tensor([4., 2.]))
    """
    with enable_grad():
        several_inputs, tensors = _as_tuple(inputs, "jvp: inputs")
        vectors = _vector(v, tensors, several_inputs, "jvp")
        at = _joined(tensors, create_graph=create_graph)
        several, outputs = _outputs(func, at, "jvp", strict=strict)
        cotangents = _joined(tuple(zeros_of(o) for o in outputs), create_graph=False)
        grads = pulled(outputs, at, cotangents, create_graph=True)
        grads = _filled(grads, at, "jvp", strict=strict, create_graph=False)
    with _recorded(create_graph):
        products = pulled(grads, cotangents, vectors, create_graph=create_graph)
        products = _filled(products, outputs, "jvp", strict=strict, create_graph=create_graph)
    return _final(outputs, several, create_graph=create_graph), _final(products, several, create_graph=create_graph)


@checked
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,  # noqa: ARG001  PyTorch's signature
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func` at `inputs`.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of them.
    inputs : Tensor or tuple of Tensor
        Its arguments.
    create_graph, strict : bool
        As in `vjp`.
    vectorize : bool
        Makes no difference: one backward pass is run for each element of the outputs, which gives the same result.
    strategy : str
        Must be "reverse-mode".

    Returns
    -------
    Tensor, tuple, or tuple of tuples
        For output i and input j the derivatives, of the shape of the one followed by that of the other; a tuple over
        the outputs if `func` returns one, over the inputs if there is one.

    Raises
    ------
    NotDifferentiableError
        For another `strategy`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.jacobian(lambda x: x.sum() * x, x)
    tensor([[4., 1.],
            [2., 5.]])
    """
    _check_strategy("jacobian", "strategy", strategy)
    with enable_grad():
        several_inputs, tensors = _as_tuple(inputs, "jacobian: inputs")
        at = _joined(tensors, create_graph=create_graph)
        several, outputs = _outputs(func, at, "jacobian", strict=strict)
        rows_of = tuple(_rows(output, at, strict=strict, create_graph=create_graph) for output in outputs)
    result = tuple(_final(rows, several_inputs, create_graph=create_graph) for rows in rows_of)
    return result if several else result[0]


def _rows(output: Any, inputs: Tensors, *, strict: bool, create_graph: bool) -> Tensors:
    """Return the Jacobian of one output by each input."""

    def row(unit: Any) -> Tensors:
        grads = pulled((output,), inputs, (unit,), create_graph=create_graph, keep=True)
        return _filled(grads, inputs, "jacobian", strict=strict, create_graph=create_graph)

    return tuple(by_elements(output, row, inputs))


def _check_strategy(what: str, name: str, strategy: str) -> None:
    if not among(strategy, {"forward-mode", "reverse-mode"}):
        raise SettingError(f"{what}: expected {name}='reverse-mode', got {strategy!r}")
    if strategy != "reverse-mode":
        raise NotDifferentiableError(
            f"{what}: expected {name}='reverse-mode', got {strategy!r}: lucid has no forward mode; leave {name} out to "
            "get the same matrix by backward passes"
        )


@checked
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,  # noqa: ARG001  PyTorch's signature
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of `func`, a function with a single element as result, at `inputs`.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor of one element.
    inputs : Tensor or tuple of Tensor
        Its arguments.
    create_graph, strict : bool
        As in `vjp`.
    vectorize : bool
        As in `jacobian`.
    outer_jacobian_strategy : str
        Must be "reverse-mode".

    Returns
    -------
    Tensor, or tuple of tuples of Tensor
        For inputs i and j the second derivatives, of the shape of the one followed by that of the other.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.hessian(lambda x: x.prod() * x[0], x)
    tensor([[4., 2.],
            [2., 0.]])
    """
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy)
    several, _ = _as_tuple(inputs, "hessian: inputs")

    def slope(*at: Any) -> Any:
        _, slopes = _slopes(func, at, "hessian", strict=strict)
        return slopes if several else slopes[0]

    return jacobian(slope, inputs, create_graph=create_graph, strict=strict)


@checked
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of `v` with its Hessian.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor of one element.
    inputs : Tensor or tuple of Tensor
        Its arguments.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for a single input of one element, and is 1 then.
    create_graph, strict : bool
        As in `vjp`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.vhp(lambda x: (x**3).sum(), x, lucid.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _times_hessian("vhp", func, inputs, v, create_graph=create_graph, strict=strict)


@checked
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of its Hessian with `v`.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As in `vhp`, which is faster: a Hessian is symmetric where the second derivatives are continuous.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0])
    >>> lucid.autograd.functional.hvp(lambda x: (x**3).sum(), x, lucid.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _times_hessian("hvp", func, inputs, v, create_graph=create_graph, strict=strict)


def _times_hessian(
    what: str, func: Callable[..., Any], inputs: Any, v: Any, *, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of its Hessian with `v`, from the side that `what` says."""
    with enable_grad():
        several, tensors = _as_tuple(inputs, f"{what}: inputs")
        vectors = _vector(v, tensors, several, what)
        at = by = _joined(tensors, create_graph=create_graph)
        outputs, slopes = _slopes(func, at, what, strict=strict)
        if what == "hvp":
            by = _joined(tuple(zeros_of(x) for x in at), create_graph=False)
            slopes = pulled(slopes, at, by, create_graph=True)
    with _recorded(create_graph):
        products = pulled(slopes, by, vectors, create_graph=create_graph)
        products = _filled(products, at, what, strict=strict, create_graph=create_graph)
    return _final(outputs, False, create_graph=create_graph), _final(products, several, create_graph=create_graph)


def _slopes(func: Callable[..., Any], at: Tensors, what: str, *, strict: bool) -> tuple[Tensors, Tensors]:
    """Return the one output of `func`, of a single element, and its gradient by each input, on the graph."""
    several, outputs = _outputs(func, at, what, strict=strict)
    if several:
        raise GraphError(f"{what}: expected func to return a single Tensor, got a tuple of {len(outputs)}")
    if outputs[0].array.size != 1:
        raise GraphError(f"{what}: expected func to return a Tensor with a single element, got {describe(outputs[0])}")
    slopes = pulled(outputs, at, (wrap(ones_beside(outputs[0].array)),), create_graph=True)
    return outputs, _filled(slopes, at, what, strict=strict, create_graph=True)
