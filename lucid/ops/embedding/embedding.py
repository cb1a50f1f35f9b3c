"""Rows of a table by their numbers, and the sums of gradients that come back to them.

What holds for it as for all layers says `lucid.ops.layers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import version_of
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.views import before_change
from lucid.base import gpu
from lucid.base.arrays import Array, Ints, namespace
from lucid.base.dtype import dtype_of
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.one_device import check_one_device
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_bool, as_int, as_number
from lucid.ops.index import select_cuda as kernels
from lucid.ops.index.accumulation import sums_at

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from lucid.autograd.recording.namespace import Namespace
    from lucid.tensor import Tensor


@primitive(saved_as={"index": "indices"})
def _embedding(xp: ModuleType, weight: Array, index: Array, *, padding: int | None, by_frequency: bool) -> Array:
    """Return the rows of `weight` that `index` names."""
    return xp.take(weight, index, 0)


@_embedding.vjp("weight")
def _embedding_vjp(
    m: Namespace, grad: Array, index: Array, weight_shape: Ints, padding: int | None, by_frequency: bool
) -> Any:
    return m.embedding_grad(grad, index, rows=weight_shape[0], padding=padding, by_frequency=by_frequency)


@primitive
def _embedding_grad(
    xp: ModuleType, grad: Array, index: Array, *, rows: int, padding: int | None, by_frequency: bool
) -> Array:
    """Return for each row of the table the sum of the gradients of its uses, each times its share."""
    columns = grad.shape[-1]
    if padding is not None or by_frequency:
        work = accumulation_dtype(grad.dtype)
        grad = grad * _embedding_shares.reference(
            xp, index, rows=rows, padding=padding, by_frequency=by_frequency, dtype=work
        )
    return sums_at(xp, (rows, columns), (0,), [index.reshape(-1)], grad.reshape(index.size, columns))


@_embedding_grad.vjp("grad")
def _embedding_grad_vjp(
    m: Namespace,
    upper: Array,
    index: Array,
    grad_dtype: np.dtype[Any],
    rows: int,
    padding: int | None,
    by_frequency: bool,
) -> Any:
    selected = m.embedding(upper, index, padding=padding, by_frequency=by_frequency)
    if padding is None and not by_frequency:
        return selected
    return m.mul(
        selected, m.embedding_shares(index, rows=rows, padding=padding, by_frequency=by_frequency, dtype=grad_dtype)
    )


@primitive
def _embedding_shares(
    xp: ModuleType, index: Array, *, rows: int, padding: int | None, by_frequency: bool, dtype: np.dtype[Any]
) -> Array:
    """Return the share of each use in the gradient."""
    if by_frequency:
        shares = (1 / xp.bincount(index.reshape(-1))[index]).astype(dtype)
    else:
        shares = xp.ones(index.shape, dtype)
    if padding is not None:
        shares = xp.where(index == padding, dtype.type(0), shares)
    return shares[..., None]


_embedding.cuda(kernels.embedding)
_embedding_grad.cuda(kernels.embedding_grad)
_embedding_shares.cuda(kernels.embedding_shares)


def rows_named(name: str, input: Tensor, weight: Tensor, padding_idx: int | None) -> tuple[Tensor, Tensor, int | None]:
    """Return the numbers of rows, the table and the row that is padding, counted from 0, after a look at all of them.

    Raises
    ------
    DtypeError
        If the numbers are no integers.
    ShapeError
        If the table is no matrix.
    IndexOutOfRangeError
        If a number names no row.
    SettingError
        If `padding_idx` names none.
    """
    index, table = tensor_operand(input), tensor_operand(weight)
    if dtype_of(index.array).category != 1:
        raise DtypeError(f"{name}: expected input to hold integers, got {dtype_of(index.array)}")
    if table.array.ndim != 2:
        raise ShapeError(f"{name}: 'weight' must be 2-D, got shape {list(table.array.shape)}")
    rows = table.array.shape[0]
    if padding_idx is not None:
        padding_idx = as_int(padding_idx, "padding_idx")
        if not -rows <= padding_idx < rows:
            raise SettingError(
                f"{name}: padding_idx must be within num_embeddings, [{-rows}, {rows - 1}], got {padding_idx}"
            )
        padding_idx %= rows
    array = index.array
    if looked_at(array):
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= rows:
            raise IndexOutOfRangeError(
                f"{name}: index out of range: expected 0 to {rows - 1}, got {low if low < 0 else high}"
            )
    return index, table, padding_idx


def shorten(name: str, weight: Tensor, index: Tensor, max_norm: float, norm_type: float, *more: Tensor | None) -> None:
    """Shorten the rows in use that are longer than `max_norm`, in place; no graph sees it but the version does.

    All that the op takes, `more` too, is on one device, or the op would be refused once the rows have changed.
    """
    check_one_device(name, weight, index, *more)
    before_change(weight)
    version_of(weight)[0] += 1
    array = weight.array
    xp = namespace(array)
    if gpu.is_gpu_array(array):
        with gpu.use_device(gpu.device_index(array)):
            if kernels.shorten(array, index.array, max_norm, norm_type):
                return
    thread.state.quiet(_shorten, xp, array, xp.unique(index.array), max_norm, norm_type)


def _shorten(xp: ModuleType, array: Array, used: Array, max_norm: float, norm_type: float) -> None:
    rows = array[used].astype(accumulation_dtype(array.dtype), copy=False)
    lengths = xp.linalg.norm(rows, norm_type, 1, True)
    # the small number is PyTorch's, and keeps a shortened row from being shortened again
    factor = xp.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1).astype(rows.dtype)
    array[used] = (rows * factor).astype(array.dtype, copy=False)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of the matrix `weight` that the integers of `input` name, shape (*input, columns).

    The row `padding_idx`, negative from the end, gets no gradient. Rows in use whose norm of order `norm_type` is above
    `max_norm` are shortened to it first, in place and unseen by the graph. `scale_grad_by_freq` divides the gradient of
    a row by how often `input` names it; `sparse` changes nothing. On CUDA gradients add up in a fixed order only under
    `use_deterministic_algorithms`, and a number that names no row raises an IndexOutOfRangeError in debug mode alone.

    >>> import lucid
    >>> lucid.nn.functional.embedding(lucid.tensor([1, 0]), lucid.tensor([[0.0, 1.0], [2.0, 3.0]]))
    tensor([[2., 3.],
            [0., 1.]])
    """
    scale_grad_by_freq = as_bool(scale_grad_by_freq, "scale_grad_by_freq")
    sparse = as_bool(sparse, "sparse")
    index, table, padding = rows_named("embedding", input, weight, padding_idx)
    if max_norm is not None:
        shorten("embedding", table, index, as_number(max_norm, "max_norm"), as_number(norm_type, "norm_type"))
    return _embedding(table, index, padding=padding, by_frequency=scale_grad_by_freq)
