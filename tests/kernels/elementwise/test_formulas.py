"""A formula gives on the device what its chain gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.ops.base.formula.formulas import Formula
from tests.gradients import numbers
from tests.ops.base.formula.drawn import Plain, drawn

KERNEL = """
extern "C" __global__ void drawn{k}(const double* x, const double* y, double* out, double alpha, long long n) {{
    LUCID_FOR(i, n) out[i] = Drawn{k}()(x[i], y[i], alpha);
}}
"""


@pytest.mark.gpu
def test_drawn_formulas(rng):
    """Of drawn formulas the functor gives in float64 what NumPy gives operation by operation, to a few units."""
    formulas = [drawn(rng, length) for length in range(2, 40)]
    texts = [Formula(each).functor(f"Drawn{k}") + KERNEL.format(k=k) for k, each in enumerate(formulas)]
    module = lucid.cuda.compile('#include "elementwise.cuh"\n' + "\n".join(texts))
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan])
    x, y = (np.append(a.ravel(), rng.standard_normal(64)) for a in np.meshgrid(special, special))
    for k, each in enumerate(formulas):
        here, there, out = (lucid.tensor(a, device="cuda") for a in (x, y, x))
        module[f"drawn{k}"](1, 128, (here, there, out, 0.7, x.size))
        with np.errstate(all="ignore"):
            expected = each(Plain(), x, y, alpha=0.7)
        np.testing.assert_allclose(numbers(out), expected, rtol=1e-9, atol=1e-12)
