"""Tensors of no dimension in the place of numbers are taken and refused as PyTorch takes and refuses them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.calls import number_rows

ROWS = number_rows()

# PyTorch takes a float tensor for an int here, or one that requires grad for a number; lucid is the same everywhere.
EITHER = {
    "manual_seed.seed", "split.split_size_or_sections", "tensordot.dims",
    "nn.functional.multi_head_attention_forward.embed_dim_to_check",
}  # fmt: skip
LENIENT = {
    "float": EITHER | {"nn.functional.multi_margin_loss.p"},
    "grad": EITHER | {
        "linspace.start", "linspace.end", "logspace.start", "logspace.end", "linalg.matrix_rank.tol",
        *(f"nn.functional.{name}" for name in (
            "normalize.eps", "gumbel_softmax.tau", "gumbel_softmax.eps", "gaussian_nll_loss.eps",
            "triplet_margin_with_distance_loss.margin",
            "lp_pool1d.norm_type", "lp_pool2d.norm_type", "lp_pool3d.norm_type",
            "fractional_max_pool2d.output_ratio, several", "fractional_max_pool3d.output_ratio, several",
            "local_response_norm.alpha", "local_response_norm.beta", "local_response_norm.k",
        )),
    },
}  # fmt: skip
# PyTorch takes no tensor here, or not even the number: it has another form there.
STRICT = {
    "unravel_index.shape, several", "unsafe_split.split_size_or_sections, several",
    *(f"nn.functional.{name}" for name in (
        *("layer_norm.normalized_shape", "rms_norm.normalized_shape", "interpolate.scale_factor, several"),
        *(f"max_unpool{d}d.{key}" for d in (1, 2, 3) for key in ("kernel_size", "stride", "padding")),
        *(f"max_unpool{d}d.output_size, several" for d in (1, 2, 3)),
        *(f"adaptive_{kind}.output_size" for kind in ("avg_pool2d", "avg_pool3d", "max_pool2d")),
        *("lp_pool2d.kernel_size", "lp_pool3d.kernel_size"),
        *(f"{name}.{key}" for name in ("fold", "unfold") for key in ("dilation", "padding", "stride")),
    )),
}  # fmt: skip


def taken(module, row, number):
    """Return the arrays of a result, None if the number is refused as one."""
    module.manual_seed(0)
    try:
        result = ROWS[row](module, number)
    except TypeError if module is lucid else (TypeError, RuntimeError):
        return None
    return leaves(result)


def leaves(result):
    """Return the arrays and numbers of a result."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result.numpy(force=True) if hasattr(result, "numpy") else result)]


@pytest.mark.filterwarnings("ignore:.*eps. parameter is deprecated", "ignore:index_reduce:UserWarning")
@pytest.mark.parametrize("row", ROWS)
def test_taken_and_refused(row):
    """A tensor of the number's kind, one of floats, and one that requires grad: the same shapes, or both TypeErrors."""
    for kind, make in {
        "own": lambda module, value: module.tensor(value),
        "float": lambda module, value: module.tensor(float(value)),
        "grad": lambda module, value: module.tensor(float(value), requires_grad=True),
    }.items():
        ours = taken(lucid, row, lambda value, make=make: make(lucid, value))
        theirs = taken(torch, row, lambda value, make=make: make(torch, value))
        if row in STRICT:
            assert theirs is None
            continue
        if row in LENIENT.get(kind, ()):
            assert ours is None
            continue
        assert (ours is None) == (theirs is None), kind
        if ours is not None and theirs is not None:
            assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in theirs]
