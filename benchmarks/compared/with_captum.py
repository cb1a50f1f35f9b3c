"""The tasks with captum's layers."""

from __future__ import annotations

from typing import Any

import torch
from captum.attr import LayerActivation

from benchmarks.compared import model

LIB = torch


def net(**settings: Any) -> Any:
    return model.gpt(torch, **settings)


def capture(net: Any, x: Any) -> Any:
    return LayerActivation(net, [block.attn for block in net.blocks]).attribute(x)
