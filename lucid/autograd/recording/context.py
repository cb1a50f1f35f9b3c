"""The context of a Function's call: the values that its forward keeps for its backward."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, version_of
from lucid.autograd.recording.saved import Packed, changed_error, freed_error, pack_saved, saved_tensor
from lucid.autograd.recording.saved_attributes import SavedTensor
from lucid.autograd.recording.views import live_edge
from lucid.base.dtype import as_dtype
from lucid.errors import DtypeError, GraphError, HookTypeError, warn

if TYPE_CHECKING:
    from lucid.autograd.base import Edge
    from lucid.autograd.engine.node import Node
    from lucid.base.dtype import dtype as Dtype


class SavedEntry:
    """One tensor that a forward kept for its backward."""

    __slots__ = ("count", "edge", "original", "output", "value", "version")

    def __init__(self, tensor: Any, value: Any, edge: Edge | None, output: int | None) -> None:
        self.value = value
        self.edge = edge
        self.output = output
        # what a hook has stored does not change with the tensor
        self.version = [0] if isinstance(value, Packed) else version_of(tensor)
        self.count = self.version[0]
        # what is no output comes back as itself, so that it is recognised
        self.original = weakref.ref(tensor) if output is None else None

    def replace(self, value: Any) -> None:
        """Keep `value` instead, an array of its own memory."""
        self.value = value
        self.version, self.count = [0], 0


class Call:
    """State of one call, apart from the context: attributes of the context belong to the user.

    Attributes
    ----------
    name : str
        The node's name, for messages.
    to_save : tuple of Tensor or None
        What forward asked to keep, until the call is recorded.
    saved : list of SavedEntry or None, or None
        What is kept from then on; None once freed.
    dirty, not_differentiable : tuple of Tensor
        What forward marked.
    materialize : bool
        Whether backward gets zeros for outputs without a gradient.
    grad_dtypes : tuple of dtype or None, or None
        What forward declared for the gradient of each output.
    node : weakref or None
        The node, once it exists.
    """

    __slots__ = ("dirty", "grad_dtypes", "materialize", "name", "node", "not_differentiable", "saved", "to_save")

    def __init__(self, name: str) -> None:
        self.name = name
        self.to_save: tuple[Any, ...] = ()
        self.saved: list[SavedEntry | None] | None = []
        self.dirty: tuple[Any, ...] = ()
        self.not_differentiable: tuple[Any, ...] = ()
        self.materialize = True
        self.grad_dtypes: tuple[Dtype | None, ...] | None = None
        self.node: weakref.ref[Node] | None = None

    def keep(self, node: Node, inputs: dict[int, Edge | None], joined: dict[int, int]) -> None:
        """Turn the values that forward saved into entries without a reference to `node`.

        By the identities of tensors: where the gradients of the inputs go, and which outputs of the node take one.
        """
        values = pack_saved(tuple(None if t is None else t.array for t in self.to_save), self.to_save)
        entries: list[SavedEntry | None] = []
        for tensor, value in zip(self.to_save, values, strict=True):
            if tensor is None:
                entries.append(None)
            elif id(tensor) in inputs:
                entries.append(SavedEntry(tensor, value, inputs[id(tensor)], None))
            elif id(tensor) in joined:
                entries.append(SavedEntry(tensor, value, None, joined[id(tensor)]))
            else:
                entries.append(SavedEntry(tensor, value, live_edge(tensor), None))
        self.saved = entries
        self.to_save = ()
        self.node = weakref.ref(node)

    def unpack(self) -> tuple[Any, ...]:
        """Return the saved tensors, joined to the graph."""
        saved = self.saved
        if saved is None:
            raise freed_error(self.name)
        return tuple([None if entry is None else self.tensor(entry, index) for index, entry in enumerate(saved)])

    def tensor(self, entry: SavedEntry, index: int) -> Any:
        """Return the tensor of one entry, joined to the graph."""
        if entry.version[0] != entry.count:
            raise changed_error(self.name, index, entry.count, entry.version)
        original = entry.original() if entry.original is not None else None
        if original is not None and original.array is entry.value and original.edge == entry.edge:
            return original
        node = None if self.node is None else self.node()
        edge = entry.edge
        if entry.output is not None and node is not None:
            edge = (node, entry.output)
        return saved_tensor(entry.value, edge, entry.version)

    def raw(self) -> tuple[SavedTensor | None, ...]:
        """Return the entry behind each of the saved tensors."""
        saved = self.saved
        if saved is None:
            raise freed_error(self.name)

        def one(entry: SavedEntry, index: int) -> SavedTensor:
            def read() -> Any:
                if self.saved is None:
                    raise freed_error(self.name)
                return entry.value

            return SavedTensor(
                f"{self.name} saved tensor {index}", read, partial(self.tensor, entry, index), entry.replace
            )

        return tuple([None if entry is None else one(entry, index) for index, entry in enumerate(saved)])


class FunctionCtx:
    """Context from a `Function`'s forward to its backward: tensors, markings, and any attributes set on it.

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
        self.__lucid__ = Call(type(self).__name__)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep `tensors` for backward; `saved_tensors` gives them back in order.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or others. A second call replaces what the first kept.

        Raises
        ------
        TypeError
            If one is neither a tensor nor None; then nothing changes.
        """
        _check_saved("save_for_backward", tensors)
        self.__lucid__.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Take tensors for a `jvp` of the Function, and keep none: there is no forward mode that would ask for them.

        Parameters
        ----------
        *tensors : Tensor or None
            Inputs, outputs or others.

        Raises
        ------
        TypeError
            If one is neither a tensor nor None.
        """
        _check_saved("save_for_forward", tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward kept, in order; none before the call is recorded.

        Raises
        ------
        GraphError
            If a backward has freed them.
        InplaceError
            If one was changed in place since.
        """
        return self.__lucid__.unpack()

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The `saved_tensors` under their old name, with a `DeprecationWarning`."""
        warn("saved_variables is deprecated: use saved_tensors", DeprecationWarning)
        return self.saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that forward changed these inputs in place; each must be returned.

        It counts as a change also where the memory was written to in a way that no version counter sees.

        Parameters
        ----------
        *tensors : Tensor
            Inputs of this call.

        Raises
        ------
        GraphError
            If one is no tensor.
        """
        _check_tensors("mark_dirty", tensors)
        self.__lucid__.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs carry no gradient; backward gets zeros for them.

        Parameters
        ----------
        *tensors : Tensor
            Outputs of this call.

        Raises
        ------
        GraphError
            If one is no tensor.
        """
        _check_tensors("mark_non_differentiable", tensors)
        self.__lucid__.not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward gets zeros (the default) or None for outputs without a gradient.

        Parameters
        ----------
        value : bool
            True for zeros.

        Raises
        ------
        TypeError
            If it is no bool.
        """
        if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HookTypeError(f"set_materialize_grads: expected a bool, got {type(value).__name__}")
        self.__lucid__.materialize = value

    def set_output_grad_dtype(self, *dtypes: Any) -> None:
        """Declare the dtype of each output's gradient in backward, independent of the output's own dtype.

        Parameters
        ----------
        *dtypes : dtype or None
            One for each output, of a floating-point or complex dtype. None, the only choice for an output that gets no
            gradient, leaves the gradient the dtype in which it comes: that of the output, to which what other ops give
            is rounded before.

        Raises
        ------
        DtypeError
            If one is neither None nor a dtype of that kind.
        GraphError
            At the end of forward, if there are not as many as outputs, or an output without a gradient has one.
        """
        wanted = tuple([None if dtype is None else as_dtype(dtype) for dtype in dtypes])
        for dtype in wanted:
            if dtype is not None and dtype.category < 2:
                raise DtypeError(f"set_output_grad_dtype: expected floating-point or complex dtypes, got {dtype}")
        self.__lucid__.grad_dtypes = wanted


def _check_saved(name: str, tensors: tuple[Any, ...]) -> None:
    """Raise `HookTypeError` if one is neither a tensor nor None."""
    for index, tensor in enumerate(tensors):
        if tensor is not None and not isinstance(tensor, TensorBase):
            raise HookTypeError(
                f"{name}: expected tensors or None, got {type(tensor).__name__} as number {index}: keep other values "
                "as attributes of ctx"
            )


def _check_tensors(name: str, values: tuple[Any, ...]) -> None:
    for index, value in enumerate(values):
        if not isinstance(value, TensorBase):
            raise GraphError(f"{name}: expected tensors, got {type(value).__name__} as number {index}")
