"""Steps that change nothing where a flag on the device says so, unknown to the host: what a `GradScaler` asks for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import grad_of
from lucid.backend import gpu
from lucid.optim.elementwise import ElementwiseOptimizer
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from lucid.backend.arrays import Array


def skips_on_device(optimizer: object, device: int) -> bool:
    """Return whether all that a step would change is on a CUDA device, whose kernels can leave it as it is."""
    if not isinstance(optimizer, ElementwiseOptimizer) or optimizer.step_kernel is None:
        return False
    kind = type(optimizer)
    # of what a class does beside, only the host can leave it out
    if kind.step is not Optimizer.step or kind.update is not ElementwiseOptimizer.update:
        return False
    for group in optimizer.param_groups:
        names = optimizer.state_names(group)
        counted = "step" in names
        if counted and not group["capturable"]:
            return False
        # state that a first step fills in another way must not be made by one that does not take place
        settings = {**group, "lr": 0.0}
        apart = names and not counted and optimizer.numbers(settings, 1) != optimizer.numbers(settings, math.inf)
        for param in group["params"]:
            if grad_of(param) is None:
                continue
            elsewhere = not param.is_cuda or gpu.device_index(param.array) != device
            if elsewhere or (apart and not optimizer.state.get(param)):
                return False
    return True


def step_unless(optimizer: Any, found: Array, **kwargs: Any) -> Any:
    """Return what `step` returns, which changes nothing where a flag, a float32 number on the device, is not 0."""
    attributes: dict[str, Any] = optimizer.__dict__
    attributes["_found"] = found
    try:
        return optimizer.step(**kwargs)
    finally:
        attributes.pop("_found", None)
