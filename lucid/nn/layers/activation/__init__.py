"""Activations as layers: each calls the function of its name in `lucid.nn.functional`."""

from __future__ import annotations

from lucid.nn.layers.activation.rectifiers import CELU as CELU
from lucid.nn.layers.activation.rectifiers import ELU as ELU
from lucid.nn.layers.activation.rectifiers import SELU as SELU
from lucid.nn.layers.activation.rectifiers import Hardshrink as Hardshrink
from lucid.nn.layers.activation.rectifiers import Hardsigmoid as Hardsigmoid
from lucid.nn.layers.activation.rectifiers import Hardswish as Hardswish
from lucid.nn.layers.activation.rectifiers import Hardtanh as Hardtanh
from lucid.nn.layers.activation.rectifiers import LeakyReLU as LeakyReLU
from lucid.nn.layers.activation.rectifiers import MaybeInPlace as MaybeInPlace
from lucid.nn.layers.activation.rectifiers import PReLU as PReLU
from lucid.nn.layers.activation.rectifiers import ReLU as ReLU
from lucid.nn.layers.activation.rectifiers import ReLU6 as ReLU6
from lucid.nn.layers.activation.rectifiers import RReLU as RReLU
from lucid.nn.layers.activation.rectifiers import Shrink as Shrink
from lucid.nn.layers.activation.rectifiers import Softshrink as Softshrink
from lucid.nn.layers.activation.rectifiers import Threshold as Threshold
from lucid.nn.layers.activation.smooth import GELU as GELU
from lucid.nn.layers.activation.smooth import LogSigmoid as LogSigmoid
from lucid.nn.layers.activation.smooth import Mish as Mish
from lucid.nn.layers.activation.smooth import Sigmoid as Sigmoid
from lucid.nn.layers.activation.smooth import SiLU as SiLU
from lucid.nn.layers.activation.smooth import Softplus as Softplus
from lucid.nn.layers.activation.smooth import Softsign as Softsign
from lucid.nn.layers.activation.smooth import Tanh as Tanh
from lucid.nn.layers.activation.smooth import Tanhshrink as Tanhshrink
from lucid.nn.layers.activation.softmaxes import GLU as GLU
from lucid.nn.layers.activation.softmaxes import AlongDim as AlongDim
from lucid.nn.layers.activation.softmaxes import LogSoftmax as LogSoftmax
from lucid.nn.layers.activation.softmaxes import Softmax as Softmax
from lucid.nn.layers.activation.softmaxes import Softmax2d as Softmax2d
from lucid.nn.layers.activation.softmaxes import Softmin as Softmin
