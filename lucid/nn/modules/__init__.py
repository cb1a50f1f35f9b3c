"""PyTorch's address of what concerns the modules of a whole process, and of each layer.

`lucid.nn.modules.conv`, `batchnorm`, `loss` and the others stand in `lucid.nn.modules.addresses`; the layers themselves
are those of `lucid.nn`.
"""

from __future__ import annotations

import sys

from lucid.nn.modules import addresses, lazy, module, utils

__all__ = ["lazy", "module", "utils"]

addresses.register(globals())


def __getattr__(name: str) -> object:
    if any(name in layers.split() for layers in addresses.LAYERS.values()):
        return getattr(sys.modules["lucid.nn"], name)
    raise AttributeError(f"module 'lucid.nn.modules' has no attribute {name!r}")
