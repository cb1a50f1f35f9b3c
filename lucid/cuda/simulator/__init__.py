"""CUDA devices that are simulated on the CPU, so that the CUDA path can be run, tested and debugged without a GPU.

With ``LUCID_CUDA_SIMULATOR=1`` in the environment (or another number of devices) the CUDA libraries below CuPy's wheel
are simulated: tensors on ``"cuda"`` are arrays of the real CuPy; kernels, its own and lucid's, are built for the CPU
from the same source. ``python -m lucid.cuda.simulator script.py`` runs any script of CuPy's so. Nothing here is fast.
"""

from __future__ import annotations

from lucid.cuda.simulator.counting import counters

__all__ = ["counters"]
