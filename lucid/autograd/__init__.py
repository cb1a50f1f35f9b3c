"""Reverse-mode differentiation: the graph, the engine that runs it backward, hooks, and functions of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd import function, graph
from lucid.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from lucid.autograd.engine.running import is_multithreading_enabled, set_multithreading_enabled
from lucid.autograd.entry import backward, grad
from lucid.autograd.function import Function, FunctionCtx
from lucid.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from lucid.autograd.hooks.handle import RemovableHandle
from lucid.autograd.modes.state import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from lucid.autograd.recording.saved_attributes import SavedTensor
from lucid.public import later as _later
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from lucid.autograd import functional, grad_mode, profiler
    from lucid.autograd.variable import Variable
else:
    # what training does without is imported when it is first asked for
    _LATER = {
        "functional": "lucid.autograd.functional", "grad_mode": "lucid.autograd.grad_mode",
        "profiler": "lucid.autograd.profiler", "Variable": "lucid.autograd.variable",
    }  # fmt: skip
    __getattr__, __dir__ = _later(globals(), _LATER)


__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "RemovableHandle", "SavedTensor", "Variable", "backward",
    "detect_anomaly", "enable_grad", "function", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck",
    "graph", "inference_mode", "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "is_multithreading_enabled", "no_grad", "profiler", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

_publish(globals())
