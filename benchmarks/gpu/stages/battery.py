"""Each row of the table of ops in each dtype: CUDA against the CPU, values and gradients, and against itself.

What comes out with other bits from the same call is "moving": no failure, since some sums are documented to.
"""

from __future__ import annotations

import warnings
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu.rows import Group, Row, Stage, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu.rows import Scope, Setting

MOST_PROCESSES = 12


def outcome(sample: Any, dtype: str, device: str) -> tuple[list[Any], list[Any]]:
    """Return values and gradients on a device, as arrays of NumPy; the same numbers go in on each."""
    import lucid
    from tests.gradients import flat, numbers, outputs_and_gradients, random_like, tensors_of

    seed = zlib.crc32(f"{sample.name} {dtype}".encode())
    rng = np.random.default_rng(seed)
    lucid.manual_seed(seed)
    lucid.set_default_device(device)
    try:
        arrays = sample.inputs(rng)
        given = tensors_of(arrays, sample.constants, requires_grad=sample.differentiable, dtype=dtype, device=device)
        if not sample.differentiable:
            return [numbers(value) for value in flat(sample.op(*given))], []

        def upstream(_: int, array: Any) -> Any:
            # bfloat16's kind is V; it is drawn wide and rounded by the tensor
            return random_like(rng, array.astype(np.float64) if array.dtype.kind == "V" else array)

        values, grads = outputs_and_gradients(sample.op, given, upstream)
        return [numbers(value) for value in values], [None if grad is None else numbers(grad) for grad in grads]
    finally:
        lucid.set_default_device("cpu")


def compared(sample: Any, dtype: str) -> dict[str, object]:
    """Return whether two runs on CUDA have the same bits; AssertionError says where the CPU's numbers are others."""
    from tests.ops.test_samples import GRADIENT, VALUE, check_close

    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        cpu, cuda, again = (outcome(sample, dtype, device) for device in ("cpu", "cuda", "cuda"))
    factor = sample.tolerance.get(dtype, VALUE[dtype]) / VALUE[dtype]
    for what, error, ours, theirs in zip(("value", "gradient"), (VALUE, GRADIENT), cuda, cpu, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            if (one is None) != (other is None):
                raise AssertionError(f"{what}: None on one device only")
            if one is None:
                continue
            if one.dtype != other.dtype:
                raise AssertionError(f"{what}: {one.dtype} on CUDA, {other.dtype} on the CPU")
            check_close(one, other, factor * error[dtype], what)
    first, second = (
        [array.tobytes() for array in (*values, *grads) if array is not None] for values, grads in (cuda, again)
    )
    return {} if first == second else {"moving": True}


def rows(_: Scope) -> Sequence[Row]:
    from tests.gradients import is_floating
    from tests.samples import all_samples

    made: list[Row] = []
    for sample in all_samples():
        arrays = sample.inputs(np.random.default_rng(0))
        casts = any(is_floating(array) and array.dtype.kind != "c" for array in arrays)
        dtypes = sample.dtypes if casts else sample.dtypes[:1]
        made += [Row(f"{sample.name} {dtype}", partial(compared, sample, dtype)) for dtype in dtypes]
    return made


def groups(setting: Setting) -> Sequence[Group]:
    # an error is then raised by the row that causes it
    return [Group("", min(MOST_PROCESSES, setting.processors), {"CUDA_LAUNCH_BLOCKING": "1"})]


STAGE = Stage(working(rows), rehearsed=12, groups=groups)
