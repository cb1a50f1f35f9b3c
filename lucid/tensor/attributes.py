"""Attributes of a tensor: shape, dtype, device, memory, and its position in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import INFERENCE, Lent, TensorBase, describe, version_of, wrap
from lucid.autograd.engine.node import AccumulateGrad, Node, accumulator_of
from lucid.autograd.engine.retain import expect_form, registered_hooks, retains_grad
from lucid.autograd.modes.decorating import check_bool
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import detached, live_edge
from lucid.base.capture import captures, changes, note_assigned
from lucid.base.device import CPU, device, device_of
from lucid.base.dtype import dtype, dtype_of
from lucid.errors import DeviceError, DtypeError, GraphError, HookTypeError, InplaceError, ShapeError, warn
from lucid.ops.base.formats import layout, strided
from lucid.tensor.layout import Size, size_of

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable

    from lucid.tensor import Tensor


class Attributes(TensorBase):
    """The properties of a tensor."""

    __slots__ = ()

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return size_of(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return dtype_of(self.array)

    @property
    def device(self) -> device:
        """The device that holds the elements."""
        return CPU if type(self.array) is np.ndarray else device_of(self.array)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device."""
        return type(self.array) is not np.ndarray

    @property
    def is_cpu(self) -> bool:
        """Whether the elements are in host memory."""
        return type(self.array) is np.ndarray

    # what elements are never on, and never stored as
    is_ipu = is_maia = is_meta = is_mps = is_mtia = is_vulkan = is_xla = is_xpu = False
    is_mkldnn = is_nested = is_quantized = is_sparse = is_sparse_csr = False

    @property
    def layout(self) -> layout:
        """How the elements are stored: `lucid.strided`."""
        return strided

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.array.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.array.nbytes

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes a gradient for this tensor.

        It is True for a leaf that the user marked, and for the result of an op on such a tensor. Only a leaf's can be
        set.

        Raises
        ------
        GraphError
            On setting, for a tensor that an op made, or one made in inference mode.
        DtypeError
            On setting, for a tensor of integers or bools.
        TypeError
            On setting anything but a bool.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.ones(2)
        >>> x.requires_grad = True
        >>> (x * 2).requires_grad
        True
        """
        try:
            return (self.edge if self.origin is None else live_edge(self, shown=True)) is not None
        except InplaceError:
            # its position is lost, and its base is in the graph
            return True

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        check_bool(value, "requires_grad")
        edge = live_edge(self)
        if edge is not None and type(edge[0]) is not AccumulateGrad:
            if value:
                return
            raise GraphError(
                f"requires_grad can only be switched off for leaves, and {edge[0].name()} made this tensor of "
                f"{describe(self)}: use detach()"
            )
        if (edge is not None) is not value:
            changes.arrays += 1
        if not value:
            self.edge = None
            return
        if is_inference(self) and not thread.state.grad_mode.inference:
            raise GraphError("an inference tensor cannot require grad outside of inference mode: clone() it first")
        if edge is None:
            if self.array.dtype.kind not in "fcV":
                raise DtypeError(
                    f"only tensors of floating-point or complex dtype can require gradients, got {describe(self)}: "
                    "convert it first, as with .float()"
                )
            self.edge = (accumulator_of(self), 0)

    @property
    def retains_grad(self) -> bool:
        """Whether this tensor is no leaf and `retain_grad` was called on it."""
        return retains_grad(self)

    @property
    def is_leaf(self) -> bool:
        """Whether the graph ends at this tensor: no recorded op made it.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf, (x * 2).detach().is_leaf
        (True, False, True)
        """
        edge = live_edge(self, shown=True)
        return edge is None or type(edge[0]) is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None for a leaf.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.ones(2, requires_grad=True)
        >>> (x * 2).grad_fn.name()
        'MulBackward0'
        """
        edge = live_edge(self, shown=True)
        return None if edge is None or type(edge[0]) is AccumulateGrad else edge[0]

    @property
    def output_nr(self) -> int:
        """The number of the output of `grad_fn` that this tensor is; 0 for a leaf."""
        edge = live_edge(self, shown=True)
        return 0 if edge is None else edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients that the backward passes so far have given this tensor; None before the first.

        Only leaves that require grad get one, and tensors whose `retain_grad` was called.

        Raises
        ------
        TypeError
            On setting, for anything but a tensor or None.
        ShapeError, DtypeError, DeviceError
            On setting, for a tensor of another shape, dtype or device.

        Warns
        -----
        UserWarning
            On reading it from a tensor that gets none because it is no leaf.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        try:
            grad = self.stored_grad
        except AttributeError:
            grad = None
        if grad is not None:
            return grad
        edge = self.edge if self.origin is None else live_edge(self)
        if edge is not None and type(edge[0]) is not AccumulateGrad and not retains_grad(self):
            warn(
                "the .grad attribute of a Tensor that is not a leaf is being accessed: backward fills it only for "
                "leaves; call .retain_grad() on this tensor before backward, or read the leaf's .grad"
            )
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if captures:
            note_assigned(self)
        if value is None:
            self.stored_grad = None
            return
        if not isinstance(value, TensorBase):
            raise HookTypeError(f"assigned grad: expected a Tensor or None, got {type(value).__name__}")
        if value is self:
            raise GraphError("assigned grad: a tensor cannot be its own gradient: assign a clone()")
        new, own = value.array, self.array
        if new.shape != own.shape:
            raise ShapeError(
                f"assigned grad has data of a different size: expected shape {tuple(own.shape)}, got {tuple(new.shape)}"
            )
        if new.dtype != own.dtype:
            raise DtypeError(
                f"assigned grad has data of a different type: expected {dtype_of(own)}, got {dtype_of(new)}"
            )
        if device_of(new) != device_of(own):
            raise DeviceError(
                f"assigned grad has data located on a different device: expected {device_of(own)}, got {device_of(new)}"
            )
        self.stored_grad = value

    @grad.deleter
    def grad(self) -> None:
        self.stored_grad = None

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory that is in no graph; changes of it are not counted for this one.

        Setting it replaces shape, dtype, device and elements of this tensor, and leaves its position in the graph and
        its hooks.

        Raises
        ------
        TypeError
            On setting, for anything but a tensor.
        DtypeError
            On setting, if this tensor requires grad and the other holds integers or bools.

        Examples
        --------
        >>> import lucid
        >>> x = lucid.zeros(2, requires_grad=True)
        >>> x.data = lucid.ones(2)
        >>> x
        tensor([1., 1.], requires_grad=True)
        """
        return detached(self) if type(version_of(self)) is Lent else wrap(self.array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, TensorBase):
            raise HookTypeError(f"data: expected a Tensor, got {type(value).__name__}")
        edge = live_edge(self)
        if edge is not None and value.array.dtype.kind not in "fcV":
            raise DtypeError(
                f"data set to a tensor that requires gradients must be floating point or complex, got {describe(value)}"
            )
        self.array = value.array
        changes.arrays += 1
        self.origin = None
        if edge is not None:
            expect_form(self, edge)

    @property
    def _version(self) -> int:
        return version_of(self)[0]

    @property
    def _backward_hooks(self) -> OrderedDict[int, Callable[..., Any]] | None:
        return registered_hooks(self, "tensor_hooks")

    @property
    def _post_accumulate_grad_hooks(self) -> OrderedDict[int, Callable[..., Any]] | None:
        return registered_hooks(self, "accumulated")

    @property
    def _base(self) -> Any:
        return None if self.origin is None else self.origin.base


def is_inference(input: TensorBase) -> bool:
    """Return whether this tensor was made in inference mode, and so can never enter a graph.

    Raises
    ------
    TypeError
        If it is no tensor.

    Examples
    --------
    >>> import lucid
    >>> with lucid.inference_mode():
    ...     x = lucid.ones(2)
    >>> lucid.is_inference(x), lucid.is_inference(lucid.ones(2))
    (True, False)
    """
    if not isinstance(input, TensorBase):
        raise HookTypeError(f"is_inference: input: expected a Tensor, got {type(input).__name__}")
    return version_of(input) is INFERENCE
