"""Tensors of no dimension in the place of numbers are taken and refused as PyTorch takes and refuses them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.number_rows import ROWS, Inputs

HEADS = "multi_head_attention_forward."
# PyTorch takes a float tensor for an int here, or one that requires grad for a number; lucid is the same everywhere.
LENIENT = {
    "float": {
        "manual_seed.seed", "split.split_size_or_sections", "tensordot.dims", "multi_margin_loss.p",
        HEADS + "embed_dim_to_check",
    },
    "grad": {
        "manual_seed.seed", "split.split_size_or_sections", "tensordot.dims", "normalize.eps",
        HEADS + "embed_dim_to_check", HEADS + "dropout_p",
        "linspace.start", "linspace.end", "logspace.start", "logspace.end",
        "gumbel_softmax.tau", "gumbel_softmax.eps", "gaussian_nll_loss.eps", "triplet_margin_with_distance_loss.margin",
        *("matrix_rank.tol", "matrix_rank.atol", "matrix_rank.rtol"),
        *("lp_pool1d.norm_type", "lp_pool2d.norm_type", "lp_pool3d.norm_type"),
        *("fractional_max_pool2d.output_ratio", "fractional_max_pool3d.output_ratio"),
        *(f"local_response_norm.{name}" for name in ("alpha", "beta", "k")),
    },
}  # fmt: skip
# PyTorch takes no tensor here.
STRICT = {
    "interpolate.scale_factor",
    *("fractional_max_pool3d.kernel_size", "fractional_max_pool3d.output_size"),
    *(f"max_unpool{d}d.{name}" for d in (1, 2, 3) for name in ("kernel_size", "stride", "padding", "output_size")),
    "unravel_index.shape",
    *(f"unfold.{name}" for name in ("kernel_size", "dilation", "padding", "stride")),
    *(f"fold.{name}" for name in ("output_size", "kernel_size", "dilation", "padding", "stride")),
}


def taken(module, row, number):
    """Return the arrays of a result, None if the number is refused as one."""
    module.manual_seed(0)
    try:
        result = ROWS[row](module, module.nn.functional, Inputs(module), number)
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
