"""Every elementwise op is one launch of a kernel, and so is every derivative; nothing waits for the device."""

from __future__ import annotations

import pytest

import lucid
from lucid.cuda.simulator import counters
from tests.gradients import flat, numbers, random_like, tensors_of
from tests.sample_rows import activation, elementwise

# Launches of the op, and of all its derivatives together, for ops that are made of others.
COMPOSED = {
    "integers": (3, 0),
    # a derivative of a higher order, times the gradient
    **dict.fromkeys(("lgamma", "lgamma:negative", "digamma", "polygamma:1", "polygamma:2", "i0"), (1, 2)),
    "mvlgamma": (8, 12),
    # a half of the gradient each
    **dict.fromkeys(("glu:0", "glu:-1"), (1, 2)),
    # the slope of the weight is summed
    **dict.fromkeys(("prelu:one", "prelu:number", "prelu:channels", "prelu:images"), (1, 3)),
}
# Derivatives that are zero everywhere: memory is cleared, by CuPy.
CLEARED = {"div:floor", "div:trunc", "floor_divide", "sign", "sgn", "floor", "ceil", "trunc", "round", "round:decimals",
           "round:tens"}  # fmt: skip
# Complex numbers have no kernels, nor has the angle of real ones: see docs/dev/kernels-long-tail.md.
WITHOUT = {"complex", "polar", "view_as_complex", "angle", "mul:real and complex number"}
ROWS = [row for row in (*elementwise.ROWS, *activation.ROWS) if row.dtypes and row.name not in WITHOUT]


def other_work():
    """Return launches of CuPy's kernels, copies and fills, waits, and bytes sent: counted on simulated devices."""
    own = sum(times for name, times in counters.kernels.items() if not name.startswith("cupy_"))
    return counters.launches - own + counters.copies, counters.synchronisations, counters.to_device


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_one_launch_for_each(row, dtype, rng, launched):
    """An op takes one launch, its derivatives at most one for each operand; CuPy and the host do nothing."""
    tensors = tensors_of(row.inputs(rng), dtype=dtype, device="cuda", requires_grad=row.differentiable)
    launched.clear()
    counters.reset()
    outputs = flat(row.op(*tensors))
    assert len(launched) == COMPOSED.get(row.name, (1, 0))[0], launched
    assert other_work() == (0, 0, 0)
    if not row.differentiable:
        return
    upstream = [lucid.tensor(random_like(rng, numbers(out)), dtype=out.dtype, device="cuda") for out in outputs]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    launched.clear()
    counters.reset()
    lucid.autograd.grad(outputs, wanted, upstream)
    if row.name in CLEARED:
        assert not launched
        assert other_work() == (len(wanted), 0, 0)
    else:
        assert len(launched) <= COMPOSED.get(row.name, (1, len(wanted)))[1], launched
        assert other_work() == (0, 0, 0)
