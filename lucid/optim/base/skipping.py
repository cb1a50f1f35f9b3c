"""Steps skipped by a flag on the device, unknown to the host, for a `GradScaler`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import grad_of
from lucid.base import gpu
from lucid.optim.base.algebra import HOST
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import counts_on_device
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from lucid.base.arrays import Array


def why_on_host(optimizer: Optimizer, device: int) -> str | None:
    """Return the reason, with the remedy, that only the host can skip a step; None if kernels of a CUDA device can."""
    kind = type(optimizer)
    # of what a class does beside, only the host can leave it out
    if (
        not isinstance(optimizer, ElementwiseOptimizer)
        or None in [step.kernel for step in optimizer.kernel_steps.values()]
        or kind.step is not Optimizer.step
        or kind.update is not ElementwiseOptimizer.update
    ):
        return "it does what no kernel of lucid's does: let one of lucid's optimizers take the step"
    for number, group in enumerate(optimizer.param_groups):
        names = optimizer.state_names(group)
        counted, by = "step" in names, optimizer.counted_by
        if counted and not counts_on_device(optimizer, group):
            return f"parameter group {number} counts its steps on the host: make the optimizer with {by}=True"
        # state that a first step fills in another way must not be made by one that does not take place
        settings = {**group, "lr": 0.0}
        apart = (
            names
            and not counted
            and optimizer.numbers(HOST, settings, 1) != optimizer.numbers(HOST, settings, math.inf)
        )
        for param in group["params"]:
            if grad_of(param) is None:
                continue
            if not param.is_cuda or gpu.device_index(param.array) != device:
                return f"a parameter of group {number} is not on cuda:{device}: keep all of an optimizer on one device"
            if apart and not optimizer.state.get(param):
                return (
                    f"its first step, which begins the state of group {number} in another way than later ones go on "
                    "with it, did not take place, since a gradient was not finite each time: take more steps before "
                    "(graphed_step's warmup), or begin with a smaller init_scale"
                )
    return None


def step_unless(optimizer: Any, overflow: Array, **kwargs: Any) -> Any:
    """Return the result of `step`, skipped if a flag, a float32 number on the device, is not 0."""
    attributes: dict[str, Any] = optimizer.__dict__
    attributes["_overflow"] = overflow
    try:
        return optimizer.step(**kwargs)
    finally:
        attributes.pop("_overflow", None)
