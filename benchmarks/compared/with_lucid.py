"""The tasks with `lucid.hooks`."""

from __future__ import annotations

from typing import Any

import lucid
from benchmarks.compared import model
from lucid import hooks

LIB = lucid


def net(**settings: Any) -> Any:
    return model.gpt(lucid, hooks.tap, **settings)


def capture(net: Any, x: Any) -> Any:
    with hooks.capture(net, "**.attn") as kept:
        net(x)
    return [kept[key] for key in kept]


def gradients(net: Any, x: Any) -> Any:
    with hooks.capture(net, "**.attn", "grad") as kept:
        net(x).sum().backward()
    return [kept["blocks.0.attn"], kept["blocks.3.attn"]]


def patch(net: Any, x: Any) -> Any:
    with hooks.capture(net, "blocks.1") as kept:
        net(x.flip(0))
    with hooks.edit(net, {"blocks.1": lambda _: kept["blocks.1"]}):
        return net(x)


def ablate(net: Any, x: Any) -> Any:
    with hooks.edit(net, {"blocks.1.attn": lambda output: output * 0}):
        return net(x)


def stop(net: Any, x: Any) -> Any:
    with hooks.capture(net, "blocks.1", stop_at="blocks.1") as kept:
        net(x)
    return kept["blocks.1"]


def nan(net: Any, x: Any) -> Any:
    with hooks.guard(net):
        return net(x)


def sweep(net: Any, x: Any) -> Any:
    hooks.table(net).filter(file="*model.py").remove()
    return net(x)


def scoped(net: Any, x: Any) -> Any:
    with hooks.scope():
        model.forgetful(net)
        return net(x)


def times(net: Any, x: Any) -> Any:
    with hooks.trace(net, backward=False) as seen:
        net(x)
    return {path: region.forward for path, region in seen.regions.items()}


def clip(net: Any, x: Any) -> Any:
    with hooks.edit(net, parameters={"blocks.0.attn.**": lambda grad: grad.clamp(-1, 1)}):
        net(x).sum().backward()
    return net.blocks[0].attn.out.weight.grad


def inside(net: Any, x: Any) -> Any:
    with hooks.capture(taps="gate") as kept:
        net(x)
    return [kept[key] for key in kept]


def flops(net: Any, x: Any) -> Any:
    with hooks.FlopHook() as counted:
        net(x)
    return counted.total
