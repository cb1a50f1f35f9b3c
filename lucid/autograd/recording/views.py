"""Views of tensors and in-place changes: tensors that share memory, and the graph after a change."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import INFERENCE, Lent, TensorBase, describe, is_tuple, version_of, wrap, wrap_on_graph
from lucid.autograd.borrowing import ContentsVersion
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.hooks.functions import seen
from lucid.autograd.modes.state import inference_mode, intercepted, thread, unusual
from lucid.autograd.recording.attach import attach
from lucid.autograd.recording.mutation import keep_saved
from lucid.autograd.recording.namespace import CUDA
from lucid.base import gpu
from lucid.base.arrays import copied
from lucid.base.dtype import can_cast, dtype_of
from lucid.base.memory import copy_tiled, writeable
from lucid.errors import DeviceError, DtypeError, InplaceError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array


class View:
    """How a tensor was taken from another.

    Attributes
    ----------
    parent : View or TensorBase
        What it was taken from: another view, as that was then, or the base.
    base : TensorBase
        The tensor at the beginning of the chain of parents.
    primitive, settings, output
        The op that took it, to be repeated on the base after the base has changed; None if there is none.
    seen : int
        The version at which the tensor's edge was right.
    refuses : str or None
        Why an in-place change under grad mode is refused.
    detached : bool
        Whether it was taken in no_grad mode: then it never joins the graph of its base.
    """

    __slots__ = ("base", "detached", "output", "parent", "primitive", "refuses", "seen", "settings")

    def __init__(
        self, parent: TensorBase, primitive: Primitive, settings: dict[str, Any], output: int, *, several: bool = False
    ) -> None:
        outer = parent.origin
        if outer is None:
            self.parent = self.base = parent
        else:
            self.parent, self.base = outer, outer.base
        self.primitive: Primitive | None = primitive
        self.settings = settings
        self.output = output
        self.seen = version_of(parent)[0]
        self.refuses: str | None = outer.refuses if outer is not None else None
        self.detached = not thread.state.grad_mode.enabled or (outer is not None and outer.detached)
        if several:
            self.refuses = f"it is an output of {primitive.name}, which returns several views of one tensor"
        elif not thread.state.grad_mode.enabled:
            mode = "inference" if thread.state.grad_mode.inference else "no_grad"
            self.refuses = f"it is a view that was taken in {mode} mode"

    @classmethod
    def fixed(cls, parent: TensorBase, refuses: str) -> View:
        """Return the record of a view that no op can take again, and so refuses in-place changes."""
        view = cls.__new__(cls)
        # the views between it and the base do not matter
        view.parent = view.base = parent if parent.origin is None else parent.origin.base
        view.primitive = None
        view.settings = {}
        view.output = 0
        view.refuses = refuses
        view.detached = False
        view.seen = version_of(view.base)[0]
        return view

    def chain(self) -> list[Step]:
        """Return the steps from the base to this view, first step first."""
        steps: list[Step] = []
        view: View | TensorBase = self
        while isinstance(view, View):
            steps.append(Step(view.primitive, view.settings, view.output, view.refuses))
            view = view.parent
        return steps[::-1]


class Step(NamedTuple):
    """The op of a `View`, without its tensors: a base's node that kept them would keep the base alive."""

    primitive: Primitive | None
    settings: dict[str, Any]
    output: int
    refuses: str | None


def replay(steps: list[Step], value: Any) -> Any:
    """Return the view that `steps` take of `value`, a tensor or a raw array."""
    for step in steps:
        if step.primitive is None:
            raise InplaceError(
                f"this view was changed in place, or its base was, and cannot be taken again: {step.refuses}; change a "
                "clone() instead"
            )
        if isinstance(value, TensorBase):
            value = step.primitive(value, **step.settings)
        else:
            value = step.primitive.raw([value], step.settings)
        if is_tuple(value):
            value = value[step.output]
    return value


def live_edge(tensor: TensorBase, *, shown: bool = False) -> Edge | None:
    """Return the edge of a tensor that may be a view of a base changed since the view was taken.

    `shown` says that someone wants to see it, and not an op whether it has to record.

    Raises
    ------
    InplaceError
        If it is such a view, and no op can take it again: its edge is not that of its new values.
    """
    view = tensor.origin
    if view is None or view.seen == version_of(tensor)[0]:
        return tensor.edge
    base = view.base
    if (base.edge is not None or tensor.edge is not None) and not view.detached:
        steps = view.chain()
        lost = any(step.primitive is None for step in steps)
        if lost and not shown and not thread.state.grad_mode.enabled:
            # nothing is recorded that would hang on this edge
            return tensor.edge
        if lost or base.edge is not None:
            with inference_mode(False):
                rebase(tensor, replay(steps, base).edge)
    view.seen = version_of(tensor)[0]
    return tensor.edge


def recorded_since(tensors: Iterable[Any], first: int) -> set[Node]:
    """Return the nodes, without leaves, that lead to some tensors and were recorded from number `first` on.

    Of a view those of its base count, too, where a change in place stands.
    """
    waiting: list[Node] = []
    for tensor in tensors:
        if isinstance(tensor, TensorBase):
            base = tensor if tensor.origin is None else tensor.origin.base
            waiting += [edge[0] for edge in (tensor.edge, base.edge) if edge is not None]
    nodes: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node.sequence >= first and node not in nodes and not isinstance(node, AccumulateGrad):
            nodes.add(node)
            waiting += [edge[0] for edge in node.edges if edge is not None]
    return nodes


class CopySlices(Node):
    """A base after one of its views was changed in place: inside the view the new values, outside the old ones."""

    __slots__ = ("dims", "steps")

    def __init__(self, base: TensorBase, new_edge: Edge | None, steps: list[Step]) -> None:
        # the dims from the widest stride to the narrowest: a view is taken again only of the same layout
        self.dims = tuple(sorted(range(base.array.ndim), key=lambda dim: -base.array.strides[dim]))
        self.steps = steps
        attach(self, (base.edge, new_edge), base.array)

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradient outside of the view for the old base, inside of it for the new values."""
        if grad is None:
            return None, None
        rest = m.permute(m.clone(m.permute(grad, dims=self.dims)), dims=tuple(np.argsort(self.dims).tolist()))
        region = replay(self.steps, rest)
        inside = m.clone(region)
        if isinstance(rest, TensorBase):
            change_in_place(region, m.zeros_like(region))
        else:
            m.copy_into(region, 0)
        return rest, inside


def lent(grad: Any) -> Any:
    """Return a gradient, an array or a tensor, for a hook: in-place changes of it reach nothing else."""
    if grad is None:
        return None
    counter: Any = {0: 0}
    if isinstance(grad, TensorBase):
        return grad if version_of(grad) is INFERENCE else wrap_on_graph(grad.array, live_edge(grad), counter)
    in_inference = unusual and thread.state.grad_mode.inference
    return wrap(grad) if in_inference else wrap_on_graph(grad, None, counter)


def returned_gradient(after: Any, before: Any, grad: Any) -> Any:
    """Return a gradient of a recorded pass after hooks: `grad` itself if they did not change `before`."""
    if after is not before or before is None or before is grad:
        return after
    return grad if version_of(before)[0] == 0 else after


def before_change(target: TensorBase) -> None:
    """Save the values of `target` that are still needed, before it changes in place."""
    counter: Any = version_of(target)
    if type(counter) is Lent:
        _take_over(target, counter)
    keep_saved(counter)


def _take_over(target: TensorBase, counter: dict[Any, Any]) -> None:
    """Give a gradient memory of its own, and `target`, a view of it, its part."""
    base = target if target.origin is None else target.origin.base
    if "own" not in counter:
        array = base.array
        own = counter["own"] = copied(array)
        others = [reference() for reference in counter.pop("tensors", ())]
        for each in (base, *others):
            if each is not None and each.array.shape == array.shape:
                each.array = own
    if target.origin is not None:
        target.array = replay(target.origin.chain(), base.array)


def check_change(target: TensorBase, *, recording: bool) -> None:
    """Raise unless `target` may be changed in place.

    Raises
    ------
    InplaceError
        For a leaf that requires grad, a view of one, and a view whose kind refuses, while the change is recorded.
    """
    view = target.origin
    version = version_of(target)
    if version is INFERENCE and not thread.state.grad_mode.inference:
        INFERENCE[0]
    if not recording:
        return
    if type(version) is ContentsVersion and version.is_read_by_others:
        raise InplaceError(
            f"this tensor of {describe(target)} was handed on as an array, to numpy.asarray or an object of a library, "
            "that would see what is written now and not its gradient: write into a copy() of it, or hand on a copy()"
        )
    if view is None:
        if target.edge is not None and type(target.edge[0]) is AccumulateGrad:
            raise InplaceError(
                f"a leaf Variable that requires grad is being used in an in-place operation ({describe(target)}): "
                "change it under lucid.no_grad(), or change a clone()"
            )
        return
    if view.refuses is not None:
        raise InplaceError(
            f"this view of {describe(target)} cannot be changed in place while gradients are recorded: "
            f"{view.refuses}; change a clone() or use the out-of-place op"
        )
    edge = view.base.edge
    # a base that requires no grad itself may have a view that was made a leaf
    if (edge is None and target.edge is not None) or (edge is not None and type(edge[0]) is AccumulateGrad):
        raise InplaceError(
            f"a view of a leaf Variable that requires grad is being used in an in-place operation "
            f"({describe(target)}): change it under lucid.no_grad(), or change a clone()"
        )


def memory_error(target: TensorBase) -> InplaceError:
    """Return the error of a tensor in read-only or overlapping memory."""
    return InplaceError(
        f"this tensor of {describe(target)} shares read-only or broadcast memory (expand): clone() it first"
    )


def change_in_place(target: Any, value: Any) -> Any:
    """Return `target` after `value` was written into its memory, with the graph following the change.

    Parameters
    ----------
    target : Tensor
        What is changed; all its aliases see the new values.
    value : Tensor
        The new values, recorded as any other tensor; of the target's shape, and of a dtype that casts to its dtype.

    Raises
    ------
    InplaceError
        If `target` may not be changed.
    ShapeError, DtypeError, DeviceError
        If `value` does not fit. Nothing is changed then.
    """
    if intercepted and thread.state.function_hooks:
        return seen("copy_", change_in_place, (target, value), {})
    array: Array = target.array
    source: Array = value.array
    if source.shape != array.shape:
        raise ShapeError(
            f"in-place op: output of shape {tuple(array.shape)} does not match the broadcast shape "
            f"{tuple(source.shape)}"
        )
    if source.dtype != array.dtype and not can_cast(dtype_of(source), dtype_of(array)):
        raise DtypeError(
            f"in-place op: result type {dtype_of(source).name} can't be cast to the desired output type "
            f"{dtype_of(array).name}"
        )
    if type(source) is not type(array) or (type(array) is not np.ndarray and source.device != array.device):
        raise DeviceError(f"in-place op: target has {describe(target)}, value has {describe(value)}")
    view = target.origin
    new_edge = value.edge if value.origin is None else live_edge(value)
    old_edge = target.edge if view is None else live_edge(target)
    recording = bool(thread.state.recording) and (
        new_edge is not None or old_edge is not None or (view is not None and view.base.edge is not None)
    )
    check_change(target, recording=recording)
    before_change(target)
    array = target.array
    if not array.size:
        pass
    elif not writeable(array):
        raise memory_error(target)
    elif type(array) is np.ndarray:
        thread.state.quiet(copy_tiled, array, source)
    else:
        with gpu.use_device(gpu.device_index(array)):
            CUDA.copy_into(array, source)
    if target.version is not INFERENCE:
        target.version[0] += 1
    if not recording:
        return target
    place_anew(target, new_edge)
    return target


def place_anew(tensor: TensorBase, edge: Edge | None) -> None:
    """Give a tensor that was changed in place its new position in the graph, and its base too."""
    view = tensor.origin
    if view is None:
        rebase(tensor, edge)
        return
    steps = view.chain()
    rebase(view.base, (CopySlices(view.base, edge, steps), 0))
    live_edge(tensor)


def rebase(tensor: TensorBase, edge: Edge | None) -> None:
    """Give `tensor` a new position in the graph; a retained gradient follows it."""
    old = tensor.edge
    tensor.edge = edge
    for changed in thread.state.levels:
        changed.append(weakref.ref(tensor))
    if old is not None and edge is not None and old[0].extra is not None:
        kept = old[0].extra.retained.get(old[1])
        if kept is not None and kept() is tensor:
            del old[0].extra.retained[old[1]]
            edge[0].rare().retained[edge[1]] = kept


def detached(tensor: TensorBase) -> Any:
    """Return a tensor on the same memory and version counter that is in no graph."""
    alias = wrap(tensor.array)
    alias.version = version = version_of(tensor)
    lent: Any = version
    if type(lent) is Lent:
        lent["tensors"] = (*lent.get("tensors", ()), weakref.ref(tensor), weakref.ref(alias))
    return alias
