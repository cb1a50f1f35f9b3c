"""The node of a recorded Function: runs the user's backward and checks its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, describe, is_list, wrap
from lucid.autograd.engine.node import Node
from lucid.autograd.recording.namespace import GRAPH, namespace_of
from lucid.autograd.recording.views import lent
from lucid.base.device import device_of
from lucid.errors import DeviceError, DtypeError, GraphError, HookTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.function import Function
    from lucid.autograd.recording.context import FunctionCtx
    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.saved_attributes import SavedTensor
    from lucid.base.arrays import Array


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
    tensor_arguments : tuple of int
        Which of them are tensors: one edge each.
    targets : tuple
        Shape, dtype and array type of each tensor argument.
    forms : tuple
        Shape, dtype, array module and device of each output.
    """

    __slots__ = ("arguments", "ctx", "forms", "kept", "outputs", "targets", "tensor_arguments")

    function: type[Function]
    ctx: FunctionCtx

    def __getattr__(self, name: str) -> Any:
        if name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor | None, ...]:
        return self.ctx.__lucid__.raw()

    def release(self) -> None:
        """Free the saved tensors."""
        self.kept = Node.kept
        self.ctx.__lucid__.saved = None

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradients of the user's backward, checked against the inputs."""
        ctx = self.ctx
        received = grad if isinstance(grad, list) else [grad]  # pyright: ignore[reportUnknownVariableType]
        if len(received) != self.outputs:  # pyright: ignore[reportUnknownArgumentType]
            received = [None] * self.outputs
        gradients: list[Any] = []
        declared = ctx.__lucid__.grad_dtypes or (None,) * self.outputs
        for entry, form, wanted in zip(received, self.forms, declared, strict=True):  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
            if entry is not None:
                value: Any = entry
                if wanted is not None and value.dtype != (wanted if isinstance(value, TensorBase) else wanted.numpy):
                    n = m if isinstance(value, TensorBase) else namespace_of(value)
                    value = n.cast(value, dtype=wanted.numpy)
                gradients.append(lent(value))
            elif ctx.__lucid__.materialize and form is not None:
                xp, shape, dtype = form
                gradients.append(wrap(xp.zeros(shape, dtype if wanted is None else wanted.numpy)))
            else:
                gradients.append(None)
        grads = self.function.__derivative__(ctx, *gradients)
        return self._checked(m, grads)

    def _checked(self, m: Namespace, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the tensor arguments, of their shapes and dtypes.

        Raises
        ------
        GraphError
            For a wrong number of gradients, or one for an argument that is no tensor.
        HookTypeError
            For a list, or an entry that is neither a tensor nor None.
        ShapeError, DeviceError, DtypeError
            For a gradient of another shape or device than its input, or a complex one of a real input.
        """
        if is_list(grads):
            name = self._called()
            raise HookTypeError(f"{name}: expected a Tensor, None or a tuple of them, got a list: return a tuple")
        entries: tuple[Any, ...] = grads if isinstance(grads, tuple) else (grads,)  # pyright: ignore[reportUnknownVariableType]
        while len(entries) > self.arguments and entries[-1] is None:
            entries = entries[:-1]
        if len(entries) != self.arguments:
            raise GraphError(
                f"{self._called()} returned an incorrect number of gradients (expected {self.arguments}, one for each "
                f"argument of forward, got {len(entries)})"
            )
        places = self.tensor_arguments
        checked: list[Any] = []
        for index, entry in enumerate(entries):
            # of the tensors that have been before this argument, each has an entry
            number = len(checked)
            is_tensor = number < len(places) and places[number] == index
            if entry is None:
                if is_tensor:
                    checked.append(None)
            elif not isinstance(entry, TensorBase):
                raise HookTypeError(
                    f"{self._called()}: gradient {index}: expected a Tensor or None, got {type(entry).__name__}"
                )
            elif not is_tensor:
                raise GraphError(
                    f"{self._called()} returned a gradient different from None at position {index}, but the "
                    "corresponding forward input was not a Tensor: expected None"
                )
            else:
                target = self.targets[number]
                checked.append(None if self.edges[number] is None else self._fitted(m, entry, index, target))
        return tuple(checked)

    def _called(self) -> str:
        """Return the name of the user's function in errors."""
        return f"{self.function.__qualname__}.backward"

    def _fitted(self, m: Namespace, grad: TensorBase, index: int, target: tuple[Any, Any, Any]) -> Any:
        """Return one gradient as the engine's form, summed to its input's shape and cast to its dtype."""
        shape, dtype, device = target
        array = grad.array
        actual = device_of(array)
        if actual is device and array.dtype is dtype and array.shape == shape:
            return grad if m is GRAPH else array
        name = self._called()
        if actual != device:
            raise DeviceError(
                f"{name}: gradient {index} is on another device than its input: expected {device}, got {describe(grad)}"
            )
        if (array.dtype.kind == "c") != (dtype.kind == "c") and array.dtype.kind not in "fV":
            raise DtypeError(
                f"{name}: gradient {index} is {array.dtype.name}, its input {dtype.name}: expected its real part"
            )
        value: Any = grad if m is GRAPH else array
        n: Any = m if m is GRAPH else namespace_of(array)
        if array.shape != shape:
            extra = array.ndim - len(shape)
            if extra < 0 or any(want not in {1, have} for want, have in zip(shape, array.shape[extra:], strict=True)):
                raise ShapeError(
                    f"{name} returned an invalid gradient at index {index}: got shape {tuple(array.shape)} but "
                    f"expected shape compatible with {tuple(shape)}"
                )
            value = n.sum_to(value, shape=shape)
        if array.dtype != dtype:
            value = n.cast(value, dtype=dtype)
        return value
