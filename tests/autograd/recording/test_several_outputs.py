"""Ops of several outputs, over all rows of `tests.samples`: real and complex, whichever of the outputs are used."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, NotDifferentiableError
from tests.gradients import (
    check_gradient,
    check_second_derivative,
    flat,
    inner,
    is_floating,
    numbers,
    outputs_and_gradients,
    random_like,
    tensors_of,
)
from tests.samples import all_samples


def recorded(sample, arrays):
    """Return the outputs of a row that require grad."""
    return [out for out in flat(sample.op(*tensors_of(arrays, sample.constants))) if out.requires_grad]


ROWS = [
    sample
    for sample in all_samples()
    if sample.differentiable and len(recorded(sample, sample.inputs(np.random.default_rng(0)))) > 1
]
# Rows that are for real numbers, and how they say so.
REFUSED = {
    "aminmax": "complex numbers have no order",
    "var_mean": "complex tensors are not supported",
    "std_mean": "complex tensors are not supported",
    **dict.fromkeys(["qr", *(row.name for row in ROWS if row.name.startswith("linalg.qr"))], "use sgn"),
}


def sizes(outputs):
    """Return outputs with the sizes of complex numbers, whose phases are free."""
    return [out.abs() if out.is_complex() else out for out in outputs]


# Rows whose op is written for real numbers, where vectors have a sign and no phase; and what is tried of them.
WITH_PHASES = {
    "svd": lambda a: sizes(lucid.svd(a)),
    **{
        row.name: lambda a, side="U" if row.name.endswith("upper") else "L": sizes(lucid.linalg.eigh(a + a.mH, side))
        for row in ROWS
        if row.name.startswith("linalg.eigh")
    },
}


def complex_inputs(sample, rng):
    """Return the inputs of a row with an imaginary part, where they are differentiated."""
    return [
        a + 0.3j * rng.standard_normal(a.shape) if is_floating(a) and place not in sample.constants else a
        for place, a in enumerate(map(np.asarray, sample.inputs(rng)))
    ]


def op_of(sample, used=None):
    """Return the op of a row; `used` is the one of its differentiable outputs that is looked at."""

    def op(*tensors):
        whole = WITH_PHASES.get(sample.name, sample.op) if tensors[0].is_complex() else sample.op
        outs = [out for out in flat(whole(*tensors)) if is_floating(out.array)]
        return outs if used is None else outs[used]

    return op


rows = pytest.mark.parametrize("sample", [pytest.param(row, id=row.name) for row in ROWS if row.name not in REFUSED])
every_row = pytest.mark.parametrize("sample", [pytest.param(row, id=row.name) for row in ROWS])


@rows
def test_complex_derivatives(sample, rng):
    """First and second derivatives of complex operands are those of finite differences."""
    arrays = complex_inputs(sample, rng)
    check_gradient(op_of(sample), arrays, rng, sample.constants)
    if sample.twice:
        check_second_derivative(op_of(sample), arrays, rng, sample.constants)


@pytest.mark.parametrize("name", REFUSED)
def test_rows_for_real_numbers_say_so(name, rng):
    """What has no complex form is refused in the forward."""
    sample = next(row for row in ROWS if row.name == name)
    with pytest.raises(DtypeError, match=REFUSED[name]):
        sample.op(*tensors_of(complex_inputs(sample, rng), sample.constants))


@pytest.mark.parametrize("name", WITH_PHASES)
def test_vectors_of_any_phase_are_refused(name, rng):
    """Where a loss depends on phases that are free, backward says so."""
    sample = next(row for row in ROWS if row.name == name)
    with pytest.raises(NotDifferentiableError, match="phase of complex vectors"):
        check_gradient(sample.op, complex_inputs(sample, rng), rng, sample.constants)


@pytest.mark.parametrize("inputs", [lambda s, rng: s.inputs(rng), complex_inputs], ids=["real", "complex"])
@every_row
def test_one_output_is_used(sample, inputs, rng):
    """An output without a gradient counts as one of zeros: first and second derivatives of each output alone."""
    if inputs is complex_inputs and sample.name in REFUSED:
        return
    arrays = [np.asarray(a) for a in inputs(sample, rng)]
    count = len(op_of(sample)(*tensors_of(arrays, sample.constants)))
    for used in {0, count - 1}:
        check_gradient(op_of(sample, used), arrays, rng, sample.constants, may_be_constant=True)
        if sample.twice and op_of(sample, used)(*tensors_of(arrays, sample.constants)).requires_grad:
            check_second_derivative(op_of(sample, used), arrays, rng, sample.constants)


@pytest.mark.gpu
@rows
def test_complex_on_cuda(sample, rng):
    """On CUDA complex gradients, also recorded ones and their own, are those of the CPU."""
    arrays = complex_inputs(sample, rng)
    drawn = {}

    def draw(place, array):
        return drawn.setdefault((place, array.shape), random_like(rng, array))

    results = {}
    for device in ("cpu", "cuda"):
        tensors = tensors_of(arrays, sample.constants, device=device)
        grads = outputs_and_gradients(op_of(sample), tensors, draw)[1]
        if sample.twice:
            outs = [out for out in op_of(sample)(*tensors) if out.requires_grad]
            wanted = [tensor for tensor in tensors if tensor.requires_grad]
            upstream = [lucid.tensor(draw(k, numbers(out)), device=device) for k, out in enumerate(outs)]
            first = lucid.autograd.grad(outs, wanted, upstream, create_graph=True)
            again = [grad for grad in first if grad.requires_grad]
            if again:
                seeds = [lucid.tensor(draw(-1 - k, numbers(grad)), device=device) for k, grad in enumerate(again)]
                grads = [*grads, *lucid.autograd.grad(again, wanted, seeds, allow_unused=True)]
        assert all(grad is None or grad.device.type == device for grad in grads)
        results[device] = [None if grad is None else numbers(grad) for grad in grads]
    for here, there in zip(results["cpu"], results["cuda"], strict=True):
        assert (here is None) == (there is None)
        if here is not None:
            np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("cut", ["chunk", "split", "unbind", "iteration"])
def test_cutting_a_complex_tensor(cut, rng):
    """The gradient of the parts of a complex tensor, some of them unused, is that of indexing."""
    array = random_like(rng, np.zeros((4, 3), np.complex128))
    weight = random_like(rng, array)
    cuts = {
        "chunk": lambda x: x.chunk(4),
        "split": lambda x: x.split([1, 1, 1, 1]),
        "unbind": lambda x: x.unbind(),
        "iteration": list,
    }
    x, w = lucid.tensor(array, requires_grad=True), lucid.tensor(weight)
    parts = cuts[cut](x)
    ((parts[1] * w[1]).sum() + (parts[3] ** 2).sum()).real.backward()
    expected = np.zeros_like(array)
    expected[1], expected[3] = np.conj(weight[1]), np.conj(2 * array[3])
    np.testing.assert_allclose(numbers(x.grad), expected, rtol=1e-12)
    direction = random_like(rng, array)
    slope = inner(direction[1], np.conj(weight[1])) + inner(direction[3], np.conj(2 * array[3]))
    assert inner(direction, numbers(x.grad)) == pytest.approx(slope)
