"""Cases of attention, and what it must give by formulas with all weights stored."""

from __future__ import annotations

import numpy as np

import lucid
from lucid.ops.layers import attention_cuda as on_cuda
from tests.kernels.near import assert_near, on_device, rounded

# Leading dimensions, queries, keys, features, features of values; shape of bias or keep, or "causal".
CASES = {
    "one": ((), 1, 1, 1, 1, None),
    "heads": ((2, 3), 33, 70, 20, 33, None),
    "matrices": ((), 70, 65, 64, 5, "causal"),
    "more keys": ((3,), 31, 97, 16, 16, "causal"),
    "wide": ((1, 2), 35, 33, 128, 100, "causal"),
    "bias for all": ((2, 2), 33, 31, 8, 8, (2, 2, 33, 31)),
    "bias for keys": ((2, 3), 17, 65, 8, 70, (2, 1, 1, 65)),
    "bias for queries": ((2, 3), 34, 31, 8, 8, (3, 34, 1)),
    "five dimensions": ((2, 1, 3), 18, 33, 8, 8, (18, 33)),
    "bias of five": ((2, 1, 3), 18, 33, 8, 8, (2, 1, 3, 18, 33)),
}


class Reference:
    """Attention of float64 numbers with all weights stored, by the formulas of kernels/layers/attention.cuh."""

    def __init__(self, case, dtype, rng, drop=0.0):
        lead, queries, keys, features, values, mask = CASES[case]
        shapes = (queries, features), (keys, features), (keys, values), (queries, values)
        self.q, self.k, self.v, self.g = (rounded(rng.standard_normal((*lead, *shape)), dtype) for shape in shapes)
        self.causal, self.drop, self.scale = mask == "causal", drop, features**-0.5
        self.bias = rounded(rng.standard_normal(mask), dtype) if isinstance(mask, tuple) else None
        self.keep = rng.random((*lead, queries, keys)) >= drop if drop else None

    def values(self):
        """Return out, total, and the gradients of q, k and v."""
        scores = self.scale * self.q @ self.k.swapaxes(-1, -2)
        scores += 0 if self.bias is None else self.bias
        if self.causal:
            scores = np.where(np.arange(scores.shape[-1]) > np.arange(scores.shape[-2])[:, None], -np.inf, scores)
        top = scores.max(-1, keepdims=True)
        total = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
        weights = np.exp(scores - total)
        kept = 1 if self.keep is None else self.keep / (1 - self.drop)
        out = (weights * kept) @ self.v
        delta = (self.g * out).sum(-1, keepdims=True)
        ds = weights * (kept * (self.g @ self.v.swapaxes(-1, -2)) - delta)
        to_q, to_k = self.scale * ds @ self.k, self.scale * ds.swapaxes(-1, -2) @ self.q
        return out, total[..., 0], to_q, to_k, (weights * kept).swapaxes(-1, -2) @ self.g

    def run(self, dtype, wide_bias=False):
        """Return the same from the device."""
        wide = "float64" if dtype == "float64" else "float32"
        q, k, v, g = (on_device(a, dtype).array for a in (self.q, self.k, self.v, self.g))
        bias = None if self.bias is None else on_device(self.bias, wide if wide_bias else dtype).array
        keep = None if self.keep is None else lucid.tensor(self.keep, device="cuda").array
        settings = {"scale": self.scale, "drop": self.drop, "causal": self.causal}
        out, total = on_cuda.attention(q, k, v, bias, keep, **settings)
        needs = (True, True, True, False)
        grads = on_cuda.attention_grad(g, q, k, v, bias, keep, out, total, needs=needs, **settings)
        assert grads[3] is None
        return out, total, *grads[:3]

    def check(self, dtype, **settings):
        for got, wanted in zip(self.run(dtype, **settings), self.values(), strict=True):
            assert_near(got, wanted, str(got.dtype))
