"""Pooling layers; see `lucid.ops.pooling.pooling` for the meaning of their settings."""

from __future__ import annotations

from lucid.nn.layers.pooling.parts import AdaptiveAvgPool as AdaptiveAvgPool
from lucid.nn.layers.pooling.parts import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from lucid.nn.layers.pooling.parts import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from lucid.nn.layers.pooling.parts import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from lucid.nn.layers.pooling.parts import AdaptiveMaxPool as AdaptiveMaxPool
from lucid.nn.layers.pooling.parts import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from lucid.nn.layers.pooling.parts import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from lucid.nn.layers.pooling.parts import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from lucid.nn.layers.pooling.parts import FractionalMaxPool as FractionalMaxPool
from lucid.nn.layers.pooling.parts import FractionalMaxPool2d as FractionalMaxPool2d
from lucid.nn.layers.pooling.parts import FractionalMaxPool3d as FractionalMaxPool3d
from lucid.nn.layers.pooling.windows import AvgPool as AvgPool
from lucid.nn.layers.pooling.windows import AvgPool1d as AvgPool1d
from lucid.nn.layers.pooling.windows import AvgPool2d as AvgPool2d
from lucid.nn.layers.pooling.windows import AvgPool3d as AvgPool3d
from lucid.nn.layers.pooling.windows import AvgPoolWithDivisor as AvgPoolWithDivisor
from lucid.nn.layers.pooling.windows import LPPool as LPPool
from lucid.nn.layers.pooling.windows import LPPool1d as LPPool1d
from lucid.nn.layers.pooling.windows import LPPool2d as LPPool2d
from lucid.nn.layers.pooling.windows import LPPool3d as LPPool3d
from lucid.nn.layers.pooling.windows import MaxPool as MaxPool
from lucid.nn.layers.pooling.windows import MaxPool1d as MaxPool1d
from lucid.nn.layers.pooling.windows import MaxPool2d as MaxPool2d
from lucid.nn.layers.pooling.windows import MaxPool3d as MaxPool3d
from lucid.nn.layers.pooling.windows import MaxUnpool as MaxUnpool
from lucid.nn.layers.pooling.windows import MaxUnpool1d as MaxUnpool1d
from lucid.nn.layers.pooling.windows import MaxUnpool2d as MaxUnpool2d
from lucid.nn.layers.pooling.windows import MaxUnpool3d as MaxUnpool3d
