"""The tasks with nnsight's traces."""

from __future__ import annotations

from typing import Any

import nnsight
import torch
from nnsight import NNsight

from benchmarks.compared import model

LIB = torch


def net(**settings: Any) -> Any:
    return NNsight(model.gpt(torch, **settings))


def capture(net: Any, x: Any) -> Any:
    with net.trace(x):
        kept = nnsight.save([block.attn.output for block in net.blocks])
    return kept


def gradients(net: Any, x: Any) -> Any:
    with net.trace(x):
        outputs = [net.blocks[0].attn.output, net.blocks[3].attn.output]
        with net.output.sum().backward():
            last = outputs[1].grad.save()
            first = outputs[0].grad.save()
    return [first, last]


def patch(net: Any, x: Any) -> Any:
    with net.trace(x.flip(0)):
        kept = net.blocks[1].output.save()
    with net.trace(x):
        net.blocks[1].output = kept
        result = net.output.save()
    return result


def ablate(net: Any, x: Any) -> Any:
    with net.trace(x):
        net.blocks[1].attn.output = net.blocks[1].attn.output * 0
        result = net.output.save()
    return result


def stop(net: Any, x: Any) -> Any:
    with net.trace(x) as tracer:
        kept = net.blocks[1].output.save()
        tracer.stop()
    return kept
