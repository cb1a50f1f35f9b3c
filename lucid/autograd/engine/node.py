"""The nodes of the graph: their op, the values saved for its derivative, and the edges of its gradients."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, births, grad_of, version_of, wrap
from lucid.autograd.hooks.context import in_context
from lucid.autograd.hooks.firing import check_callable, every_step_hook
from lucid.autograd.hooks.handle import RemovableHandle
from lucid.autograd.hooks.registration import HookList
from lucid.autograd.modes.state import NumPyComplaints, thread
from lucid.autograd.recording.mutation import keep_saved, kept_everywhere
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.base import gpu
from lucid.base.arrays import copied
from lucid.base.device import beside, device_of
from lucid.base.locks import new_lock, new_rlock
from lucid.base.memory import writeable
from lucid.base.ownership import ARGUMENT, SOLE, getrefcount, references
from lucid.errors import DeviceError, GraphError, HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.base.arrays import Array

ndarray, add = np.ndarray, np.add

# `next(sequences)` costs two thirds of a bound method.
sequences = itertools.count(1)

# Below this size NumPy's in-place sum costs more than a new array and a copy.
SMALL_BYTES = 16384

# Two backward passes on two threads may reach one leaf at once; the sum must not lose either's share.
_accumulation = new_lock()

# Two threads may register the first hooks of a node at once; neither's may get lost. Reentrant: a garbage collection
# may run finalizers here.
_registration = new_rlock()


# The list of each kind on a node without a hook of it: to make three takes longer than the call of a tensor hook.
NO_HOOKS = HookList()


class Extra:
    """Rare attributes of a node: hooks, retained gradients, metadata, a stream. One truth test when absent.

    Attributes
    ----------
    tensor_hooks : dict of int to list
        The hooks of each output, by output number.
    retained : dict of int to weakref
        The tensors whose `retain_grad` was called, by output number.
    expected : dict of int to tuple
        Shape and dtype of each output that has hooks.
    prehooks, posthooks, accumulated : list
        `Node.register_prehook`, `Node.register_hook`, `Tensor.register_post_accumulate_grad_hook`.
    metadata : dict
        Free for users; anomaly detection keeps the forward trace there.
    stream : object
        The CuPy stream on which the op ran, where it was not the default one.
    light : list or None
        The tensor hooks, where a node of one output has nothing else here: the engine's short way.
    """

    __slots__ = (
        "accumulated",
        "expected",
        "light",
        "metadata",
        "posthooks",
        "prehooks",
        "retained",
        "stream",
        "tensor_hooks",
    )

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HookList] = {}
        self.retained: dict[int, weakref.ref[TensorBase]] = {}
        self.expected: dict[int, tuple[tuple[int, ...], Any]] = {}
        self.prehooks = self.posthooks = self.accumulated = NO_HOOKS
        self.metadata: dict[Any, Any] = {}
        self.stream: Any = None
        self.light: HookList | None = None

    def settle(self) -> None:
        """Set `light` after something was registered."""
        with _registration:
            plain = not (self.retained or self.prehooks or self.posthooks or self.accumulated or self.stream)
            self.light = self.tensor_hooks.get(0) if plain else None

    def register(self, kind: str, hook: Callable[..., Any], node: Node) -> RemovableHandle:
        """Return the handle of a hook of `node`, put on the list of its kind here."""
        with _registration:
            hooks = getattr(self, kind)
            if hooks is NO_HOOKS:
                hooks = HookList()
                setattr(self, kind, hooks)
        handle = RemovableHandle.of(hooks, hook, node if isinstance(node, AccumulateGrad) else None)
        self.settle()
        return handle


class Node:
    """One step of the graph: gradients of the outputs in, gradients of the inputs out.

    Attributes
    ----------
    sequence : int
        The order of recording, growing over the whole process. A node's inputs are always older, and ready nodes run
        newest first.
    edges : tuple of (Node, int) or None
        Where the gradient of each input goes.
    extra : Extra or None
        Hooks and other rare things.
    outputs : int
        How many outputs the node has.
    kept : tuple
        What the node keeps for its backward; the second entry is what `release` frees, empty if nothing.
    """

    __slots__ = ("__weakref__", "edges", "extra", "sequence")

    # a subclass whose nodes differ in these makes slots of them
    outputs: Any = 1
    kept: tuple[Any, ...] = (None, (), (), ())
    sequence: int
    edges: tuple[Edge | None, ...]
    extra: Extra | None

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradient of each input, aligned with `edges`.

        Parameters
        ----------
        m : namespace
            The functions of the gradient's device on raw arrays, or the recording ops under `create_graph`.
        grad : array or Tensor or None, or a list of these
            The gradient of the output, for a node of several outputs one entry each.
        quiet : callable
            Runs a function of raw arrays without NumPy's floating-point warnings; not for code of users.
        """
        raise NotImplementedError

    def backward_to(
        self, wanted: tuple[bool, ...], m: Namespace, grad: Array, quiet: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Return `backward`'s gradients; a node that can leaves out unwanted ones, with None in their place."""
        return self.backward(m, grad, quiet)

    def __call__(self, *grads: TensorBase | None) -> Any:
        """Return the gradients that backward of this node makes of those of its outputs, recorded if grad mode is on.

        No hook fires, and what the node keeps stays. An `AccumulateGrad` adds to the `.grad` of its leaf.

        Parameters
        ----------
        *grads : Tensor or None
            One for each output.

        Returns
        -------
        Tensor or None, or tuple of these
            The gradient of each input; by itself if there is one input.

        Raises
        ------
        TypeError
            For another number of gradients, or one that is neither a tensor nor None.
        GraphError
            If a backward pass has freed what the node kept.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.tensor([2.0, 3.0], requires_grad=True)
        >>> y = x * x.detach()
        >>> with lucid.no_grad():
        ...     y.grad_fn(lucid.tensor([1.0, 10.0]))
        (tensor([ 2., 30.]), None)
        """
        if len(grads) != self.outputs:
            raise HookTypeError(
                f"{self.name()}: expected {self.outputs} gradients, one for each output, got {len(grads)}"
            )
        for index, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, TensorBase):
                raise HookTypeError(
                    f"{self.name()}: gradient {index}: expected a Tensor or None, got {type(grad).__name__}"
                )
        several = self.outputs != 1 and any(grad is not None for grad in grads)
        results = self._backward_alone([*grads] if several else grads[0])
        return results[0] if len(results) == 1 else results

    def _backward_alone(self, grad: Any) -> tuple[Any, ...]:
        """Return the recorded gradients of `backward`, without the hooks of modules: these belong to a pass."""
        return self.backward(GRAPH, grad, thread.state.quiet)

    def release(self) -> None:
        """Free the values saved for backward: the node cannot run again."""

    def rare(self) -> Extra:
        """Return the node's `extra`, made on first need."""
        extra = self.extra
        if extra is None:
            with _registration:
                extra = self.extra
                if extra is None:
                    extra = self.extra = Extra()
        return extra

    def keep_stream(self, stream: Any) -> None:
        """Note the CuPy stream of the op's work: its backward runs there too."""
        if not gpu.is_default(stream):
            self.rare().stream = stream

    def name(self) -> str:
        """Return the name of the node's class, such as ``MulBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that take this node's gradients, with the number of the output that each stands for."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes on this node."""
        return self.rare().metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    def register_hook(
        self, hook: Callable[..., Any], *, every_step: bool = False, with_context: bool = False
    ) -> RemovableHandle:
        """Return the handle of ``hook(grad_inputs, grad_outputs)``, called after the node has run.

        Parameters
        ----------
        hook : callable
            Returns None, or a tuple that replaces all of `grad_inputs`.
        every_step : bool
            Whether each replay of a captured step calls it; see `lucid.cuda.graphed_step`.
        with_context : bool
            Whether it gets a `lucid.hooks.HookContext` as its last argument.

        Raises
        ------
        TypeError
            If `hook` is not callable.
        """
        check_callable(hook, "Node.register_hook")
        hook = every_step_hook(in_context(hook, with_context, "node post"), every_step)
        extra = self.rare()
        return extra.register("posthooks", hook, self)

    def register_prehook(
        self, hook: Callable[..., Any], *, every_step: bool = False, with_context: bool = False
    ) -> RemovableHandle:
        """Return the handle of ``hook(grad_outputs)``, called before the node runs.

        Parameters
        ----------
        hook : callable
            Returns None, or a tuple that replaces all of `grad_outputs`.
        every_step, with_context : bool
            As for `register_hook`.

        Raises
        ------
        TypeError
            If `hook` is not callable.
        """
        check_callable(hook, "Node.register_prehook")
        hook = every_step_hook(in_context(hook, with_context, "node pre"), every_step)
        extra = self.rare()
        return extra.register("prehooks", hook, self)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds the gradient of a pass to the leaf's `.grad`.

    It belongs to the leaf for the leaf's whole life, and holds it weakly. `born` counts these ends, by which what a
    function makes itself is told from what it finds.
    """

    __slots__ = ("born", "leaf")

    def __init__(self, leaf: TensorBase) -> None:
        self.sequence = 0
        self.born = next(births)
        self.edges = ()
        self.extra = None
        self.leaf = weakref.ref(leaf)

    @property
    def variable(self) -> TensorBase | None:
        """The leaf, or None once it is gone."""
        return self.leaf()

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any], alone: int = ARGUMENT) -> tuple[Any, ...]:
        """Add `grad` to the leaf's `.grad` and return no further gradients.

        An array is taken over if `alone` references lead to it here: those of the engine.
        """
        leaf = self.leaf()
        if leaf is None or grad is None:
            return ()
        edge = leaf.edge
        if edge is None:
            return ()
        if edge[0] is not self:
            raise GraphError("a leaf was moved into the graph's interior by an in-place op after it had been used")
        if isinstance(grad, TensorBase):
            accumulate_recorded(leaf, grad)
            return ()
        array = leaf.array
        if grad.dtype is not array.dtype:
            grad = grad.astype(array.dtype, copy=False)
        with _accumulation:
            old = leaf.stored_grad
            if old is None:
                # more of them are a hook's, another leaf's, a saved tensor's or the user's
                taken = getrefcount(grad) == alone
                if not (taken and (flags := grad.flags).c_contiguous and (flags.owndata or is_sole_view(grad))):
                    grad = copied(grad)
                leaf.stored_grad = wrap(grad)
                return ()
            if not (type(old.array) is type(grad) is ndarray or beside(old.array, grad)):
                raise moved_error(old.array, grad)
            try:
                version = old.version
                if kept_everywhere or thread.state.saved_hooks:
                    keep_saved(version)
                version[0] += 1
            except AttributeError:
                old.version = [1]
            except GraphError:
                # in inference mode its tensors may be changed
                if not thread.state.grad_mode.inference:
                    raise
            sole = getrefcount(old.array) == SOLE
            into = old.array
            if type(into) is not ndarray or into.nbytes >= SMALL_BYTES:
                if not writeable(into):
                    # expanded: the sum gets memory of its own
                    leaf.stored_grad = wrap(m.add(into, grad))
                elif type(into) is ndarray:
                    quiet(add, into, grad, into)
                else:
                    m.add_into(into, grad)
            else:
                try:
                    total = add(into, grad)
                except NumPyComplaints:
                    total = quiet(add, into, grad)
                if sole and into.base is None and type(total) is ndarray:
                    # nobody but `.grad` holds the array or shows its memory, so that nobody sees it replaced
                    old.array = total
                elif writeable(into):
                    into[...] = total
                else:
                    leaf.stored_grad = wrap(total)
        return ()


def accumulate_recorded(tensor: TensorBase, grad: Any) -> None:
    """Add a recorded gradient to that of a tensor; another thread may do so meanwhile."""
    while True:
        with _accumulation:
            old: Any = grad_of(tensor)
            version = _changes_of(old)
        # not under the lock, as operations run what users hang on them
        total = GRAPH.clone(grad) if old is None else GRAPH.add(old, grad)
        with _accumulation:
            if tensor.stored_grad is old and _changes_of(old) == version:
                tensor.stored_grad = total
                return


def _changes_of(grad: Any) -> int:
    """Return the number of changes in place of a gradient; 0 for None, and for inference tensors."""
    version: Any = INFERENCE if grad is None else version_of(grad)
    return 0 if version is INFERENCE else version[0]


def moved_error(old: Any, new: Any) -> DeviceError:
    """Return the error of two gradients of one tensor that lie on two devices."""
    return DeviceError(
        f"backward: a tensor has a gradient on {device_of(old)} and gets one on {device_of(new)}: its data was set to "
        "another device in between; clear its grad, or compute the loss anew after the move"
    )


def is_sole_view(array: Array) -> bool:
    """Return whether an array shows all of another array's memory, held and shown by nobody else: a reshaped one."""
    if references(array, "base") != SOLE:
        return False
    base = array.base
    return type(base) is type(array) and base.nbytes == array.nbytes and base.flags.owndata


def as_leaf(tensor: Any) -> Any:
    """Return a tensor that is in no graph, after making it a leaf that requires grad."""
    tensor.edge = accumulator_of(tensor), 0
    return tensor


def accumulator_of(leaf: TensorBase) -> AccumulateGrad:
    """Return the leaf's end of the graph, made on first need."""
    try:
        return leaf.accumulator
    except AttributeError:
        grad_of(leaf)  # from now on `stored_grad` is set
        leaf.accumulator = AccumulateGrad(leaf)
        return leaf.accumulator
