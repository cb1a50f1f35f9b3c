"""The gates of a step of an LSTM: its formula on buffers, and the op, in one launch each way on CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.dtype import dtype_of
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.ops.activation.sigmoid import SIGMOID_GRAD, TANH_GRAD
from lucid.ops.base.promotion import accumulation_dtype, promote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# By the name of the op: the slope at a result, times a factor.
SLOPES = {"sigmoid_grad": SIGMOID_GRAD, "tanh_grad": TANH_GRAD}

_forward = Kernel("lstm_gates", "lucid::lstm_gates", EACH_FLOAT)
_backward = Kernel("lstm_gates", "lucid::lstm_gates_grad", EACH_FLOAT)


def negated(xp: ModuleType, gates: Array, out: Array) -> None:
    """Write gates i, f, g, o, along the first dimension, as `activate` takes them: -i, -f, -o, g."""
    xp.negative(gates[:2], out[:2])
    xp.negative(gates[3], out[2])
    out[3] = gates[2]


def buffers(xp: ModuleType, batch: int, width: int, dtype: Any) -> tuple[Array, tuple[Array, ...]]:
    """Return the buffers of a step, four gates, the cell and two temporaries, and the views for `activate`."""
    room = xp.empty((7, batch, width), dtype)
    # a number of Python's is converted in each call
    return room, (xp.ones((), dtype), room[:3], room[3], room[2], room[4], room[:2], room[3:5], room[5:], *room[5:])


def activate(xp: ModuleType, views: tuple[Array, ...], output: Array) -> None:
    """Write the output of a step, and in its buffers i, f, o, g and the cell after it."""
    one, sigmoids, g, o, cell, i_and_f, g_and_cell, products, first, second = views
    xp.exp(sigmoids, sigmoids)
    xp.add(sigmoids, one, sigmoids)
    xp.reciprocal(sigmoids, sigmoids)
    xp.tanh(g, g)
    xp.multiply(i_and_f, g_and_cell, products)
    xp.add(first, second, cell)
    xp.tanh(cell, first)
    xp.multiply(o, first, output)


def slopes(i: Any, f: Any, g: Any, o: Any, cell: Any, t: Any) -> tuple[tuple[str, Any, Any], ...]:
    """Return the derivatives of the cell by i, f, g, of the output by o, and by the cell: names of ops and operands.

    `cell` is the one before the step, `t` the tanh of the one after it.
    """
    return (
        ("sigmoid_grad", g, i),
        ("sigmoid_grad", cell, f),
        ("tanh_grad", i, g),
        ("sigmoid_grad", t, o),
        ("tanh_grad", o, t),
    )


def factors(xp: ModuleType, i: Array, f: Array, g: Array, o: Array, cell: Array, after: Array) -> Array:
    """Return the factors of `back`, one behind the other: the slopes, and f; of the cells before and after the step."""
    out = xp.empty((6, *cell.shape), cell.dtype)
    for k, (name, factor, result) in enumerate(slopes(i, f, g, o, cell, xp.tanh(after))):
        SLOPES[name].chain[0](xp, out[k], factor, result)
    out[5] = f
    return out


def back(xp: ModuleType, by: Array, to_output: Array, to_cell: Array, to_gates: Array, spare: Array) -> None:
    """Write the gradients of the gates i, f, g, o, before their functions, and to `to_cell` that of the cell before."""
    xp.multiply(to_output, by[4], spare)
    xp.add(to_cell, spare, to_cell)
    xp.multiply(to_cell, by[:3], to_gates[:3])
    xp.multiply(to_output, by[3], to_gates[3])
    xp.multiply(to_cell, by[5], to_cell)


@primitive(outputs=("output", "after", "gates"), differentiable=(0, 1))
def _lstm_gates(xp: ModuleType, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array, Array]:
    """Return output, cell, and the gates that gave them, in float32 for half types."""
    work, (batch, width) = accumulation_dtype(x.dtype), cell.shape
    total = xp.add(x.astype(work, copy=False), hidden.astype(work, copy=False))
    room, views = buffers(xp, batch, width, work)
    negated(xp, total.reshape(batch, 4, width).swapaxes(0, 1), room)
    room[4] = cell
    output = xp.empty(cell.shape, work)
    activate(xp, views, output)
    i, f, o, g, after = room[:5]
    gates = xp.concatenate([i, f, g, o], 1)
    return output.astype(x.dtype, copy=False), after.astype(x.dtype), gates


def _launch(kernel: Kernel, cell: Array, inputs: Iterable[Array], outputs: Iterable[Array]) -> None:
    """Launch a kernel for each element of the cell."""
    if cell.size:
        # copies are held until the launch
        arrays = [*map(gpu.cupy().ascontiguousarray, inputs), *outputs]
        addresses = [array.data.ptr for array in arrays]
        kernel[C_TYPES[cell.dtype]](*launch_for(cell.size), *addresses, cell.size, cell.shape[1])


@_lstm_gates.cuda
def _lstm_gates_cuda(x: Array, hidden: Array, cell: Array) -> Any:
    output, after = empty(cell.shape, x.dtype), empty(cell.shape, x.dtype)
    gates = empty(x.shape, accumulation_dtype(x.dtype))
    _launch(_forward, cell, (x, hidden, cell), (output, after, gates))
    return output, after, gates


@_lstm_gates.vjp
def _lstm_gates_vjp(
    m: Namespace, grad: list[Any], x: Array, hidden: Array, cell: Array, after: Array, gates: Array,
    needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    to_output, to_after = [m.zeros_like(cell) if part is None else part for part in grad[:2]]
    if m is GRAPH:
        to_gates, to_cell = _of_ops(m, to_output, to_after, m.add(x, hidden), cell)
    else:
        to_gates, to_cell = m.lstm_gates_grad(to_output, to_after, gates, cell, after)
    return tuple([g if needed else None for g, needed in zip((to_gates, to_gates, to_cell), needs, strict=True)])


def _of_ops(m: Namespace, to_output: Any, to_after: Any, total: Any, cell: Any) -> tuple[Any, Any]:
    """Return the gradients of the gates and of the cell, made of ops that have derivatives themselves."""
    i, f, g, o = m.split(total, sizes=(cell.shape[1],) * 4, dim=1)
    i, f, g, o = m.sigmoid(i), m.sigmoid(f), m.tanh(g), m.sigmoid(o)
    t = m.tanh(m.add(m.mul(f, cell), m.mul(i, g)))
    by_i, by_f, by_g, by_o, by_cell = [getattr(m, name)(*operands) for name, *operands in slopes(i, f, g, o, cell, t)]
    to_after = m.add(to_after, m.mul(to_output, by_cell))
    parts = [m.mul(to_after, by_i), m.mul(to_after, by_f), m.mul(to_after, by_g), m.mul(to_output, by_o)]
    return m.cat(*parts, dim=1), m.mul(to_after, f)


@primitive(outputs=("to_gates", "to_cell"))
def _lstm_gates_grad(
    xp: ModuleType, to_output: Array, to_after: Array, gates: Array, cell: Array, after: Array
) -> tuple[Array, Array]:
    """Return the gradients of the gates, before their functions, and of the cell."""
    work, dtype, (batch, width) = gates.dtype, cell.dtype, cell.shape
    to_output, cell, after = [a.astype(work, copy=False) for a in (to_output, cell, after)]
    to_cell = to_after.astype(work)
    to_gates = xp.empty(gates.shape, work)
    (i, f, g, o), out = (part.reshape(batch, 4, width).swapaxes(0, 1) for part in (gates, to_gates))
    back(xp, factors(xp, i, f, g, o, cell, after), to_output, to_cell, out, xp.empty(cell.shape, work))
    return to_gates.astype(dtype, copy=False), to_cell.astype(dtype, copy=False)


@_lstm_gates_grad.cuda
def _lstm_gates_grad_cuda(to_output: Array, to_after: Array, gates: Array, cell: Array, after: Array) -> Any:
    to_gates, to_cell = empty(gates.shape, cell.dtype), empty(cell.shape, cell.dtype)
    _launch(_backward, cell, (to_output, to_after, gates, cell, after), (to_gates, to_cell))
    return to_gates, to_cell


def lstm_gates(x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``h = o * tanh(c)`` and ``c = f * cell + i * g``, with the gates of the input and the output before.

    ``i, f, g, o`` are `x` plus `hidden`, of shape (B, 4 * H), after sigmoid, and g after tanh; half types are computed
    in float32 and rounded once.
    """
    if not dtype_of(x.array) == dtype_of(hidden.array) == dtype_of(cell.array):
        x, hidden, cell = promote(x, hidden, cell)
    return _lstm_gates(x, hidden, cell)[:2]
