"""Elements combined with those of a tensor, by an index of its own rank or along one dimension.

What holds for all of them says `lucid.ops.index`. What meets at one place is combined by `reduce`: ``"sum"``,
``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``, equal ones of which share the gradient evenly. Without `include_self`
what is there is left out where something comes. A ``"prod"`` of n takes log2(n) passes, and its gradients are products
of the other elements, right with zeros too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.base import wrap
from lucid.autograd.hooks.functions import seen_as_one
from lucid.base.arrays import namespace
from lucid.errors import DtypeError, SettingError
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.scalars import as_bool
from lucid.ops.elementwise.arithmetic import mul, sub
from lucid.ops.elementwise.comparison import eq
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.logic import logical_and, logical_or
from lucid.ops.elementwise.nonfinite import isinf, isnan
from lucid.ops.elementwise.selection import clamp, where
from lucid.ops.index.gather import flat_indices, gather, prepared, shaped
from lucid.ops.index.index_select import fitting_source, line
from lucid.ops.index.scatter import scatter, scatter_add, source_for
from lucid.ops.index.select import select_at
from lucid.ops.reduction.sorting import comparable
from lucid.ops.shape.broadcasting import expand
from lucid.ops.shape.joining import cat
from lucid.ops.shape.reshape import clone, reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _places(xp: ModuleType, index: Array, shape: Ints, dim: int) -> Array:
    """Return the number of the element of a contiguous array that each element of `index` means, in one row."""
    return xp.broadcast_to(flat_indices(xp, index, shape, dim), index.shape).reshape(-1)


def _last(xp: ModuleType, places: Array) -> Array:
    """Return the indices, in ascending `places`, of the last of equal ones."""
    return xp.flatnonzero(xp.concatenate([places[1:] != places[:-1], xp.ones(1, bool)]))


@seen_as_one
@on_one_device
def _extremes(input: Tensor, index: Tensor, src: Tensor, *, dim: int, largest: bool, include_self: bool) -> Any:
    """Return the extremes of all that meet at each place; NaN if one is."""
    array: Array = input.array
    xp = namespace(array)
    out = xp.array(array, order="C")
    flat = out.reshape(-1)
    places, values = _places(xp, index.array, array.shape, dim), src.array.reshape(-1)
    if not values.size:
        return wrap(out)
    # in ascending order of their places, and at each place so that the extreme comes last
    order = xp.argsort(comparable(values), kind="stable")
    order = order if largest else order[::-1]
    order = order[xp.argsort(places[order], kind="stable")]
    places, values = places[order], values[order]
    last = _last(xp, places)
    at, new = places[last], values[last]
    if include_self:
        new = (xp.maximum if largest else xp.minimum)(flat[at], new)
    flat[at] = new
    if values.dtype.kind in "fV":
        flat[places[xp.isnan(values)]] = xp.nan
    return wrap(out)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy of `input` with ``src[i][j]`` combined into ``out[index[i][j]][j]`` for `dim` 0, or likewise.

    `src` is at least as long as `index` in each dimension. `reduce` and `include_self` say how it is combined.

    >>> import lucid
    >>> lucid.scatter_reduce(lucid.zeros(2), 0, lucid.tensor([1, 1]), lucid.tensor([2.0, 3.0]), "amax")
    tensor([0., 3.])
    """
    return _reduced("scatter_reduce", input, dim, index, src, reduce, include_self)


def _reduced(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Any:
    if not among(reduce, REDUCTIONS):
        raise SettingError(f"{name}: expected reduce to be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    include_self = as_bool(include_self, "include_self")
    x, axis, indices = prepared(input, dim, index, name)
    x_shape = input.array.shape
    source = source_for(input, src, indices, name)
    if x.array.dtype.kind in "bc":
        raise DtypeError(f"{name}: expected real numbers, got {x.array.dtype.name}")
    if reduce in {"sum", "mean"}:
        out: Any = scatter_add(x if include_self else scatter(x, axis, indices, 0), axis, indices, source)
        if reduce == "mean":
            ones: Any = x.detach().clone().fill_(1)
            ones = ones if include_self else scatter(ones, axis, indices, 0)
            count = scatter_add(ones, axis, indices, source.detach().clone().fill_(1))
            out = div(out, count) if x.array.dtype.kind in "fV" else div(out, count, rounding_mode="floor")
        return shaped(out, x_shape)
    if reduce == "prod":
        own = x if include_self else scatter(x, axis, indices, 1)
        return shaped(_multiplied(own, indices, source, dim=axis), x_shape)
    result = _extremes(
        x.detach(), indices, source.detach(), dim=axis, largest=reduce == "amax", include_self=include_self
    )
    if not (x.requires_grad or source.requires_grad):
        return shaped(result, x_shape)
    own = _is_extreme(x, result)
    if not include_self:
        own = scatter(own, axis, indices, False)
    come = _is_extreme(source, gather(result, axis, indices))
    count = clamp(scatter_add(own.to(x.dtype), axis, indices, come.to(x.dtype)), min=1)
    shares = div(where(come, source, 0), gather(count, axis, indices))
    shared = scatter_add(div(where(own, x, 0), count), axis, indices, shares)
    # three thirds of a number may be another one, and a sum has lost the sign of zero
    return shaped(where(isinf(result), shared, sub(result, sub(shared.detach(), shared))), x_shape)


@on_one_device
def _multiplied(input: Tensor, index: Tensor, src: Tensor, *, dim: int) -> Any:
    """Return `input` with each element times all of `src` that meet there: a scan over the runs of equal places."""
    xp = namespace(input.array)
    places = _places(xp, index.array, input.array.shape, dim)
    order = xp.argsort(places, kind="stable")
    places = places[order]
    products = select_at(reshape(src, -1), wrap(order), dims=(0,))
    step = 1
    while step < places.size:
        joined = wrap(places[step:] == places[:-step])
        # a run's later elements have taken up what lies `step` before them, which has done so before
        products = cat([products[:step], mul(products[step:], where(joined, products[:-step], 1))])
        step *= 2
    if not places.size:
        return clone(input)
    last = _last(xp, places)
    at = wrap(places[last])
    flat = reshape(input, -1)
    met = mul(select_at(flat, at, dims=(0,)), select_at(products, wrap(last), dims=(0,)))
    return reshape(scatter(flat, 0, at, met), input.array.shape)


def _is_extreme(values: Any, extreme: Any) -> Any:
    """Return whether each value is the extreme of its place, or NaN like it."""
    return logical_or(eq(values.detach(), extreme), logical_and(isnan(values), isnan(extreme)))


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy of `input` with each slice of `source` along `dim` combined into the one that `index` names.

    `source` has the shape of `input` but along `dim`, where it has that of `index`. `reduce` and
    `include_self` say how it is combined.

    >>> import lucid
    >>> lucid.index_reduce(lucid.zeros(2), 0, lucid.tensor([1, 1]), lucid.tensor([2.0, 4.0]), "mean")
    tensor([0., 2.])
    """
    axis, places = line(input, dim, index, "index_reduce")
    slices = fitting_source(input, axis, places, source, "index_reduce")
    shape = slices.array.shape
    each = reshape(places, (*(1,) * axis, -1, *(1,) * (len(shape) - 1 - axis)))
    return _reduced("index_reduce", input, axis, expand(each, shape), slices, reduce, include_self)
