"""Interpolation against PyTorch: all modes with many sizes, factors and settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

import lucid
from lucid.ops.resampling.interpolation import FILTERED, INTERPOLATING, MODES, interpolate

CASES = [(mode, count) for mode, (_, counts) in MODES.items() for count in counts]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("mode", "count"), CASES)
def test_sizes_and_factors(mode, count, dtype, rng):
    """Values agree, and gradients where PyTorch's are those of its values."""
    for trial in range(18):
        shape = (2, 2, *rng.integers(2, 7, count))
        settings = {"mode": mode}
        if trial % 3:
            settings["scale_factor"] = tuple(rng.uniform(0.5, 3, count).tolist())
            settings["recompute_scale_factor"] = [None, True, False][trial % 5 % 3]
        else:
            settings["size"] = tuple(rng.integers(1, 13, count).tolist())
        if mode in INTERPOLATING:
            settings["align_corners"] = trial % 2 > 0
        if mode in FILTERED:
            settings["antialias"] = trial % 4 > 1
        x = rng.standard_normal(shape).astype(dtype)
        theirs, ours = torch.tensor(x, requires_grad=True), lucid.tensor(x, requires_grad=True)
        expected, got = functional.interpolate(theirs, **settings), interpolate(ours, **settings)
        if settings.get("antialias") and 1 in expected.shape[2:]:
            continue  # PyTorch's filter misreads images of one column
        error = 1e-12 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=error, atol=error)
        factors = [out / size for out, size in zip(expected.shape[2:], shape[2:], strict=True)]
        if "size" not in settings and any(factor in {1, 2} for factor in factors):
            continue
        upstream = rng.standard_normal(got.shape).astype(dtype)
        expected.backward(torch.tensor(upstream))
        got.backward(lucid.tensor(upstream))
        np.testing.assert_allclose(ours.grad.numpy(force=True), theirs.grad.numpy(), rtol=error, atol=error)


def test_the_same_nearest_elements(rng):
    """Positions are rounded as PyTorch rounds those of float32, so that the same elements are taken far out, too."""
    for size, out in rng.integers(1, 3000, (200, 2)).tolist():
        x = np.arange(size, dtype=np.float32)[None, None]
        got = interpolate(lucid.tensor(x), out)
        np.testing.assert_array_equal(got.cpu().numpy(), functional.interpolate(torch.tensor(x), out).numpy())


@pytest.mark.parametrize("settings", [{}, {"size": 3, "scale_factor": 2.0}, {"size": (2, 2)}, {"scale_factor": (1, 2)}])
def test_refused(settings):
    """What PyTorch refuses with a ValueError is one."""
    for module, tensor in ((functional, torch), (lucid.nn.functional, lucid)):
        with pytest.raises(ValueError, match=r"."):
            module.interpolate(tensor.ones(1, 1, 4), **settings)
