"""Full backward hooks: two nodes of the graph, before and after the operations that a module recorded.

The node at the inputs stands for the call: it knows the module and the hooks as they were at the time. The node at the
outputs leads to it, never the other way round, so that neither outlives the graph.
"""

from __future__ import annotations

from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, version_of, wrap, wrap_on_graph
from lucid.autograd.engine.node import Node
from lucid.autograd.hooks.firing import fire, hook_name
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.attach import attach
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.views import View, lent, live_edge, returned_gradient
from lucid.base.arrays import namespace, on
from lucid.errors import HookError, warn
from lucid.nn.hooking.skeletons import counted, filled, flat, replaced
from lucid.nn.module.paths import module_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.engine.passes import Pass
    from lucid.autograd.hooks.context import CallRecord
    from lucid.autograd.hooks.table import Entry
    from lucid.nn.module.module import Module


class Form(NamedTuple):
    """Options of a backward hook, set at its registration.

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


class BoundaryView(View):
    """How a boundary's tensor was taken from the one that it stands for: it refuses in-place changes."""

    __slots__ = ()

    # the same for all of them, so that one call more costs three attributes only
    primitive: Any = None
    settings: Any = {}  # noqa: RUF012  an instance has no room for another
    output: Any = 0
    detached: Any = False

    def __init__(self, parent: TensorBase, version: list[int]) -> None:
        # no op takes it again, so that the views between it and the base do not matter
        self.parent = self.base = parent if parent.origin is None else parent.origin.base
        self.seen = version[0]


class InputView(BoundaryView):
    """The view that forward gets of an input."""

    __slots__ = ()

    refuses: Any = "it is an input of a module with full backward hooks"


class OutputView(BoundaryView):
    """The view that the caller gets of an output."""

    __slots__ = ()

    refuses: Any = "it is an output of a module with full backward hooks"


def view_at(tensor: TensorBase, edge: Edge | None, view_type: type[BoundaryView]) -> Any:
    """Return a view of `tensor` at `edge` that refuses in-place changes, as an inference tensor does by itself."""
    version = version_of(tensor)
    view = wrap_on_graph(tensor.array, edge, version)
    if version is not INFERENCE:
        view.origin = view_type(tensor, version)
    return view


class Frontier(Node):
    """One of the two nodes; it passes on the gradients that it receives, as changed by the hooks.

    Attributes
    ----------
    skeleton : object
        The arguments, as a tuple and a dictionary, or the outputs as a tuple, with the number of the tensor in place
        of each tensor and None in place of everything else. None if it is a tuple of tensors only.
    expected : list of (shape, dtype)
        What the gradient of each tensor must have.
    """

    __slots__ = ("expected", "outputs", "skeleton")

    skeleton: Any
    expected: list[Any]

    def join(self, tensors: list[Any], view_type: type[BoundaryView]) -> list[Any] | None:
        """Return a view of each tensor, joined to this node; None, and no node, if no tensor requires grad."""
        edges = [t.edge if t.origin is None else live_edge(t) for t in tensors]
        if not any(edges):
            self.expected = [(t.array.shape, t.array.dtype) for t in tensors]
            return None
        expected: list[Any] = []
        views: list[Any] = []
        for number, tensor in enumerate(tensors):
            array = tensor.array
            expected.append((array.shape, array.dtype))
            views.append(view_at(tensor, None if edges[number] is None else (self, number), view_type))
        self.expected = expected
        self.outputs = len(edges)
        attach(self, tuple(edges), next((t.array for t in tensors if type(t.array) is not np.ndarray), None))
        return views

    def join_one(self, tensor: Any, view_type: type[BoundaryView]) -> Any:
        """Return the result of `join` for a single tensor, the most common case: the view, or None."""
        array = tensor.array
        self.expected = [(array.shape, array.dtype)]
        edge = tensor.edge if tensor.origin is None else live_edge(tensor)
        if edge is None:
            return None
        self.outputs = 1
        attach(self, (edge,), array)
        return view_at(tensor, (self, 0), view_type)

    def fire(self, grads: list[Any]) -> list[Any]:
        """Return the gradients after the hooks."""
        raise NotImplementedError

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradients after the hooks."""
        if self.outputs == 1 and m is not GRAPH and grad is not None:
            dtype = self.expected[0][1]
            after = self.fire([lent(grad if grad.dtype is dtype else grad.astype(dtype, copy=False))])[0]
            return (None if after is None else after.array,)
        graph = m is GRAPH
        grads = self.received(grad, graph=graph)
        shown = [lent(g) for g in grads]
        after = self.fire(shown)
        if graph:
            return tuple(map(returned_gradient, after, shown, grads))
        return tuple([None if t is None else t.array for t in after])

    def _backward_alone(self, grad: Any) -> tuple[Any, ...]:
        """Return the gradients as they come, without those for inputs that need none: hooks belong to a pass."""
        return tuple(
            [None if edge is None else g for edge, g in zip(self.edges, self.received(grad, graph=True), strict=True)]
        )

    def received(self, grad: Any, *, graph: bool) -> list[Any]:
        """Return the gradient of each tensor in its dtype: a tensor with `graph`, an array without, or None."""
        grads: list[Any] = [grad] if self.outputs == 1 else [None] * self.outputs if grad is None else list(grad)
        for number, g in enumerate(grads):
            if g is not None:
                dtype = self.expected[number][1]
                if graph:
                    g = g if g.array.dtype == dtype else GRAPH.cast(g, dtype=dtype)  # noqa: PLW2901
                else:
                    g = g if g.dtype is dtype else g.astype(dtype, copy=False)  # noqa: PLW2901
                grads[number] = g
        return grads


class ModuleInputBackward(Frontier):
    """The call of a module: collects the gradients of its inputs and runs its full backward hooks.

    Parameters
    ----------
    module : Module
        What is called. It is held by the graph of its outputs, so that the hooks fire also if nobody else holds it.
    pre_hooks, hooks : sequence of Entry
        Full backward pre-hooks and full backward hooks, in the order of firing, each with its `Form` or None.

    Attributes
    ----------
    record : CallRecord or None
        Of the call, where a hook of the module asks for context.
    on_request : bool
        Whether no tensor that is a positional argument requires grad, only some by name or in structures.
    """

    __slots__ = ("deep", "hooks", "joined", "module", "on_request", "pre_hooks", "record", "with_kwargs")

    def __init__(self, module: Module, pre_hooks: Sequence[Entry], hooks: Sequence[Entry]) -> None:
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.deep = self.with_kwargs = self.on_request = False
        self.record: CallRecord | None = None
        for hook in hooks:
            if hook.option is not None:
                self.deep |= hook.option.structured
                self.with_kwargs |= hook.option.with_kwargs

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with a view in place of each tensor, if one of them requires grad."""
        if len(args) == 1 and isinstance(args[0], TensorBase) and not self.with_kwargs:
            self.skeleton = None
            view = self.join_one(args[0], InputView)
            self.joined = view is not None
            return (args if view is None else (view,)), kwargs
        tensors: list[Any] = [a for a in args if isinstance(a, TensorBase)]
        if len(tensors) == len(args) and not self.with_kwargs:
            self.skeleton = None
            views = self.join(tensors, InputView)
            self.joined = views is not None
            return (args if views is None else tuple(views)), kwargs
        tensors = []
        count = counted(tensors)
        everything = args, (kwargs if self.with_kwargs else {})
        if self.deep:
            self.skeleton = map_leaves(everything, count)
        else:
            self.skeleton = tuple([count(a) for a in args]), {name: count(a) for name, a in everything[1].items()}
        views = self.join(tensors, InputView)
        self.joined = views is not None
        if views is None:
            return args, kwargs
        self.on_request = not any(isinstance(n, int) and self.edges[n] is not None for n in self.skeleton[0])
        following = iter(views)

        def viewed(leaf: Any) -> Any:
            return next(following) if isinstance(leaf, TensorBase) else leaf

        if self.deep:
            args, named = map_leaves(everything, viewed)
        else:
            args, named = tuple([viewed(a) for a in args]), {name: viewed(a) for name, a in everything[1].items()}
        return args, {**kwargs, **named}

    def leave(self, result: Any) -> Any:
        """Return the output with a view in place of each tensor, if one of them requires grad."""
        end = ModuleOutputBackward()
        end.call = self
        if isinstance(result, TensorBase):
            end.skeleton, end.single = None, True
            view = end.join_one(result, OutputView)
            return result if view is None else view
        tensors: list[Any] = []
        end.single = not isinstance(result, tuple | list)
        end.skeleton = map_leaves((result,) if end.single else result, counted(tensors))
        views = end.join(tensors, OutputView)
        if views is None:
            return result
        following = iter(views)
        return map_leaves(result, lambda leaf: next(following) if isinstance(leaf, TensorBase) else leaf)

    def fire(self, grads: list[Any]) -> list[Any]:
        """Run the full backward hooks."""
        waiting = thread.state.passes[-1].between.pop(self, None)
        if waiting is None:
            # gradients that did not come through the module's outputs, as in a double backward
            return grads
        outputs, end = waiting
        if NoneType in map(type, grads):
            grads = self.with_zeros(grads, outputs)
        return fire(self.hooks, partial(self.call_hook, outputs, end), grads, "full backward hook", self.owner)

    def call_hook(
        self, outputs: list[Any], end: ModuleOutputBackward, hook: Entry, grads: list[Any]
    ) -> list[Any] | None:
        """Return the gradients of the inputs as replaced by the hook, or None if it returns none."""
        form = hook.option
        if form is None and self.skeleton is None and end.skeleton is None:
            numbers: Any = None
            result = hook.func(self.module, tuple(grads), tuple(outputs))
        else:
            numbers = self.numbers(form or FULL)
            result = hook.func(self.module, *filled(numbers, grads), end.grad_output(outputs, form or FULL))
        if result is None:
            return None
        if numbers is None or len(numbers) == 1:
            result = (result,)
            numbers = (tuple(range(len(grads))),) if numbers is None else numbers
        return replaced(hook, "full backward hook", "grad_input", result, numbers, grads, self.expected)

    def with_zeros(self, grads: list[Any], outputs: list[Any]) -> list[Any]:
        """Return the gradients with zeros for inputs that forward did not use, and for those that need none.

        They lie where a gradient lies that is known, of an input or of an output.
        """
        known = next((g for g in (*grads, *outputs) if g is not None), None)
        if known is None:
            return grads
        xp = namespace(known.array)
        with on(known.array):
            return [wrap(xp.zeros(*self.expected[n])) if g is None else g for n, g in enumerate(grads)]

    def waits_in(self, this: Pass) -> bool:
        """Return whether the hooks wait in a pass for gradients of inputs.

        Inputs that hooks have asked for, by name or in structures, may have no part in the outputs: the pass never
        comes to them, and hooks that did not ask would not wait either. Under ``inputs=`` they are left out on purpose.
        """
        return self.joined and not (self.on_request and this.needed is None and self not in this.counts)

    def fire_without_inputs(self, outputs: list[Any], end: ModuleOutputBackward) -> None:
        """Run the full backward hooks of a module without gradients of inputs."""
        why = "requires grad and has a part in them" if self.joined else "requires grad"
        warn(
            f"a full backward hook of {module_path(self.module)} fires as soon as the gradients of the "
            f"module's outputs are known, since none of its inputs {why}",
            UserWarning,
        )
        nothing: list[Any] = [None] * len(self.expected)

        def call(hook: Entry, _: None) -> None:
            form = hook.option or FULL
            result = hook.func(self.module, *filled(self.numbers(form), nothing), end.grad_output(outputs, form))
            leaves: list[Any] = []
            map_leaves(result, lambda leaf: None if leaf is None else leaves.append(leaf))
            if leaves:
                raise HookError(
                    f"full backward hook {hook_name(hook)}: no input of the module gets a gradient: expected None, or "
                    f"None for all gradients, got {type(leaves[0]).__name__}"
                )

        fire(self.hooks, call, None, "full backward hook", self.owner)

    def owner(self) -> str:
        """Return a description of the owner of the hooks, for messages."""
        return module_path(self.module)

    def numbers(self, form: Form) -> tuple[Any, ...]:
        """Return the skeleton of the inputs as a hook asked for it, with those by name if it did."""
        if self.skeleton is None:
            whole: tuple[Any, Any] = tuple(range(len(self.expected))), {}
        elif self.deep and not form.structured:
            args, named = self.skeleton
            whole = tuple([flat(n) for n in args]), {name: flat(n) for name, n in named.items()}
        else:
            whole = self.skeleton
        return whole if form.with_kwargs else whole[:1]


class ModuleOutputBackward(Frontier):
    """Collects the gradients of a module's outputs and runs its full backward pre-hooks.

    Attributes
    ----------
    call : ModuleInputBackward
        The call whose outputs these are.
    single : bool
        Whether the module returned one thing, rather than a tuple or list.
    """

    __slots__ = ("call", "single")

    call: ModuleInputBackward
    single: bool

    def fire(self, grads: list[Any]) -> list[Any]:
        """Run the full backward pre-hooks, and the full hooks of a module without inputs to wait for."""
        call = self.call
        kind = "full backward pre-hook"

        def call_hook(hook: Entry, grads: list[Any]) -> list[Any] | None:
            numbers = self.numbers(hook.option or PRE)
            result = hook.func(call.module, filled(numbers, grads))
            if result is None:
                return None
            return replaced(hook, kind, "grad_output", result, numbers, grads, self.expected)

        grads = fire(call.pre_hooks, call_hook, grads, kind, call.owner)
        this = thread.state.passes[-1]
        if call.waits_in(this):
            this.between[call] = grads, self
        elif call.hooks:
            call.fire_without_inputs(grads, self)
        return grads

    def numbers(self, form: Form) -> Any:
        """Return the skeleton of `grad_output` as a hook asked for it."""
        skeleton: Any = self.skeleton
        if skeleton is None:
            return 0 if form.structured else (0,)
        if form.structured:
            return skeleton[0] if self.single else skeleton
        numbers = [flat(number) for number in skeleton]
        return tuple(numbers if form.aligned else [number for number in numbers if number is not None])

    def grad_output(self, grads: list[Any], form: Form) -> Any:
        """Return the gradients of the outputs as a hook asked for them."""
        return filled(self.numbers(form), grads)
