"""Functions with a derivative of the user's own: `Function`, its context, and the node that runs its backward."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lucid.autograd.base import INFERENCE, TensorBase, is_numpy, registered, version_of, wrap, wrap_on_graph
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.hooks.firing import check_callable
from lucid.autograd.hooks.functions import seen
from lucid.autograd.modes.reading import note_leaves, watching
from lucid.autograd.modes.state import intercepted, no_grad, thread
from lucid.autograd.recording.attach import attach, created
from lucid.autograd.recording.context import FunctionCtx
from lucid.autograd.recording.function_node import BackwardCFunction, FunctionNode
from lucid.autograd.recording.views import View, check_change, detached, live_edge, place_anew
from lucid.base.arrays import Array, copied, is_array, namespace
from lucid.base.device import device_of
from lucid.base.dtype import DTYPES, dtype
from lucid.errors import GraphError, HookTypeError, NotDifferentiableError, warn
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.namespace import Namespace

_FLOATS = frozenset([each.numpy for each in DTYPES.values() if each.is_floating_point or each.is_complex])

F = TypeVar("F", bound="Callable[..., Any]")


class _FunctionMeta(type):
    """Gives each Function the class of its nodes, and finds its derivative."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls.node_type: type[FunctionNode] = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), "function": cls})

    @property
    def __derivative__(cls: Any) -> Callable[..., Any]:
        """Its backward, under the name that it has.

        Raises
        ------
        GraphError
            If it has both names.
        """
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise GraphError(
                f"{cls.__qualname__}: implementing both 'backward' and 'vjp' for a custom Function is not allowed: "
                "they are two names of one thing, so write one of them"
            )
        return cls.vjp


class Function(metaclass=_FunctionMeta):
    """A differentiable function with a forward and a backward of the user's own.

    Subclass it, write `forward` and `backward` as static methods, and call `apply`:

    - ``forward(ctx, *args)`` returns a tensor, or a tuple; it runs with grad mode off. With a static
      ``setup_context(ctx, inputs, output)`` beside it, it is ``forward(*args)``, and `inputs` are its arguments with
      defaults filled in.
    - ``backward(ctx, *grad_outputs)`` gets one gradient for each output and returns one for each argument of forward,
      None for those that are no tensors or need none. It runs with grad mode off, and on under ``create_graph=True``,
      where it is itself differentiated. ``vjp`` is another name of it; a Function has one of the two.

    That is all that `lucid.func` asks for: `vmap` calls `apply` for each element, and `jvp` differentiates `backward`.
    So a static ``vmap`` or ``jvp``, and ``generate_vmap_rule``, that a Function for PyTorch has are not looked at.

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

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a Function is not called by an instance."""
        raise GraphError(
            f"{type(self).__qualname__}: legacy autograd function, called by an instance: write forward and backward "
            f"as static methods, and call {type(self).__qualname__}.apply"
        )

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
        """Return ``forward(*args)``, recorded if one of the arguments requires grad.

        Parameters
        ----------
        *args
            Tensors and other values.
        **kwargs
            The same by their names, put into their positions.

        Returns
        -------
        Tensor, or a tuple of tensors and other values
            What forward returned; once `lucid.numpy` is imported plain arrays of floats, as its functions give there,
            as recorded ones. An input returned as it is becomes a view; one marked dirty stays the same object, and one
            that gets no gradient comes back detached.

        Raises
        ------
        TypeError
            If an argument has no position: it is keyword-only, or one before it is missing.
        GraphError
            If an input marked dirty is not returned.
        InplaceError
            If a leaf that requires grad is marked dirty.

        Warns
        -----
        UserWarning
            If the call is recorded and a tensor marked dirty is no input.
        """
        if intercepted and thread.state.function_hooks:
            if kwargs:
                args, kwargs = cls._bound(args, kwargs, defaults=cls.setup_context is not Function.setup_context), {}
            return seen(cls.__name__, cls._applied, args, kwargs, inner=True)
        return cls._applied(*args, **kwargs)

    @classmethod
    def _applied(cls, *args: Any, **kwargs: Any) -> Any:
        """Return `apply`'s result, past the hooks of functions."""
        two_steps = cls.setup_context is not Function.setup_context
        if two_steps or kwargs:
            args = cls._bound(args, kwargs, defaults=two_steps)
        edges = [live_edge(arg) if isinstance(arg, TensorBase) else None for arg in args]
        if watching:
            note_leaves(edges)
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
    def _bound(cls, args: tuple[Any, ...], kwargs: dict[str, Any], *, defaults: bool) -> tuple[Any, ...]:
        """Return the arguments of forward in their positions, with or without `defaults`; those come without a ctx."""
        forward: Any = cls.forward
        if not kwargs and type(forward) is FunctionType and not forward.__kwdefaults__:
            # what its signature gives at many times the price; too few or too many arguments raise when it is called
            preset: tuple[Any, ...] = forward.__defaults__ or ()
            missing = forward.__code__.co_argcount - len(args)
            return (*args, *preset[-missing:]) if 0 < missing <= len(preset) else args
        bound = inspect.signature(forward).bind(*(args if defaults else (None, *args)), **kwargs)
        if defaults:
            bound.apply_defaults()
        if bound.kwargs:
            raise HookTypeError(
                f"{cls.__qualname__}.apply got {', '.join(bound.kwargs)} by keyword, which has no position after the "
                "other arguments: expected all arguments before it, and no parameters that are keyword-only"
            )
        return bound.args if defaults else bound.args[1:]

    @classmethod
    def _record(
        cls, ctx: FunctionCtx, args: tuple[Any, ...], edges: list[Edge | None], outputs: list[Any]
    ) -> list[Any]:
        """Return the outputs joined to a new node, or free of any graph if nothing requires grad."""
        call = ctx.__lucid__
        recording = bool(thread.state.recording) and any(edge is not None for edge in edges)
        inputs = {id(arg): edge for arg, edge in zip(args, edges, strict=True) if isinstance(arg, TensorBase)}
        if recording and registered.arrays:
            # results of `lucid.numpy` are plain without grad mode, as in forward
            outputs = [_in_array(output) for output in outputs]
        # of an output returned twice the last position is where its gradient comes
        positions = {id(output): index for index, output in enumerate(outputs)}
        no_gradient = {id(tensor) for tensor in call.not_differentiable}
        dirty = {id(tensor): tensor for tensor in call.dirty}
        # the context holds no output: it would keep itself alive
        call.dirty = call.not_differentiable = ()
        cls._check_dirty(dirty, inputs, positions, no_gradient, recording=recording)
        if call.grad_dtypes is not None:
            cls._check_grad_dtypes(call.grad_dtypes, outputs, no_gradient)
        node = cls._node(ctx, args, edges, outputs) if recording else None
        final: list[Any] = []
        joined: dict[int, int] = {}
        for index, output in enumerate(outputs):
            if not isinstance(output, TensorBase):
                final.append(output)
                continue
            known = id(output) in inputs
            # such as a parameter that forward can see: it stays the leaf that it is
            leaf = output.edge is not None and type(output.edge[0]) is AccumulateGrad
            edge = None
            if node is not None and id(output) not in no_gradient and output.array.dtype.kind in "fcV":
                edge = node, index
                joined[id(output)] = index
            if edge is None and known and inputs[id(output)] is not None:
                output = detached(output)  # noqa: PLW2901
            elif known and id(output) in dirty:
                if edge is not None and positions[id(output)] == index:
                    place_anew(output, edge)
                    # what was saved of it is an output now
                    del inputs[id(output)]
            else:
                if known or leaf:
                    output = _alias(  # noqa: PLW2901
                        output, f"it is {'an input' if known else 'a leaf'} that {cls.__qualname__} returned as it is"
                    )
                elif output.origin is not None and thread.state.recording:
                    output.origin = View.fixed(output, f"it is a view that was made inside {cls.__qualname__}")
                output.edge = edge
            final.append(output)
        if node is None:
            call.to_save = ()
            return final
        call.keep(node, inputs, joined)
        created(node)
        return final

    @classmethod
    def _check_grad_dtypes(cls, dtypes: tuple[dtype | None, ...], outputs: list[Any], no_gradient: set[int]) -> None:
        """Refuse dtypes of gradients that are not one for each output, or of an output that gets none."""
        name = f"{cls.__qualname__}: set_output_grad_dtype"
        if len(dtypes) != len(outputs):
            raise GraphError(f"{name}: expected one dtype for each of {len(outputs)} outputs, got {len(dtypes)}")
        for index, (wanted, output) in enumerate(zip(dtypes, outputs, strict=True)):
            takes = (
                isinstance(output, TensorBase) and id(output) not in no_gradient and output.array.dtype.kind in "fcV"
            )
            if wanted is not None and not takes:
                raise GraphError(f"{name}: output {index} gets no gradient: expected None for it, got {wanted}")

    @classmethod
    def _check_dirty(
        cls,
        dirty: dict[int, TensorBase],
        inputs: dict[int, Edge | None],
        positions: dict[int, int],
        no_gradient: set[int],
        *,
        recording: bool,
    ) -> None:
        """Count the change of each tensor that was marked dirty.

        Raises
        ------
        GraphError
            If one is not returned.
        InplaceError
            If one that gets a gradient may not be changed.
        """
        for key, tensor in dirty.items():
            if key not in positions:
                raise GraphError(
                    f"{cls.__qualname__}: some inputs were marked dirty in forward but not returned: return each of "
                    "them"
                )
            version = version_of(tensor)
            if version is not INFERENCE:
                version[0] += 1
            if key not in inputs:
                if recording:
                    warn(
                        f"{cls.__qualname__}: only inputs should be given to ctx.mark_dirty(): a tensor that is none "
                        "needs no mark"
                    )
            elif key not in no_gradient:
                # a view that was taken in no_grad mode needs no gradient itself
                part = tensor.origin is not None and tensor.origin.base.edge is not None
                check_change(tensor, recording=recording or (part and bool(thread.state.recording)))

    @classmethod
    def _node(cls, ctx: FunctionCtx, args: tuple[Any, ...], edges: list[Edge | None], outputs: list[Any]) -> Node:
        """Return the node of a call."""
        positions = [k for k, arg in enumerate(args) if isinstance(arg, TensorBase)]
        node = cls.node_type()
        node.ctx = ctx
        node.arguments = len(args)
        node.tensor_arguments = tuple(positions)
        node.targets = tuple((args[k].array.shape, args[k].array.dtype, device_of(args[k].array)) for k in positions)
        node.outputs = len(outputs)
        node.forms = tuple(
            (namespace(o.array), o.array.shape, o.array.dtype) if isinstance(o, TensorBase) else None for o in outputs
        )
        node.kept = (None, True, (), ())
        on_device = next((o.array for o in outputs if isinstance(o, TensorBase) and not is_numpy(o.array)), None)
        attach(node, tuple(edges[k] for k in positions), on_device, whole=False)
        return node


def _in_array(value: Any) -> Any:
    """Return a plain array of floats, or a number of NumPy's, as a new array of `lucid.numpy`; others as they are."""
    if not is_array(value) or value.dtype not in _FLOATS:
        return value
    tensor = wrap(copied(value))
    (tensor.__class__,) = registered.arrays
    return tensor


def _alias(tensor: TensorBase, refuses: str) -> TensorBase:
    """Return another tensor on the same memory, a view that may not be changed in place while that is recorded."""
    alias: TensorBase = wrap_on_graph(tensor.array, None, version_of(tensor))
    if alias.version is not INFERENCE:
        alias.origin = View.fixed(tensor, refuses)
    return alias


class InplaceFunction(Function):
    """A `Function` that may change its input in place; the same as `Function`, with `mark_dirty`."""


class _OnlyOnce(Node):
    """Error at the request for the second derivative of a function that has only a first one."""

    __slots__ = ("outputs", "owner")

    def __init__(self, owner: str, edges: tuple[Edge | None, ...], outputs: int) -> None:
        self.owner = owner
        self.outputs = outputs
        attach(self, edges, None)

    def name(self) -> str:
        """Return PyTorch's name of such a node."""
        return "Error"

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> NoReturn:
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
    check_callable(function, "once_differentiable: function")

    @functools.wraps(function)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = function(ctx, *grads)
        edges = tuple(live_edge(g) if isinstance(g, TensorBase) else None for g in grads)
        if not thread.state.recording or not any(edges):
            return results
        entries: tuple[Any, ...] = results if isinstance(results, tuple) else (results,)  # pyright: ignore[reportUnknownVariableType]
        node = _OnlyOnce(function.__qualname__, edges, len(entries))
        barred = tuple(
            wrap_on_graph(entry.array, (node, index), version_of(entry)) if isinstance(entry, TensorBase) else entry
            for index, entry in enumerate(entries)
        )
        return barred if isinstance(results, tuple) else barred[0]

    return backward  # pyright: ignore[reportReturnType]


__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

_publish(globals())
