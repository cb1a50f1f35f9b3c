"""A node with more to do than its backward: hooks, captured gradients, a search for anomalies."""

from __future__ import annotations

from functools import partial
from operator import length_hint
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.anomaly import check_grads
from lucid.autograd.base import TensorBase, describe, is_list, registered, wrap
from lucid.autograd.engine.node import AccumulateGrad, Extra, Node, accumulate_recorded
from lucid.autograd.hooks.firing import add_hook_note, fire, hook_name, note_fired
from lucid.autograd.hooks.functions import Call, call_hooked
from lucid.autograd.hooks.gradients import check_replacement
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive_node import PrimitiveNode
from lucid.autograd.recording.views import CopySlices, lent, returned_gradient
from lucid.base import gpu
from lucid.base.capture import captures
from lucid.errors import HookError, HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.autograd.engine.passes import Pass
    from lucid.autograd.hooks.registration import HookList
    from lucid.base.arrays import Array


def run_on_device(
    index: int | None, run: Callable[..., tuple[Any, ...]], m: Namespace, grad: Array, quiet: Callable[..., Any]
) -> tuple[Any, ...]:
    """Return ``run(m, grad, quiet)``, a node's, on a CUDA device; None stands for the CPU."""
    return run(m, grad, quiet) if index is None else gpu.run_on(index, run, m, grad, quiet)


def run_watched(
    this: Pass, node: Node, m: Namespace, grad: Array, index: int | None = None, *, fired: bool = False
) -> tuple[Any, ...] | None:
    """Run a node that has hooks, is captured, or is searched for anomalies; None if it is only captured.

    `index` is that of the CUDA device of its gradient. With `fired` its tensor hooks have been called, and have just
    hung others of their kinds on it.

    The order is the contract's: tensor hooks of its outputs, retained gradients, capture, prehooks, the node (at a
    leaf the accumulation and its hooks), posthooks.
    """
    extra = node.extra
    if extra is not None and (extra.tensor_hooks or extra.retained):
        grad = _fire_output_hooks(node, extra, grad, graph=m is GRAPH, fired=fired)
    positions = this.captures.get(node)
    if positions is not None:
        for output, position in positions.items():
            this.captured[position] = _as_tensor(grad[output] if is_list(grad) else grad)
    if this.needed is not None and node not in this.needed:
        return None
    if extra is not None and extra.prehooks:
        shown = _as_tensors(grad, node)
        returned = _fire_node_hooks(extra.prehooks, shown, (), "node prehook", node.name())
        grad = _received(node, returned, shown, grad, graph=m is GRAPH)
    # those that are there when it begins: what stands in their places when it ends is called
    posthooks = tuple(extra.posthooks.registrations) if extra is not None and extra.posthooks else ()
    outputs = _as_tensors(grad, node) if posthooks else ()
    wanted = this.wanted(node)
    run = node.backward if wanted is None else partial(node.backward_to, wanted)
    state = thread.state
    if state.node_hooks:
        grads = _seen_by_function_hooks(node, lambda grad: run_on_device(index, run, m, grad, state.quiet), grad, m)
    else:
        grads = run_on_device(index, run, m, grad, state.quiet)
    if state.anomaly:
        check_grads(node, grads)
    if extra is not None and extra.accumulated:
        _fire_accumulated(node, extra)
    if posthooks and extra is not None:
        shown = tuple(None if edge is None else lent(g) for edge, g in zip(node.edges, grads, strict=True))
        standing = extra.posthooks.standing(posthooks)
        returned = _fire_node_hooks(standing, shown, (outputs,), "node posthook", node.name())
        grads = _handed_on(returned, shown, grads, graph=m is GRAPH)
    return grads


def _seen_by_function_hooks(
    node: Node, run: Callable[[Any], tuple[Any, ...]], grad: Any, m: Namespace
) -> tuple[Any, ...]:
    """Return the gradients that a node's backward, ``run(grad)``, gives, after the function hooks of this thread."""
    computed: tuple[Any, ...] = ()
    received = _as_tensors(grad, node)

    def backward() -> tuple[Any, ...]:
        nonlocal computed
        # a hook may have changed them in place
        computed = run(_received(node, received, received, grad, graph=m is GRAPH))
        return tuple([None if edge is None else lent(g) for edge, g in zip(node.edges, computed, strict=True)])

    # of what is no rule of lucid's own a user's part is seen: a Function, hooks of modules
    inner = not isinstance(node, PrimitiveNode | CopySlices | AccumulateGrad)
    shown, after = call_hooked(Call(node.name(), "backward", received, {}, node, inner=inner), backward)
    return _handed_on(after, shown, computed, graph=m is GRAPH)


def _fire_output_hooks(node: Node, extra: Extra, grad: Any, *, graph: bool, fired: bool) -> Any:
    """Return a node's gradient after the tensor hooks of its outputs, and set retained gradients."""
    buffer: list[Any] = list(grad) if is_list(grad) else [grad]
    if len(buffer) != node.outputs:
        buffer = [None] * node.outputs
    for output in dict.fromkeys((*extra.tensor_hooks, *extra.retained)):
        tensor = _as_tensor(buffer[output])
        expected = extra.expected.get(output)
        if tensor is not None and expected is not None and tensor.array.dtype != expected[1]:
            tensor = GRAPH.cast(tensor, dtype=expected[1]) if graph else wrap(tensor.array.astype(expected[1]))
        hooks = extra.tensor_hooks.get(output)
        if hooks and not fired:
            shown = lent(tensor)
            after = _fire_tensor_hooks(hooks, shown, expected, partial(owner_of, node, output))
            tensor = returned_gradient(after, shown, tensor) if graph else after
        buffer[output] = tensor if graph or tensor is None else tensor.array
    # once the hooks of all outputs have run: one that raises leaves no gradient behind
    for output, kept in tuple(extra.retained.items()):
        keeper, tensor = kept(), _as_tensor(buffer[output])
        if keeper is not None and tensor is not None:
            accumulate_recorded(keeper, tensor)
    return _packed(buffer, node)


def owner_of(node: Node, output: int) -> str:
    """Return in words the tensor that an output's hooks belong to."""
    expected = node.rare().expected.get(output)
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        return "a leaf tensor" if leaf is None else f"the leaf tensor of {describe(leaf)}"
    form = "" if expected is None else f" of shape {expected[0]}, {expected[1].name}"
    return f"the tensor{form} made by {node.name()} (output {output})"


def _fire_accumulated(node: Node, extra: Extra) -> None:
    """Call the post-accumulate hooks of a leaf with the leaf."""
    leaf = node.variable if isinstance(node, AccumulateGrad) else None
    if leaf is not None:
        fire(tuple(extra.accumulated), _call_accumulated, leaf, "post-accumulate hook", partial(owner_of, node, 0))


def _call_accumulated(hook: Callable[[TensorBase], object], leaf: TensorBase) -> None:
    result = hook(leaf)
    if result is not None:
        raise HookTypeError(
            f"post-accumulate hook {hook_name(hook)}: expected None to be returned, got {type(result).__name__}"
        )


def _as_tensor(grad: Any) -> Any:
    return grad if grad is None or isinstance(grad, TensorBase) else wrap(grad)


def _as_tensors(grad: Any, node: Node) -> tuple[Any, ...]:
    """Return a node's gradient in the form for hooks: one tensor or None for each output."""
    if is_list(grad):
        return tuple(lent(g) for g in grad)
    return (lent(grad),) if node.outputs == 1 else (None,) * node.outputs


def _handed_on(returned: tuple[Any, ...], shown: tuple[Any, ...], grads: Iterable[Any], *, graph: bool) -> Any:
    """Return gradients as the engine goes on with them, after hooks that were shown them have given or changed some."""
    if graph:
        return tuple(map(returned_gradient, returned, shown, grads))
    return tuple([None if g is None else g.array for g in returned])


def _received(node: Node, returned: tuple[Any, ...], shown: tuple[Any, ...], grad: Any, *, graph: bool) -> Any:
    """Return a node's gradient after hooks that were shown it have given other gradients, or changed these."""
    grads = grad if is_list(grad) else [grad] * node.outputs
    return _packed([*_handed_on(returned, shown, grads, graph=graph)], node)


def _packed(grads: list[Any], node: Node) -> Any:
    """Return a node's buffer of one gradient or None for each output: None if no output has any."""
    if node.outputs == 1:
        return grads[0]
    return grads if any(g is not None for g in grads) else None


def _fire_tensor_hooks(
    hooks: HookList, grad: Any, expected: tuple[tuple[int, ...], Any] | None, owner: Callable[[], str]
) -> Any:
    """Return the gradient of a tensor of the `expected` shape and dtype, or None, after the tensor's hooks."""

    def call(hook: Callable[..., Any], grad: Any) -> Any:
        result = hook(grad)
        if result is None or result is grad:
            return result
        return lent(check_replacement(hook, "tensor hook", result, expected, grad))

    return fire(tuple(hooks), call, grad, "tensor hook", owner)


def fire_light(node: Node, extra: Extra, grad: Any) -> Any:
    """Return the gradient of a node's only output after its tensor hooks, the only rare attributes of the node.

    What the engine does for any node, for the case in which its generality would cost more than the hooks: one adds
    0.3 us, and by `fire` 0.7.
    """
    tensor = registered.new()
    expected = extra.expected[0]
    # another dtype where `data` was set since
    tensor.array = grad if grad.dtype is expected[1] else grad.astype(expected[1], copy=False)
    tensor.edge = tensor.origin = None
    tensor.version = {0: 0}  # as `lent` makes it
    light: Any = extra.light
    hooks = light[:]
    if captures:
        note_fired(hooks, "tensor hook")
    hook, rest = None, iter(hooks)
    try:
        for hook in rest:
            result = hook(tensor)
            if result is not None and result is not tensor:
                array = check_replacement(hook, "tensor hook", result, expected, tensor).array
                tensor = registered.new()
                tensor.array = array
                tensor.edge = tensor.origin = None
                tensor.version = {0: 0}
    except Exception as error:
        add_hook_note(error, hook, "tensor hook", owner_of(node, 0), len(hooks) - length_hint(rest) - 1)
        raise
    return tensor.array


def _fire_node_hooks(
    hooks: Sequence[Callable[..., Any]], grads: tuple[Any, ...], others: tuple[Any, ...], kind: str, owner: str
) -> tuple[Any, ...]:
    """Return the gradients of a node after its pre- or posthooks; these replace them as a whole.

    `others` is what the hooks are given besides: a posthook's `grad_outputs`.
    """

    def call(hook: Callable[..., Any], grads: tuple[Any, ...]) -> Any:
        result = hook(grads, *others)
        if result is None:
            return None
        if not isinstance(result, tuple):
            raise HookTypeError(f"{kind} {hook_name(hook)}: expected None or a tuple, got {type(result).__name__}")
        entries = cast("tuple[Any, ...]", result)  # a user's tuple holds anything
        if len(entries) != len(grads):
            raise HookError(f"{kind} {hook_name(hook)}: expected a tuple of {len(grads)} gradients, got {len(entries)}")
        return tuple(
            new if new is None or new is old else lent(check_replacement(hook, kind, new, None, old))
            for old, new in zip(grads, entries, strict=True)
        )

    return fire(tuple(hooks), call, grads, kind, owner)
