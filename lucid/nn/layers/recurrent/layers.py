"""LSTM, GRU and RNN: recurrence over whole sequences, in several layers and both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.nn.layers.recurrent.base import RNNBase
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype


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
