"""RNNBase, LSTM, GRU and RNN: recurrence over whole sequences, in several layers and both directions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from lucid.arguments import unfit
from lucid.autograd.modes.casting import lower_in_autocast
from lucid.errors import SettingError, ShapeError, warn
from lucid.nn.layers.layer import declared, draw_within, empty_parameter
from lucid.nn.module.module import Module
from lucid.nn.utils.rnn import PackedSequence
from lucid.ops.base.promotion import only_tensors
from lucid.ops.creation.filling import zeros
from lucid.ops.index.index_select import index_select
from lucid.ops.layers.dropout import dropout as drop
from lucid.ops.recurrence.sequence import recurrence
from lucid.ops.recurrence.steps import GATES, STEPS
from lucid.ops.shape.axes import transpose
from lucid.ops.shape.joining import cat, stack
from lucid.ops.shape.reshape import flatten, reshape
from lucid.settings.checks import ranged
from lucid.settings.ranges import whole, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import InitVar

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.ops.recurrence.steps import State
    from lucid.tensor import Tensor


@declared
class RNNBase(Module):
    """The base of `LSTM`, `GRU` and `RNN`: `mode` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".

    Of each layer k and direction, in the order of `all_weights`, `weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`,
    `bias_hh_lk` and with `proj_size` `weight_hr_lk`, of the second direction with `_reverse` behind, are parameters,
    uniform in [-s, s), s = 1 / sqrt(hidden_size), at first. Sizes and numbers below 1, a `dropout` outside of [0, 1],
    and a `proj_size` that is not below `hidden_size` raise a SettingError.

    >>> from lucid import nn
    >>> nn.RNNBase("GRU", 2, 3, num_layers=2)
    RNNBase(2, 3, num_layers=2)
    """

    _ranges: ClassVar = {"input_size": whole(1), "mode": words(*STEPS)}
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False
    dropout: float = 0.0
    bidirectional: bool = False
    proj_size: int = 0
    device: InitVar[Device] = None
    dtype: InitVar[Dtype | None] = None

    def __post_init__(self, device: Device, dtype: Dtype | None) -> None:
        size, projected = self.hidden_size, self.proj_size
        if projected and (self.mode != "LSTM" or not 0 < projected < size):
            raise SettingError(f"{self._title}: proj_size must be 0, or of an LSTM in [1, {size}), got {projected}")
        if self.dropout and self.num_layers == 1:
            warn(f"{self._title}: dropout={self.dropout} drops nothing with num_layers=1: it stands between layers")
        self.dropout = float(self.dropout)
        self._names: list[list[str]] = []
        rows, out = GATES[self.mode] * size, projected or size
        for layer in range(self.num_layers):
            width = out * (1 + self.bidirectional) if layer else self.input_size
            shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
            if self.bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if projected:
                shapes["weight_hr"] = (projected, size)
            for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                self._names.append(list(names))
                for name, shape in names.items():
                    self.register_parameter(name, empty_parameter(shape, device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        draw_within(self, self.hidden_size)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Do nothing: no kernel here asks for parameters that lie one behind the other."""

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        sorted_indices = unsorted_indices = None
        if isinstance(input, PackedSequence):
            data, counts, sorted_indices, unsorted_indices = input
            batched, batch_sizes = True, tuple(counts.tolist())
            self._check_width(data, 2)
        else:
            only_tensors(input)
            if input.ndim not in {2, 3}:
                raise ShapeError(f"{self._title}: expected input of 2 or 3 dimensions, got shape {list(input.shape)}")
            batched = input.ndim == 3
            self._check_width(input, input.ndim)
            if batched and self.batch_first:
                input = transpose(input, 0, 1)
            steps, batch = input.shape[0], input.shape[1] if batched else 1
            if not steps:
                raise ShapeError(f"{self._title}: expected at least one step, got shape {list(input.shape)}")
            data, batch_sizes = flatten(input, 0, 1) if batched else input, (batch,) * steps
        first = self._first_state(data, hx, batch_sizes[0], batched=batched)
        if sorted_indices is not None and hx is not None:
            first = tuple(index_select(part, 1, sorted_indices) for part in first)
        # on CUDA all kinds are in PyTorch's lists, on the CPU what oneDNN computes there
        on_cpu = self.mode == "LSTM" and not self.proj_size and not isinstance(input, PackedSequence)
        lower = partial(lower_in_autocast, cpu=on_cpu)
        weights = [[lower(weight) for weight in weights] for weights in self.all_weights]
        data, last = self._run(lower(data), batch_sizes, tuple([lower(part) for part in first]), weights)
        if unsorted_indices is not None:
            last = tuple(index_select(part, 1, unsorted_indices) for part in last)
        if isinstance(input, PackedSequence):
            out: Any = PackedSequence(data, *input[1:])
        elif batched:
            out = reshape(data, (len(batch_sizes), batch_sizes[0], data.shape[-1]))
            out = transpose(out, 0, 1) if self.batch_first else out
        else:
            out, last = data, tuple(part.squeeze(1) for part in last)
        return out, last if self.mode == "LSTM" else last[0]

    def _run(
        self, data: Tensor, batch_sizes: tuple[int, ...], first: State, all_weights: Sequence[Sequence[Tensor]]
    ) -> tuple[Tensor, State]:
        """Return the outputs of the last layer, and the states at the ends of all layers and directions."""
        ends: list[State] = []
        directions = 1 + self.bidirectional
        for layer in range(self.num_layers):
            outputs: list[Tensor] = []
            for direction in range(directions):
                index = layer * directions + direction
                w_ih, w_hh, *others = all_weights[index]
                output, end = recurrence(
                    self.mode,
                    data,
                    batch_sizes,
                    tuple(part[index] for part in first),
                    (w_ih, w_hh),
                    (others[0], others[1]) if self.bias else (None, None),
                    others[-1] if self.proj_size else None,
                    backwards=direction == 1,
                )
                outputs.append(output)
                ends.append(end)
            data = outputs[0] if directions == 1 else cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                data = drop(data, self.dropout)
        return data, tuple(stack(list(parts)) for parts in zip(*ends, strict=True))

    @property
    def _title(self) -> str:
        return self.mode.partition("_")[0]

    def _check_width(self, data: Tensor, dims: int) -> None:
        if data.ndim != dims or data.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self._title}: expected input with last dimension {self.input_size} (input_size), "
                f"got shape {list(data.shape)}"
            )

    def _first_state(self, data: Tensor, hx: Any, batch: int, *, batched: bool) -> State:
        """Return the first states, of shape (layers and directions, B, size), as given or zeros."""
        rows = len(self._names)
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        if hx is None:
            return tuple(zeros(rows, batch, size, dtype=data.dtype, device=data.device) for size in sizes)
        if self.mode == "LSTM":
            if not isinstance(hx, tuple | list) or len(cast("Any", hx)) != 2:
                raise unfit(cast("Any", hx), "a pair of tensors, h_0 and c_0", "hx")
            states: State = tuple(cast("Any", hx))
        else:
            states = (hx,)
        only_tensors(*states)
        for name, part, size in zip(("h_0", "c_0"), states, sizes, strict=False):
            expected = (rows, batch, size) if batched else (rows, size)
            if tuple(part.shape) != expected:
                raise ShapeError(f"{self._title}: expected {name} of shape {list(expected)}, got {list(part.shape)}")
        return states if batched else tuple(part.unsqueeze(1) for part in states)

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
                 "bidirectional": False}  # fmt: skip
        shown += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join(shown)


class LSTM(RNNBase):
    """Returns ``output, (h_n, c_n)`` of a long short-term memory, called with ``input`` and ``(h_0, c_0)`` or zeros.

    ``i, f, g, o = W_ih x + b_ih + W_hh h + b_hh`` give ``c = sigmoid(f) c + sigmoid(i) tanh(g)`` and
    ``h = sigmoid(o) tanh(c)``, with `proj_size` ``h = W_hr (sigmoid(o) tanh(c))``.

    The input has the shape (T, B, input_size), with `batch_first` (B, T, input_size), or (T, input_size), or is a
    `PackedSequence`; states have the shape (layers * directions, B, size) whatever `batch_first`.

    >>> import lucid
    >>> from lucid import nn
    >>> output, (h, c) = nn.LSTM(2, 3, num_layers=2)(lucid.ones(5, 4, 2))
    >>> output.shape, h.shape
    (lucid.Size([5, 4, 3]), lucid.Size([2, 4, 3]))
    """

    @ranged
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Returns ``output, h_n`` of gated recurrent units, called with ``input`` and ``h_0`` or zeros.

    ``r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)`` and ``n = tanh(W_in x + b_in + r (W_hn h + b_hn))`` give
    ``h = (1 - z) n + z h``. Shapes are those of `LSTM`.

    >>> import lucid
    >>> from lucid import nn
    >>> output, h = nn.GRU(2, 3, bidirectional=True)(lucid.ones(5, 4, 2))
    >>> output.shape, h.shape
    (lucid.Size([5, 4, 6]), lucid.Size([2, 4, 3]))
    """

    @ranged
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class RNN(RNNBase):
    """Returns ``output, h_n``, ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, called with ``input`` and ``h_0`` or zeros.

    Shapes are those of `LSTM`.

    >>> import lucid
    >>> from lucid import nn
    >>> output, h = nn.RNN(2, 3, batch_first=True)(lucid.ones(4, 5, 2))
    >>> output.shape, h.shape
    (lucid.Size([4, 5, 3]), lucid.Size([1, 4, 3]))
    """

    @ranged
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity
