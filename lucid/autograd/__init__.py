"""Recording, backward, hooks and everything about gradients."""

from __future__ import annotations

from lucid.autograd import base, graph
from lucid.autograd.anomaly import detect_anomaly, set_detect_anomaly
from lucid.autograd.functions import backward, grad
from lucid.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from lucid.autograd.hooks import RemovableHandle
from lucid.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
