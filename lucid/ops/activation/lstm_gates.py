"""The gates of a step of an LSTM, in one launch each way on CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.dtype import dtype_of
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.ops.activation.sigmoid import SIGMOID
from lucid.ops.base.promotion import accumulation_dtype, promote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

_forward = Kernel("lstm_gates", "lucid::lstm_gates", EACH_FLOAT)
_backward = Kernel("lstm_gates", "lucid::lstm_gates_grad", EACH_FLOAT)


def _each(gates: Array) -> list[Any]:
    """Return the four gates, as views."""
    width = gates.shape[1] // 4
    return [gates[:, k * width : (k + 1) * width] for k in range(4)]


@primitive(outputs=("output", "after", "gates"), differentiable=(0, 1))
def _lstm_gates(xp: ModuleType, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array, Array]:
    """Return output, cell, and the gates that gave them, in float32 for half types."""
    work = accumulation_dtype(x.dtype)
    gates = xp.add(x.astype(work, copy=False), hidden.astype(work, copy=False))
    i, f, g, o = _each(gates)
    sigmoid, _ = SIGMOID.chain
    for gate in (gates[:, : 2 * cell.shape[1]], o):
        sigmoid(xp, gate, gate)
    xp.tanh(g, out=g)
    after = f * cell.astype(work, copy=False)
    after += i * g
    output = xp.tanh(after)
    output *= o
    return output.astype(x.dtype, copy=False), after.astype(x.dtype, copy=False), gates


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
    to_after = m.add(to_after, m.tanh_grad(m.mul(to_output, o), t))
    parts = [
        m.sigmoid_grad(m.mul(to_after, g), i),
        m.sigmoid_grad(m.mul(to_after, cell), f),
        m.tanh_grad(m.mul(to_after, i), g),
        m.sigmoid_grad(m.mul(to_output, t), o),
    ]
    return m.cat(*parts, dim=1), m.mul(to_after, f)


@primitive(outputs=("to_gates", "to_cell"))
def _lstm_gates_grad(
    xp: ModuleType, to_output: Array, to_after: Array, gates: Array, cell: Array, after: Array
) -> tuple[Array, Array]:
    """Return the gradients of the gates, before their functions, and of the cell."""
    work, dtype = gates.dtype, cell.dtype
    to_output, to_after, cell, after = [a.astype(work, copy=False) for a in (to_output, to_after, cell, after)]
    i, f, g, o = _each(gates)
    out = 1 - gates
    out *= gates
    to_i, to_f, to_g, to_o = _each(out)
    t = xp.tanh(after)
    to_o *= to_output
    to_o *= t
    t *= t
    xp.subtract(1, t, out=t)
    t *= o
    t *= to_output
    t += to_after
    to_i *= g
    to_i *= t
    to_f *= cell
    to_f *= t
    xp.multiply(g, g, out=to_g)
    xp.subtract(1, to_g, out=to_g)
    to_g *= i
    to_g *= t
    t *= f
    return out.astype(dtype, copy=False), t.astype(dtype, copy=False)


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
