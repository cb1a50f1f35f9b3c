"""Functions with a derivative of the user's own: `Function`, its context, and the node that runs its backward."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lucid.autograd.anomaly import note_forward
from lucid.autograd.base import TensorBase, is_tuple, version_of, wrap_on_graph
from lucid.autograd.context import FunctionCtx
from lucid.autograd.function_node import BackwardCFunction, FunctionNode
from lucid.autograd.mode import no_grad, thread
from lucid.autograd.node import AccumulateGrad, Node, next_sequence
from lucid.autograd.views import CopySlices, View, check_change, live_edge, rebase
from lucid.backend.arrays import namespace
from lucid.errors import GraphError, HookTypeError, NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge

F = TypeVar("F", bound="Callable[..., Any]")


class _FunctionMeta(type):
    """Gives each Function the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        if "vjp" in namespace and "backward" not in namespace:
            cls.backward = namespace["vjp"]
        cls.node_type: type[FunctionNode] = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), "function": cls})


class Function(metaclass=_FunctionMeta):
    """A differentiable function with a forward and a backward of the user's own.

    Subclass it, write `forward` and `backward` as static methods, and call `apply`:

    - ``forward(ctx, *args)`` returns a tensor, or a tuple; it runs with grad mode off. With a static
      ``setup_context(ctx, inputs, output)`` beside it, it is ``forward(*args)``.
    - ``backward(ctx, *grad_outputs)`` gets one gradient for each output and returns one for each argument of forward,
      None for those that are no tensors or need none. It runs with grad mode off, and on under ``create_graph=True``,
      where it is itself differentiated. ``vjp`` is another name of it.

    Examples
    --------
    >>> import lucid
    >>> class Exp(lucid.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (y,) = ctx.saved_tensors
    ...         return grad_output * y
    >>> x = lucid.zeros(2, requires_grad=True)
    >>> Exp.apply(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    node_type: type[FunctionNode]

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Return the outputs; to be written by the subclass."""
        raise NotDifferentiableError(
            "a Function needs a static forward(ctx, *args), or forward(*args) and setup_context"
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill `ctx` after a forward that does not take it; to be written by the subclass that wants this style."""
        raise NotDifferentiableError("setup_context is not written")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the inputs; to be written by the subclass."""
        raise NotDifferentiableError(
            "a Function needs a static backward(ctx, *grad_outputs) (or vjp) to be differentiated"
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Return what `forward` gives for `args`, recorded if one of them requires grad.

        Parameters
        ----------
        *args
            Tensors and other values.
        **kwargs
            Only with `setup_context`, for parameters of forward; they are put into their positions.

        Returns
        -------
        Tensor, or a tuple of tensors and other values
            What forward returned. An input returned as it is becomes a view; one marked dirty stays the same object.

        Raises
        ------
        TypeError
            If forward is not a static method, or keyword arguments come without `setup_context`.
        GraphError
            If an input marked dirty is not returned.
        InplaceError
            If a leaf that requires grad is marked dirty.
        """
        two_steps = cls.setup_context is not Function.setup_context
        if not isinstance(inspect.getattr_static(cls, "forward"), staticmethod):
            raise HookTypeError(f"{cls.__qualname__}: forward must be a static method: decorate it with @staticmethod")
        if kwargs:
            if not two_steps:
                raise HookTypeError(f"{cls.__qualname__}.apply takes keyword arguments only with setup_context")
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        edges = [live_edge(arg) if isinstance(arg, TensorBase) else None for arg in args]
        ctx = FunctionCtx()
        ctx.__lucid__.name = f"{cls.__name__}Backward"
        ctx.needs_input_grad = tuple(edge is not None for edge in edges)
        with no_grad():
            if two_steps:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        several = isinstance(result, tuple)
        outputs: list[Any] = list(result) if several else [result]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        outputs = cls._record(ctx, args, edges, outputs)
        return tuple(outputs) if several else outputs[0]

    @classmethod
    def _record(
        cls, ctx: FunctionCtx, args: tuple[Any, ...], edges: list[Edge | None], outputs: list[Any]
    ) -> list[Any]:
        """Return the outputs joined to a new node, or free of any graph where nothing requires grad."""
        call = ctx.__lucid__
        recording = thread.state.recording and any(edge is not None for edge in edges)
        inputs = {id(arg): edge for arg, edge in zip(args, edges, strict=True) if isinstance(arg, TensorBase)}
        dirty = {id(tensor) for tensor in call.dirty}
        returned = {id(output) for output in outputs}
        if dirty - returned:
            raise GraphError(
                f"{cls.__qualname__}: some inputs were marked dirty in forward but not returned: return each of them"
            )
        no_gradient = {id(tensor) for tensor in call.not_differentiable}
        if recording:
            for tensor in call.dirty:
                check_change(tensor, recording=True)
        node = cls.node_type()
        node.ctx = ctx
        node.sequence = next_sequence()
        final: list[Any] = []
        for index, output in enumerate(outputs):
            if not isinstance(output, TensorBase):
                final.append(output)
                continue
            known = id(output) in inputs
            # such as a parameter that forward can see: it stays the leaf that it is
            leaf = output.edge is not None and type(output.edge[0]) is AccumulateGrad
            differentiable = recording and id(output) not in no_gradient and output.array.dtype.kind in "fcV"
            if known and id(output) in dirty:
                if differentiable:
                    _move(output, (node, index))
                final.append(output)
                continue
            if known or leaf:
                alias = wrap_on_graph(output.array, None, version_of(output))
                what = "an input" if known else "a leaf"
                alias.origin = View.fixed(output, f"it is {what} that {cls.__qualname__} returned as it is")
                output = alias  # noqa: PLW2901
            elif output.origin is not None and differentiable:
                output.origin = View.fixed(
                    output.origin.parent, f"it is a view that was made inside {cls.__qualname__}"
                )
            output.edge = (node, index) if differentiable else None
            final.append(output)
        if not recording:
            return final
        places = [k for k, arg in enumerate(args) if isinstance(arg, TensorBase)]
        node.extra = None
        node.edges = tuple(edges[k] for k in places)
        node.arguments = len(args)
        node.places = tuple(places)
        node.targets = tuple((args[k].array.shape, args[k].array.dtype, args[k].array.__class__) for k in places)
        node.outputs = len(outputs)
        node.forms = tuple(
            (namespace(o.array), o.array.shape, o.array.dtype) if isinstance(o, TensorBase) else None for o in final
        )
        node.kept = (None, True, (), ())
        call.keep(node, inputs, outputs)
        if thread.state.anomaly:
            note_forward(node)
        return final


def _move(tensor: TensorBase, edge: Edge) -> None:
    """Give a tensor that a forward changed in place its new place in the graph."""
    view = tensor.origin
    if view is None:
        rebase(tensor, edge)
        return
    steps = view.chain()
    rebase(view.base, (CopySlices(view.base, edge, steps), 0))
    live_edge(tensor)


class InplaceFunction(Function):
    """A `Function` whose forward may change its input in place; the same as `Function`, with `mark_dirty`."""


class _OnlyOnce(Node):
    """Where the second derivative of a function that has only a first one is asked for."""

    __slots__ = ("owner",)

    def __init__(self, owner: str, edges: tuple[Edge | None, ...]) -> None:
        self.owner = owner
        self.edges = edges
        self.extra = None
        self.sequence = next_sequence()

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> NoReturn:
        """Raise: there is no second derivative."""
        raise NotDifferentiableError(
            f"trying to differentiate twice a function that was marked with @once_differentiable ({self.owner}): "
            "write its backward in differentiable ops, or do not ask for the second derivative"
        )


def once_differentiable(function: F) -> F:
    """Return a backward that is never recorded: asking for a second derivative raises.

    Parameters
    ----------
    function : callable
        A static `backward` of a `Function`.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd.function import once_differentiable
    >>> class Twice(lucid.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, grad_output):
    ...         return grad_output * 2
    """

    @functools.wraps(function)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = function(ctx, *grads)
        if not thread.state.recording or not any(isinstance(g, TensorBase) and g.edge is not None for g in grads):
            return results
        edges = tuple(live_edge(g) if isinstance(g, TensorBase) else None for g in grads)
        entries: tuple[Any, ...] = results if is_tuple(results) else (results,)
        barred: list[Any] = []
        for entry in entries:
            if isinstance(entry, TensorBase):
                barred.append(
                    wrap_on_graph(entry.array, (_OnlyOnce(function.__qualname__, edges), 0), version_of(entry))
                )
            else:
                barred.append(entry)
        return tuple(barred) if is_tuple(results) else barred[0]

    return backward  # pyright: ignore[reportReturnType]


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]
