"""Padding layers: the input with elements added at its edges, as defined by `lucid.nn.functional.pad`.

`padding` is one number for all edges, or a pair of numbers for each dimension, the last dimension first; numbers below
zero cut elements off.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, per_axis
from lucid.settings.checks import ranged
from lucid.settings.ranges import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class Padding(Layer):
    """The base of padding layers: the last `axes` dimensions are padded in the same `mode`."""

    axes: int
    mode: str = "constant"
    _ranges: ClassVar = {"padding": whole(-sys.maxsize)}

    @ranged
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = per_axis(padding, 2 * self.axes)
        if len(self.padding) != 2 * self.axes:
            raise SettingError(
                f"{type(self).__name__}: padding: expected an int or {2 * self.axes} of them, got {len(self.padding)}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad(Padding):
    """The base of layers that fill edges with `value`."""

    @ranged
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={super().extra_repr()}, value={self.value}"


class ConstantPad1d(ConstantPad):
    """Returns sequences, shape (..., length), with `value` at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConstantPad1d((2, -1), 0.5)(lucid.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0.5000, 0.5000, 1.0000, 2.0000]])
    """

    axes = 1


class ConstantPad2d(ConstantPad):
    """Returns images, shape (..., height, width), with `value` at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConstantPad2d((1, 1, 0, 0), 0.5)(lucid.tensor([[[1.0, 2.0]]]))
    tensor([[[0.5000, 1.0000, 2.0000, 0.5000]]])
    """

    axes = 2


class ConstantPad3d(ConstantPad):
    """Returns volumes, shape (..., depth, height, width), with `value` at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConstantPad3d(1, 0.5)(lucid.ones(1, 2, 3, 4)).shape
    lucid.Size([1, 4, 5, 6])
    """

    axes = 3


class ZeroPad1d(Padding):
    """Returns sequences, shape (..., length), with zeros at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ZeroPad1d((1, 0))(lucid.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2.]])
    """

    axes = 1


class ZeroPad2d(Padding):
    """Returns images, shape (..., height, width), with zeros at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ZeroPad2d((1, 1, 0, 0))(lucid.tensor([[[1.0, 2.0]]]))
    tensor([[[0., 1., 2., 0.]]])
    """

    axes = 2


class ZeroPad3d(Padding):
    """Returns volumes, shape (..., depth, height, width), with zeros at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ZeroPad3d(1)(lucid.ones(1, 2, 3, 4)).shape
    lucid.Size([1, 4, 5, 6])
    """

    axes = 3


class ReflectionPad(Padding):
    """The base of layers that mirror the elements of their input at the edges."""

    mode = "reflect"


class ReflectionPad1d(ReflectionPad):
    """Returns sequences, shape (..., length), with their elements mirrored at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReflectionPad1d(1)(lucid.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    axes = 1


class ReflectionPad2d(ReflectionPad):
    """Returns images, shape (..., height, width), with their elements mirrored at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReflectionPad2d((1, 1, 0, 0))(lucid.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 1., 2., 3., 2.]]])
    """

    axes = 2


class ReflectionPad3d(ReflectionPad):
    """Returns volumes, shape (..., depth, height, width), with their elements mirrored at the edges.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReflectionPad3d(1)(lucid.ones(1, 2, 3, 4)).shape
    lucid.Size([1, 4, 5, 6])
    """

    axes = 3


class ReplicationPad(Padding):
    """The base of layers that repeat the elements at the edges of their input."""

    mode = "replicate"


class ReplicationPad1d(ReplicationPad):
    """Returns sequences, shape (..., length), with the elements at the edges repeated.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReplicationPad1d(1)(lucid.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    axes = 1


class ReplicationPad2d(ReplicationPad):
    """Returns images, shape (..., height, width), with the elements at the edges repeated.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReplicationPad2d((1, 1, 0, 0))(lucid.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[1., 1., 2., 3., 3.]]])
    """

    axes = 2


class ReplicationPad3d(ReplicationPad):
    """Returns volumes, shape (..., depth, height, width), with the elements at the edges repeated.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReplicationPad3d(1)(lucid.ones(1, 2, 3, 4)).shape
    lucid.Size([1, 4, 5, 6])
    """

    axes = 3


class CircularPad(Padding):
    """The base of layers that continue each edge of their input with the elements of the other end."""

    mode = "circular"


class CircularPad1d(CircularPad):
    """Returns sequences, shape (..., length), with the elements of the other end at each edge.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CircularPad1d(1)(lucid.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    axes = 1


class CircularPad2d(CircularPad):
    """Returns images, shape (..., height, width), with the elements of the other end at each edge.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CircularPad2d((1, 1, 0, 0))(lucid.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 1., 2., 3., 1.]]])
    """

    axes = 2


class CircularPad3d(CircularPad):
    """Returns volumes, shape (..., depth, height, width), with the elements of the other end at each edge.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CircularPad3d(1)(lucid.ones(1, 2, 3, 4)).shape
    lucid.Size([1, 4, 5, 6])
    """

    axes = 3
