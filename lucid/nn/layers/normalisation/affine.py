"""Parameters that scale and shift normalised values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.nn import init
from lucid.nn.layers.layer import empty_parameter
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter


class Affine(Module):
    """The base of layers that scale and shift their result by parameters of one shape."""

    weight: Parameter | None
    bias: Parameter | None

    def register_affine(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Device, dtype: Dtype | None
    ) -> None:
        """Register the parameters, or the names of those that are left out."""
        self.register_parameter("weight", empty_parameter(shape, device, dtype, 1.0) if weight else None)
        self.register_parameter("bias", empty_parameter(shape, device, dtype) if bias else None)

    def reset_parameters(self) -> None:
        """Set the parameters to ones and zeros again."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
