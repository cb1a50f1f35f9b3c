"""Arguments and results of a differentiated function: trees of arrays and numbers, and tensors.

Inside, the leaves of what a function is differentiated by are recorded ndarrays; outside, they are what
`lucid.numpy.border` says: recorded where something around requires grad, and plain elsewhere.

A gradient here is the conjugate of PyTorch's: of a real result u of ``x + iy`` it is ``du/dx - i du/dy``, so that the
product of a vector g with the derivative of a holomorphic function is ``g * f'(z)``. A real one is the same.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import shown
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.borrowing import borrowed
from lucid.autograd.hooks.structure import map_leaves
from lucid.base import gpu
from lucid.base.arrays import asarray, copied, ones_beside
from lucid.base.dtype import as_dtype
from lucid.base.memory import writeable
from lucid.errors import DtypeError, SettingError
from lucid.func.derivatives import Run, check_function
from lucid.func.trees import chosen, leaves, matching
from lucid.numpy.promotion import is_array
from lucid.numpy.results import arrays, settled
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise.complex import conj
from lucid.ops.index.indexing import getitem
from lucid.tensor.numpy_calls.ufuncs import is_complex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Positions = int | tuple[int, ...] | list[int]


def of_argument(
    name: str, operator: Callable[[Callable[[Any], Any], Any], Any], function: Callable[..., Any], argnum: Positions
) -> Callable[..., Any]:
    """Return an operator on functions of one argument, public by its name, as one on an argument of several."""
    check_function(function)
    inner = name_of(function)
    several = tuple(argnum) if isinstance(argnum, list) else argnum

    @functools.wraps(function)
    def derived(*args: object, **kwargs: object) -> Any:
        positions = chosen(args, several, name)

        @functools.wraps(function)
        def of_one(x: Any) -> Any:
            arguments = [*args]
            for position, value in zip(positions, x if isinstance(several, tuple) else (x,), strict=True):
                arguments[position] = value
            return function(*arguments, **kwargs)

        x = tuple([args[k] for k in positions]) if isinstance(several, tuple) else args[positions[0]]
        return operator(of_one, x)

    derived.__name__ = f"{name}_of_{inner}_wrt_argnum_{argnum}"
    derived.__doc__ = (
        f"    {name} of function {inner} with respect to argument number {argnum}. It takes the arguments of {inner}."
    )
    return derived


def name_of(function: object) -> str:
    """Return the name of a function, for messages."""
    return getattr(function, "__name__", "[unknown name]")


def as_tensor(leaf: object) -> Any:
    """Return a number, an array or a tensor as a tensor."""
    if isinstance(leaf, TensorBase):
        return leaf
    if not (is_array(leaf) or isinstance(leaf, bool | int | float | complex)):
        raise DtypeError(f"expected arrays and numbers, in tuples, lists and dictionaries, got {shown(leaf)}")
    # a number of Python's is of double precision, as in NumPy
    array = asarray(leaf if is_array(leaf) else np.asarray(leaf))
    return borrowed(array) if isinstance(leaf, np.ndarray) else wrap(array)


def as_tensors(tree: object) -> Any:
    """Return a tree with tensors as leaves."""
    return map_leaves(tree, as_tensor)


def primal(leaf: object) -> Any:
    """Return a leaf of a differentiated argument as a tensor.

    Raises
    ------
    DtypeError
        If it has no derivatives.
    """
    tensor = as_tensor(leaf)
    if tensor.array.dtype.kind not in "fcV":
        raise DtypeError(
            f"Can't differentiate w.r.t. type {type(leaf)}, of {tensor.array.dtype}: expected floats or complex "
            "numbers, such as x * 1.0"
        )
    return tensor


def recorded(tensor: Any) -> Any:
    """Return a tensor as an ndarray on the graph."""
    if type(tensor) is not arrays.kind:
        tensor = getitem(tensor, ...)
        tensor.__class__ = arrays.kind
    return tensor


def outside(tree: object) -> Any:
    """Return a tree of tensors as the result of a function of NumPy's."""
    return map_leaves(tree, lambda leaf: settled(leaf, ()))


def derivatives(tree: object, vectors: Sequence[Any] = ()) -> Any:
    """Return a tree of tensors as `outside` does; plain arrays have memory of their own, other than that of `vectors`.

    They are handed out to be written into, as in clipping one of several gradients.
    """
    taken = {memory_of(vector.array) for vector in vectors}

    def own(leaf: object) -> Any:
        result = settled(leaf, ())
        if isinstance(result, TensorBase) or not result.ndim:
            return result
        memory = memory_of(result)
        if memory in taken or not writeable(result):
            return copied(result)
        taken.add(memory)
        return result

    return map_leaves(tree, own)


def memory_of(array: Any) -> int:
    """Return a number for the memory that an array is a part of, as long as it lives."""
    if gpu.is_gpu_array(array):
        return array.data.mem.ptr
    while hasattr(array.base, "base"):
        array = array.base
    return id(array)


def conjugated(tree: object) -> Any:
    """Return a tree of tensors with its complex ones conjugated."""
    return map_leaves(tree, lambda leaf: conj(leaf) if is_complex(leaf) else leaf)


def fitting(tree: object, like: object, what: str) -> list[Any]:
    """Return the leaves of a tree as tensors of the structure, shapes and dtypes of those of `like`.

    Raises
    ------
    ShapeError
        If structure or shapes differ.
    DtypeError
        If one is complex where that of `like` is real.
    """
    tensors = matching(as_tensors(tree), like, what)
    wanted = leaves(like)
    for leaf, other in zip(tensors, wanted, strict=True):
        if is_complex(leaf) and not is_complex(other):
            raise DtypeError(f"{what}: expected real numbers, got {leaf.array.dtype}")
    return [cast_to(leaf, as_dtype(other.array.dtype)) for leaf, other in zip(tensors, wanted, strict=True)]


def run_of(function: Callable[..., Any], x: object, *, what: str, has_aux: bool = False) -> Run:
    """Return one run of a function of one argument, recorded from this one on."""

    def inside(argument: object) -> Any:
        for leaf in leaves(argument):
            leaf.__class__ = arrays.kind
        result = function(argument)
        if not has_aux:
            return map_leaves(result, lambda leaf: recorded(as_tensor(leaf)))
        if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise SettingError(f"{what}: expected the function to return two results: (output, aux)")
        output, aux = result  # pyright: ignore[reportUnknownVariableType]
        return map_leaves(output, lambda leaf: recorded(as_tensor(leaf))), aux

    return Run(inside, (map_leaves(x, primal),), {}, 0, has_aux=has_aux, what=what)


def pulled_back(run: Run, vectors: Sequence[Any], *, keep: bool) -> list[Any]:
    """Return the product of vectors, one for each output, with the derivative, for each input."""
    graph = run.recorded(vectors)
    return conjugated(run.pull(conjugated([*vectors]), create_graph=graph, keep=keep or graph))


def ones_of(tree: object) -> Any:
    """Return a tree with ones, as real as they come, in the form of each leaf."""
    return map_leaves(tree, lambda leaf: wrap(ones_beside(as_tensor(leaf).array)))
