"""Functions of single elements, over batches: `vmap`."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, cast

from lucid.arguments import among, checked, shown, unfit
from lucid.autograd.base import TensorBase
from lucid.base.arrays import is_array
from lucid.base.random.generator import watch_draws
from lucid.errors import GraphError, SettingError, ShapeError
from lucid.func.trees import leaves, refilled, spread, structure
from lucid.ops.creation.data import as_tensor
from lucid.ops.elementwise.nonfinite import isnan
from lucid.ops.reduction.closeness import equal
from lucid.ops.shape.joining import stack
from lucid.ops.shape.splitting import unbind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor


P = ParamSpec("P")


def check_randomness(what: str, randomness: str) -> None:
    """Refuse an unknown way to treat random numbers."""
    if not among(randomness, {"error", "different", "same"}):
        raise SettingError(
            f"{what}: randomness: only allowed values are 'error', 'different' and 'same', got {randomness!r}"
        )


def check_chunk_size(what: str, chunk_size: int | None) -> None:
    """Refuse a size of chunks that is below one."""
    if chunk_size is not None and chunk_size < 1:
        raise SettingError(f"{what}: chunk_size: expected None or a number greater than 0, got {chunk_size}")


def drawing(what: str, randomness: str, starts: dict[Generator, Any]) -> AbstractContextManager[None]:
    """Return a block that refuses random numbers ("error"), or puts the states before them into `starts` ("same")."""

    def refuse(generator: Generator) -> NoReturn:
        raise GraphError(
            f"{what}: called random operation while in randomness error mode, on the generator of {generator.device}: "
            "pass randomness='same' or 'different', or draw before"
        )

    def remember(generator: Generator) -> None:
        if generator not in starts:
            starts[generator] = generator.get_state()

    if randomness == "different":
        return contextlib.nullcontext()
    return watch_draws(refuse if randomness == "error" else remember)


@checked
def vmap(
    func: Callable[P, Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Return a function that calls `func` for each element along a dimension of its arguments, and stacks the results.

    It is for functions that are written for one element, and takes the time of as many calls; see the notes.

    Parameters
    ----------
    func : callable
        Returns tensors, one or nested in tuples, lists and dictionaries.
    in_dims : int, or tuple of int, None, and nested tuples, lists and dicts of them
        Along which dimension elements are taken of the arguments; None for an argument that all calls get as it is. As
        in PyTorch keyword arguments are such.
    out_dims : int, None, or nested tuples, lists and dicts of them
        Where the new dimension is in the results; None for what all calls return the same.
    randomness : str
        "error" if `func` must not draw random numbers, "different" if each call draws its own, "same" if all calls draw
        the same.
    chunk_size : int, optional
        Makes no difference: elements are computed one after the other.

    Notes
    -----
    PyTorch runs the function once, by a batched form of each op, which lucid has not. What is the same are values,
    gradients in every nesting, and shapes. What is not: the time, for which the function is better written for whole
    batches, as layers, broadcasting and `einsum` are; side effects, which come with every call; and what PyTorch
    refuses, such as `item`, control flow that depends on values, and results of a function of the user's own without a
    rule for batches, which all work. Elements are views: what changes them in place changes the argument.

    Raises
    ------
    SettingError
        If `in_dims` or `out_dims` do not fit arguments or results, or no argument has a dimension to go along.
    ShapeError
        If sizes of the dimensions differ or are zero, or the calls' results do not fit each other.
    GraphError
        For a random number under ``randomness="error"``.

    Examples
    --------
    >>> import lucid
    >>> lucid.vmap(lucid.dot)(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([[1.0, 1.0], [0.0, 1.0]]))
    tensor([3., 4.])
    >>> lucid.vmap(lucid.func.grad(lambda w, x: (w * x).sum()), in_dims=(None, 0))(lucid.ones(2), lucid.eye(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not callable(func):
        raise unfit(func, "a callable", "func")
    check_randomness("vmap", randomness)
    check_chunk_size("vmap", chunk_size)
    for dim in leaves(out_dims):
        _check_dim("vmap: out_dims", dim)
    name = getattr(func, "__name__", type(func).__name__)
    if not isinstance(in_dims, int | tuple) or isinstance(in_dims, bool):
        raise SettingError(f"vmap: in_dims: expected an int or a tuple that fits the arguments, got {shown(in_dims)}")

    @functools.wraps(func)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        elements = _elements(args, in_dims, name)
        starts: dict[Generator, Any] = {}
        results: list[Any] = []
        for element in elements:
            for generator, state in starts.items():
                generator.set_state(state)
            with drawing(f"vmap of {name}", randomness, starts):
                results.append(func(*element, **kwargs))
        return _joined(results, out_dims, name)

    return mapped


def _check_dim(what: str, dim: Any) -> None:
    """Raise unless `dim` is an int or None."""
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise SettingError(f"{what}: expected an int or None in each place, got {shown(dim)}")


def _elements(args: tuple[Any, ...], in_dims: Any, name: str) -> list[tuple[Any, ...]]:
    """Return the arguments of each call."""
    what = f"vmap of {name}: in_dims={in_dims!r}"
    if not args:
        raise SettingError(f"vmap of {name}: got no inputs: expected at least one positional argument")
    values = leaves(args)
    dims = spread(in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args), args, what)
    columns: list[Sequence[Any] | None] = []
    sizes: set[int] = set()
    for leaf, dim in zip(values, dims, strict=True):
        if dim is None:
            columns.append(None)
            continue
        _check_dim(what, dim)
        if not isinstance(leaf, TensorBase):
            raise SettingError(
                f"{what}: got {dim} for an input of type {type(leaf).__name__}, which is no Tensor: pass None for it"
            )
        if not -leaf.array.ndim <= dim < leaf.array.ndim:
            raise SettingError(
                f"{what}: got {dim} for a Tensor of {leaf.array.ndim} dimensions: expected "
                f"{-leaf.array.ndim} <= in_dim < {leaf.array.ndim}"
            )
        columns.append(unbind(cast("Tensor", leaf), dim))
        sizes.add(leaf.array.shape[dim])
    if not sizes:
        raise SettingError(f"{what}: expected at least one Tensor to go along a dimension of, got None for all")
    if len(sizes) > 1:
        raise ShapeError(
            f"{what}: expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)}"
        )
    (size,) = sizes
    if not size:
        raise ShapeError(
            f"{what}: expected at least one element, got dimensions of size 0: nothing says what {name} returns where "
            "it is not called"
        )
    return [
        refilled(args, [x if column is None else column[k] for x, column in zip(values, columns, strict=True)])
        for k in range(size)
    ]


def _joined(results: list[Any], out_dims: Any, name: str) -> Any:
    """Return the results of all calls as one."""
    results = [with_tensors(result) for result in results]
    first = structure(results[0])
    for number, result in enumerate(results):
        if structure(result) != first:
            raise ShapeError(
                f"vmap of {name}: expected results of one structure, got {first} of the first call and "
                f"{structure(result)} of number {number}"
            )
    what = f"vmap of {name}: out_dims={out_dims!r}"
    if isinstance(out_dims, tuple) and isinstance(results[0], TensorBase):
        return _joined([(result,) for result in results], out_dims, name)[0]
    dims = spread(out_dims, results[0], what)
    joined: list[Any] = []
    for dim, column in zip(dims, zip(*map(leaves, results), strict=True), strict=True):
        joined.append(_unchanged(column, what) if dim is None else _stacked(column, dim, name))
    return refilled(results[0], joined)


def with_tensors(result: Any) -> Any:
    """Return results with a tensor for each array, of a function of `lucid.numpy` on constants."""
    values = leaves(result)
    if not any(is_array(value) for value in values):
        return result
    return refilled(result, [as_tensor(value) if is_array(value) else value for value in values])


def _stacked(column: Sequence[Any], dim: int, name: str) -> Tensor:
    """Return one output of all calls along a new dimension."""
    for value in column:
        if not isinstance(value, TensorBase):
            raise SettingError(
                f"vmap of {name}: expected it to return only Tensors, got {shown(value)}: pass None in out_dims for "
                "what is none"
            )
    forms = {(tuple(value.array.shape), value.array.dtype.name) for value in column}
    if len(forms) > 1:
        raise ShapeError(f"vmap of {name}: expected the calls to return equal shapes and dtypes, got {sorted(forms)}")
    return stack(column, dim)


def _same(value: Any, other: Any) -> bool:
    """Return whether two values are the same, NaN and NaN too."""
    if not isinstance(value, TensorBase):
        return value == other or (value != value and other != other)  # noqa: PLR0124  # only NaN is not itself
    if not isinstance(other, TensorBase):
        return False
    a, b = cast("Any", value), cast("Any", other)
    return equal(isnan(a), isnan(b)) and equal(a[~isnan(a)], b[~isnan(b)])


def _unchanged(column: Sequence[Any], what: str) -> Any:
    """Return the value that all calls have in common."""
    first = column[0]
    for value in column[1:]:
        if value is not first and not _same(value, first):
            raise SettingError(f"{what}: expected the same of all calls where it is None, got different results")
    return first
