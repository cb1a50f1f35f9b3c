"""The tasks with PyTorch's own hooks, by hand."""

from __future__ import annotations

import contextlib
import fnmatch
import time
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.compared import model

LIB = torch
GATES: list[Any] = []


def net(**settings: Any) -> Any:
    return model.gpt(torch, lambda _, x: (GATES.append(x.detach()), x)[1], **settings)


def capture(net: Any, x: Any) -> Any:
    kept, handles = {}, []
    for path, module in net.named_modules():
        if fnmatch.fnmatch(path, "*.attn"):
            hook = lambda module, args, output, path=path: kept.update({path: output.detach()})
            handles.append(module.register_forward_hook(hook))
    try:
        net(x)
    finally:
        for handle in handles:
            handle.remove()
    return list(kept.values())


def gradients(net: Any, x: Any) -> Any:
    kept, handles = {}, []
    for path, module in net.named_modules():
        if fnmatch.fnmatch(path, "*.attn"):
            hook = lambda module, args, output, path=path: (
                output.register_hook(lambda grad: kept.update({path: grad.detach()})), None
            )[1]  # fmt: skip
            handles.append(module.register_forward_hook(hook))
    try:
        net(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return [kept["blocks.0.attn"], kept["blocks.3.attn"]]


def patch(net: Any, x: Any) -> Any:
    kept = []
    with net.blocks[1].register_forward_hook(lambda module, args, output: kept.append(output.detach())):
        net(x.flip(0))
    with net.blocks[1].register_forward_hook(lambda module, args, output: kept[0]):
        return net(x)


def ablate(net: Any, x: Any) -> Any:
    with net.blocks[1].attn.register_forward_hook(lambda module, args, output: output * 0):
        return net(x)


class Stop(Exception):
    pass


def stop(net: Any, x: Any) -> Any:
    kept = []

    def hook(module: Any, args: Any, output: Any) -> None:
        kept.append(output.detach())
        raise Stop

    with net.blocks[1].register_forward_hook(hook), contextlib.suppress(Stop):
        net(x)
    return kept[0]


def nan(net: Any, x: Any) -> Any:
    handles = []
    for path, module in net.named_modules():

        def hook(module: Any, args: Any, output: Any, path: str = path) -> None:
            if not torch.isfinite(output).all():
                raise FloatingPointError(path)

        handles.append(module.register_forward_hook(hook))
    try:
        return net(x)
    finally:
        for handle in handles:
            handle.remove()


def sweep(net: Any, x: Any) -> Any:
    for module in net.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks):
            for key in [key for key, hook in hooks.items() if hook.__code__.co_filename.endswith("model.py")]:
                del hooks[key]
    for parameter in net.parameters():
        hooks = parameter._backward_hooks or {}
        for key in [key for key, hook in hooks.items() if hook.__code__.co_filename.endswith("model.py")]:
            del hooks[key]
    return net(x)


def scoped(net: Any, x: Any) -> Any:
    owners = [*net.modules(), *net.parameters()]
    tables = [getattr(o, name, None) or {} for o in owners for name in ("_forward_hooks", "_backward_hooks")]
    before = [set(table) for table in tables]
    try:
        model.forgetful(net)
        return net(x)
    finally:
        tables = [getattr(o, name, None) or {} for o in owners for name in ("_forward_hooks", "_backward_hooks")]
        for table, keys in zip(tables, before, strict=True):
            for key in set(table) - keys:
                del table[key]


def times(net: Any, x: Any) -> Any:
    begun, took, handles = {}, {}, []
    for path, module in net.named_modules():
        before = lambda module, args, path=path: begun.update({path: time.perf_counter()})
        after = lambda module, args, output, path=path: took.update({path: time.perf_counter() - begun[path]})
        handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    try:
        net(x)
    finally:
        for handle in handles:
            handle.remove()
    return took


def clip(net: Any, x: Any) -> Any:
    handles = [p.register_hook(lambda grad: grad.clamp(-1, 1)) for p in net.blocks[0].attn.parameters()]
    try:
        net(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return net.blocks[0].attn.out.weight.grad


def inside(net: Any, x: Any) -> Any:
    GATES.clear()  # the model itself has to be written for it
    net(x)
    return [*GATES]


def flops(net: Any, x: Any) -> Any:
    with FlopCounterMode(display=False) as counted:
        net(x)
    return counted.get_total_flops()
