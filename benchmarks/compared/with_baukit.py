"""The tasks with baukit's `Trace` and `TraceDict`."""

from __future__ import annotations

import fnmatch
from typing import Any

import torch
from baukit import Trace, TraceDict

from benchmarks.compared import model

LIB = torch


def net(**settings: Any) -> Any:
    return model.gpt(torch, **settings)


def capture(net: Any, x: Any) -> Any:
    with TraceDict(net, [p for p, _ in net.named_modules() if fnmatch.fnmatch(p, "*.attn")], detach=True) as kept:
        net(x)
    return [each.output for each in kept.values()]


def gradients(net: Any, x: Any) -> Any:
    with TraceDict(net, [p for p, _ in net.named_modules() if fnmatch.fnmatch(p, "*.attn")], retain_grad=True) as kept:
        net(x).sum().backward()
    return [kept["blocks.0.attn"].output.grad, kept["blocks.3.attn"].output.grad]


def patch(net: Any, x: Any) -> Any:
    with Trace(net, "blocks.1", detach=True) as kept:
        net(x.flip(0))
    with Trace(net, "blocks.1", edit_output=lambda output: kept.output):
        return net(x)


def ablate(net: Any, x: Any) -> Any:
    with Trace(net, "blocks.1.attn", edit_output=lambda output: output * 0):
        return net(x)


def stop(net: Any, x: Any) -> Any:
    with Trace(net, "blocks.1", stop=True, detach=True) as kept:
        net(x)
    return kept.output
