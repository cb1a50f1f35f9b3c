"""Collectives that gather tensors of several processes, or spread those of one; see `lucid.collectives.operations`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, describe
from lucid.base.arrays import namespace, on
from lucid.collectives.group import text_of
from lucid.collectives.memory import Target, check_device, check_same_form, contiguous, stacked, tensor_of, tensors_of
from lucid.collectives.operations import root_of, run
from lucid.collectives.reduction import ReduceOp, check_op
from lucid.collectives.world import member
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.work import Work
    from lucid.tensor import Tensor


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Fill `tensor_list`, in each process, with the `tensor` of all processes.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    tensor_list : list of Tensor
        One for each process, like `tensor`.
    tensor : Tensor
        Of the same shape and dtype in all processes.

    Examples
    --------
    >>> import lucid
    >>> into = [lucid.zeros(2)]
    >>> lucid.distributed.all_gather(into, lucid.ones(2))
    >>> into
    [tensor([1., 1.])]
    """
    chosen = member(group, "all_gather")
    if chosen is None:
        return None
    outputs = tensors_of(tensor_list, "tensor_list", chosen.size())
    check_same_form(outputs, tensor_of(tensor, "tensor"), "all_gather")
    array = contiguous(tensor.array)
    buffer = _rows(array, chosen.size())
    targets = [Target(each, "all_gather") for each in outputs]
    text = text_of(array)
    return run(
        "all_gather", chosen, tensor, lambda e: e.all_gather(buffer, array), text, targets, buffer, async_op=async_op
    )


def _rows(array: Any, count: int) -> Any:
    """Return memory for so many arrays like `array`."""
    with on(array):
        return namespace(array).empty((count, *array.shape), array.dtype)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Fill `output_tensor`, in each process, with the elements of the `input_tensor` of all, one behind the other.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    output_tensor : Tensor
        With as many elements as all inputs, joined along the first dimension or stacked.
    input_tensor : Tensor
        Of the same shape and dtype in all processes.

    Raises
    ------
    ShapeError
        If the numbers of elements do not fit.

    Examples
    --------
    >>> import lucid
    >>> into = lucid.zeros(2)
    >>> lucid.distributed.all_gather_into_tensor(into, lucid.ones(2))
    """
    chosen = member(group, "all_gather_into_tensor")
    if chosen is None:
        return None
    name = "all_gather_into_tensor"
    _check_pair(output_tensor, input_tensor, chosen.size(), 1, name)
    array = contiguous(input_tensor.array)
    target = Target(output_tensor, name)
    return run(
        name, chosen, input_tensor, lambda e: e.all_gather(target.buffer, array), text_of(array), [target],
        async_op=async_op,
    )  # fmt: skip


def _check_pair(output: object, input: object, more_out: int, more_in: int, name: str) -> None:
    """Raise unless output and input agree in dtype and device, and hold so many times the same number of elements."""
    into, source = tensor_of(output, "output"), tensor_of(input, "input")
    check_device([into], source, name)
    if into.array.dtype != source.array.dtype:
        raise DtypeError(
            f"{name}: expected one dtype, got an output of {describe(into)}, an input of {describe(source)}"
        )
    if into.array.size * more_in != source.array.size * more_out:
        raise ShapeError(
            f"{name}: expected an output of {more_out} times the elements of the input"
            f"{f' over {more_in}' if more_in > 1 else ''}, got {describe(into)} and {describe(source)}"
        )


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fill `gather_list`, in one process, with the `tensor` of all processes.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype in all processes.
    gather_list : list of Tensor, optional
        One for each process, like `tensor`; None in all processes but one.
    dst, group_dst : int, optional
        The process that gets them; the first of the group if both are None.

    Examples
    --------
    >>> import lucid
    >>> into = [lucid.zeros(2)]
    >>> lucid.distributed.gather(lucid.ones(2), into)
    """
    chosen = member(group, "gather")
    if chosen is None:
        return None
    root = root_of(chosen, dst, group_dst, "gather: dst", default=0)
    array = contiguous(tensor_of(tensor, "tensor").array)
    buffer, targets = None, []
    if root == chosen.rank():
        outputs = tensors_of(gather_list, "gather_list", chosen.size())
        check_same_form(outputs, tensor, "gather")
        buffer, targets = _rows(array, chosen.size()), [Target(each, "gather") for each in outputs]
    elif gather_list:
        raise SettingError(
            f"gather: gather_list: expected None in all processes but {chosen.ranks[root]}, which gets them"
        )
    text = f"{text_of(array)}, to {root}"
    return run(
        "gather", chosen, tensor, lambda e: e.gather(buffer, array, root), text, targets, buffer, async_op=async_op
    )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Fill `tensor` of each process with the one that a process has for it in its `scatter_list`.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype in all processes.
    scatter_list : list of Tensor, optional
        One for each process, like `tensor`; None in all processes but one.
    src, group_src : int, optional
        The process that has them; the first of the group if both are None.

    Examples
    --------
    >>> import lucid
    >>> into = lucid.zeros(2)
    >>> lucid.distributed.scatter(into, [lucid.ones(2)])
    >>> into
    tensor([1., 1.])
    """
    chosen = member(group, "scatter")
    if chosen is None:
        return None
    root = root_of(chosen, src, group_src, "scatter: src", default=0)
    array = None
    tensor_of(tensor, "tensor")
    if root == chosen.rank():
        inputs = tensors_of(scatter_list, "scatter_list", chosen.size())
        check_same_form(inputs, tensor, "scatter")
        array = stacked([each.array for each in inputs])
    elif scatter_list:
        raise SettingError(
            f"scatter: scatter_list: expected None in all processes but {chosen.ranks[root]}, which has them"
        )
    target = Target(tensor, "scatter")
    text = f"{text_of(target.array)}, from {root}"
    return run(
        "scatter", chosen, tensor, lambda e: e.scatter(target.buffer, array, root), text, [target], async_op=async_op
    )


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put the lists of all processes together, elementwise, and fill `output` with this process's entry.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    output : Tensor
        Like each of `input_list`.
    input_list : list of Tensor
        One for each process.
    op : ReduceOp
        How.

    Examples
    --------
    >>> import lucid
    >>> into = lucid.zeros(2)
    >>> lucid.distributed.reduce_scatter(into, [lucid.ones(2)])
    """
    chosen = member(group, "reduce_scatter")
    if chosen is None:
        return None
    inputs = tensors_of(input_list, "input_list", chosen.size())
    check_same_form(inputs, tensor_of(output, "output"), "reduce_scatter")
    op = check_op(op, output.array)
    array = stacked([each.array for each in inputs])
    target = Target(output, "reduce_scatter")
    text = f"{text_of(array)}, {op.name}"
    return run(
        "reduce_scatter", chosen, output, lambda e: e.reduce_scatter(target.buffer, array, op), text, [target],
        async_op=async_op,
    )  # fmt: skip


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put the `input` of all processes together, elementwise, and fill `output` with this process's part of it.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    output : Tensor
        With the elements of `input` over the number of processes.
    input : Tensor
        The parts, joined along the first dimension or stacked.
    op : ReduceOp
        How.

    Raises
    ------
    ShapeError
        If the numbers of elements do not fit.

    Examples
    --------
    >>> import lucid
    >>> into = lucid.zeros(2)
    >>> lucid.distributed.reduce_scatter_tensor(into, lucid.ones(2))
    """
    chosen = member(group, "reduce_scatter_tensor")
    if chosen is None:
        return None
    name = "reduce_scatter_tensor"
    _check_pair(output, input, 1, chosen.size(), name)
    op = check_op(op, output.array)
    array = contiguous(input.array)
    target = Target(output, name)
    text = f"{text_of(array)}, {op.name}"
    return run(
        name, chosen, output, lambda e: e.reduce_scatter(target.buffer, array, op), text, [target], async_op=async_op
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of `input` to each process, and fill `output` with the parts from all.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    output, input : Tensor
        Divided along their first dimension.
    output_split_sizes, input_split_sizes : list of int, optional
        The sizes of the parts, one for each process; equal ones if None.

    Raises
    ------
    ShapeError
        If the sizes do not add up.

    Examples
    --------
    >>> import lucid
    >>> into = lucid.zeros(2)
    >>> lucid.distributed.all_to_all_single(into, lucid.ones(2))
    """
    chosen = member(group, "all_to_all_single")
    if chosen is None:
        return None
    name = "all_to_all_single"
    into, source = tensor_of(output, "output"), tensor_of(input, "input")
    check_device([into], source, name)
    if into.array.dtype != source.array.dtype or into.array.shape[1:] != source.array.shape[1:]:
        raise ShapeError(f"{name}: expected one dtype and one shape behind the first dimension, got {describe(into)} "
                         f"and {describe(source)}")  # fmt: skip
    received = _counts(into, output_split_sizes, chosen.size(), f"{name}: output_split_sizes")
    sent = _counts(source, input_split_sizes, chosen.size(), f"{name}: input_split_sizes")
    array = contiguous(source.array)
    target = Target(into, name)
    text = f"dtype {array.dtype.name}"
    return run(
        name, chosen, source, lambda e: e.all_to_all(target.buffer, array, received, sent), text, [target],
        async_op=async_op,
    )  # fmt: skip


def _counts(tensor: TensorBase, sizes: list[int] | None, parts: int, name: str) -> list[int]:
    """Return how many elements each part of `tensor` has."""
    shape = tensor.array.shape
    if not shape:
        raise ShapeError(f"{name}: expected a tensor with a first dimension to divide, got one of no dimension")
    if not sizes:
        if shape[0] % parts:
            raise ShapeError(f"{name}: expected a first dimension that {parts} divides, got shape {tuple(shape)}")
        sizes = [shape[0] // parts] * parts
    numbers = [as_int(size, name) for size in sizes]
    if len(numbers) != parts or sum(numbers) != shape[0] or min(numbers) < 0:
        raise ShapeError(f"{name}: expected {parts} sizes whose sum is {shape[0]}, got {numbers}")
    row = tensor.array.size // shape[0] if shape[0] else 0
    return [number * row for number in numbers]


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send a tensor to each process, and receive one from each.

    What holds for all collectives says `lucid.collectives.operations`.

    Parameters
    ----------
    output_tensor_list, input_tensor_list : list of Tensor
        One for each process, of any shapes, of one dtype.

    Examples
    --------
    >>> import lucid
    >>> into = [lucid.zeros(2)]
    >>> lucid.distributed.all_to_all(into, [lucid.ones(2)])
    >>> into
    [tensor([1., 1.])]
    """
    chosen = member(group, "all_to_all")
    if chosen is None:
        return None
    outputs = tensors_of(output_tensor_list, "output_tensor_list", chosen.size())
    inputs = tensors_of(input_tensor_list, "input_tensor_list", chosen.size())
    like = inputs[0]
    check_device([*outputs, *inputs], like, "all_to_all")
    if {each.array.dtype for each in (*outputs, *inputs)} != {like.array.dtype}:
        raise DtypeError("all_to_all: expected tensors of one dtype")
    targets = [Target(each, "all_to_all") for each in outputs]
    received, sent = [each.array.size for each in outputs], [each.array.size for each in inputs]
    with on(like.array):
        xp = namespace(like.array)
        array = xp.concatenate([each.array.reshape(-1) for each in inputs])
        flat = xp.empty(sum(received), array.dtype)
    parts = [flat[end - size : end] for end, size in zip(accumulate(received), received, strict=True)]
    return run(
        "all_to_all", chosen, like, lambda e: e.all_to_all(flat, array, received, sent), f"dtype {array.dtype.name}",
        targets, parts, async_op=async_op,
    )  # fmt: skip
