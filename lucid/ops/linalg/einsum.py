"""Sums of products over named dimensions, taken two operands at a time. The rest says `lucid.ops.linalg`."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import check_size
from lucid.errors import ShapeError
from lucid.ops.base.dims import dims_in, viewable
from lucid.ops.base.promotion import array_of, promote
from lucid.ops.base.scalars import as_int, is_single
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.linalg.matrices import product, same_dtype
from lucid.ops.linalg.products import dot
from lucid.ops.reduction.sums import sum as sum_over
from lucid.ops.shape.axes import permute
from lucid.ops.shape.diagonal import diagonal
from lucid.ops.shape.reshape import squeeze

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# The dimensions of one tensor by name: letters by their code, those of an ellipsis by -1, -2, ... from the right.
Labels = tuple[int, ...]


def grouped(x: Array, labels: Labels, stack: Labels, rows: Labels, columns: Labels) -> Array:
    """Return `x` as a stack of matrices, without a copy if its memory allows that for either order of the last two."""
    size = dict(zip(labels, x.shape, strict=True))

    def arranged(*groups: Labels) -> tuple[Array, tuple[int, ...]]:
        shape = [math.prod(size[label] for label in group) for group in groups]
        return x.transpose([labels.index(label) for group in groups for label in group]), tuple(shape)

    seen, shape = arranged(stack, rows, columns)
    if not viewable(seen.shape, seen.strides, shape):
        swapped, swapped_shape = arranged(stack, columns, rows)
        if viewable(swapped.shape, swapped.strides, swapped_shape):
            return swapped.reshape(swapped_shape if stack else swapped_shape[1:]).swapaxes(-1, -2)
    return seen.reshape(shape if stack else shape[1:])


def aligned(x: Array, labels: Labels, out: Labels) -> Array:
    """Return a view of `x` with its dimensions in the order of `out`, and size 1 for those that it lacks."""
    present = [label for label in out if label in labels]
    index = tuple([slice(None) if label in labels else None for label in out])
    return x.transpose([labels.index(label) for label in present])[index]


@primitive
def contract(xp: ModuleType, a: Array, b: Array, *, a_labels: Labels, b_labels: Labels, out_labels: Labels) -> Array:
    """Return the products of `a` and `b` summed over the labels that both have and the result does not.

    No operand has a label twice, and each label is in two at least of `a`, `b` and the result.
    """
    summed = tuple([label for label in a_labels if label not in out_labels])
    size = dict(zip(a_labels + b_labels, a.shape + b.shape, strict=True))
    if not summed:
        check_size("einsum", [size[label] for label in out_labels], a.itemsize)
        return xp.multiply(aligned(a, a_labels, out_labels), aligned(b, b_labels, out_labels))
    stack = tuple([label for label in a_labels if label in b_labels and label in out_labels])
    rows = tuple([label for label in a_labels if label not in b_labels])
    columns = tuple([label for label in b_labels if label not in a_labels])
    y = product(xp, grouped(a, a_labels, stack, rows, summed), grouped(b, b_labels, stack, summed, columns))
    labels = stack + rows + columns
    return y.reshape([size[label] for label in labels]).transpose([labels.index(label) for label in out_labels])


@contract.vjp("a")
def contract_a(m: Namespace, grad: Array, b: Array, a_labels: Labels, b_labels: Labels, out_labels: Labels) -> Any:
    """Return the gradient contracted with the other operand."""
    return m.contract(grad, b, a_labels=out_labels, b_labels=b_labels, out_labels=a_labels)


@contract.vjp("b")
def contract_b(m: Namespace, grad: Array, a: Array, a_labels: Labels, b_labels: Labels, out_labels: Labels) -> Any:
    """Return the gradient contracted with the other operand."""
    return m.contract(grad, a, a_labels=out_labels, b_labels=a_labels, out_labels=b_labels)


def reduced(x: Tensor, labels: Labels, keep: set[int]) -> tuple[Any, Labels]:
    """Return `x` summed over the labels that are not to be kept, and the labels that are left."""
    dims = [dim for dim, label in enumerate(labels) if label not in keep]
    if not dims:
        return x, labels
    return sum_over(x, dims), tuple([label for label in labels if label in keep])


def simplified(x: Tensor, labels: Labels, size: dict[int, int]) -> tuple[Any, Labels]:
    """Return `x` with each label once, repeated ones as diagonals, and without those that it only broadcasts."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            labels = (*[each for dim, each in enumerate(labels) if dim not in {first, second}], label)
    flat = [dim for dim, label in enumerate(labels) if x.array.shape[dim] == 1 != size[label]]
    if not flat:
        return x, labels
    return squeeze(x, tuple(flat)), tuple([label for dim, label in enumerate(labels) if dim not in flat])


def contraction_path(terms: list[Labels], out: Labels, size: dict[int, int]) -> Collection[tuple[int, ...]]:
    """Return the terms to contract, step by step; the result of a step comes last in the list of terms."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    import opt_einsum  # noqa: PLC0415  the search for an order is needed for three operands and more only

    symbols = {label: opt_einsum.get_symbol(k) for k, label in enumerate(size)}
    words = ["".join(symbols[label] for label in labels) for labels in [*terms, out]]
    shapes = [tuple([size[label] for label in labels]) for labels in terms]
    return opt_einsum.contract_path(",".join(words[:-1]) + "->" + words[-1], *shapes, shapes=True)[0]


def contracted(tensors: list[Any], terms: list[Labels], out: Labels) -> Any:
    """Return the sum of products of tensors with labelled dimensions; a label of two sizes is refused."""
    size: dict[int, int] = {}
    for operand, (x, labels) in enumerate(zip(tensors, terms, strict=True)):
        within: dict[int, int] = {}
        for label, n in zip(labels, x.array.shape, strict=True):
            wanted = within.get(label, size.get(label, 1))
            # a diagonal does not broadcast
            if n != wanted and (label in within or 1 not in {n, wanted}):
                raise ShapeError(
                    f"einsum: expected size {wanted} of {named(label)}, as before, got size {n} in operand {operand} "
                    f"of shape {x.array.shape}"
                )
            within[label] = n
            if size.setdefault(label, n) == 1:
                size[label] = n
    remaining = [simplified(x, labels, size) for x, labels in zip(tensors, terms, strict=True)]
    for step in contraction_path([labels for _, labels in remaining], out, size):
        chosen = [remaining[k] for k in step]
        remaining = [each for k, each in enumerate(remaining) if k not in step]
        needed = {*out, *[label for _, labels in remaining for label in labels]}
        while len(chosen) > 1:
            (a, a_labels), (b, b_labels) = chosen.pop(0), chosen.pop(0)
            wanted = needed | {label for _, labels in chosen for label in labels}
            a, a_labels = reduced(a, a_labels, wanted | {*b_labels})
            b, b_labels = reduced(b, b_labels, wanted | {*a_labels})
            labels = tuple([label for label in dict.fromkeys(a_labels + b_labels) if label in wanted])
            labels = out if {*labels} == {*out} else labels
            chosen.append((_step(a, b, a_labels, b_labels, labels), labels))
        remaining += chosen
    x, labels = reduced(*remaining[0], {*out})
    return x if labels == out and len(tensors) > 1 else permute(x, [labels.index(label) for label in out])


def _step(a: Any, b: Any, a_labels: Labels, b_labels: Labels, out_labels: Labels) -> Any:
    """Return the contraction of two tensors; `autocast` lets products that are not summed be."""
    if unusual and casting_on() and {*out_labels} >= {*a_labels, *b_labels}:
        with without_autocast():
            a, b = promote(a, b)
            return contract(a, b, a_labels=a_labels, b_labels=b_labels, out_labels=out_labels)
    return contract(a, b, a_labels=a_labels, b_labels=b_labels, out_labels=out_labels)


def named(label: int) -> str:
    """Return a label in words."""
    return f"{chr(label)!r}" if label > 0 else f"dimension {label} of the ellipsis"


def labels_of(term: Sequence[Any], ndim: int, operand: int) -> Labels:
    """Return the labels of an operand of `ndim` dimensions from its letters; one of these may be the ellipsis."""
    count = len(term) - (... in term)
    if (count > ndim) if ... in term else (count != ndim):
        words = "".join("..." if each is ... else chr(each) for each in term)
        raise ShapeError(f"einsum: operand {operand} has {ndim} dimensions, its subscripts {words!r} name {count}")
    return with_ellipsis(term, ndim - count)


def with_ellipsis(term: Sequence[Any], count: int) -> Labels:
    """Return labels with the ellipsis written out as `count` dimensions."""
    return tuple([label for each in term for label in (range(-count, 0) if each is ... else (each,))])


def letters(term: str) -> list[Any]:
    """Return the letters of a term as codes, and its ellipsis as such."""
    before, dots, after = term.replace(" ", "").partition("...")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise ShapeError(
                f"einsum: expected letters and at most one ellipsis as subscripts, got {letter!r} in {term!r}"
            )
    return [*map(ord, before), *([...] if dots else []), *map(ord, after)]


def from_sublists(arguments: tuple[Any, ...]) -> tuple[list[Any], list[list[Any]], list[Any] | None]:
    """Return operands, their terms and the result's from ``(operand, sublist, ..., [result])``."""
    pairs, out = (arguments, None) if len(arguments) % 2 == 0 else (arguments[:-1], arguments[-1])

    def codes(sublist: Sequence[Any]) -> list[Any]:
        numbers = [each if each is ... else operator.index(each) for each in sublist]
        if any(each is not ... and not 0 <= each < 52 for each in numbers):
            raise ShapeError(f"einsum: expected numbers from 0 to 51 and at most one ellipsis, got {list(sublist)}")
        return [each if each is ... else ord("A") + each + (6 if each > 25 else 0) for each in numbers]

    return list(pairs[::2]), [codes(sublist) for sublist in pairs[1::2]], None if out is None else codes(out)


def result_labels(wanted: list[Any] | None, terms: list[Labels]) -> Labels:
    """Return the labels of the result: those wanted, or else the ellipsis and the letters that occur once, sorted."""
    known = [label for labels in terms for label in labels]
    count = -min([0, *known])
    if wanted is None:
        return (*range(-count, 0), *sorted(label for label in known if label > 0 and known.count(label) == 1))
    out = with_ellipsis(wanted, count)
    for label in out:
        if out.count(label) > 1:
            raise ShapeError(f"einsum: expected each subscript once in the result, got {named(label)} more often")
        if label not in known:
            raise ShapeError(f"einsum: subscript {named(label)} of the result is in no operand")
    return out


def einsum(*args: Any) -> Tensor:
    """Return the sum of products that an equation describes, ``out[i, k] = sum_j a[i, j] * b[j, k]`` for "ij,jk->ik".

    `args` are the equation and its operands. A letter names a dimension, ``...`` those without a name; what has the
    same letter runs together, broadcast from size 1, twice in a term along its diagonal; what is not in the result is
    summed. Without ``->`` that has the ellipsis, then the letters that occur once, sorted. Or operands and lists of
    numbers from 0 to 51 in turn, and a list for the result. Of more than two operands, the cheapest order is looked
    for.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> lucid.einsum("ij,j->i", x, lucid.tensor([1.0, 1.0])), lucid.einsum("ii", x)
    (tensor([3., 7.]), tensor(5.))
    """
    if args and isinstance(args[0], str):
        listed: Any = args[1] if len(args) == 2 and not isinstance(args[1], TensorBase) else args[1:]
        tensors: list[Any] = list(listed)
        left, arrow, right = args[0].partition("->")
        written, wanted = [letters(term) for term in left.split(",")], letters(right) if arrow else None
    else:
        if not args or not isinstance(args[0], TensorBase):
            raise unfit(args[0] if args else None, "the equation as a string, or each operand and its labels", "args")
        tensors, written, wanted = from_sublists(args)
    if not tensors or len(written) != len(tensors) or not all(isinstance(x, TensorBase) for x in tensors):
        got = ", ".join(type(x).__name__ for x in tensors)
        raise ShapeError(f"einsum: expected one tensor for each of {len(written)} terms, got ({got})")
    if len(tensors) > 1:
        same_dtype("einsum", *tensors)
    terms = [
        labels_of(term, x.array.ndim, operand) for operand, (term, x) in enumerate(zip(written, tensors, strict=True))
    ]
    return contracted(tensors, terms, result_labels(wanted, terms))


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Return the products of `a` and `b` summed over pairs of dimensions: the others of `a`, then the others of `b`.

    `dims` is how many of the last of `a` go with as many of the first of `b`; or which of `a` and which of `b`, in
    order.

    >>> import lucid
    >>> lucid.tensordot(lucid.ones(2, 3, 4), lucid.ones(3, 4, 5)).shape
    lucid.Size([2, 5])
    >>> lucid.tensordot(lucid.ones(2, 3), lucid.ones(4, 3), ([1], [1])).shape
    lucid.Size([2, 4])
    """
    same_dtype("tensordot", a, b)
    x, y = a.array.shape, b.array.shape
    if not is_single(dims):
        pair = cast("Sequence[Sequence[int]]", dims)
        if len(pair) != 2:
            raise ShapeError(f"tensordot: dims: expected those of a and those of b, got {len(pair)} entries")
        first, second = dims_in(pair[0], len(x)), dims_in(pair[1], len(y))
    else:
        count = as_int(dims, "dims")
        if not 0 <= count <= min(len(x), len(y)):
            raise ShapeError(
                f"tensordot: expected dims from 0 to {min(len(x), len(y))} for shapes {x} and {y}, got {dims}"
            )
        first, second = tuple(range(len(x) - count, len(x))), tuple(range(count))
    if len(first) != len(second) or any(
        x[d] != y[e] and 1 not in (x[d], y[e]) for d, e in zip(first, second, strict=False)
    ):
        raise ShapeError(f"tensordot: sizes differ: dimensions {first} of shape {x}, dimensions {second} of shape {y}")
    a = summed_where(a, first, [y[e] for e in second])
    b = summed_where(b, second, [x[d] for d in first])
    a_labels = tuple(range(len(x)))
    b_labels = tuple([first[second.index(d)] if d in second else len(x) + d for d in range(len(y))])
    out = tuple([label for label in a_labels if label not in first])
    out += tuple([label for label in b_labels if label not in first])
    return contract(a, b, a_labels=a_labels, b_labels=b_labels, out_labels=out)


def summed_where(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return `x` summed over those of the dimensions that meet one of size 1."""
    alone = [d for d, size in zip(dims, sizes, strict=True) if size == 1 != x.array.shape[d]]
    return sum_over(x, alone, keepdim=True) if alone else x


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the products summed over the last dimension of both: the others of `input`, then the others of `other`.

    A tensor of no dimension multiplies.

    >>> import lucid
    >>> lucid.inner(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not array_of(input).ndim or not array_of(other).ndim:
        return mul(input, other)
    if input.array.shape[-1] != other.array.shape[-1]:
        raise ShapeError(
            f"inner: the last dimension must match on both tensors, got shapes {list(input.array.shape)} and "
            f"{list(other.array.shape)}"
        )
    if input.array.ndim == other.array.ndim == 1:
        return dot(input, other)
    return tensordot(input, other, ([-1], [-1]))
