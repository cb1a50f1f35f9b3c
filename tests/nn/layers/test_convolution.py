"""What rows cannot say of the transposed convolution layers: outputs of a size that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_output_size(axes, rng):
    """The sizes that one stride of inputs gives may be asked for, with batch and channels or without, and no others."""
    stride, padding, dilation = (3, 2, 3)[:axes], (1, 2, 0)[:axes], (2, 1, 3)[:axes]
    kernel = (3, 4, 2)[:axes]
    kind = getattr(nn, f"ConvTranspose{axes}d")
    layer = kind(4, 2, kernel, stride, padding, dilation=dilation).double()
    x = lucid.tensor(rng.standard_normal((2, 4, *(3, 2, 4)[:axes])))
    least = layer(x).shape
    for extra in np.ndindex(*stride):
        size = [n + more for n, more in zip(least[2:], extra, strict=True)]
        function = getattr(F, f"conv_transpose{axes}d")
        expected = function(x, layer.weight, layer.bias, stride, padding, extra, 1, dilation)
        assert list(expected.shape[2:]) == size
        for asked in (size, [*least[:2], *size]):
            np.testing.assert_array_equal(numbers(layer(x, asked)), numbers(expected))
    for size in ([least[2] - 1, *least[3:]], [least[2] + stride[0], *least[3:]]):
        with pytest.raises(ShapeError, match="requested an output size of") as error:
            layer(x, size)
        most = tuple(n + step - 1 for n, step in zip(least[2:], stride, strict=True))
        assert f"valid sizes range from {tuple(least[2:])} to {most} " in str(error.value)
    for given in (x, x[0]):
        dims = given.ndim
        for count in {*range(7)} - {axes, dims}:
            with pytest.raises(
                ValueError, match=rf"for {dims}D input, output_size must have {axes} or {dims} elements"
            ):
                layer(given, (7, 7, 7, *least[2:])[-count:] if count else ())


@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_layer_that_computes_its_weight(axes, mode, rng):
    """`_conv_forward`, which PyTorch's layers have, convolves with another weight, padded as the layer says."""
    kind = getattr(nn, f"Conv{axes}d")

    class Doubled(kind):
        def forward(self, input):
            return self._conv_forward(input, 2 * self.weight, None)

    layer = Doubled(2, 4, 3, padding=1, groups=2, padding_mode=mode).double()
    plain = kind(2, 4, 3, padding=1, groups=2, padding_mode=mode, bias=False).double()
    plain.load_state_dict({"weight": layer.weight.detach() * 2})
    x = lucid.tensor(rng.standard_normal((2, 2, *(5, 4, 3)[:axes])))
    np.testing.assert_allclose(numbers(layer(x)), numbers(plain(x)), rtol=1e-12)
