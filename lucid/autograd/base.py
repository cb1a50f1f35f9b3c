"""TensorBase: the slots of a tensor and its position in the graph; the user's methods are added in `lucid.tensor`."""

from __future__ import annotations

import functools
import re
from itertools import count, zip_longest
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from lucid.autograd.modes.state import NO_GRAD, thread, unusual
from lucid.base.memory import no_room
from lucid.errors import GraphError, OutOfMemoryError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.autograd.engine.node import AccumulateGrad, Node
    from lucid.autograd.recording.views import View
    from lucid.base.arrays import Array

    Edge = tuple[Node, int]

T = TypeVar("T", bound="TensorBase")


class InferenceVersion(list[int]):
    """The version counter of tensors made in inference mode: there is none, and asking for it says so."""

    def __getitem__(self, index: Any) -> NoReturn:
        raise GraphError(
            "inference tensors carry no version counter and cannot be saved for backward or changed in place outside "
            "inference mode: make the tensor outside lucid.inference_mode(), or clone() it in normal mode first"
        )


INFERENCE = InferenceVersion()
# Numbers of leaves, in the order in which they were made.
births = count(1)


class TensorBase:
    """An array on one device and its position in the graph.

    Attributes
    ----------
    array : numpy.ndarray or cupy.ndarray
        The values. Writing to it directly is not seen by the version counter.
    edge : tuple of (Node, int), or None
        The node that takes this tensor's gradient and the number of the node's output that the tensor is: the node
        that made it, or an `AccumulateGrad` for a leaf. None if the tensor does not require grad; of a view, use
        `live_edge`.
    version : list of int
        One entry, the number of in-place changes, shared by all tensors on the same memory.
    origin : View or None
        How this tensor was taken from its base.
    stored_grad : TensorBase or None
        What the `grad` property gives.
    accumulator : AccumulateGrad
        A leaf's end of the graph, made on first need; it holds the leaf's hooks.
    """

    # `array`, `edge` and `origin` are set by whoever makes a tensor. The others may be unset, which costs an op's
    # result nothing: read them with `version_of`, `grad_of` and `accumulator_of`. What users set goes to `__dict__`.
    __slots__ = ("__dict__", "__weakref__", "accumulator", "array", "edge", "origin", "stored_grad", "version")

    array: Array
    edge: Edge | None
    version: list[int]
    origin: View | None
    stored_grad: Any
    accumulator: AccumulateGrad


_new = object.__new__
ndarray, asarray = np.ndarray, np.asarray
generic: Any = np.generic
NUMPYS = np.ndarray, np.generic


class _Registered:
    """The class that ops return, and its constructor; `lucid.tensor` registers its own once it exists.

    `new` does not call the constructor, which is the user's, and makes a tensor of sizes or data. `arrays` holds the
    class of `lucid.numpy` once that is imported.
    """

    tensor: type[TensorBase]
    new: Callable[[], Any]
    arrays: tuple[type[TensorBase], ...] = ()

    def __init__(self) -> None:
        self.register(TensorBase)

    def register(self, tensor: type[TensorBase]) -> None:
        """Make `tensor` the class that ops return."""
        self.tensor = tensor
        self.new = functools.partial(_new, tensor)


registered = _Registered()


def wrap(array: Array) -> Any:
    """Return a tensor around `array` that is in no graph; of a NumPy scalar, around an array of no dimension."""
    tensor = registered.new()
    tensor.array = array if type(array) is ndarray or not isinstance(array, generic) else asarray(array)
    tensor.edge = None
    tensor.origin = None
    if unusual:
        mark_inference(tensor)
    return tensor


def wrap_on_graph(array: Array, edge: Edge | None, version: list[int]) -> Any:
    """Return `wrap`'s tensor, with its gradient going to `edge` and the version counter `version`."""
    tensor = registered.new()
    tensor.array = array if type(array) is ndarray or not isinstance(array, generic) else asarray(array)
    tensor.edge = edge
    tensor.version = version
    tensor.origin = None
    return tensor


def version_of(tensor: TensorBase) -> list[int]:
    """Return the version counter of `tensor`, made on first need."""
    try:
        return tensor.version
    except AttributeError:
        tensor.version = [0]
        return tensor.version


# The version counter of a gradient that a hook is given, on memory that others share: with 0 for the version, "own" for
# the memory that it has from its first change in place on, and "tensors" for others on the same memory and counter, as
# `detach` gives, held weakly. A dictionary tells it from other counters at a fifth of the price of a class: one hook is
# 0.6 us.
Lent: Any = dict


def grad_of(tensor: TensorBase) -> Any:
    """Return the gradient that `tensor` holds, or None."""
    try:
        return tensor.stored_grad
    except AttributeError:
        tensor.stored_grad = None
        return None


def with_grads(tensors: Iterable[T]) -> list[T]:
    """Return those of the tensors that hold a gradient, under `stored_grad`."""
    listed = list(tensors)
    try:
        return [tensor for tensor in listed if tensor.stored_grad is not None]
    except AttributeError:
        return [tensor for tensor in listed if grad_of(tensor) is not None]


def versions_of(tensors: Iterable[TensorBase]) -> list[list[int]]:
    """Return the version counters of tensors that are about to be changed in place.

    Raises
    ------
    GraphError
        If one is an inference tensor, which has none.
    """
    versions: list[list[int]] = []
    for tensor in tensors:
        # most gradients have none yet: an exception for each would take as long as all the rest
        version = getattr(tensor, "version", None)
        if version is None:
            version = tensor.version = [0]
        elif version is INFERENCE:
            version[0]
        versions.append(version)
    return versions


def mark_inference(tensor: TensorBase) -> None:
    """Leave `tensor` without a version counter if this thread is in inference mode."""
    mode = thread.state.grad_mode
    if mode is NO_GRAD:
        return
    if mode.inference:
        tensor.version = INFERENCE
    else:
        thread.state.settle()


def is_numpy(value: Any) -> bool:
    """Return whether `value` is NumPy's: an array, or a scalar, NumPy's counterpart of CuPy's 0-dim arrays."""
    return type(value) is ndarray or isinstance(value, NUMPYS)


def is_tuple(value: Any) -> bool:
    """Return whether `value` is a tuple: the result of a primitive of several outputs."""
    return type(value) is tuple  # pyright: ignore[reportUnknownVariableType]


def is_list(value: Any) -> bool:
    """Return whether `value` is a list: the gradients received by a node of several outputs."""
    return type(value) is list  # pyright: ignore[reportUnknownVariableType]


def describe(tensor: Any) -> str:
    """Return shape, dtype and device of a tensor or array in words, for messages."""
    array: Any = tensor.array if isinstance(tensor, TensorBase) else tensor
    device = "cpu" if is_numpy(array) else f"cuda:{array.device.id}"
    return f"shape {tuple(array.shape)}, {array.dtype.name} on {device}"


def broadcast_error(name: str, x: Array, y: Array) -> ShapeError:
    """Return the error of two arrays that an elementwise op cannot broadcast."""
    longest = list(zip_longest(x.shape[::-1], y.shape[::-1], fillvalue=1))
    if all(a == b or 1 in {a, b} for a, b in longest):
        return ShapeError(
            f"{name}: shapes {tuple(x.shape)} and {tuple(y.shape)} broadcast to a shape that is larger than any memory"
        )
    return ShapeError(
        f"{name}: shapes {tuple(x.shape)} and {tuple(y.shape)} cannot be broadcast: expected equal sizes, or 1, in "
        "each dimension counted from the right"
    )


# NumPy's words for a size that wraps around
TOO_LARGE = re.compile("too big|too large|Maximum allowed (dimension|size) exceeded")


def shape_error(
    name: str, arrays: Sequence[Any], error: ValueError | MemoryError, *, elementwise: bool
) -> ShapeError | OutOfMemoryError:
    """Return the error of operands that do not fit each other, or of a result that does not fit into memory."""
    if isinstance(error, MemoryError):
        return no_room(error)
    if elementwise and len(arrays) == 2 and all(hasattr(a, "shape") for a in arrays):
        return broadcast_error(name, *arrays)
    shapes = ", ".join(str(tuple(a.shape)) if hasattr(a, "shape") else repr(a) for a in arrays)
    if TOO_LARGE.search(str(error)):
        return ShapeError(f"{name}: for operands of shapes {shapes} what is made is larger than any memory: {error}")
    return ShapeError(f"{name}: operands of shapes {shapes} do not fit: {error}")
