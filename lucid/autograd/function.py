"""Functions with a derivative of the user's own: `Function`, its context, and the node that runs its backward."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lucid.autograd.anomaly import note_forward
from lucid.autograd.base import TensorBase, describe, version_of, wrap, wrap_on_graph
from lucid.autograd.mode import no_grad, thread
from lucid.autograd.node import AccumulateGrad, Node, next_sequence
from lucid.autograd.primitive import GRAPH, namespace_of
from lucid.autograd.saved import changed_error, freed_error, pack_saved, unpacked_array
from lucid.autograd.views import CopySlices, View, check_change, live_edge, rebase
from lucid.backend.arrays import namespace
from lucid.errors import DeviceError, GraphError, HookTypeError, InplaceError, NotDifferentiableError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge

F = TypeVar("F", bound="Callable[..., Any]")


class SavedEntry:
    """One tensor that a forward kept for its backward."""

    __slots__ = ("count", "edge", "leaf", "output", "value", "version")

    def __init__(self, tensor: Any, value: Any, edge: Edge | None, output: int | None) -> None:
        self.value = value
        self.edge = edge
        self.output = output
        self.version = version_of(tensor)
        self.count = self.version[0]
        # a leaf comes back as itself, so that it is recognised
        self.leaf = weakref.ref(tensor) if edge is not None and type(edge[0]) is AccumulateGrad else None


class FunctionCtx:
    """What a `Function`'s forward hands to its backward: tensors, markings, and any attributes set on it.

    A fresh one is made by each `Function.apply` and given first to `forward` and to `backward`.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each positional argument whether it is a tensor that requires grad; set before forward runs.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd import Function
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad_output
    >>> x = lucid.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor([6.])
    """

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._saved: list[SavedEntry | None] | None = []
        self._dirty: tuple[Any, ...] = ()
        self._not_differentiable: tuple[Any, ...] = ()
        self._materialize = True
        self._node: weakref.ref[FunctionNode] | None = None
        self._name = type(self).__name__

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep `tensors` for backward, where `saved_tensors` gives them back in order.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or others. A second call replaces what the first kept.

        Raises
        ------
        TypeError
            If one is neither a tensor nor None; then nothing changes.
        """
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise HookTypeError(
                    f"save_for_backward: expected tensors or None, got {type(tensor).__name__} as number {index}: keep "
                    "other values as attributes of ctx"
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward kept, in order.

        Raises
        ------
        GraphError
            If a backward has freed them.
        InplaceError
            If one was changed in place since.
        """
        saved = self._saved
        if saved is None:
            raise freed_error(self._name)
        if self._node is None:
            return self._to_save
        node = self._node()
        tensors: list[Any] = []
        for index, entry in enumerate(saved):
            if entry is None:
                tensors.append(None)
                continue
            if entry.version[0] != entry.count:
                raise changed_error(self._name, index, entry.count, entry.version[0])
            leaf = entry.leaf() if entry.leaf is not None else None
            if leaf is not None and leaf.array is entry.value:
                tensors.append(leaf)
                continue
            edge = entry.edge
            if entry.output is not None:
                edge = None if node is None else (node, entry.output)
            tensors.append(wrap_on_graph(unpacked_array(entry.value), edge, entry.version))
        return tuple(tensors)

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that forward changed these inputs in place; each must be returned.

        Parameters
        ----------
        *tensors : Tensor
            Inputs of this call.
        """
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs carry no gradient; backward gets zeros for them.

        Parameters
        ----------
        *tensors : Tensor
            Outputs of this call.
        """
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward gets zeros (the default) or None for outputs without a gradient.

        Parameters
        ----------
        value : bool
            True for zeros.
        """
        self._materialize = bool(value)

    def _keep(self, node: FunctionNode, inputs: dict[int, Edge | None], outputs: list[Any]) -> None:
        """Turn what forward asked to save into entries that hold no reference to `node`."""
        places = {id(tensor): index for index, tensor in enumerate(outputs)}
        tensors = self._to_save
        values = pack_saved(tuple(None if t is None else t.array for t in tensors), tensors)
        entries: list[SavedEntry | None] = []
        for tensor, value in zip(tensors, values, strict=True):
            if tensor is None:
                entries.append(None)
                continue
            output = places.get(id(tensor))
            if id(tensor) in inputs:
                output = None
            edge = inputs[id(tensor)] if id(tensor) in inputs else None if output is not None else live_edge(tensor)
            entries.append(SavedEntry(tensor, value, edge, output))
        self._saved = entries
        self._to_save = ()
        self._node = weakref.ref(node)


class BackwardCFunction(Node):
    """The node of a recorded `Function`."""


class FunctionNode(BackwardCFunction):
    """The node of one call of a `Function`.

    Attributes
    ----------
    ctx : FunctionCtx
        The call's context; its attributes can be read on the node too.
    arguments : int
        How many positional arguments the call had.
    places : tuple of int
        Which of them are tensors: one edge each.
    targets : tuple
        Shape, dtype and array type of each tensor argument.
    forms : tuple
        Shape, dtype, array module and device of each output.
    """

    __slots__ = ("arguments", "ctx", "forms", "kept", "outputs", "places", "targets")

    function: type[Function]

    def __getattr__(self, name: str) -> Any:
        if name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def release(self) -> None:
        """Free the saved tensors."""
        self.kept = Node.kept
        self.ctx._saved = None  # noqa: SLF001  the context is this node's other half

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return what the user's backward gives, checked against the inputs."""
        ctx = self.ctx
        received = grad if isinstance(grad, list) else [grad]  # pyright: ignore[reportUnknownVariableType]
        if len(received) != self.outputs:  # pyright: ignore[reportUnknownArgumentType]
            received = [None] * self.outputs
        given: list[Any] = []
        for entry, form in zip(received, self.forms, strict=True):  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
            if entry is not None:
                given.append(entry if isinstance(entry, TensorBase) else wrap(entry))
            elif ctx._materialize and form is not None:  # noqa: SLF001
                xp, shape, dtype = form
                given.append(wrap(xp.zeros(shape, dtype)))
            else:
                given.append(None)
        grads = self.function.backward(ctx, *given)
        return self._checked(m, grads)

    def _checked(self, m: Any, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the tensor arguments, of their shapes and dtypes.

        Raises
        ------
        GraphError
            For a wrong number of gradients, or one for an argument that is no tensor.
        HookTypeError
            For a list, or an entry that is neither a tensor nor None.
        ShapeError, DeviceError
            For a gradient of another shape or device than its input.
        """
        name = f"{self.function.__qualname__}.backward"
        if isinstance(grads, list):
            raise HookTypeError(f"{name}: expected a Tensor, None or a tuple of them, got a list: return a tuple")
        entries: tuple[Any, ...] = grads if isinstance(grads, tuple) else (grads,)
        while len(entries) > self.arguments and entries[-1] is None:
            entries = entries[:-1]
        if len(entries) != self.arguments:
            raise GraphError(
                f"{name} returned an incorrect number of gradients (expected {self.arguments}, one for each argument "
                f"of forward, got {len(entries)})"
            )
        checked: list[Any] = []
        for index, entry in enumerate(entries):
            if entry is not None and not isinstance(entry, TensorBase):
                raise HookTypeError(
                    f"{name}: gradient {index}: expected a Tensor or None, got {type(entry).__name__}"
                )
            if index not in self.places:
                if entry is not None:
                    raise GraphError(
                        f"{name} returned a gradient different from None at position {index}, but the corresponding "
                        "forward input was not a Tensor: expected None"
                    )
                continue
            place = self.places.index(index)
            if entry is None or self.edges[place] is None:
                checked.append(None)
                continue
            checked.append(self._fitted(m, entry, index, self.targets[place]))
        return tuple(checked)

    def _fitted(self, m: Any, grad: TensorBase, index: int, target: tuple[Any, Any, Any]) -> Any:
        """Return one gradient as the engine's form, summed to its input's shape and cast to its dtype."""
        shape, dtype, kind = target
        array = grad.array
        name = f"{self.function.__qualname__}.backward"
        if type(array) is not kind:
            raise DeviceError(f"{name}: gradient {index} is on another device than its input: got {describe(grad)}")
        value: Any = grad if m is GRAPH else array
        n = m if m is GRAPH else namespace_of(array)
        if array.shape != shape:
            extra = array.ndim - len(shape)
            if extra < 0 or any(
                want not in {1, have} for want, have in zip(shape, array.shape[extra:], strict=True)
            ):
                raise ShapeError(
                    f"{name} returned an invalid gradient at index {index}: got shape {tuple(array.shape)} but "
                    f"expected shape compatible with {tuple(shape)}"
                )
            value = n.sum_to(value, shape=shape)
        if array.dtype != dtype:
            value = n.cast(value, dtype=dtype)
        return value


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
        raise NotDifferentiableError("a Function needs a static forward(ctx, *args), or forward(*args) and setup_context")

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
        ctx._name = f"{cls.__name__}Backward"  # noqa: SLF001
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
        recording = thread.state.recording and any(edge is not None for edge in edges)
        inputs = {id(arg): edge for arg, edge in zip(args, edges, strict=True) if isinstance(arg, TensorBase)}
        dirty = {id(tensor) for tensor in ctx._dirty}
        returned = {id(output) for output in outputs}
        if dirty - returned:
            raise GraphError(
                f"{cls.__qualname__}: some inputs were marked dirty in forward but not returned: return each of them"
            )
        no_gradient = {id(tensor) for tensor in ctx._not_differentiable}
        if recording:
            for tensor in ctx._dirty:
                check_change(tensor, recording=True)
        node = cls.node_type()
        node.ctx = ctx
        final: list[Any] = []
        for index, output in enumerate(outputs):
            if not isinstance(output, TensorBase):
                final.append(output)
                continue
            known = id(output) in inputs
            differentiable = recording and id(output) not in no_gradient and output.array.dtype.kind in "fcV"
            if known and id(output) in dirty:
                if differentiable:
                    _move(output, (node, index))
                final.append(output)
                continue
            if known:
                alias = wrap_on_graph(output.array, None, version_of(output))
                alias.origin = View.fixed(output, f"it is an input that {cls.__qualname__} returned as it is")
                output = alias  # noqa: PLW2901
            elif output.origin is not None and differentiable:
                output.origin = View.fixed(output.origin.parent, f"it is a view that was made inside {cls.__qualname__}")
            output.edge = (node, index) if differentiable else None
            final.append(output)
        if not recording:
            return final
        places = [k for k, arg in enumerate(args) if isinstance(arg, TensorBase)]
        node.extra = None
        node.edges = tuple(edges[k] for k in places)
        node.arguments = len(args)
        node.places = tuple(places)
        node.targets = tuple((args[k].array.shape, args[k].array.dtype, type(args[k].array)) for k in places)
        node.outputs = len(outputs)
        node.forms = tuple(
            (namespace(o.array), o.array.shape, o.array.dtype) if isinstance(o, TensorBase) else None for o in final
        )
        node.kept = (None, True, (), ())
        ctx._keep(node, inputs, outputs)
        if thread.state.anomaly:
            note_forward(node)
        node.sequence = next_sequence()
        return final


def _move(tensor: TensorBase, edge: Edge) -> None:
    """Give a tensor that a forward changed in place its new place in the graph."""
    view = tensor.origin
    if view is None:
        rebase(tensor, edge)
        return
    steps = view.chain()
    rebase(view.base, (CopySlices(view.base.edge, edge, steps), 0))
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
        entries: tuple[Any, ...] = results if isinstance(results, tuple) else (results,)
        barred: list[Any] = []
        for entry in entries:
            if isinstance(entry, TensorBase):
                barred.append(
                    wrap_on_graph(entry.array, (_OnlyOnce(function.__qualname__, edges), 0), version_of(entry))
                )
            else:
                barred.append(entry)
        return tuple(barred) if isinstance(results, tuple) else barred[0]

    return backward  # pyright: ignore[reportReturnType]


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]
