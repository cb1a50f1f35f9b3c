"""Every kernel that lucid declares: parts of it are imported only when they are first asked for."""

from __future__ import annotations

import lucid
from lucid.cuda.launch.kernels import KERNELS

__all__ = ["KERNELS"]

# what declares kernels and comes late; test_nvrtc.py tells if something is missing here
for part in ("amp", "nn", "optim", "utils"):
    getattr(lucid, part)
