"""Full backward hooks: two nodes of the graph, around what a module recorded between its inputs and its outputs."""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.anomaly import note_forward
from lucid.autograd.base import INFERENCE, TensorBase, as_array, version_of, wrap, wrap_on_graph
from lucid.autograd.hooks import add_hook_note, check_replacement, hook_name
from lucid.autograd.mode import thread
from lucid.autograd.node import Node, next_sequence
from lucid.autograd.primitive import GRAPH
from lucid.autograd.views import View, live_edge
from lucid.errors import HookError, HookTypeError, InplaceError
from lucid.nn.paths import calling_root, module_path
from lucid.nn.structure import map_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.nn.module import Module


class Form(NamedTuple):
    """What a backward hook asked for at its registration.

    Attributes
    ----------
    structured : bool
        Gradients come in the structure of the arguments and of the output.
    with_kwargs : bool
        The gradients of keyword arguments come too.
    aligned : bool
        `grad_output` has a None for each output that is no tensor, rather than leaving it out.
    """

    structured: bool = False
    with_kwargs: bool = False
    aligned: bool = True


FULL = Form()
PRE = Form(aligned=False)


class Slots(NamedTuple):
    """Which tensors were found where, without holding them.

    Attributes
    ----------
    skeleton : object
        The arguments, or the outputs as a tuple, with the number of the tensor in place of each tensor and None in
        place of everything else.
    expected : list of (shape, dtype)
        What the gradient of each tensor must have.
    """

    skeleton: Any
    expected: list[tuple[tuple[int, ...], Any]]


class Frontier(Node):
    """One of the two nodes; the gradients that it has received become the hooks' and those that they return flow on."""

    __slots__ = ("boundary", "outputs")

    def __init__(self, boundary: Boundary, edges: list[Edge | None]) -> None:
        self.boundary = boundary
        self.edges = tuple(edges)
        self.outputs = len(edges)
        self.extra = None
        if thread.state.anomaly:
            note_forward(self)
        self.sequence = next_sequence()

    def fire(self, grads: list[Any]) -> list[Any]:
        """Return the gradients after the hooks."""
        raise NotImplementedError

    def slots(self) -> Slots:
        """Return what is known of this node's tensors."""
        raise NotImplementedError

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return what the hooks make of the gradients."""
        grads: list[Any] = grad if isinstance(grad, list) else [grad] if self.outputs == 1 else [None] * self.outputs
        graph = m is GRAPH
        tensors: list[Any] = []
        for g, (_, dtype) in zip(grads, self.slots().expected, strict=True):
            if g is None:
                tensors.append(None)
            elif graph:
                tensors.append(g if g.array.dtype == dtype else GRAPH.cast(g, dtype=dtype))
            else:
                tensors.append(wrap(as_array(g).astype(dtype, copy=False)))
        tensors = self.fire(tensors)
        return tuple(tensors) if graph else tuple([None if t is None else t.array for t in tensors])


class ModuleInputBackward(Frontier):
    """Collects the gradients of a module's inputs and runs its full backward hooks."""

    __slots__ = ()

    def slots(self) -> Slots:
        """Return what is known of the inputs."""
        return self.boundary.inputs

    def fire(self, grads: list[Any]) -> list[Any]:
        """Run the full backward hooks."""
        boundary = self.boundary
        if boundary.grad_outputs is None:
            # gradients that did not come through the module's outputs, as in a double backward
            return grads
        outputs, boundary.grad_outputs = boundary.grad_outputs, None
        return boundary.run_full_hooks(grads, outputs)


class ModuleOutputBackward(Frontier):
    """Collects the gradients of a module's outputs and runs its full backward pre-hooks."""

    __slots__ = ()

    def slots(self) -> Slots:
        """Return what is known of the outputs."""
        return self.boundary.outputs

    def fire(self, grads: list[Any]) -> list[Any]:
        """Run the full backward pre-hooks, and the full hooks of a module without inputs to wait for."""
        boundary = self.boundary
        grads = boundary.run_pre_hooks(grads)
        if boundary.joined:
            boundary.grad_outputs = grads
        elif boundary.hooks:
            boundary.run_full_hooks_without_inputs(grads)
        return grads


class Refusal:
    """Stands for the op of a view that a boundary made: it cannot be taken again of a changed base."""

    name = "module boundary"

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise InplaceError(
            f"a tensor was changed in place while {self.text}: with full backward hooks a module's inputs and outputs "
            "are views, and neither they nor their base may be changed in place; change a clone() or use the "
            "out-of-place op"
        )

    raw = __call__


INPUT = Refusal("it is an input of a module with full backward hooks")
OUTPUT = Refusal("it is an output of a module with full backward hooks")


class BoundaryView(View):
    """How a boundary's tensor was taken from the one that it stands for: in-place changes are refused."""

    __slots__ = ()

    def __init__(self, parent: TensorBase, refusal: Refusal) -> None:
        outer = parent.origin
        self.parent = parent
        self.base = parent if outer is None else outer.base
        self.primitive: Any = refusal
        self.settings = {}
        self.output = 0
        self.seen = version_of(parent)[0]
        self.refuses = refusal.text


class Boundary:
    """The two nodes of one module call, and the hooks that they fire: those of the time of the call.

    Parameters
    ----------
    module : Module
        What is called. It is held by the graph of its outputs, so that the hooks fire also if nobody else holds it.
    pre_hooks, hooks : list of (callable, Form)
        Full backward pre-hooks and full backward hooks, in the order of firing.
    """

    __slots__ = (
        "deep",
        "grad_outputs",
        "hooks",
        "inputs",
        "joined",
        "module",
        "outputs",
        "pre_hooks",
        "root",
        "tuples",
    )

    def __init__(
        self,
        module: Module,
        pre_hooks: list[tuple[Callable[..., Any], Form]],
        hooks: list[tuple[Callable[..., Any], Form]],
    ) -> None:
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.root = weakref.ref(calling_root(module))
        self.grad_outputs: list[Any] | None = None
        # whether there is a node at the inputs
        self.joined = False
        self.tuples = True
        self.deep = any(form.structured for _, form in hooks)

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with a view in place of each tensor, if one of them requires grad."""
        tensors: list[Any] = []
        everything: Any = args, (kwargs if any(form.with_kwargs for _, form in self.hooks) else {})
        if self.deep:
            skeleton = map_leaves(everything, counted(tensors))
        else:
            count = counted(tensors)
            skeleton = (
                tuple([count(a) for a in everything[0]]),
                {name: count(a) for name, a in everything[1].items()},
            )
        self.inputs = Slots(skeleton, [(t.array.shape, t.array.dtype) for t in tensors])
        views = self._views(tensors, ModuleInputBackward, INPUT)
        if views is None:
            return args, kwargs
        self.joined = True
        if self.deep:
            following = iter(views)
            args, named = map_leaves(everything, lambda leaf: next(following) if isinstance(leaf, TensorBase) else leaf)
        else:
            args = tuple([a if k is None else views[k] for a, k in zip(args, skeleton[0], strict=True)])
            named = {name: everything[1][name] if k is None else views[k] for name, k in skeleton[1].items()}
        return args, {**kwargs, **named}

    def leave(self, result: Any) -> Any:
        """Return the output with a view in place of each tensor, if one of them requires grad."""
        tensors: list[Any] = []
        if isinstance(result, TensorBase):
            tensors.append(result)
            skeleton: Any = (0,)
        else:
            self.tuples = isinstance(result, tuple | list)
            skeleton = map_leaves(result if self.tuples else (result,), counted(tensors))
        self.outputs = Slots(skeleton, [(t.array.shape, t.array.dtype) for t in tensors])
        views = self._views(tensors, ModuleOutputBackward, OUTPUT)
        if views is None:
            return result
        if isinstance(result, TensorBase):
            self.tuples = False
            return views[0]
        following = iter(views)
        return map_leaves(result, lambda leaf: next(following) if isinstance(leaf, TensorBase) else leaf)

    def _views(self, tensors: list[Any], kind: type[Frontier], refusal: Refusal) -> list[Any] | None:
        """Return a view of each tensor, joined to a new node; None if no tensor requires grad."""
        edges = [t.edge if t.origin is None else live_edge(t) for t in tensors]
        if not any(edges):
            return None
        node = kind(self, edges)
        views: list[Any] = []
        for number, (tensor, edge) in enumerate(zip(tensors, edges, strict=True)):
            version = version_of(tensor)
            if version is INFERENCE:
                views.append(tensor)
                continue
            view = wrap_on_graph(tensor.array, None if edge is None else (node, number), version)
            view.origin = BoundaryView(tensor, refusal)
            views.append(view)
        return views

    def run_pre_hooks(self, grads: list[Any]) -> list[Any]:
        """Return the gradients of the outputs after the full backward pre-hooks."""
        for index, (hook, form) in enumerate(self.pre_hooks):
            try:
                result = hook(self.module, self._grad_output(grads, form))
                if result is not None:
                    grads = replaced(
                        hook, "full backward pre-hook", "grad_output", result,
                        self._numbers(form), grads, self.outputs.expected,
                    )  # fmt: skip
            except Exception as error:
                self._note(error, hook, "full backward pre-hook", index)
                raise
        return grads

    def run_full_hooks(self, grads: list[Any], outputs: list[Any]) -> list[Any]:
        """Return the gradients of the inputs after the full backward hooks."""
        for index, (hook, form) in enumerate(self.hooks):
            try:
                given, numbers = self._grad_input(grads, form)
                result = hook(self.module, *given, self._grad_output(outputs, form))
                if result is not None:
                    if not form.with_kwargs:
                        result = (result,)
                    else:
                        check_pair(hook, result)
                    for new, place in zip(result, numbers, strict=True):
                        grads = replaced(
                            hook, "full backward hook", "grad_input", new, place, grads, self.inputs.expected
                        )
            except Exception as error:
                self._note(error, hook, "full backward hook", index)
                raise
        return grads

    def run_full_hooks_without_inputs(self, outputs: list[Any]) -> None:
        """Run the full backward hooks of a module none of whose inputs requires grad."""
        warnings.warn(
            f"a full backward hook of {module_path(self.module, self.root())} fires as soon as the gradients of the "
            "module's outputs are known, since none of its inputs requires grad",
            UserWarning,
            stacklevel=2,
        )
        nothing: list[Any] = [None] * len(self.inputs.expected)
        for index, (hook, form) in enumerate(self.hooks):
            try:
                given, _ = self._grad_input(nothing, form)
                result = hook(self.module, *given, self._grad_output(outputs, form))
                found: list[Any] = []
                map_leaves(result, lambda leaf: None if leaf is None else found.append(leaf))
                if found:
                    raise HookError(
                        f"full backward hook {hook_name(hook)}: no input of the module requires grad: expected None, "
                        f"or None for all gradients, got {type(found[0]).__name__}"
                    )
            except Exception as error:
                self._note(error, hook, "full backward hook", index)
                raise

    def _note(self, error: Exception, hook: Any, kind: str, index: int) -> None:
        add_hook_note(error, hook, kind, module_path(self.module, self.root()), index)

    def _numbers(self, form: Form) -> Any:
        """Return the skeleton of `grad_output` in the form that a hook asked for."""
        skeleton = self.outputs.skeleton
        if form.structured:
            return skeleton if self.tuples else skeleton[0]
        flat = [number if isinstance(number, int) else None for number in skeleton]
        return tuple(flat if form.aligned else [number for number in flat if number is not None])

    def _grad_output(self, grads: list[Any], form: Form) -> Any:
        return filled(self._numbers(form), grads)

    def _grad_input(self, grads: list[Any], form: Form) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the gradients of the inputs for a hook: positional, and by name if it asked for those."""
        numbers: tuple[Any, Any] = self.inputs.skeleton
        if self.deep and not form.structured:
            numbers = (
                tuple([n if isinstance(n, int) else None for n in numbers[0]]),
                {name: n if isinstance(n, int) else None for name, n in numbers[1].items()},
            )
        wanted = numbers if form.with_kwargs else numbers[:1]
        return tuple([filled(each, grads) for each in wanted]), wanted


def counted(tensors: list[Any]) -> Callable[[Any], int | None]:
    """Return what gathers the tensors among leaves and gives each its number, and None for other leaves."""

    def count(leaf: Any) -> int | None:
        if not isinstance(leaf, TensorBase):
            return None
        tensors.append(leaf)
        return len(tensors) - 1

    return count


def filled(numbers: Any, grads: list[Any]) -> Any:
    """Return the skeleton `numbers` with the gradient in place of each number."""
    if type(numbers) is tuple and len(numbers) == 1 and type(numbers[0]) is int:  # pyright: ignore[reportUnknownArgumentType]
        return (grads[numbers[0]],)
    return map_leaves(numbers, lambda number: None if number is None else grads[number])


def check_pair(hook: Any, result: Any) -> None:
    """Raise unless a hook with kwargs returned two things."""
    if not isinstance(result, tuple | list):
        raise HookTypeError(
            f"full backward hook {hook_name(hook)}: expected None or a tuple (grad_args, grad_kwargs), "
            f"got {type(result).__name__}"
        )
    if len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise HookError(
            f"full backward hook {hook_name(hook)}: expected the two entries grad_args and grad_kwargs, "
            f"got {len(result)}"  # pyright: ignore[reportUnknownArgumentType]
        )


def replaced(
    hook: Any, kind: str, what: str, result: Any, numbers: Any, grads: list[Any], expected: list[Any]
) -> list[Any]:
    """Return `grads` with what a hook returned in place of what it was given.

    Raises
    ------
    HookTypeError
        If it is of another structure, or holds something that is neither a tensor nor None.
    HookError
        If it has another length, or a gradient another shape, dtype or device.
    """
    after = list(grads)
    for place, new in paired(numbers, result, f"{kind} {hook_name(hook)}", what):
        if place is None:
            continue
        if new is not None:
            check_replacement(hook, kind, new, expected[place], grads[place])
        after[place] = new
    return after


def paired(numbers: Any, result: Any, who: str, what: str) -> list[tuple[int | None, Any]]:
    """Return each leaf of the skeleton `numbers` with what stands in its place in `result`."""
    if isinstance(numbers, dict):
        keys = list(numbers)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        if not isinstance(result, dict):
            raise HookTypeError(f"{who}: expected None or a dict in the place of {what}, got {type(result).__name__}")
        if set(keys) != set(result):  # pyright: ignore[reportUnknownArgumentType]
            raise HookError(f"{who}: expected the keys {keys} in {what}, got {list(result)}")  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(numbers, tuple | list):
        keys = range(len(numbers))  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(result, tuple | list):
            raise HookTypeError(f"{who}: expected None or a tuple in the place of {what}, got {type(result).__name__}")
        if len(result) != len(keys):  # pyright: ignore[reportUnknownArgumentType]
            raise HookError(
                f"{who}: returned an invalid number of {what}: expected {len(keys)} entries, got {len(result)}"  # pyright: ignore[reportUnknownArgumentType]
            )
    elif dataclasses.is_dataclass(numbers):
        keys = [field.name for field in dataclasses.fields(numbers)]
        if type(result) is not type(numbers):
            raise HookTypeError(
                f"{who}: expected None or a {type(numbers).__name__} in the place of {what}, got {type(result).__name__}"
            )
        numbers, result = vars(numbers), vars(result)
    else:
        return [(numbers, result)]
    return [pair for key in keys for pair in paired(numbers[key], result[key], who, what)]  # pyright: ignore[reportUnknownArgumentType]
