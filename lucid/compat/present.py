"""PyTorch's names in `names.json`, whether lucid has them, and why others are absent on purpose."""

from __future__ import annotations

import json
import pkgutil
import re
from pathlib import Path
from typing import NamedTuple

from lucid.public import publish as _publish

__all__ = ["Name", "coverage", "is_present"]

# What lucid has only to say what to use instead.
REFUSED = {"torch.nn.DataParallel", "torch.optim.SparseAdam"}

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


class Name(NamedTuple):
    """One of PyTorch's names: its namespace, how often it is used, whether lucid has it, and if not, why."""

    namespace: str
    name: str
    use: int
    present: bool
    reason: str


def is_present(path: str) -> bool:
    """Tell whether lucid has PyTorch's name `path` in its meaning; a ValueError if it is none of these.

    >>> from lucid.compat import is_present
    >>> is_present("torch.nn.Linear"), is_present("torch.nn.DataParallel")
    (True, False)
    """
    if not path.startswith("torch"):
        raise ValueError(f"is_present: expected one of PyTorch's names, such as torch.nn.Linear, got {path!r}")
    try:
        pkgutil.resolve_name(f"lucid{path.removeprefix('torch')}")
    except (AttributeError, ImportError):
        return False
    return path not in REFUSED


def reason(path: str) -> str:
    """Return the reason why lucid lacks PyTorch's name `path` on purpose; empty otherwise."""
    return next((why for pattern, why in _REASONS if re.fullmatch(pattern, path)), "")


def coverage() -> dict[str, list[Name]]:
    """Return for each of PyTorch's namespaces its names, the most used first.

    >>> from lucid.compat import coverage
    >>> coverage()["torch.nn"][0].name
    'Module'
    """
    rows: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
    return {
        namespace: [
            Name(namespace, name, use, present, "" if present else reason(f"{namespace}.{name}") or "not built yet")
            for name, use in sorted(names.items(), key=lambda item: (-item[1], item[0]))
            for present in (is_present(f"{namespace}.{name}"),)
        ]
        for namespace, names in rows.items()
    }


_publish(globals(), Name="lucid.compat", coverage="lucid.compat", is_present="lucid.compat")
