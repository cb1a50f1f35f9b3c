"""What tests of graphs are made of: random numbers on the device."""

from __future__ import annotations

import lucid


def drawn(rng, *shape, **settings):
    """Return a CUDA tensor of random numbers."""
    return lucid.tensor(rng.standard_normal(shape).astype("f"), device="cuda", **settings)
