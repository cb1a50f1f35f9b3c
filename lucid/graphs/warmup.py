"""Everything that a model needs on a CUDA device, compiled before training begins."""

from __future__ import annotations

import copy
import operator
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from threading import get_ident
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.base.capture import captures, check_not_capturing, waiting
from lucid.base.random.generator import get_rng_states, set_rng_states
from lucid.cuda.launch import kernels
from lucid.errors import ArgumentError
from lucid.graphs.graph import CUDAGraph, graph
from lucid.graphs.static import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# Those that take part in calls and in backward passes.
_HOOK_TABLES = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_output_hooks")


def warmup(model: Any, *inputs: Any, loss: Callable[[Any], Any] | None = None) -> None:
    """Run a model forward and backward once, so that every kernel of a training step is compiled and loaded.

    It runs a copy of the model, without hooks, on copies of the inputs: parameters, gradients, buffers, training flags,
    and whatever else the model keeps, stay as they are, however the run ends. So do the generators of random numbers.
    Memory is needed for a second set of parameters and buffers. Optimizers compile their kernel in their first step.

    Another copy goes first, in a capture that is thrown away: nothing is done on the device, and all cores compile what
    would be launched, as far as a graph can hold it. `lucid.cuda.synchronize` in another thread waits meanwhile.

    Parameters
    ----------
    model : nn.Module
        On a CUDA device.
    *inputs : object
        Its arguments, in the sizes, dtypes and layouts of training.
    loss : callable, optional
        ``loss(output)`` gives the tensor from which backward runs; by default the sum of all tensors in the output that
        require grad. With gradients off, or none required, only forward runs.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    TypeError
        If `model` is no module.
    CaptureError
        In a capture.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> if lucid.cuda.is_available():
    ...     model = nn.Linear(3, 2).cuda()
    ...     lucid.cuda.warmup(model, lucid.zeros(5, 3, device="cuda"))
    """
    gpu.cupy()
    check_not_capturing("warmup")
    if not hasattr(model, "modules"):
        raise ArgumentError(f"warmup: model: expected a module, got {type(model).__name__}")
    if loss is not None and not callable(loss):
        raise ArgumentError(f"warmup: loss: expected a callable or None, got {type(loss).__name__}")
    states = get_rng_states()
    try:
        _compile_ahead(_run_of_copy(model, inputs, loss))
        set_rng_states(states)
        _run_of_copy(model, inputs, loss)()
        # not the device: another thread may be in a capture on it
        gpu.current_stream().synchronize()
    finally:
        set_rng_states(states)


def _run_of_copy(model: Any, inputs: Sequence[Any], loss: Callable[[Any], Any] | None) -> Callable[[], None]:
    """Return a function that runs a copy of the model, on copies of the inputs, forward and backward."""
    twin, arguments = copy.deepcopy(model), copy.deepcopy([_detached(each) for each in inputs])
    for module in twin.modules():
        for name in _HOOK_TABLES:
            getattr(module, name).clear()

    def run() -> None:
        output = twin(*arguments)
        total = loss(output) if loss else _sum(output)
        if total is not None and total.requires_grad:
            total.backward()

    return run


def _compile_ahead(run: Callable[[], None]) -> None:
    """Compile the kernels that `run` would launch, on all cores; up to the first call that cannot be captured."""
    index = gpu.current_device()
    runs = kernels.driver()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "lucid-compile") as threads, waiting:
        if captures:
            # a capture begins by waiting for the device, which would end that of another thread
            return
        # what fails here fails again, or not, where it counts: in the run that follows
        with suppress(Exception), graph(CUDAGraph()):
            captures[get_ident()].ahead = lambda unit: threads.submit(gpu.run_on, index, runs.compile, unit)
            run()


def _detached(value: Any) -> Any:
    """Return a tensor as a leaf of its own, fit for copying; anything else as it is."""
    if not (hasattr(value, "detach") and hasattr(value, "requires_grad_")):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _sum(output: object) -> Any:
    """Return the sum of all tensors in an output that require grad, or None if there are none."""
    sums = [
        tensor.abs().sum() if tensor.is_complex() else tensor.sum()
        for tensor in tensors_in(output)
        if tensor.requires_grad
    ]
    return reduce(operator.add, sums) if sums else None
