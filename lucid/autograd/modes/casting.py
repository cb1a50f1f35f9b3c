"""Casts of an op's operands by `autocast`: the dtype of its computation, on each type of device.

The lists are PyTorch's. Most ops are primitives, which stand here by name and whose callers ask; those that are told a
dtype, or share a primitive with others, ask themselves, by `wide_in_autocast` and `lower_in_autocast`.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, version_of
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.modes.reading import note_leaves, watching
from lucid.autograd.modes.state import AUTOCAST_OFF, thread, unusual
from lucid.autograd.recording.namespace import GRAPH
from lucid.base.capture import captures
from lucid.base.dtype import dtype as Dtype
from lucid.base.dtype import dtype_of, float32
from lucid.errors import DtypeError

LOWER, WIDE, REFUSED = "lower", "float32", "refused"


class Policy(NamedTuple):
    """Cast of operands on each type of device: None leaves them as they are."""

    cpu: str | None
    cuda: str | None


def _all(names: str, cpu: str | None, cuda: str | None) -> dict[str, Policy]:
    return dict.fromkeys(names.split(), Policy(cpu, cuda))


POLICIES: dict[str, Policy] = {
    **_all("matmul linear addmm contract convolution convolution_input_grad attention prelu", LOWER, LOWER),
    **_all("squared_difference smooth_difference divergence logits_cross_entropy", WIDE, WIDE),
    "binary_cross_entropy": Policy(WIDE, REFUSED),
    **_all("acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan", None, WIDE),
    **_all("pow softplus logsumexp norm interpolated", None, WIDE),
}
"""By the name of a primitive."""


def lower_dtype(tensor: TensorBase) -> Dtype | None:
    """Return the lower dtype of `autocast` for operands on the device of `tensor`; None if it is off."""
    mode = thread.state.autocast
    if type(tensor.array) is np.ndarray:
        return mode.cpu_dtype if mode.cpu else None
    return mode.cuda_dtype if mode.cuda else None


def casts(tensor: TensorBase) -> bool:
    """Return whether `autocast` may cast a tensor: of float32 or a half type."""
    dtype = tensor.array.dtype
    return dtype.kind in "fV" and dtype.itemsize < 8


def cast_operands(name: str, policy: Policy, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a primitive's operands in the dtypes of its computation under this thread's `autocast`.

    Raises
    ------
    DtypeError
        If PyTorch refuses the op there, as half types do not hold its result.
    """
    if thread.state.autocast is AUTOCAST_OFF:
        return operands
    first = next((x for x in operands if isinstance(x, TensorBase)), None)
    lower = None if first is None else lower_dtype(first)
    if first is None or lower is None:
        return operands
    what = policy.cpu if type(first.array) is np.ndarray else policy.cuda
    if what is None:
        return operands
    if what == REFUSED:
        raise DtypeError(
            f"{name} is unsafe to autocast: probabilities near 0 and 1, and the gradient of their logarithms, are "
            f"beyond half types; use {name}_with_logits on what the sigmoid gets, or leave autocast for it"
        )
    wanted = lower if what == LOWER else float32
    return tuple([_cast(x, wanted) if isinstance(x, TensorBase) and casts(x) else x for x in operands])


def wide_in_autocast(tensor: Any, *, cpu: bool = False, cuda: bool = True) -> Any:
    """Return half tensors as float32 if `autocast` is on for such a device; all else as it is."""
    if not unusual or not isinstance(tensor, TensorBase) or not casts(tensor) or lower_dtype(tensor) is None:
        return tensor
    wide = cpu if type(tensor.array) is np.ndarray else cuda
    return _cast(tensor, float32) if wide else tensor


def lower_in_autocast(tensor: Any, *, cpu: bool = False) -> Any:
    """Return tensors of float32 and half types in the dtype of `autocast` if it is on; all else as it is."""
    if not unusual or not isinstance(tensor, TensorBase) or not casts(tensor):
        return tensor
    lower = lower_dtype(tensor) if cpu or type(tensor.array) is not np.ndarray else None
    return tensor if lower is None else _cast(tensor, lower)


def dtype_within(tensor: TensorBase) -> Any:
    """Return the NumPy dtype that an operand of a product has, once `autocast` has seen to it."""
    lower = lower_dtype(tensor) if unusual and casts(tensor) else None
    return tensor.array.dtype if lower is None else lower.numpy


def _cast(tensor: Any, wanted: Dtype) -> Any:
    """Return `tensor` in another dtype; a leaf's cast is made once in a block, and again when the leaf has changed."""
    if dtype_of(tensor.array) is wanted:
        return tensor
    state = thread.state
    edge = tensor.edge
    if (
        edge is None
        or type(edge[0]) is not AccumulateGrad
        or wanted is float32
        or not state.autocast.cache
        or not state.autocast_nesting
        # without recording a cast would lead nowhere, and what a capture makes holds nothing until it is replayed
        or not state.grad_mode.enabled
        or captures
    ):
        return GRAPH.cast(tensor, dtype=wanted.numpy)
    if watching:
        note_leaves((edge,))
    cache, key = state.autocast_cache, id(tensor)
    version, array = version_of(tensor)[0], tensor.array
    leaf, kept_version, kept_array, kept = cache.get(key, (None, 0, None, None))
    if (
        leaf is not None
        and leaf() is tensor
        and (kept_version, kept_array) == (version, id(array))
        and dtype_of(kept.array) is wanted
    ):
        return kept
    made = GRAPH.cast(tensor, dtype=wanted.numpy)
    cache[key] = weakref.ref(tensor), version, id(array), made
    return made
