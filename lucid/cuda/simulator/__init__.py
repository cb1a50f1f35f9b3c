"""CUDA devices that are simulated on the CPU, so that the CUDA path can be run, tested and debugged without a GPU.

With ``LUCID_CUDA_SIMULATOR=1`` in the environment (or another number of devices) tensors on ``"cuda"`` are arrays of a
stand-in for CuPy, and lucid's kernels are compiled for the CPU from the same source. Nothing here is fast.
"""

from __future__ import annotations

from lucid.cuda.simulator.counting import counters

__all__ = ["counters"]
