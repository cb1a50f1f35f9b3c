"""LSTMCell, GRUCell and RNNCell: single steps of recurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.modes.casting import lower_in_autocast
from lucid.errors import ShapeError
from lucid.nn.layers.layer import Layer, draw_within, empty_parameter
from lucid.ops.base.promotion import only_tensors
from lucid.ops.creation.filling import zeros
from lucid.ops.layers.linear import linear
from lucid.ops.recurrence.steps import STEPS
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.ops.recurrence.steps import State
    from lucid.tensor import Tensor


class RNNCellBase(Layer):
    """The base of the cells: `num_chunks` gates of `hidden_size` rows stand in the weights, one below the other.

    `weight_ih`, shape (gates * hidden_size, input_size), `weight_hh`, shape (gates * hidden_size, hidden_size), and
    `bias_ih` and `bias_hh`, shape (gates * hidden_size,) or None each, are parameters, uniform in [-s, s),
    s = 1 / sqrt(hidden_size), at first. Sizes below 1 raise a SettingError.

    >>> from lucid import nn
    >>> nn.RNNCellBase(2, 3, bias=True, num_chunks=4).weight_ih.shape
    lucid.Size([12, 2])
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    @ranged
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter((rows, input_size), device, dtype)
        self.weight_hh = empty_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        draw_within(self, self.hidden_size)

    def step(self, mode: str, input: Tensor, hx: tuple[Any, ...] | None) -> State:
        """Return the state after a step of this mode, from `hx` or from zeros."""
        title = type(self).__name__
        only_tensors(input, *(hx or ()))
        if input.ndim not in {1, 2} or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{title}: expected input of shape (B, {self.input_size}) or ({self.input_size},), "
                f"got shape {list(input.shape)}"
            )
        batched = input.ndim == 2
        data = input if batched else input.unsqueeze(0)
        if hx is None:
            start = zeros(data.shape[0], self.hidden_size, dtype=data.dtype, device=data.device)
            state: State = (start,) * (2 if mode == "LSTM" else 1)
        else:
            expected = (*input.shape[:-1], self.hidden_size)
            for part in hx:
                if tuple(part.shape) != expected:
                    raise ShapeError(f"{title}: expected hx of shape {list(expected)}, got {list(part.shape)}")
            state = hx if batched else tuple(part.unsqueeze(0) for part in hx)
        w_ih, w_hh, b_ih, b_hh = map(lower_in_autocast, (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh))
        state = tuple([lower_in_autocast(part) for part in state])
        state = STEPS[mode](linear(lower_in_autocast(data), w_ih, b_ih), state, w_hh, b_hh)
        return state if batched else tuple(part.squeeze(0) for part in state)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")


class LSTMCell(RNNCellBase):
    """Returns ``(h, c)`` after one step of an `LSTM`, called with ``input`` and ``(h_0, c_0)`` or zeros.

    The input has the shape (B, input_size) or (input_size,), states (B, hidden_size) or (hidden_size,).

    >>> import lucid
    >>> from lucid import nn
    >>> h, c = nn.LSTMCell(2, 3)(lucid.ones(4, 2))
    >>> h.shape
    lucid.Size([4, 3])
    """

    @ranged
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: Dtype | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        if hx is not None and (not isinstance(hx, tuple | list) or len(cast("Any", hx)) != 2):
            raise unfit(hx, "a pair of tensors, h_0 and c_0", "hx")
        return self.step("LSTM", input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """Returns ``h`` after one step of a `GRU`, called with ``input`` and ``h_0`` or zeros; shapes as of `LSTMCell`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.GRUCell(2, 3)(lucid.ones(4, 2)).shape
    lucid.Size([4, 3])
    """

    @ranged
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: Dtype | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step("GRU", input, None if hx is None else (hx,))[0]


class RNNCell(RNNCellBase):
    """Returns ``h`` after one step of an `RNN`, called with ``input`` and ``h_0`` or zeros; shapes as of `LSTMCell`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.RNNCell(2, 3)(lucid.ones(2)).shape
    lucid.Size([3])
    """

    @ranged
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step(f"RNN_{self.nonlinearity.upper()}", input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")
