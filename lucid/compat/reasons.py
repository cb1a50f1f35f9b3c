"""Reasons for PyTorch's names that are absent on purpose, or only say their replacement."""

from __future__ import annotations

import re

# What lucid has only to say what to use instead.
REFUSED = {
    "torch.nn.DataParallel",
    "torch.optim.SparseAdam",
}

_FACTORS = "not built: CuPy has no such function of cuSOLVER, or it is rarely asked for; numpy.linalg, scipy.linalg"
_REASONS = (
    (r"torch\.distributed\.(\w*Store|rendezvous)", "MPI, or NCCL itself, exchanges addresses: no store is needed"),
    (r"torch\.distributed\.(DeviceMesh|init_device_mesh)", "each process has whole models and tensors; new_group"),
    (r"torch\.distributed\..*", "not built: groups, collectives and object lists are; mpi4py and nccl4py for the rest"),
    (r"torch\.distributions\..*", "not built yet; scipy.stats and cupyx.scipy.stats where no gradient is needed"),
    (r"torch\.func\.(functionalize|debug_unwrap)", "tensors are what they are: no wrappers, and no compiler that asks"),
    (r"torch\.func\.rearrange", "einops.rearrange, which takes lucid's tensors"),
    (r"torch\.linalg\..*", _FACTORS),
    (r"torch(\.Tensor)?\.(svd_lowrank|pca_lowrank|lu|solve)", _FACTORS),
    (r"torch\.special\..*", "not built yet: each needs a formula of its own; scipy.special and cupyx.scipy.special"),
    (r"torch\.optim\.SparseAdam", "no sparse tensors"),
    (r"torch\.nn\.DataParallel", "DistributedDataParallel, a process for each device, is what PyTorch recommends"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), why) for pattern, why in _REASONS)


def reason(path: str) -> str:
    """Return the reason why lucid lacks PyTorch's name `path` on purpose; empty otherwise."""
    return next((why for pattern, why in _COMPILED if pattern.fullmatch(path)), "")
